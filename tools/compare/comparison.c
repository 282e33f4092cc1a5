/* comparison.c - what follows from all runs of `starling compare`; see comparison.h. */
#include "compare/comparison.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/names.h"

int comparison_open(comparison *c, const variants *v, size_t seeds, sl_error *error) {
    c->items = calloc(v->count, sizeof *c->items);
    if (c->items == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu variants", v->count);
    c->count = v->count;
    c->seeds = seeds;
    c->has_published = v->has_published;
    for (size_t i = 0; i < c->count; i++) {
        c->items[i].variant = &v->items[i];
        c->items[i].attempts = calloc(seeds, sizeof *c->items[i].attempts);
        if (c->items[i].attempts == NULL)
            return sl_fail(error, SL_ENOMEM, "out of memory for %zu seeds", seeds);
    }
    return 0;
}

void comparison_close(comparison *c) {
    for (size_t i = 0; i < c->count; i++) {
        attempt *attempts = c->items[i].attempts;
        for (size_t s = 0; attempts != NULL && s < c->seeds; s++) {
            free(attempts[s].milestones);
            sl_timeline_close(&attempts[s].timeline);
        }
        free(attempts);
    }
    free(c->items);
    *c = (comparison){0};
}

static bool is_done(const attempt *a) {
    return a->outcome == OUTCOME_DONE;
}

static const milestone *end_of(const attempt *a) {
    return &a->milestones[a->milestone_count - 1];
}

static bool is_compressed(const contender *r) {
    return r->plan.config.compressor.kind != SL_COMPRESSOR_IDENTITY;
}

size_t contender_done(const comparison *c, const contender *r) {
    size_t done = 0;
    for (size_t s = 0; s < c->seeds; s++)
        done += is_done(&r->attempts[s]);
    return done;
}

/* ---- the target ---- */

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The final loss of the averaged model, of the seed that ends worst; NaN: none is done. */
static double worst_loss(const comparison *c, const contender *r) {
    double worst = NAN;
    for (size_t s = 0; s < c->seeds; s++) {
        const attempt *a = &r->attempts[s];
        double loss = is_done(a) ? end_of(a)->consensus.mean_model.loss : NAN;
        if (isfinite(loss))
            worst = fmax(worst, loss); /* of a NaN the other one */
    }
    return worst;
}

/* The median variant's final loss, of two in the middle the better one: half of the variants reach
 * it, and a bad one does not move it. */
static int choose_target(comparison *c, const options *o, sl_error *error) {
    c->has_target = o->has_target_loss;
    c->target_loss = o->target_loss;
    if (o->has_target_loss)
        return 0;
    double *losses = calloc(c->count, sizeof *losses);
    if (losses == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu losses", c->count);
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        double loss = worst_loss(c, &c->items[i]);
        if (isfinite(loss))
            losses[count++] = loss;
    }
    qsort(losses, count, sizeof *losses, by_value);
    c->has_target = count > 0;
    c->target_loss = count > 0 ? losses[(count - 1) / 2] : NAN;
    free(losses);
    return 0;
}

/* The first recorded round at which the averaged model is as good as the target; NULL: none. */
static const milestone *reached(const comparison *c, const attempt *a) {
    for (size_t i = 0; c->has_target && i < a->milestone_count; i++)
        if (a->milestones[i].consensus.mean_model.loss <= c->target_loss)
            return &a->milestones[i];
    return NULL;
}

/* ---- predictions ---- */

static void choose_rivals(comparison *c) {
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->count && is_compressed(&c->items[i]); k++) {
            contender *r = &c->items[k];
            bool same = sl_topology_hash(r->variant->experiment->topology) ==
                        sl_topology_hash(c->items[i].variant->experiment->topology);
            if (same && !is_compressed(r) && contender_done(c, r) > 0) {
                c->items[i].rival = r;
                break;
            }
        }
}

/* All variants compute the same gradients with one seed: differences between their times are
 * noise. */
static double gradient_ms_of_all(const comparison *c, size_t seed) {
    double sum = 0;
    size_t done = 0;
    for (size_t i = 0; i < c->count; i++) {
        const attempt *a = &c->items[i].attempts[seed];
        if (is_done(a)) {
            sum += a->cost.gradient_ms;
            done++;
        }
    }
    return done > 0 ? sum / (double)done : 0;
}

static sl_platform platform_of(const comparison *c, const contender *r, size_t seed,
                               const link_profile *l) {
    node_cost cost = {gradient_ms_of_all(c, seed), r->attempts[seed].cost.coding_ms};
    sl_platform p = forecast_platform(&r->variant->experiment->network, &cost);
    p.bandwidth_mbit = l->bandwidth_mbit;
    p.latency_ms = l->latency_ms;
    return p;
}

void contender_costs(const comparison *c, const contender *r, size_t seed, double *gradient,
                     double *coding) {
    const sl_network_config *n = &r->variant->experiment->network;
    const node_cost gradients = {.gradient_ms = gradient_ms_of_all(c, seed)};
    *gradient = 1e-3 * forecast_platform(n, &gradients).compute_ms;
    *coding = 1e-3 * platform_of(c, r, seed, &c->links[0]).compute_ms - *gradient;
}

exchange_case contender_exchange(const comparison *c, const contender *r,
                                 const link_profile *link) {
    const sl_experiment *e = r->variant->experiment;
    return (exchange_case){&r->plan.config,          e->topology, c->shapes,
                           e->transport.chunk_bytes, *link,       &e->network.links};
}

static int predict(const comparison *c, contender *r, size_t seed, size_t link, sl_error *error) {
    attempt *a = &r->attempts[seed];
    sl_platform here = platform_of(c, r, seed, &c->links[link]);
    int code = sl_timeline_seconds(&a->predicted_s[link], a->timeline, &here, 0, error);
    a->predicted_s[link] *=
        (double)r->rounds /
        (double)sl_timeline_rounds(a->timeline); /* agents: only a part was simulated */
    const attempt *rival = r->rival != NULL ? &r->rival->attempts[seed] : NULL;
    if (code != 0 || !is_compressed(r) || rival == NULL || rival->timeline == NULL)
        return code;
    sl_platform rivals = platform_of(c, r->rival, seed, &c->links[link]);
    a->has_pay[link] = true;
    return break_even_find(&a->pays[link], a->timeline, &here, rival->timeline, &rivals, error);
}

static bool same_pay(const attempt *a, size_t k, size_t l) {
    const break_even *x = &a->pays[k], *y = &a->pays[l];
    if (a->has_pay[k] != a->has_pay[l] || x->kind != y->kind)
        return false;
    return fabs(x->bandwidth_mbit - y->bandwidth_mbit) <= 1e-3 * fabs(x->bandwidth_mbit);
}

/* A break-even depends on the latency, and often not even on that. */
static void choose_pay_columns(comparison *c) {
    bool any = false, agree = true;
    for (size_t i = 0; i < c->count; i++)
        for (size_t s = 0; s < c->seeds; s++)
            for (size_t l = 0; l < c->link_count; l++) {
                any = any || c->items[i].attempts[s].has_pay[l];
                agree = agree && same_pay(&c->items[i].attempts[s], 0, l);
            }
    for (size_t l = 0; l < c->link_count; l++) {
        c->shows_pay[l] = any && (l == 0 || !agree);
        for (size_t k = 0; k < l; k++)
            c->shows_pay[l] = c->shows_pay[l] && c->links[k].latency_ms != c->links[l].latency_ms;
        c->pay_columns += c->shows_pay[l];
    }
}

int comparison_finish(comparison *c, const options *o, sl_error *error) {
    int code = choose_target(c, o, error);
    choose_rivals(c);
    for (size_t i = 0; i < c->count; i++)
        for (size_t s = 0; s < c->seeds; s++)
            for (size_t l = 0; l < c->link_count && code == 0; l++) {
                const attempt *a = &c->items[i].attempts[s];
                if (is_done(a) && a->timeline != NULL)
                    code = predict(c, &c->items[i], s, l, error);
            }
    choose_pay_columns(c);
    return code;
}

/* ---- what table and file show ---- */

static double accuracy(const comparison *c, const attempt *a) {
    (void)c;
    return end_of(a)->consensus.mean_model.accuracy;
}
static double loss(const comparison *c, const attempt *a) {
    (void)c;
    return end_of(a)->consensus.mean_model.loss;
}
static double rounds_to_target(const comparison *c, const attempt *a) {
    const milestone *m = reached(c, a);
    return m != NULL ? (double)m->round : NAN;
}
static double mb_to_target(const comparison *c, const attempt *a) {
    const milestone *m = reached(c, a);
    return m != NULL ? 1e-6 * m->bytes_per_node : NAN;
}
static double mb_total(const comparison *c, const attempt *a) {
    (void)c;
    return 1e-6 * end_of(a)->bytes_per_node;
}
static double distance(const comparison *c, const attempt *a) {
    (void)c;
    return end_of(a)->consensus.distance;
}
static double gradient_s(const comparison *c, const attempt *a) {
    (void)c;
    return a->times.gradient;
}
static double encode_s(const comparison *c, const attempt *a) {
    (void)c;
    return a->times.encode;
}
static double wait_s(const comparison *c, const attempt *a) {
    return c->agents ? a->times.wait : NAN;
}
static double combine_s(const comparison *c, const attempt *a) {
    (void)c;
    return a->times.combine;
}

/* Numbers of 32 bits that a node sends for each operation of its gradients: D f(N) / (M C), where
 * D f(N) numbers leave a node in a round, and M samples of C operations are in a batch. */
static double c2c(const comparison *c, const attempt *a) {
    (void)c;
    return a->operations > 0 ? end_of(a)->bytes_per_node / 4 / a->operations : NAN;
}

const metric metrics[] = {
    {"accuracy", "%", "accuracy", 0, 100, "%.2f", accuracy},
    {"", "loss", "loss", 1, 1, "%.5g", loss},
    {"rounds to", "target", "rounds_to_target", 2, 1, "%.0f", rounds_to_target},
    {"MB to", "target", "mb_to_target", 3, 1, "%.3f", mb_to_target},
    {"MB", "total", "mb_total", 6, 1, "%.3f", mb_total},
    {"consensus", "distance", "consensus_distance", 7, 1, "%.3g", distance},
    {"gradient", "s", "gradient_s", 9, 1, "%.3f", gradient_s},
    {"encode", "s", "encode_s", 9, 1, "%.3f", encode_s},
    {"wait", "s", "wait_s", 9, 1, "%.3f", wait_s},
    {"combine", "s", "combine_s", 9, 1, "%.3f", combine_s},
    {"C2C", "ratio", "c2c", 10, 1, "%.3g", c2c},
};
const size_t metric_count = sizeof metrics / sizeof *metrics;

/* Welford's recurrence. */
static void add(statistic *s, double value) {
    double sum = s->count > 1 ? s->deviation * s->deviation * (double)(s->count - 1) : 0;
    double before = value - s->mean;
    s->count++;
    s->mean += before / (double)s->count;
    sum += before * (value - s->mean);
    s->deviation = s->count > 1 ? sqrt(sum / (double)(s->count - 1)) : NAN;
}

statistic metric_over(const comparison *c, const contender *r, const metric *m) {
    statistic s = {.deviation = NAN};
    for (size_t i = 0; i < c->seeds; i++) {
        double value = is_done(&r->attempts[i]) ? m->of(c, &r->attempts[i]) : NAN;
        if (isfinite(value))
            add(&s, value);
    }
    return s;
}

statistic predicted_over(const comparison *c, const contender *r, size_t link) {
    statistic s = {.deviation = NAN};
    for (size_t i = 0; i < c->seeds; i++)
        if (is_done(&r->attempts[i]) && r->attempts[i].timeline != NULL)
            add(&s, r->attempts[i].predicted_s[link]);
    return s;
}

statistic pays_over(const comparison *c, const contender *r, size_t link, pay_kind *kind) {
    statistic s = {.deviation = NAN};
    for (size_t i = 0; i < c->seeds; i++) {
        const attempt *a = &r->attempts[i];
        if (!a->has_pay[link])
            continue;
        bool same = s.count == 0 || *kind == a->pays[link].kind;
        *kind = same ? a->pays[link].kind : PAYS_MIXED;
        add(&s, a->pays[link].bandwidth_mbit);
    }
    return s;
}

void contender_outcome(const comparison *c, const contender *r, char *out, size_t bytes) {
    static const char *const names[] = {"not run", "done", "diverged", "failed", "stopped"};
    const attempt *a = &r->attempts[0];
    for (size_t s = 0; s < c->seeds && is_done(a); s++)
        a = &r->attempts[s];
    if (contender_skipped(r))
        snprintf(out, bytes, "not run: %s", r->variant->skip);
    else if (a->outcome == OUTCOME_DIVERGED && a->diverged_in > 0)
        snprintf(out, bytes, "diverged in round %llu", (unsigned long long)a->diverged_in);
    else
        snprintf(out, bytes, "%s", names[a->outcome]);
}

bool contender_skipped(const contender *r) {
    return r->variant->skip[0] != '\0';
}

const char *contender_algorithm(const contender *r) {
    return contender_skipped(r) ? "-" : r->plan.config.name;
}

void contender_compressor(const contender *r, char *out, size_t bytes) {
    if (contender_skipped(r))
        snprintf(out, bytes, "-");
    else
        name_compressor(&r->plan.config.compressor, out, bytes);
}

void contender_seeds(const comparison *c, const contender *r, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t s = 0; s < c->seeds && used < bytes; s++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%llu", s > 0 ? " " : "",
                                 (unsigned long long)r->attempts[s].seed);
}

void contender_topology(const contender *r, char *out, size_t bytes) {
    const sl_topology *t = r->variant->experiment->topology;
    const sl_topology_spec *d = sl_topology_description(t);
    const char *name = d->family != SL_FAMILY_EDGES ? sl_family_describe(d->family)->name
                       : sl_topology_period(t) > 1  ? "listed schedule"
                                                    : "listed edges";
    snprintf(out, bytes, "%s %u", name, sl_topology_nodes(t));
}
