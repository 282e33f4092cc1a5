/* sending.c - in which order an experiment's nodes send, and exchange, the ranges of their vector;
 * see sl_experiment_sending in starling/experiment.h.
 *
 * What a message costs is a + b elements: of the steps of an exchange, each takes the slowest
 * link's latency, and what the busiest node sends or gets passes the slowest link. All from the
 * experiment, so that all agents find the same.
 */
#include <stdlib.h>
#include <string.h>

#include "config/overlap.h"
#include "route/route.h"
#include "starling/layer_budget.h"

enum { STEPS_MAX = 65535 }; /* of an exchange: frames number them in 16 bits */

/* ---- links ---- */

typedef struct slowest {
    double latency_s;
    double seconds_a_bit; /* of a node's own link */
    double between;       /* of one that a pair in network.links has */
} slowest;

static double a_bit(double mbit) {
    return mbit > 0 ? 1e-6 / mbit : 0;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* Neighbours ever. */
static bool exchange(const sl_topology *t, uint32_t i, uint32_t j) {
    const uint32_t *peers, count = sl_topology_peers(t, i, &peers);
    return sl_peer_index(peers, count, j) < count;
}

static slowest find_slowest(const sl_experiment *e, bool along_edges) {
    const sl_network_config *n = &e->network;
    slowest s = {1e-3 * n->latency_ms, a_bit(n->bandwidth_mbit), 0};
    for (size_t row = 0; row < n->links.rows; row++) {
        const double *link = n->links.values + row * n->links.columns;
        if (along_edges && !exchange(e->topology, (uint32_t)link[0], (uint32_t)link[1]))
            continue;
        s.between = larger(s.between, a_bit(link[2]));
        if (n->links.columns > 3)
            s.latency_s = larger(s.latency_s, 1e-3 * link[3]);
    }
    return s;
}

/* ---- traffic ---- */

typedef struct traffic {
    double steps;
    double elements; /* that pass a node's own link */
    double longest;  /* the same of one pair's */
} traffic;

static void add_step(traffic *t, const sl_route *r, const sl_exchange_step *step) {
    const double goes = (double)step->published.count;
    double comes = 0, one = step->out.count > 0 ? goes : 0;
    for (uint32_t i = 0; i < step->in.count; i++) {
        const double range = (double)sl_route_range(r, step, step->in.peers[i]).count;
        comes += range;
        one = larger(one, range);
    }
    t->steps += step->out.count + step->in.count > 0;
    t->elements += larger(goes * step->out.count, comes);
    t->longest += one;
}

/* In one exchange of the whole vector. */
static int find_traffic(traffic *out, const sl_experiment *e, const sl_algorithm *a,
                        const sl_plan *plan, uint32_t rank, const sl_shapes *shapes,
                        sl_error *error) {
    sl_route route;
    sl_exchange_step step;
    *out = (traffic){0};
    const int result =
        sl_route_open(&route, a, &plan->config, e->topology, NULL, rank, shapes, NULL, error);
    for (uint32_t k = 0; result == 0 && sl_route_step(&route, 1, k, &step); k++)
        if (!step.stage->restates)
            add_step(out, &route, &step);
    sl_route_close(&route);
    return result;
}

/* A server, or the first of all: no other has more to do in any form. */
static int find_busiest(traffic *out, const sl_experiment *e, const sl_algorithm *a,
                        const sl_plan *plan, const sl_shapes *shapes, sl_error *error) {
    const int64_t server = a->route == SL_ROUTE_SERVER ? plan->config.server : 0;
    const uint32_t first = server > 0 ? (uint32_t)server : 0,
                   others = a->route == SL_ROUTE_TOPOLOGY && !sl_topology_is_endless(e->topology)
                                ? sl_topology_nodes(e->topology)
                                : 1;
    int result = find_traffic(out, e, a, plan, first, shapes, error);
    for (uint32_t rank = 1; rank < others && result == 0; rank++) {
        traffic t;
        result = find_traffic(&t, e, a, plan, rank, shapes, error);
        if (result == 0 && t.elements > out->elements)
            *out = t;
    }
    return result;
}

static double gradient_seconds(const sl_experiment *e, const sl_task *task) {
    return e->network.gradient_ms > 0 ? 1e-3 * e->network.gradient_ms : task->gradient_seconds;
}

static sl_sending_costs costs_of(const sl_experiment *e, const sl_algorithm *a, const sl_plan *plan,
                                 const sl_task *task, const traffic *t) {
    const slowest s =
        find_slowest(e, a->route == SL_ROUTE_TOPOLOGY && !sl_topology_is_endless(e->topology));
    const double d = (double)task->dimension,
                 bits = sl_compressor_bits(&plan->config.compressor, task->dimension) / d,
                 bit_s = larger(t->elements * s.seconds_a_bit, t->longest * s.between) / d;
    return (sl_sending_costs){
        .gradient_s = gradient_seconds(e, task),
        .startup_s = t->steps * s.latency_s,
        .element_s = bits * bit_s,
        .bit_s = bit_s,
    };
}

/* ---- the order ---- */

static int find_ranges(sl_ranges *out, const sl_experiment *e, const sl_shapes *shapes,
                       sl_overlap kind, const sl_sending_costs *costs, sl_error *error) {
    switch (kind) {
    case SL_OVERLAP_NONE:
        break;
    case SL_OVERLAP_LAYERS:
        return sl_ranges_layers(out, shapes, error);
    case SL_OVERLAP_MERGED:
        return sl_ranges_merged(out, shapes, costs, error);
    case SL_OVERLAP_PARTITIONED:
        return sl_ranges_partitioned(out, shapes->dimension,
                                     e->transport.partition_bytes / sizeof(float), costs, error);
    }
    return 0;
}

static int check_steps(const sl_experiment *e, const traffic *t, size_t buckets, sl_error *error) {
    if (t->steps * (double)buckets <= STEPS_MAX)
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "transport.buckets: %zu buckets of %.0f steps each are more than the %d steps that "
        "an exchange may have; %s",
        buckets, t->steps, STEPS_MAX,
        sl_buckets_of(e) == SL_OVERLAP_PARTITIONED ? "raise transport.partition_bytes"
                                                   : "set it to \"whole\"");
}

static int find_fractions(sl_sending *out, const sl_plan *plan, const sl_shapes *shapes,
                          sl_error *error) {
    const sl_compressor_config *c = &plan->config.compressor;
    if (!sl_has_layer_budget(c) || shapes->ends == NULL)
        return 0;
    out->fractions = calloc(shapes->count, sizeof *out->fractions);
    if (out->fractions == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu fractions", shapes->count);
    sl_layer_fractions(out->fractions, c, shapes, &out->costs);
    return 0;
}

int sl_experiment_sending(sl_sending *out, const sl_experiment *e, const sl_plan *plan,
                          const sl_task *task, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(&plan->config, error);
    const sl_shapes shapes = sl_task_shapes(task);
    const sl_overlap buckets = sl_buckets_of(e);
    traffic t = {0};
    *out = (sl_sending){0};
    int result = a == NULL ? SL_EINVAL : 0;
    if (result == 0 && (sl_sending_is_planned(e) || buckets != SL_OVERLAP_NONE))
        result = find_busiest(&t, e, a, plan, &shapes, error);
    if (result == 0 && sl_sending_is_planned(e))
        out->costs = costs_of(e, a, plan, task, &t);
    if (result == 0)
        result = find_ranges(&out->leaves, e, &shapes, e->transport.overlap, &out->costs, error);
    if (result == 0)
        result = find_ranges(&out->buckets, e, &shapes, buckets, &out->costs, error);
    if (result == 0)
        result = check_steps(e, &t, out->buckets.count, error);
    if (result == 0)
        result = find_fractions(out, plan, &shapes, error);
    if (result != 0)
        sl_sending_close(out);
    return result;
}

void sl_sending_close(sl_sending *sending) {
    sl_ranges_close(&sending->leaves);
    sl_ranges_close(&sending->buckets);
    free(sending->fractions);
    sending->fractions = NULL;
}
