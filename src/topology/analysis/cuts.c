/* cuts.c - bridges and cut nodes in one depth-first walk (Hopcroft, Tarjan 1973), without
 * recursion: a path of 10^6 nodes is as deep. */
#include <stdlib.h>

#include "topology/analysis/union.h"

typedef struct walk {
    uint32_t *order;  /* (nodes) when it was first seen, from 1; 0: not yet */
    uint32_t *low;    /* (nodes) the earliest node seen from its subtree by one edge back */
    uint32_t *parent; /* (nodes) */
    uint64_t *next;   /* (nodes) the edge to be taken next */
    bool *cut;        /* (nodes) */
    uint32_t bridges, seen;
} walk;

/* Node i is done: what its parent p learns from it. A root is a cut node if it has a second child.
 */
static void leave(walk *w, uint32_t i, uint32_t p, uint32_t root, uint32_t *root_children) {
    if (w->low[i] < w->low[p])
        w->low[p] = w->low[i];
    w->bridges += w->low[i] > w->order[p];
    if (p == root)
        w->cut[root] = ++*root_children > 1;
    else if (w->low[i] >= w->order[p])
        w->cut[p] = true;
}

static void walk_from(walk *w, const adjacency *a, uint32_t root) {
    uint32_t i = root, children = 0;
    w->order[root] = w->low[root] = ++w->seen;
    w->next[root] = a->start[root];
    for (;;) {
        if (w->next[i] == a->start[i + 1]) {
            if (i == root)
                return;
            leave(w, i, w->parent[i], root, &children);
            i = w->parent[i];
            continue;
        }
        uint32_t j = a->peers[w->next[i]++];
        if (w->order[j] == 0) {
            w->order[j] = w->low[j] = ++w->seen;
            w->parent[j] = i;
            w->next[j] = a->start[j];
            i = j;
        } else if ((i == root || j != w->parent[i]) && w->order[j] < w->low[i]) {
            w->low[i] = w->order[j];
        }
    }
}

int sl_union_cuts(const union_graph *g, uint32_t *bridges, uint32_t *cut_nodes, uint32_t *first,
                  sl_error *error) {
    size_t n = g->nodes;
    walk w = {.order = calloc(3 * n, sizeof *w.order),
              .next = calloc(n, sizeof *w.next),
              .cut = calloc(n, sizeof *w.cut)};
    bool good = w.order != NULL && w.next != NULL && w.cut != NULL;
    if (good) {
        w.low = w.order + n;
        w.parent = w.low + n;
        for (uint32_t i = 0; i < n; i++)
            if (w.order[i] == 0)
                walk_from(&w, &g->both, i);
        *bridges = w.bridges;
        *cut_nodes = 0;
        *first = UINT32_MAX;
        for (uint32_t i = 0; i < n; i++)
            if (w.cut[i] && (*cut_nodes)++ == 0)
                *first = i;
    }
    free(w.order);
    free(w.next);
    free(w.cut);
    return good ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for the bridges of %zu nodes", n);
}
