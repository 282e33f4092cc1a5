/* diameter.c - the longest shortest path, by bounds on eccentricities that each search tightens
 * (Takes, Kosters 2011).
 *
 * A search from v gives ecc(v) and d(v, .), against the edges d(., v). For every other node w:
 *   ecc(w) <= d(w, v) + ecc(v),   ecc(w) >= d(w, v),   ecc(w) >= ecc(v) - d(v, w).
 * A node whose upper bound does not exceed the largest eccentricity found is settled. Few searches
 * do on most graphs; where all nodes are alike each one is needed, unless that is known, and then
 * one is enough. Where searches settle nobody but the node that they began at, as on large random
 * graphs, and there are too many nodes for one each, few of them give the bounds that many would.
 */
#include <stdlib.h>

#include "topology/analysis/union.h"

enum { PATIENCE = 32 };

typedef struct bounding {
    uint32_t *low, *high, *from, *to, *queue; /* (nodes) each, in one allocation */
    uint32_t largest;                         /* eccentricity found */
    uint32_t searches, open;                  /* so far; nodes not settled */
} bounding;

static void tighten(bounding *s, const union_graph *g, uint32_t v, budget *b) {
    uint32_t ecc = sl_union_breadth_first(&g->out, g->nodes, v, s->from, s->queue, b);
    const uint32_t *to = s->from;
    if (g->directed) {
        sl_union_breadth_first(&g->in, g->nodes, v, s->to, s->queue, b);
        to = s->to;
    }
    s->largest = ecc > s->largest ? ecc : s->largest;
    for (uint32_t w = 0; w < g->nodes; w++) {
        uint32_t low = ecc > s->from[w] && ecc - s->from[w] > to[w] ? ecc - s->from[w] : to[w],
                 high = to[w] + ecc;
        s->low[w] = low > s->low[w] ? low : s->low[w];
        s->high[w] = high < s->high[w] ? high : s->high[w];
    }
    s->low[v] = s->high[v] = ecc;
    s->searches++;
}

/* The unsettled node with the highest upper bound, or the lowest lower bound, taken in turns;
 * UINT32_MAX: all are settled. */
static uint32_t choose(bounding *s, uint32_t nodes, bool outer) {
    uint32_t best = UINT32_MAX;
    s->open = 0;
    for (uint32_t w = 0; w < nodes; w++)
        if (s->high[w] > s->largest && s->low[w] < s->high[w]) {
            s->open++;
            if (best == UINT32_MAX ||
                (outer ? s->high[w] > s->high[best] : s->low[w] < s->low[best]))
                best = w;
        }
    return best;
}

static bool is_hopeless(const bounding *s, uint32_t nodes, uint64_t search_cost, const budget *b) {
    return s->searches >= PATIENCE && s->open + s->searches >= nodes &&
           s->open > b->left / search_cost;
}

int sl_union_diameter(sl_bounds *out, const union_graph *g, bool vertex_transitive,
                      sl_error *error) {
    size_t n = g->nodes;
    bounding s = {.low = calloc(5 * n, sizeof *s.low)};
    if (s.low == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the diameter of %zu nodes", n);
    s.high = s.low + n;
    s.from = s.high + n;
    s.to = s.from + n;
    s.queue = s.to + n;
    for (size_t w = 0; w < n; w++)
        s.high[w] = UINT32_MAX;
    budget b = {SL_ANALYSIS_WORK};
    uint32_t v = 0;
    bool outer = true;
    do {
        tighten(&s, g, v, &b);
        v = choose(&s, g->nodes, outer);
        outer = !outer;
        budget_spend(&b, 2 * n);
    } while (v != UINT32_MAX && !vertex_transitive && b.left > 0 &&
             !is_hopeless(&s, g->nodes, (SL_ANALYSIS_WORK - b.left) / s.searches, &b));
    uint64_t high = s.largest;
    for (size_t w = 0; w < n && !vertex_transitive; w++)
        high = s.high[w] > high ? s.high[w] : high;
    *out = (sl_bounds){s.largest, high};
    free(s.low);
    return 0;
}
