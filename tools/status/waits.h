/* waits.h - who waits for whom, and who they all wait for in the end. */
#ifndef WAITS_H
#define WAITS_H

#include "starling/starling.h"

/* What an agent said, or another has heard from it or of it. */
typedef struct view {
    uint32_t rank;
    bool answers;                             /* else the rest is unknown */
    char doing[24], words[SL_AGENT_WAIT_MAX]; /* words: whom it waits for */
    uint64_t round;                           /* 0: not known */
    double still_s;
    uint32_t *awaited; /* (awaited_count) ranks */
    size_t awaited_count;
} view;

typedef struct views {
    view *all; /* (count) sorted by rank; each rank once */
    size_t count;
} views;

/* Of all that were asked, and of those that they have heard of. are_by_rank: their ranks are known,
 * and they must say the same. False: out of memory. */
bool views_open(views *out, const sl_asked *all, size_t count, bool are_by_rank);
void views_close(views *views);

/* Does it wait for others, and has done so for a while? */
bool view_waits(const view *v);

/* A line for each agent that others wait for while it waits for nobody: "rank 5 computes round 812
 * since 41 s; 4, 6, 3, 7 wait for it". The nearest come first. False: out of memory. */
bool print_roots(const views *views);

#endif
