/* graph.c - edge lists and compressed rows; see graph.h. */
#include "topology/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void edge_list_push_weighted(edge_list *list, uint32_t from, uint32_t to, double weight) {
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        sl_edge *edges = realloc(list->edges, room * sizeof *edges);
        if (edges == NULL) {
            list->out_of_memory = true;
            return;
        }
        list->edges = edges;
        list->room = room;
    }
    list->edges[list->count++] = (sl_edge){from, to, weight};
}

void edge_list_push(edge_list *list, uint32_t from, uint32_t to) {
    edge_list_push_weighted(list, from, to, NAN);
}

void edge_list_push_both(edge_list *list, uint32_t a, uint32_t b) {
    edge_list_push(list, a, b);
    edge_list_push(list, b, a);
}

void edge_list_free(edge_list *list) {
    free(list->edges);
    *list = (edge_list){0};
}

edge_list *edge_lists_add(edge_lists *all) {
    if (all->count == all->room) {
        uint32_t room = all->room ? 2 * all->room : 8;
        edge_list *lists = realloc(all->lists, room * sizeof *lists);
        if (lists == NULL) {
            all->lost.out_of_memory = true;
            return &all->lost;
        }
        all->lists = lists;
        all->room = room;
    }
    all->lists[all->count] = (edge_list){0};
    return &all->lists[all->count++];
}

void edge_lists_free(edge_lists *all) {
    for (uint32_t k = 0; k < all->count; k++)
        edge_list_free(&all->lists[k]);
    free(all->lists);
    edge_list_free(&all->lost);
    *all = (edge_lists){0};
}

static int by_to_then_from(const void *x, const void *y) {
    const sl_edge *a = x, *b = y;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

static bool side_allocate(side *s, uint32_t nodes, size_t edges) {
    s->start = calloc((size_t)nodes + 1, sizeof *s->start);
    s->peers = calloc(edges + 1, sizeof *s->peers);
    s->weights = calloc(edges + 1, sizeof *s->weights);
    return s->start && s->peers && s->weights;
}

static void side_free(side *s) {
    free(s->start);
    free(s->peers);
    free(s->weights);
}

void phase_free(phase *p) {
    side_free(&p->in);
    side_free(&p->out);
    free(p->self);
    *p = (phase){0};
}

/* Edges sorted by (to, from): rows of `in` are runs of them. */
static void fill_in(phase *p, const sl_edge *edges, size_t count, uint32_t nodes) {
    uint64_t at = 0;
    size_t e = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        p->in.start[i] = at;
        for (; e < count && edges[e].to == i; e++) {
            if (edges[e].from == i) {
                p->self[i] = edges[e].weight;
                continue;
            }
            p->in.peers[at] = edges[e].from;
            p->in.weights[at++] = edges[e].weight;
        }
    }
    p->in.start[nodes] = p->edges = at;
}

/* The other side, by counting: rows come out sorted, because `in` is walked in order of receivers. Weights follow in phase_weigh. */
static void fill_out(phase *p, uint32_t nodes) {
    uint64_t *start = p->out.start;
    for (uint64_t e = 0; e < p->edges; e++)
        start[p->in.peers[e] + 1]++;
    for (uint32_t i = 0; i < nodes; i++)
        start[i + 1] += start[i];
    for (uint32_t i = 0; i < nodes; i++)
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
            p->out.peers[start[p->in.peers[e]]++] = i;
    for (uint32_t i = nodes; i > 0; i--)
        start[i] = start[i - 1];
    start[0] = 0;
}

int phase_build(phase *out, const edge_list *list, uint32_t nodes, sl_error *error) {
    phase p = {0};
    sl_edge *edges = malloc((list->count + 1) * sizeof *edges);
    p.self = malloc(((size_t)nodes + 1) * sizeof *p.self);
    if (!edges || !p.self || !side_allocate(&p.in, nodes, list->count) || !side_allocate(&p.out, nodes, list->count) ||
        list->out_of_memory) {
        free(edges);
        phase_free(&p);
        return sl_fail(error, SL_ENOMEM, "out of memory for a graph of %u nodes and %zu edges", nodes, list->count);
    }
    for (uint32_t i = 0; i < nodes; i++)
        p.self[i] = NAN;
    if (list->count > 0)
        memcpy(edges, list->edges, list->count * sizeof *edges);
    qsort(edges, list->count, sizeof *edges, by_to_then_from);
    for (size_t e = 1; e < list->count; e++)
        if (edges[e].from == edges[e - 1].from && edges[e].to == edges[e - 1].to) {
            int result = sl_fail(error, SL_EINVAL,
                                 "edge [%u, %u] stands twice; list each direction at most once (an undirected edge without a "
                                 "weight once in all)", edges[e].from, edges[e].to);
            free(edges);
            phase_free(&p);
            return result;
        }
    fill_in(&p, edges, list->count, nodes);
    fill_out(&p, nodes);
    free(edges);
    /* Both sides are sorted by peer: undirected when they are the same. */
    p.undirected = memcmp(p.in.start, p.out.start, ((size_t)nodes + 1) * sizeof *p.in.start) == 0 &&
                   memcmp(p.in.peers, p.out.peers, p.edges * sizeof *p.in.peers) == 0;
    *out = p;
    return 0;
}
