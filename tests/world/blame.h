/* blame.h - whom an error may name: the edges and nodes that a fault of this seed has touched. */
#ifndef BLAME_H
#define BLAME_H

#include <stdbool.h>
#include <stdint.h>

/* Nobody is. */
void blame_none(void);
void blame_edge(uint32_t a, uint32_t b);
/* And all its edges. */
void blame_node(uint32_t a);
/* Does the text name one of them: "edge 1->2", "node 1", or "agent 1:" at its beginning? */
bool blame_is_right(const char *text);

#endif
