/* refusals.h - counts whom an agent refuses, and tells of it, ten times a second at most.
 *
 * Whoever reaches the port decides how often this happens, so that it must cost little: the lines
 * that are too many are counted, and one line says so.
 */
#ifndef SL_REFUSALS_H
#define SL_REFUSALS_H

#include "starling/observer.h"

typedef struct sl_refusals {
    void (*notice)(void *context, const char *text); /* may be NULL */
    void *context;
    uint64_t *counts; /* (SL_REFUSED_KINDS) of the agent's record */
    double since_s;   /* the second that is under way */
    unsigned told;    /* lines in it */
    uint64_t untold;  /* refusals in it without a line */
} sl_refusals;

/* `count` connections were refused; text: a line of it. */
void sl_refusals_note(sl_refusals *r, double now_s, sl_refused kind, uint64_t count,
                      const char *text);
/* Tells how many got no line, once the second is over. */
void sl_refusals_tick(sl_refusals *r, double now_s);

#endif
