/* check.c - what can be said of a topology without eigenvalues: connected, stochastic, how far
 * neighbours can drift apart. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph/graph.h"

enum { EXACT_WINDOW_NODES_MAX = 512, EXACT_WINDOW_PERIOD_MAX = 64 };

/* Marks what can be reached from node 0 over the union of all slots; returns how many. Breadth
 * first: what is read next is known early. */
static uint32_t reach(const graph *g, bool forward, bool *seen, uint32_t *queue) {
    memset(seen, 0, g->nodes * sizeof *seen);
    uint32_t count = 1;
    queue[0] = 0;
    seen[0] = true;
    for (uint32_t done = 0; done < count; done++)
        for (uint32_t k = 0; k < g->period; k++) {
            const side *s = forward ? &g->slots[k].out : &g->slots[k].in;
            for (uint64_t e = s->start[queue[done]]; e < s->start[queue[done] + 1]; e++)
                if (!seen[s->peers[e]]) {
                    seen[s->peers[e]] = true;
                    queue[count++] = s->peers[e];
                }
        }
    return count;
}

int sl_graph_is_connected(bool *connected, const graph *g, sl_error *error) {
    bool *seen = calloc(g->nodes, sizeof *seen);
    uint32_t *queue = malloc(g->nodes * sizeof *queue);
    bool undirected = true;
    for (uint32_t k = 0; k < g->period; k++)
        undirected = undirected && g->slots[k].undirected;
    const bool allocated = seen != NULL && queue != NULL;
    if (allocated)
        *connected = reach(g, true, seen, queue) == g->nodes &&
                     (undirected || reach(g, false, seen, queue) == g->nodes);
    free(seen);
    free(queue);
    return allocated ? 0
                     : sl_fail(error, SL_ENOMEM, "out of memory for a graph of %u nodes", g->nodes);
}

uint32_t sl_graph_unreached(const graph *g, bool forward) {
    bool *seen = calloc(g->nodes, sizeof *seen);
    uint32_t *queue = malloc(g->nodes * sizeof *queue), node = 0;
    if (seen != NULL && queue != NULL && reach(g, forward, seen, queue) < g->nodes)
        while (seen[node])
            node++;
    free(seen);
    free(queue);
    return node;
}

static void widen(double *residual, double sum) {
    double off = fabs(sum - 1);
    if (off > *residual)
        *residual = off;
}

static void examine(const slot *p, uint32_t nodes, sl_stochasticity *s) {
    double least = 0;
    s->symmetric = s->symmetric && p->undirected;
    for (uint32_t i = 0; i < nodes; i++) {
        double row = p->self[i], column = p->self[i];
        least = fmin(least, p->self[i]);
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++) {
            row += p->in.weights[e];
            least = fmin(least, p->in.weights[e]);
            /* Undirected slots have equal rows on both sides, so entries face each other. */
            if (p->undirected &&
                fabs(p->in.weights[e] - p->out.weights[e]) > SL_STOCHASTIC_TOLERANCE)
                s->symmetric = false;
        }
        for (uint64_t e = p->out.start[i]; e < p->out.start[i + 1]; e++)
            column += p->out.weights[e];
        widen(&s->row_residual, row);
        widen(&s->column_residual, column);
    }
    s->nonnegative = s->nonnegative && least >= -SL_STOCHASTIC_TOLERANCE;
}

sl_stochasticity sl_graph_stochasticity(const graph *g) {
    sl_stochasticity s = {.symmetric = true, .nonnegative = true};
    for (uint32_t k = 0; k < g->period; k++)
        examine(&g->slots[k], g->nodes, &s);
    s.row = s.row_residual <= SL_STOCHASTIC_TOLERANCE;
    s.column = s.column_residual <= SL_STOCHASTIC_TOLERANCE;
    return s;
}

/* Can nodes be coloured so that no edge joins two of a colour? */
static bool is_bipartite(const graph *g, int8_t *colour, uint32_t *stack) {
    const side *s = &g->slots[0].in;
    uint32_t height = 0;
    stack[height++] = 0;
    colour[0] = 1;
    while (height > 0) {
        uint32_t i = stack[--height];
        for (uint64_t e = s->start[i]; e < s->start[i + 1]; e++) {
            uint32_t j = s->peers[e];
            if (colour[j] == colour[i])
                return false;
            if (colour[j] == 0)
                stack[height++] = j;
            colour[j] = (int8_t)-colour[i];
        }
    }
    return true;
}

bool sl_topology_alternates(const sl_topology *topology) {
    const graph *g = &topology->graph;
    if (g->period > 1 || g->nodes < 2 || !g->stochastic.symmetric)
        return false;
    for (uint32_t i = 0; i < g->nodes; i++)
        if (fabs(g->slots[0].self[i]) > SL_STOCHASTIC_TOLERANCE)
            return false;
    int8_t *colour = calloc(g->nodes, sizeof *colour);
    uint32_t *stack = calloc(g->nodes, sizeof *stack);
    bool bipartite = colour && stack && is_bipartite(g, colour, stack);
    free(colour);
    free(stack);
    return bipartite;
}

/* How far node j can run ahead; arrays of (nodes). */
typedef struct proof {
    uint32_t *order, *since; /* the nodes proven to have finished, and after how many steps */
    uint32_t *proven;        /* the number of the proof in which a node was last proven */
    uint32_t *wanted;        /* j + 1 where j ever sends to the node */
    uint32_t number, count, missing;
} proof;

static void prove(proof *p, uint32_t node, uint32_t j, uint32_t step) {
    if (p->proven[node] == p->number)
        return;
    p->proven[node] = p->number;
    p->since[p->count] = step;
    p->order[p->count++] = node;
    p->missing -= p->wanted[node] == j + 1;
}

/* Returns how many nodes j ever sends to. */
static uint32_t mark_wanted(proof *p, const graph *g, uint32_t j) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < g->period; k++) {
        const side *out = &g->slots[k].out;
        for (uint64_t e = out->start[j]; e < out->start[j + 1]; e++) {
            count += p->wanted[out->peers[e]] != j + 1;
            p->wanted[out->peers[e]] = j + 1;
        }
    }
    return count;
}

/* How many rounds back from the end of round k a finished `j` proves that all whom it ever sends to
 * had finished as well: to finish a round, all in-neighbours must have finished the one before. A
 * proven node has said all it can after one period of such steps. */
static uint32_t lead(proof *p, const graph *g, uint32_t j, uint32_t k, uint32_t wanted) {
    uint32_t limit = g->nodes * g->period, first = 0;
    p->number++;
    p->count = 0;
    p->missing = wanted;
    prove(p, j, j, 0);
    for (uint32_t steps = 0; first < p->count; steps++) {
        if (p->missing == 0)
            return steps;
        uint32_t back = steps % g->period, end = p->count;
        const side *in = &g->slots[(k + g->period - back) % g->period].in;
        while (first < end && steps - p->since[first] >= g->period)
            first++;
        for (uint32_t a = first; a < end; a++)
            for (uint64_t e = in->start[p->order[a]]; e < in->start[p->order[a] + 1]; e++)
                prove(p, in->peers[e], j, steps + 1);
    }
    return limit;
}

/* Node j in round r + lead may send to i, which is still in round r: lead + 1 rounds can be under
 * way. 0: out of memory. */
uint32_t sl_graph_window(const graph *g) {
    if (g->period == 1 && g->slots[0].undirected)
        return 2;
    if (g->nodes > EXACT_WINDOW_NODES_MAX || g->period > EXACT_WINDOW_PERIOD_MAX) {
        uint64_t safe = (uint64_t)g->nodes * g->period + 1;
        return safe < UINT32_MAX ? (uint32_t)safe : UINT32_MAX;
    }
    uint32_t *arrays = calloc(4 * (size_t)g->nodes, sizeof *arrays);
    uint32_t widest = 0;
    if (arrays == NULL)
        return 0;
    proof p = {arrays,
               arrays + g->nodes,
               arrays + 2 * (size_t)g->nodes,
               arrays + 3 * (size_t)g->nodes,
               0,
               0,
               0};
    for (uint32_t j = 0; j < g->nodes; j++) {
        uint32_t wanted = mark_wanted(&p, g, j);
        for (uint32_t k = 0; k < g->period; k++) {
            uint32_t steps = lead(&p, g, j, k, wanted);
            widest = steps > widest ? steps : widest;
        }
    }
    free(arrays);
    return widest < 1 ? 2 : widest + 1;
}

bool sl_graph_is_symmetric(const graph *g) {
    return g->period == 1 && g->stochastic.symmetric;
}
