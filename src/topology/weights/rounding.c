/* rounding.c - see rounding.h.
 *
 * Where W was meant to be symmetric, W_ij and W_ji become their mean, and own weights do the rest.
 * Own weights alone can put right either the rows or the columns. Where both were meant to sum to
 * 1, what the columns then miss goes along a tree of the edges: to add e to W_ij and take it from
 * W_ii leaves row i as it is, and moves e from column i to column j.
 */
#include "topology/weights/rounding.h"

#include <math.h>
#include <stdlib.h>

enum { NOBODY = UINT32_MAX };

/* By how much the sums of rows (columns) miss 1 at most; infinite where it is more than rounding
 * makes of so many weights. */
static double sums_miss(const slot *p, const side *s, uint32_t nodes) {
    double worst = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        const double off = fabs(p->self[i] + sl_side_sum(s, i) - 1),
                     slack = SL_ROUNDED_WEIGHT * (double)(1 + s->start[i + 1] - s->start[i]);
        worst = off <= slack ? fmax(worst, off) : INFINITY;
    }
    return worst;
}

/* By how much W_ij and W_ji differ at most. An undirected slot has equal rows on both sides. */
static double directions_differ(const slot *p) {
    double worst = p->undirected ? 0 : INFINITY;
    for (uint64_t e = 0; p->undirected && e < p->edges; e++)
        worst = fmax(worst, fabs(p->in.weights[e] - p->out.weights[e]));
    return worst <= SL_ROUNDED_WEIGHT ? worst : INFINITY;
}

static void even_out_directions(slot *p) {
    for (uint64_t e = 0; e < p->edges; e++)
        p->in.weights[e] = p->out.weights[e] = (p->in.weights[e] + p->out.weights[e]) / 2;
}

/* Where own weights would fall below 0, all others are made smaller by as little. */
static void complete(slot *p, const side *s, uint32_t nodes) {
    double excess = 0;
    for (uint32_t i = 0; i < nodes; i++)
        if (p->self[i] >= 0)
            excess = fmax(excess, 1 - 1 / fmax(sl_side_sum(s, i), 1));
    for (uint64_t e = 0; excess > 0 && e < p->edges; e++) {
        p->in.weights[e] *= 1 - excess;
        p->out.weights[e] *= 1 - excess;
    }
    for (uint32_t i = 0; i < nodes; i++)
        p->self[i] = 1 - sl_side_sum(s, i);
}

/* ---- columns, too ---- */

typedef struct tree {
    uint32_t *order, *parent; /* (nodes) each behind its parent */
    double *excess;           /* (nodes) of the columns over 1 */
    uint32_t count;
} tree;

static bool tree_open(tree *t, uint32_t nodes) {
    *t = (tree){.order = malloc(nodes * sizeof *t->order),
                .parent = malloc(nodes * sizeof *t->parent),
                .excess = malloc(nodes * sizeof *t->excess)};
    return t->order && t->parent && t->excess;
}

static void tree_close(tree *t) {
    free(t->order);
    free(t->parent);
    free(t->excess);
}

static void grow(tree *t, const side *s, uint32_t node) {
    for (uint64_t e = s->start[node]; e < s->start[node + 1]; e++)
        if (t->parent[s->peers[e]] == NOBODY) {
            t->parent[s->peers[e]] = node;
            t->order[t->count++] = s->peers[e];
        }
}

/* Of each part of the graph one; a root is its own parent. */
static void span(tree *t, const slot *p, uint32_t nodes) {
    for (uint32_t i = 0; i < nodes; i++)
        t->parent[i] = NOBODY;
    for (uint32_t root = 0, done = 0; root < nodes; root++) {
        if (t->parent[root] != NOBODY)
            continue;
        t->parent[root] = root;
        for (t->order[t->count++] = root; done < t->count; done++) {
            grow(t, &p->in, t->order[done]);
            grow(t, &p->out, t->order[done]);
        }
    }
}

/* W_ij; NULL: there is no such edge. */
static double *weight_of(slot *p, uint32_t i, uint32_t j) {
    uint64_t low = p->in.start[i], end = p->in.start[i + 1], high = end;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        *(p->in.peers[middle] < j ? &low : &high) = p->in.peers[middle] < j ? middle + 1 : middle;
    }
    return low < end && p->in.peers[low] == j ? &p->in.weights[low] : NULL;
}

static void hand_up(tree *t, slot *p) {
    while (t->count-- > 0) {
        const uint32_t node = t->order[t->count], parent = t->parent[node];
        const double excess = t->excess[node];
        double *weight = weight_of(p, node, parent);
        if (node == parent)
            continue;
        t->excess[parent] += excess;
        *(weight != NULL ? weight : weight_of(p, parent, node)) +=
            weight != NULL ? excess : -excess;
        p->self[weight != NULL ? node : parent] += weight != NULL ? -excess : excess;
    }
}

static int even_out_columns(slot *p, uint32_t nodes, sl_error *error) {
    tree t;
    const bool opened = tree_open(&t, nodes);
    for (uint32_t i = 0; opened && i < nodes; i++)
        t.excess[i] = p->self[i] + sl_side_sum(&p->out, i) - 1;
    if (opened) {
        span(&t, p, nodes);
        hand_up(&t, p);
        sl_slot_mirror_weights(p, nodes);
    }
    tree_close(&t);
    return opened ? 0 : sl_fail(error, SL_ENOMEM, "weights: out of memory for %u nodes", nodes);
}

static double larger_finite(double a, double b) {
    return isinf(b) ? a : fmax(a, b);
}

/* *off: by how much they were; 0: they stay as they are. */
static int mend(slot *p, uint32_t nodes, double *off, sl_error *error) {
    const double rows = sums_miss(p, &p->in, nodes), columns = sums_miss(p, &p->out, nodes),
                 directions = directions_differ(p);
    *off = larger_finite(larger_finite(larger_finite(0, rows), columns), directions);
    if ((isinf(rows) && isinf(columns)) || *off <= SL_STOCHASTIC_TOLERANCE)
        *off = 0;
    if (*off <= 0)
        return 0;
    if (!isinf(directions))
        even_out_directions(p);
    complete(p, !isinf(rows) ? &p->in : &p->out, nodes);
    return isinf(directions) && !isinf(rows) && !isinf(columns) ? even_out_columns(p, nodes, error)
                                                                : 0;
}

/* Until nothing more is to be done: what is written of W is read as it is. Sums that are put right
 * can bring directions near enough to be meant as one. */
int sl_weights_mend_rounding(slot *p, uint32_t nodes, sl_error *error) {
    enum { TIMES = 4 };
    double off = 1;
    int result = 0;
    for (int i = 0; i < TIMES && off > 0 && result == 0; i++) {
        result = mend(p, nodes, &off, error);
        p->mended = fmax(p->mended, off);
    }
    return result;
}
