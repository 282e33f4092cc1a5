/* view.h - who takes part from a round on, and which connections do not.
 *
 * Views are numbered, and are one sequence; models of different views are never mixed. A rank is
 * fixed for the run; a *place* is the index among the members.
 */
#ifndef STARLING_VIEW_H
#define STARLING_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_member {
    uint32_t rank;
    uint64_t incarnation; /* of its process: random, without an order */
} sl_member;

/* Who takes part, by rank alone. */
typedef struct sl_members {
    const uint32_t *ranks; /* (count) rising; NULL: 0 ... count - 1 */
    uint32_t count;
} sl_members;

/* Two ranks. */
typedef struct sl_pair {
    uint32_t low, high;
} sl_pair;

typedef struct sl_view {
    uint64_t number;          /* from 1: the view that a run begins with; it only grows */
    uint64_t round;           /* the first under it, from 1 */
    uint64_t exchange;        /* the last one before that round; 0: none */
    const sl_member *members; /* (count) rising by rank; borrowed, like broken */
    uint32_t count;
    const sl_pair *broken; /* (broken_count) edges between living members: rising, each once */
    uint32_t broken_count;
} sl_view;

/* Of all of it; not 0, and the same on every machine. Order and number of members matter. */
SL_API uint64_t sl_view_hash(const sl_view *view);
/* Do the fields keep what they promise above? Broken edges join members. For views from outside. */
SL_API bool sl_view_is_valid(const sl_view *view);
/* The place of a rank; `count`: it is no member. */
SL_API uint32_t sl_view_place(const sl_view *view, uint32_t rank);
/* Is the edge between these ranks, in either order, listed as broken? */
SL_API bool sl_view_is_broken(const sl_view *view, uint32_t a, uint32_t b);

#ifdef __cplusplus
}
#endif
#endif
