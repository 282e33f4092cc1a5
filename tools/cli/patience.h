/* patience.h - what takes longer than a second says so on a terminal: a bar with the time that is
 * left, where the work tells how far it is, and else how long it has taken. Anywhere else than on a
 * terminal it is silent. */
#ifndef PATIENCE_H
#define PATIENCE_H

#include "starling/types.h"

typedef struct patience patience;

/* One at a time. The text, such as "ranking topologies", is copied. NULL: there is no terminal, or
 * no thread to be had; all calls take it. */
patience *patience_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Through which the work tells how far it is, until patience_end; NULL where nobody looks. */
const sl_watch *patience_watch(void);
/* The same of what is no work of the library's. */
void patience_tell(double share);
/* Before other output: takes the bar away, until more is told. */
void patience_hide(void);
/* Waits until nothing is being drawn, and leaves nothing behind. */
void patience_end(patience *p);

#endif
