/* times_page.c - see times_page.h. */
#include "check/times_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check/budget_page.h"
#include "compare/time_model.h"

enum { TIMES_BYTES = 512, SHOWN = 4 /* of a list */ };

static exchange_case case_of(const trial *t) {
    const sl_network_config *n = &t->experiment->network;
    return (exchange_case){&t->plan.config,
                           t->experiment->topology,
                           sl_task_shapes(&t->task),
                           t->experiment->transport.chunk_bytes,
                           {n->bandwidth_mbit, n->latency_ms},
                           &n->links,
                           t->experiment->transport.overlap != SL_OVERLAP_NONE ? &t->sending
                                                                               : NULL};
}

static double gradient_seconds(const trial *t) {
    const double given = t->experiment->network.gradient_ms;
    return given > 0 ? 1e-3 * given : t->task.gradient_seconds;
}

static bool has_links(const sl_network_config *n) {
    return n->bandwidth_mbit > 0 || n->latency_ms > 0 || n->links.rows > 0;
}

/* Without encoding, which is measured. */
static bool model_of(const trial *t, const exchange_case *c, time_model *m) {
    return has_links(&t->experiment->network) && gradient_seconds(t) > 0 &&
           time_model_of(c) != MODEL_NONE && time_model_open(m, c, NULL) == 0;
}

/* Of the model, or by the clock of the links if something leaves early. */
static double seconds_of(const trial *t, const exchange_case *c, const time_model *m) {
    double early;
    return c->early != NULL && time_model_early(&early, c, gradient_seconds(t), NULL) == 0
               ? early
               : time_model_seconds(m, gradient_seconds(t), 0);
}

double round_seconds(const trial *t) {
    const exchange_case c = case_of(t);
    sl_budget_extent extent;
    time_model m;
    if (budget_extent(&extent, t))
        return gradient_seconds(t) + 1e-3 * extent.round_ms;
    return model_of(t, &c, &m) ? seconds_of(t, &c, &m) : NAN;
}

/* Of the busiest node, through its own link, or the slowest one of a pair. */
static double message_seconds(const trial *t) {
    const sl_network_config *n = &t->experiment->network;
    double share, slowest = n->bandwidth_mbit, latency_ms = n->latency_ms;
    const double bits = 8 * message_bytes(t, &share);
    uint32_t most = 0;
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        const uint32_t count = sl_topology_out(t->experiment->topology, 0, rank).count;
        most = count > most ? count : most;
    }
    const double all_s = n->bandwidth_mbit > 0 ? 1e-6 * bits * most / n->bandwidth_mbit : 0;
    for (size_t row = 0; row < n->links.rows; row++) {
        const double *link = n->links.values + row * n->links.columns;
        slowest = slowest == 0 || link[2] < slowest ? link[2] : slowest;
        latency_ms = n->links.columns > 3 && link[3] > latency_ms ? link[3] : latency_ms;
    }
    const double one_s = slowest > 0 ? 1e-6 * bits / slowest : 0;
    return fmax(all_s, one_s) + 1e-3 * latency_ms;
}

double round_estimate(const trial *t) {
    const double modelled = round_seconds(t);
    if (!isnan(modelled) || !has_links(&t->experiment->network) || gradient_seconds(t) <= 0)
        return modelled;
    return gradient_seconds(t) + message_seconds(t);
}

static void say_model(page *p, const trial *t, const exchange_case *c) {
    char parts[TIMES_BYTES];
    time_model m;
    size_t at;
    sl_budget_extent extent;
    if (budget_extent(&extent, t) && gradient_seconds(t) > 0)
        page_say(p, "a round", "%.4g ms: a gradient, %.4g ms, and its messages",
                 1e3 * round_seconds(t), 1e3 * gradient_seconds(t));
    if (!model_of(t, c, &m))
        return;
    at = (size_t)snprintf(parts, sizeof parts, "tau, a gradient, %.4g ms",
                          1e3 * gradient_seconds(t));
    if (!isnan(m.phi))
        at += (size_t)snprintf(parts + at, sizeof parts - at, "; phi, an exchange, %.4g ms",
                               1e3 * m.phi);
    if (!isnan(m.psi))
        at += (size_t)snprintf(parts + at, sizeof parts - at, "; psi, compressed, %.4g ms",
                               1e3 * m.psi);
    if (m.kind == MODEL_CD_SGD)
        snprintf(parts + at, sizeof parts - at, "; k = %llu", (unsigned long long)m.period);
    page_say(p, "a round", "%.4g ms%s%s", 1e3 * seconds_of(t, c, &m),
             isnan(m.psi) ? "" : " and delta, encoding and combining, which compare measures",
             c->early == NULL ? "" : "; messages leave beside the backward pass");
    page_detail(p, c->early == NULL ? "its model" : "without that", "%s: %s; %s",
                time_model_name(m.kind), time_model_formula(m.kind), parts);
}

static void say_forms(page *p, const exchange_case *c) {
    double seconds[SL_ALL_REDUCE_FORMS];
    char text[TIMES_BYTES] = "";
    size_t fastest, at = 0;
    if (!all_reduce_is_used(c) || all_reduce_times(seconds, &fastest, c, NULL) != 0)
        return;
    for (size_t form = 0; form < SL_ALL_REDUCE_FORMS && at < sizeof text; form++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %.4g ms%s", form > 0 ? ", " : "",
                               all_reduce_name(form), 1e3 * seconds[form],
                               form == fastest ? " (the fastest form)" : "");
    page_detail(p, "forms", "%s", text);
}

/* A few are enough to see which are meant. */
static void say_links(page *p, const sl_network_config *n) {
    const sl_number_rows *l = &n->links;
    for (size_t row = 0; row < l->rows && row < SHOWN; row++) {
        const double *link = l->values + row * l->columns;
        page_detail(p, row == 0 ? "slower links" : "", "nodes %.0f and %.0f: %.6g Mbit/s, %.4g ms",
                    link[0], link[1], link[2], l->columns > 3 ? link[3] : n->latency_ms);
    }
    if (l->rows > SHOWN)
        page_detail(p, "", "and %zu more", l->rows - SHOWN);
}

static double kilobytes(size_t elements) {
    return 1e-3 * sizeof(float) * (double)elements;
}

/* The last tensor first, as they leave. */
static void say_fractions(page *p, const trial *t) {
    const sl_sending_costs *c = &t->sending.costs;
    size_t count;
    const sl_tensor *tensors = sl_learner_layout(t->learner, &count);
    for (size_t i = 0; i < count && i < SHOWN; i++)
        page_say(p, i == 0 ? "of its entries" : "", "%s sends %.3g %%", tensors[count - 1 - i].name,
                 100 * t->sending.fractions[count - 1 - i]);
    if (count > SHOWN)
        page_say(p, "", "and %zu more tensors", count - SHOWN);
    page_detail(p, "planned by", "a, a message, %.4g ms; b, a MB that is sent, %.4g ms",
                1e3 * c->startup_s, 8e9 * c->bit_s);
}

static void say_ranges(page *p, const trial *t) {
    const sl_sending *s = &t->sending;
    const sl_ranges *ranges = s->leaves.count > 0 ? &s->leaves : &s->buckets;
    const sl_sending_costs *c = &s->costs;
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        const size_t count = ranges->items[i].count;
        least = count < least ? count : least;
        most = count > most ? count : most;
    }
    if (ranges->count == 0)
        return;
    page_say(p, "sent in ranges", "%zu, of %.4g to %.4g KB of the vector%s", ranges->count,
             kilobytes(least), kilobytes(most),
             s->buckets.count > 0 ? ", each exchanged by itself" : "");
    if (s->fractions != NULL)
        say_fractions(p, t);
    else if (c->gradient_s > 0)
        page_detail(p, "planned by",
                    "a, a message, %.4g ms; b, a MB of it, %.4g ms; the last range has left after "
                    "%.4g ms",
                    1e3 * c->startup_s, 1e9 * c->element_s / sizeof(float),
                    1e3 * sl_ranges_seconds(ranges, t->task.dimension, c));
}

void page_say_times(page *p, const trial *t) {
    const exchange_case c = case_of(t);
    say_ranges(p, t);
    if (!has_links(&t->experiment->network))
        return;
    say_model(p, t, &c);
    say_forms(p, &c);
    say_links(p, &t->experiment->network);
}
