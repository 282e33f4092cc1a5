/* graph.c - edge lists and compressed rows; see graph.h. */
#include "topology/graph/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sl_edge_list_reserve(edge_list *list, size_t room) {
    if (room <= list->room)
        return;
    sl_edge *edges = realloc(list->edges, room * sizeof *edges);
    if (edges == NULL) {
        list->out_of_memory = true;
        return;
    }
    list->edges = edges;
    list->room = room;
}

static void append(edge_list *list, uint32_t from, uint32_t to, double weight) {
    if (list->count == list->room)
        sl_edge_list_reserve(list, list->room ? 2 * list->room : 64);
    if (list->count < list->room)
        list->edges[list->count++] = (sl_edge){from, to, weight};
}

void sl_edge_list_push_weighted(edge_list *list, uint32_t from, uint32_t to, double weight) {
    list->weighted = list->one_way = true;
    append(list, from, to, weight);
}

void sl_edge_list_push(edge_list *list, uint32_t from, uint32_t to) {
    list->one_way = true;
    append(list, from, to, NAN);
}

void sl_edge_list_push_both(edge_list *list, uint32_t a, uint32_t b) {
    append(list, a, b, NAN);
    append(list, b, a, NAN);
}

void sl_edge_list_close(edge_list *list) {
    free(list->edges);
    *list = (edge_list){0};
}

edge_list *sl_edge_lists_add(edge_lists *all) {
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

void sl_edge_lists_close(edge_lists *all) {
    for (uint32_t k = 0; k < all->count; k++)
        sl_edge_list_close(&all->lists[k]);
    free(all->lists);
    sl_edge_list_close(&all->lost);
    sl_edge_list_close(&all->inner);
    *all = (edge_lists){0};
}

static bool side_allocate(side *s, uint32_t nodes, size_t edges) {
    s->start = calloc((size_t)nodes + 1, sizeof *s->start);
    s->peers = calloc(edges + 1, sizeof *s->peers);
    s->weights = calloc(edges + 1, sizeof *s->weights);
    return s->start && s->peers && s->weights;
}

static void side_close(side *s) {
    free(s->start);
    free(s->peers);
    free(s->weights);
}

void sl_slot_close(slot *p) {
    side_close(&p->in);
    side_close(&p->out);
    free(p->self);
    *p = (slot){0};
}

typedef struct entry {
    uint32_t peer;
    double weight;
} entry;

static int by_peer(const void *x, const void *y) {
    const entry *a = x, *b = y;
    return a->peer < b->peer ? -1 : a->peer > b->peer;
}

static bool is_sorted(const uint32_t *peers, uint64_t count) {
    for (uint64_t e = 1; e < count; e++)
        if (peers[e - 1] > peers[e])
            return false;
    return true;
}

/* Without `weights` only the peers. */
static void insertion_sort(uint32_t *peers, double *weights, uint64_t count) {
    for (uint64_t e = 1; e < count; e++) {
        entry moving = {peers[e], weights ? weights[e] : NAN};
        uint64_t at = e;
        for (; at > 0 && peers[at - 1] > moving.peer; at--) {
            peers[at] = peers[at - 1];
            if (weights)
                weights[at] = weights[at - 1];
        }
        peers[at] = moving.peer;
        if (weights)
            weights[at] = moving.weight;
    }
}

/* Rows are short or, if they are long, mostly sorted already. */
static bool sort_row(uint32_t *peers, double *weights, uint64_t count) {
    enum { SHORT = 64 };
    if (is_sorted(peers, count))
        return true;
    if (count <= SHORT) {
        insertion_sort(peers, weights, count);
        return true;
    }
    entry *row = malloc(count * sizeof *row);
    if (row == NULL)
        return false;
    for (uint64_t e = 0; e < count; e++)
        row[e] = (entry){peers[e], weights ? weights[e] : NAN};
    qsort(row, count, sizeof *row, by_peer);
    for (uint64_t e = 0; e < count; e++) {
        peers[e] = row[e].peer;
        if (weights)
            weights[e] = row[e].weight;
    }
    free(row);
    return true;
}

static bool joins(const sl_edge *edge, uint32_t from, uint32_t to) {
    return edge->from == from && edge->to == to;
}

/* Undirected edges stand in `list` in pairs, and where they were listed once. */
static int fail_twice(const edge_list *list, uint32_t from, uint32_t to, sl_error *error) {
    const size_t pair = list->one_way ? 1 : 2;
    size_t first = 0, again;
    while (!joins(&list->edges[first], from, to))
        first++;
    for (again = first + 1; !joins(&list->edges[again], from, to);)
        again++;
    const sl_edge *a = &list->edges[first / pair * pair], *b = &list->edges[again / pair * pair];
    return sl_fail(error, SL_EINVAL,
                   "edges[%zu]: [%u, %u] stands twice: edges[%zu] is [%u, %u]; list each direction "
                   "at most once (an undirected edge without a weight once in all)",
                   again / pair, b->from, b->to, first / pair, a->from, a->to);
}

/* By counting: rows of `in` by receiver, self-loops apart. */
static int fill_in(slot *p, const edge_list *list, uint32_t nodes, sl_error *error) {
    uint64_t *start = p->in.start;
    for (size_t e = 0; e < list->count; e++) {
        const sl_edge *edge = &list->edges[e];
        if (edge->from != edge->to) {
            start[edge->to + 1]++;
        } else {
            if (!isnan(p->self[edge->to]))
                return fail_twice(list, edge->from, edge->to, error);
            p->self[edge->to] = edge->weight;
        }
    }
    for (uint32_t i = 0; i < nodes; i++)
        start[i + 1] += start[i];
    p->edges = start[nodes];
    for (size_t e = 0; e < list->count; e++) {
        const sl_edge *edge = &list->edges[e];
        if (edge->from == edge->to)
            continue;
        if (list->weighted)
            p->in.weights[start[edge->to]] = edge->weight;
        p->in.peers[start[edge->to]++] = edge->from;
    }
    memmove(start + 1, start, nodes * sizeof *start);
    start[0] = 0;
    return 0;
}

static int sort_rows(slot *p, const edge_list *list, uint32_t nodes, sl_error *error) {
    const bool weighted = list->weighted;
    for (uint32_t i = 0; i < nodes; i++) {
        uint64_t first = p->in.start[i], end = p->in.start[i + 1];
        if (!sort_row(p->in.peers + first, weighted ? p->in.weights + first : NULL, end - first))
            return sl_fail(error, SL_ENOMEM, "out of memory for a row of %llu edges",
                           (unsigned long long)(end - first));
        for (uint64_t e = first + 1; e < end; e++)
            if (p->in.peers[e] == p->in.peers[e - 1])
                return fail_twice(list, p->in.peers[e], i, error);
    }
    return 0;
}

/* The other side, by counting: rows come out sorted, because `in` is walked in order of receivers.
 * Weights follow in sl_slot_weigh. */
static void fill_out(slot *p, uint32_t nodes) {
    uint64_t *start = p->out.start;
    for (uint64_t e = 0; e < p->edges; e++)
        start[p->in.peers[e] + 1]++;
    for (uint32_t i = 0; i < nodes; i++)
        start[i + 1] += start[i];
    for (uint32_t i = 0; i < nodes; i++)
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
            p->out.peers[start[p->in.peers[e]]++] = i;
    memmove(start + 1, start, nodes * sizeof *start);
    start[0] = 0;
    /* Both sides are sorted by peer: undirected when they are the same. */
    p->undirected =
        memcmp(p->in.start, p->out.start, ((size_t)nodes + 1) * sizeof *p->in.start) == 0 &&
        memcmp(p->in.peers, p->out.peers, p->edges * sizeof *p->in.peers) == 0;
}

static void copy_out(slot *p, uint32_t nodes) {
    memcpy(p->out.start, p->in.start, ((size_t)nodes + 1) * sizeof *p->in.start);
    memcpy(p->out.peers, p->in.peers, p->edges * sizeof *p->in.peers);
    p->undirected = true;
}

int sl_slot_build(slot *out, const edge_list *list, uint32_t nodes, sl_error *error) {
    slot p = {.self = malloc(((size_t)nodes + 1) * sizeof *p.self)};
    int result = 0;
    if (!p.self || !side_allocate(&p.in, nodes, list->count) ||
        !side_allocate(&p.out, nodes, list->count) || list->out_of_memory)
        result = sl_fail(error, SL_ENOMEM, "out of memory for a graph of %u nodes and %zu edges",
                         nodes, list->count);
    for (uint32_t i = 0; result == 0 && i < nodes; i++)
        p.self[i] = NAN;
    if (result == 0)
        result = fill_in(&p, list, nodes, error);
    if (result == 0)
        result = sort_rows(&p, list, nodes, error);
    if (result != 0) {
        sl_slot_close(&p);
        return result;
    }
    if (list->one_way)
        fill_out(&p, nodes);
    else
        copy_out(&p, nodes);
    *out = p;
    return 0;
}

double sl_side_sum(const side *s, uint32_t i) {
    double sum = 0;
    for (uint64_t e = s->start[i]; e < s->start[i + 1]; e++)
        sum += s->weights[e];
    return sum;
}

static bool is_even(const slot *p) {
    for (uint64_t e = 1; e < p->edges; e++)
        if (p->in.weights[e] != p->in.weights[0])
            return false;
    return true;
}

/* Rows are walked in order of receivers, and so are
 * each sender's. */
void sl_slot_mirror_weights(slot *p, uint32_t nodes) {
    if (is_even(p)) { /* as on regular graphs: there is nothing to look up */
        memcpy(p->out.weights, p->in.weights, p->edges * sizeof *p->out.weights);
        return;
    }
    uint64_t *next = p->out.start;
    for (uint32_t i = 0; i < nodes; i++)
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
            p->out.weights[next[p->in.peers[e]]++] = p->in.weights[e];
    memmove(next + 1, next, (size_t)nodes * sizeof *next);
    next[0] = 0;
}

void sl_graph_close(graph *g) {
    for (uint32_t k = 0; g->slots != NULL && k < g->period; k++)
        sl_slot_close(&g->slots[k]);
    free(g->slots);
    g->slots = NULL;
}
