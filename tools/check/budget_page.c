/* budget_page.c - see budget_page.h. */
#include "check/budget_page.h"

#include <math.h>
#include <stdio.h>

#include "cli/names.h"

enum { EDGE_BYTES = 160 };

bool budget_extent(sl_budget_extent *out, const trial *t) {
    const sl_algorithm_config *c = &t->plan.config;
    return sl_algorithm_has_budget(c) &&
           sl_budget_measure(out, &c->budget, &c->compressor, t->experiment->topology,
                             t->task.dimension, NULL) == 0;
}

static double bits_by_layer(const trial *t) {
    sl_compressor_config c = t->plan.config.compressor;
    double bits = 0;
    for (size_t i = 0; i < t->task.tensor_count; i++) {
        const size_t *ends = t->task.tensor_ends;
        c.fraction = t->sending.fractions[i];
        bits += sl_compressor_bits(&c, ends[i] - (i > 0 ? ends[i - 1] : 0));
    }
    return bits;
}

double message_bytes(const trial *t, double *share) {
    const sl_shapes shapes = sl_task_shapes(&t->task);
    const double whole = 32 * (double)shapes.dimension;
    size_t elements;
    sl_budget_extent extent;
    double bits = sl_compressor_bits(&t->plan.config.compressor, shapes.dimension);
    if (sl_algorithm_shortens(&elements, &t->plan.config, &shapes))
        bits = 32 * (double)elements;
    if (t->sending.fractions != NULL)
        bits = bits_by_layer(t);
    else if (budget_extent(&extent, t))
        bits = sl_compressor_bits(&extent.of_most, shapes.dimension);
    *share = bits / whole;
    return ceil(bits / 8);
}

/* "nodes 0 and 7, 10 Mbit/s: top-k k = 116, 624 bytes in 0.5 ms" */
static void name_edge(const trial *t, const sl_budget_edge *e, const sl_compressor_config *c,
                      char out[EDGE_BYTES]) {
    const size_t dimension = t->task.dimension;
    char compressor[64], bandwidth[32];
    name_compressor(c, compressor, sizeof compressor);
    name_bandwidth(bandwidth, sizeof bandwidth, e->link.bandwidth_mbit, 6);
    snprintf(out, EDGE_BYTES, "nodes %u and %u, %s: %s, %.0f bytes in %.4g ms", e->i, e->j,
             bandwidth, compressor, ceil(sl_compressor_bits(c, dimension) / 8),
             sl_budget_message_ms(c, e->link, dimension) + e->link.latency_ms);
}

typedef struct listing {
    page *p;
    const trial *t;
    bool any;
} listing;

static void list_edge(void *context, const sl_budget_edge *e) {
    listing *l = context;
    const sl_algorithm_config *c = &l->t->plan.config;
    const sl_compressor_config of_edge =
        sl_budget_compressor(&c->budget, &c->compressor, e, l->t->task.dimension);
    char text[EDGE_BYTES];
    name_edge(l->t, e, &of_edge, text);
    page_detail(l->p, l->any ? "" : "each edge", "%s", text);
    l->any = true;
}

void page_say_budget(page *p, const trial *t) {
    const sl_algorithm_config *c = &t->plan.config;
    sl_budget_extent x;
    char text[EDGE_BYTES];
    if (!budget_extent(&x, t) || x.steps == 0)
        return;
    name_edge(t, &x.least, &x.of_least, text);
    page_say(p, "shortest message", "%s", text);
    name_edge(t, &x.most, &x.of_most, text);
    page_say(p, "longest message", "%s", text);
    page_say(p, "a round's messages", "%.4g ms, in %u step%s", x.round_ms, x.steps,
             x.steps == 1 ? "" : "s");
    sl_budget_edges(&c->budget, &c->compressor, t->experiment->topology, t->task.dimension,
                    list_edge, &(listing){.p = p, .t = t}, NULL);
}
