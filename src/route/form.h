/* form.h - the forms of an all-reduce: who moves which piece to whom, step by step.
 *
 *   ring                n - 1 steps of one shard each, to the next place (Patarasuk, Yuan 2009)
 *   tree                binomial: h = 1, 2, 4, ...: place i + h to place i, where 2h divides i
 *   recursive-doubling  h = 1, 2, 4, ...: places i and i xor h swap the whole vector, and both add
 *   halving-doubling    h = p/2, ..., 1: they swap halves of what they still have (Rabenseifner
 *                       2004); bit h of i says which half a place keeps
 *   hierarchical        groups of neighbouring places: to the first of each, then these in a ring
 *   torus-2d            place r a + c in row r, column c: a ring in each row, then rings of the
 *                       shards in the columns (Mikami and others 2018)
 *   two-rings           of a torus: half of the vector rows first, half columns first, by turns
 *   double-tree         two in-order binary trees, in none of which an inner place of the other is
 *                       inner; half of the vector each, in blocks (Sanders, Speck, Träff 2009)
 *   star                all to its middle, at once
 *
 * A place stands in a sorted list of the members. In a step a place sends at most one piece to one
 * other and gets at most one; the middle of a star, to and from all others. The first half of an
 * all-reduce adds what comes; the second is the first one backwards, and replaces: what had gone
 * out comes back whole. Rings go on in their direction instead, so that a place waits for the one
 * before it only. Recursive doubling has all sums everywhere, so that only its fold goes back.
 * Fold: with p = 2^floor(log2 n), places from p on first send all to place i - p, and wait.
 *
 * Where messages are merged, they go up a tree too, after a fold; a server is the middle of a star.
 *
 * All places end with the same bits: each element is summed at one place, or, in recursive
 * doubling, pair by pair from equal parts. A step follows from its number in O(log n).
 */
#ifndef SL_FORM_H
#define SL_FORM_H

#include "starling/algorithm.h"

/* Shard k of n of a range: elements [k d / n, (k + 1) d / n) of it. */
static inline sl_range sl_shard(sl_range range, uint32_t k, uint32_t n) {
    const size_t whole = range.count / n, rest = range.count % n;
    const size_t from = whole * k + rest * k / n, end = whole * (k + 1) + rest * (k + 1) / n;
    return (sl_range){range.from + from, end - from};
}

typedef struct sl_form {
    sl_all_reduce_form kind;
    uint32_t places;
    uint32_t group;  /* places in a row, of a ring all, or in a group; 1 for forms without */
    uint32_t middle; /* of a star: the first place, or a server's */
    sl_range all;    /* what is summed up */
    bool folds;      /* of p places, with a fold before it */
} sl_form;

#define SL_NOWHERE UINT32_MAX
#define SL_EVERYWHERE (UINT32_MAX - 1) /* all other places */
/* Puts a place or a rank where it belongs in a sorted list; but none of these two, and none that is
 * there. How many are there then? */
uint32_t sl_peer_add(uint32_t *sorted, uint32_t count, uint32_t peer);

/* Of one place in one step. */
typedef struct sl_move {
    uint32_t to, from; /* or SL_NOWHERE, SL_EVERYWHERE */
    sl_range leaves, comes;
} sl_move;

/* The tree by which messages are merged. */
sl_form sl_form_of_merges(uint32_t places, size_t dimension);
/* group 0, or one that does not divide a torus: the largest divisor up to it, or up to sqrt n. */
sl_form sl_form_of(sl_all_reduce_form kind, uint32_t group, uint32_t places, size_t dimension);
/* At least one. gather: of the second half. */
uint32_t sl_form_steps(const sl_form *form, bool gather);
sl_move sl_form_move(const sl_form *form, bool gather, uint32_t place, uint32_t step);
/* What the place has whole sums of, that it is told of before this step of the second half. */
sl_range sl_form_summed(const sl_form *form, uint32_t place, uint32_t step);
/* The places that this one ever sends to or gets from, sorted; out: (places). */
uint32_t sl_form_partners(const sl_form *form, uint32_t place, uint32_t *out);

#endif
