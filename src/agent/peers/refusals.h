/* refusals.h - counts whom an agent refuses, and tells of it: once of each, then how often a
 * minute.
 *
 * Strangers decide how often this happens, and what is said of it. So this must
 * cost little: few texts are remembered, and few lines are told a minute.
 */
#ifndef SL_REFUSALS_H
#define SL_REFUSALS_H

#include "starling/observer.h"

enum { SL_MATTERS_MAX = 16, SL_MATTER_TEXT_MAX = 384 };

/* What was told, and has come again since. */
typedef struct sl_matter {
    char text[SL_MATTER_TEXT_MAX]; /* "": this place is free */
    double told_s, came_s;
    uint64_t more; /* since it was told */
} sl_matter;

typedef struct sl_refusals {
    void (*notice)(void *context, const char *text); /* may be NULL */
    void *context;
    uint64_t *counts; /* (SL_REFUSED_KINDS) of the agent's record */
    sl_matter matters[SL_MATTERS_MAX];
    double since_s;  /* the minute that is under way */
    unsigned told;   /* new matters in it */
    uint64_t untold; /* refusals in it that no line tells of */
} sl_refusals;

/* `count` connections were refused. text, without "warning: ": who, where from and why, which is
 * the same whenever the same one is refused for the same reason: without its port. */
void sl_refusals_note(sl_refusals *r, double now_s, sl_refused kind, uint64_t count,
                      const char *text);
/* Tells how many there were, once a minute. */
void sl_refusals_tick(sl_refusals *r, double now_s);

#endif
