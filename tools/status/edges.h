/* edges.h - how the connections of a run are protected. */
#ifndef EDGES_H
#define EDGES_H

#include "starling/starling.h"

/* "edge 3: TLS 1.3, key, AES-256-GCM", a line for each agent that one of those asked is connected
 * with; one line, "all edges: ...", where these say the same. */
void print_edges(const sl_asked *all, size_t count);

#endif
