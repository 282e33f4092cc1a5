/* union.c - the union of all slots of a topology; see union.h. */
#include "topology/analysis/union.h"

#include <stdlib.h>
#include <string.h>

static int by_number(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

/* Sorts `count` numbers and drops repetitions; returns how many are left. */
static uint64_t sort_unique(uint32_t *numbers, uint64_t count) {
    uint64_t kept = 0;
    qsort(numbers, count, sizeof *numbers, by_number);
    for (uint64_t i = 0; i < count; i++)
        if (kept == 0 || numbers[kept - 1] != numbers[i])
            numbers[kept++] = numbers[i];
    return kept;
}

static bool unite(adjacency *a, const sl_topology *t, bool out) {
    uint64_t total = 0;
    for (uint32_t k = 0; k < t->graph.period; k++)
        total += t->graph.slots[k].edges;
    a->start = calloc((size_t)t->graph.nodes + 1, sizeof *a->start);
    a->peers = calloc(total + 1, sizeof *a->peers);
    if (a->start == NULL || a->peers == NULL)
        return false;
    for (uint32_t i = 0; i < t->graph.nodes; i++) {
        uint64_t at = a->start[i];
        for (uint32_t k = 0; k < t->graph.period; k++) {
            const side *s = out ? &t->graph.slots[k].out : &t->graph.slots[k].in;
            uint64_t count = s->start[i + 1] - s->start[i];
            memcpy(a->peers + at, s->peers + s->start[i], count * sizeof *a->peers);
            at += count;
        }
        a->start[i + 1] = a->start[i] + sort_unique(a->peers + a->start[i], at - a->start[i]);
    }
    return true;
}

static bool equal(const adjacency *a, const adjacency *b, uint32_t nodes) {
    return memcmp(a->start, b->start, ((size_t)nodes + 1) * sizeof *a->start) == 0 &&
           memcmp(a->peers, b->peers, a->start[nodes] * sizeof *a->peers) == 0;
}

int sl_union_open(union_graph *out, const sl_topology *t, sl_error *error) {
    union_graph g = {
        .nodes = t->graph.nodes, .both = {t->peers_start, t->peers}, .owns = t->graph.period > 1};
    const slot *p = &t->graph.slots[0];
    bool good = true;
    if (g.owns) {
        good = unite(&g.out, t, true) && unite(&g.in, t, false);
    } else {
        g.out = (adjacency){p->out.start, p->out.peers};
        g.in = (adjacency){p->in.start, p->in.peers};
    }
    if (!good) {
        sl_union_close(&g);
        return sl_fail(error, SL_ENOMEM, "out of memory for the union of %u slots of %u nodes",
                       t->graph.period, t->graph.nodes);
    }
    g.directed = !equal(&g.out, &g.in, g.nodes);
    *out = g;
    return 0;
}

void sl_union_close(union_graph *g) {
    if (g->owns) {
        free(g->out.start);
        free(g->out.peers);
        free(g->in.start);
        free(g->in.peers);
    }
    *g = (union_graph){0};
}

bool sl_adjacency_has(const adjacency *a, uint32_t from, uint32_t to) {
    uint64_t low = a->start[from], high = a->start[from + 1];
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (a->peers[middle] == to)
            return true;
        if (a->peers[middle] < to)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

uint32_t sl_union_breadth_first(const adjacency *a, uint32_t nodes, uint32_t source,
                                uint32_t *distance, uint32_t *queue, budget *b) {
    memset(distance, 0xFF, nodes * sizeof *distance);
    uint32_t head = 0, tail = 0;
    distance[source] = 0;
    queue[tail++] = source;
    while (head < tail) {
        uint32_t i = queue[head++];
        for (uint64_t e = a->start[i]; e < a->start[i + 1]; e++)
            if (distance[a->peers[e]] == UINT32_MAX) {
                distance[a->peers[e]] = distance[i] + 1;
                queue[tail++] = a->peers[e];
            }
    }
    budget_spend(b, a->start[nodes] + nodes);
    return distance[queue[tail - 1]];
}
