/* best.h - which variants stand for their methods, and against which others are measured.
 *
 * What a method tunes are the swept keys of `optimizer` and `algorithm`. The other swept keys, as
 * of data, model or topology, are conditions: each method has a best variant under each.
 */
#ifndef BEST_H
#define BEST_H

#include "compare/comparison.h"

/* How rows are chosen and told. */
typedef struct view {
    statistic_kind over; /* seeds */
    const metric *by;    /* which chooses the best */
    const char *against; /* the method, or variant, that others are measured against */
    bool wide;
} view;

/* shown (c->count): the best of each method under each condition: that with the most seeds that
 * came to their end with a number, of these that with the best mean. Without a sweep all. */
void best_find(const comparison *c, const metric *by, bool *shown);
/* The one that r is measured against, under the same condition; NULL: there is none, or it is r. */
const contender *best_against(const comparison *c, const contender *r, const char *against,
                              const bool *shown);
/* Is there a method or variant of this name? */
bool best_knows(const study *s, const char *name);

#endif
