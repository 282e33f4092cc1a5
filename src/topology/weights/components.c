/* components.c - weights of a whole graph, found for each of its components: a slot of a schedule
 * need not be connected. */
#include <math.h>
#include <stdlib.h>

#include "topology/weights/optimal.h"

typedef struct component {
    uint32_t *nodes, count; /* in the order in which they were reached */
    uint32_t *number; /* (all nodes) of a node within its component; UINT32_MAX: not reached yet */
    sl_edge *edges;   /* (edges) each once, by numbers */
    double *weights;  /* (edges) */
    size_t edge_count;
} component;

static void reach(component *c, const slot *p, uint32_t first) {
    c->count = 0;
    c->number[first] = 0;
    c->nodes[c->count++] = first;
    for (uint32_t at = 0; at < c->count; at++)
        for (uint64_t e = p->in.start[c->nodes[at]]; e < p->in.start[c->nodes[at] + 1]; e++)
            if (c->number[p->in.peers[e]] == UINT32_MAX) {
                c->number[p->in.peers[e]] = c->count;
                c->nodes[c->count++] = p->in.peers[e];
            }
}

static void list_edges(component *c, const slot *p) {
    c->edge_count = 0;
    for (uint32_t at = 0; at < c->count; at++)
        for (uint64_t e = p->in.start[c->nodes[at]]; e < p->in.start[c->nodes[at] + 1]; e++)
            if (p->in.peers[e] > c->nodes[at])
                c->edges[c->edge_count++] = (sl_edge){at, c->number[p->in.peers[e]], 0};
}

static double *entry(const slot *p, uint32_t i, uint32_t j) {
    uint64_t low = p->in.start[i], high = p->in.start[i + 1];
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (p->in.peers[middle] <= j)
            low = middle;
        else
            high = middle;
    }
    return &p->in.weights[low];
}

static void put_weights(const component *c, const slot *p) {
    for (size_t l = 0; l < c->edge_count; l++) {
        uint32_t i = c->nodes[c->edges[l].from], j = c->nodes[c->edges[l].to];
        *entry(p, i, j) = *entry(p, j, i) = c->weights[l];
    }
}

int sl_weights_by_component(slot *p, whole_rule *rule, uint32_t nodes, const sl_watch *watch,
                            sl_error *error) {
    component c = {
        .nodes = calloc(nodes, sizeof *c.nodes),
        .number = calloc(nodes, sizeof *c.number),
        .edges = calloc(p->edges / 2 + 1, sizeof *c.edges),
        .weights = calloc(p->edges / 2 + 1, sizeof *c.weights),
    };
    bool room = c.nodes != NULL && c.number != NULL && c.edges != NULL && c.weights != NULL;
    int result = room ? 0 : sl_fail(error, SL_ENOMEM, "weights: out of memory for %u nodes", nodes);
    for (uint32_t i = 0; room && i < nodes; i++)
        c.number[i] = UINT32_MAX;
    for (uint32_t i = 0; i < nodes && result == 0; i++) {
        if (c.number[i] != UINT32_MAX)
            continue;
        reach(&c, p, i);
        list_edges(&c, p);
        if (c.count == 1)
            continue;
        result = rule(&p->optimum, c.weights, c.count, c.edges, c.edge_count, watch, error);
        if (result == 0)
            put_weights(&c, p);
        p->connected = c.count == nodes;
    }
    free(c.nodes);
    free(c.number);
    free(c.edges);
    free(c.weights);
    return result;
}
