/* edge_compressors.c - see edge_compressors.h. */
#include "node/edge_compressors.h"

#include <stdlib.h>

static void note(void *context, const sl_budget_edge *e) {
    const sl_route *r = context;
    const sl_algorithm_config *c = r->config;
    if (e->i == r->rank || e->j == r->rank)
        r->of_edge[e->step] =
            sl_budget_compressor(&c->budget, &c->compressor, e, r->shapes.dimension);
}

int sl_edge_compressors_open(sl_route *r, sl_error *error) {
    const sl_algorithm_config *c = r->config;
    r->of_edge = calloc(r->colours + 1u, sizeof *r->of_edge);
    if (r->of_edge == NULL)
        return sl_fail(error, SL_ENOMEM, "node %u: out of memory for %u links", r->rank,
                       r->colours);
    return sl_budget_edges(&c->budget, &c->compressor, r->topology, r->shapes.dimension, note, r,
                           error);
}

static bool is_like(const sl_compressor_config *a, const sl_compressor_config *b) {
    return a->kind == b->kind && a->k == b->k && a->levels == b->levels && a->bits == b->bits;
}

const sl_compressor_config *sl_edge_compressor(const sl_route *r, uint32_t colour) {
    const sl_compressor_config *first = r->of_edge;
    while (first != NULL && !is_like(first, &r->of_edge[colour]))
        first++;
    return first;
}
