/* comparison.c - what follows from all runs of `starling compare`; see comparison.h. */
#include "compare/comparison.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/names.h"

static bool is_done(const attempt *a) {
    return a->ended == RUN_DONE;
}

const milestone *attempt_end(const attempt *a) {
    return &a->milestones[a->milestone_count - 1];
}

static bool is_compressed(const contender *r) {
    return r->planned && r->plan.config.compressor.kind != SL_COMPRESSOR_IDENTITY;
}

size_t contender_done(const comparison *c, const contender *r) {
    size_t done = 0;
    for (size_t s = 0; s < c->seeds; s++)
        done += is_done(&r->attempts[s]);
    return done;
}

/* ---- opening ---- */

/* What its loss is of: the data but for how they are dealt out, and a problem that is its own. */
static json_t *held_out_of(json_t *tree) {
    json_t *data = json_deep_copy(json_object_get(tree, "data")),
           *path = json_object_get(json_object_get(tree, "model"), "path");
    json_object_del(data, "partition");
    json_object_del(data, "batch");
    json_object_set(data, "problem", path);
    return data;
}

static json_t *work_of(json_t *tree) {
    json_t *data = json_object_get(tree, "data");
    return json_pack("{sO? sO? sO?}", "model", json_object_get(tree, "model"), "data",
                     json_object_get(data, "name"), "batch", json_object_get(data, "batch"));
}

/* What a learner is opened with, but for a seed that all have. */
static json_t *learner_of(const comparison *c, const contender *r) {
    const sl_experiment *e = r->variant->experiment;
    return json_pack(
        "{sO? sO? sO? sO? sI sI}", "data", json_object_get(r->tree, "data"), "model",
        json_object_get(r->tree, "model"), "rounds", json_object_get(r->tree, "rounds"), "epochs",
        json_object_get(r->tree, "epochs"), "nodes", (json_int_t)sl_topology_nodes(e->topology),
        "seed", (json_int_t)(c->study->seeds.count > 0 ? 0 : e->seed));
}

/* Which of the earlier ones is the same; *count: how many there are. */
static size_t number_in(json_t **seen, size_t *count, json_t *one) {
    size_t i = 0;
    while (i < *count && !json_equal(seen[i], one))
        i++;
    if (i == *count)
        seen[(*count)++] = json_incref(one);
    json_decref(one);
    return i;
}

static void close_all(json_t **seen, size_t count) {
    for (size_t i = 0; i < count; i++)
        json_decref(seen[i]);
    free(seen);
}

static int group(comparison *c, sl_error *error) {
    json_t **held = calloc(c->count, sizeof *held), **work = calloc(c->count, sizeof *work),
           **learners = calloc(c->count, sizeof *learners);
    size_t works = 0;
    const bool good = held != NULL && work != NULL && learners != NULL;
    for (size_t i = 0; i < c->count && good; i++) {
        contender *r = &c->items[i];
        r->held_out = number_in(held, &c->held_out, held_out_of(r->tree));
        r->work = number_in(work, &works, work_of(r->tree));
        r->learner = number_in(learners, &c->learners, learner_of(c, r));
    }
    for (size_t l = 0, placed = 0; l < c->learners && good; l++)
        for (size_t i = 0; i < c->count; i++)
            if (c->items[i].learner == l)
                c->order[placed++] = i;
    close_all(held, c->held_out);
    close_all(work, works);
    close_all(learners, c->learners);
    return good ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for %zu variants", c->count);
}

static int open_one(comparison *c, size_t index, sl_error *error) {
    contender *r = &c->items[index];
    r->variant = &c->study->variants.items[index];
    r->facts = &c->study->facts[index];
    const sl_experiment *e = r->variant->experiment;
    char *text = sl_experiment_json(e);
    r->tree = text != NULL ? json_loads(text, 0, NULL) : NULL;
    free(text);
    r->attempts = calloc(c->seeds, sizeof *r->attempts);
    if (r->tree == NULL || r->attempts == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu variants", c->count);
    for (size_t s = 0; s < c->seeds; s++)
        r->attempts[s].seed = study_seed(c->study, r->variant, s);
    return 0;
}

int comparison_open(comparison *c, const study *s, sl_error *error) {
    *c = (comparison){.study = s, .seeds = study_seeds(s)};
    c->items = calloc(s->variants.count, sizeof *c->items);
    c->targets = calloc(s->variants.count, sizeof *c->targets);
    c->order = calloc(s->variants.count, sizeof *c->order);
    if (c->items == NULL || c->targets == NULL || c->order == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu variants", s->variants.count);
    c->count = s->variants.count;
    int result = 0;
    for (size_t i = 0; i < c->count && result == 0; i++)
        result = open_one(c, i, error);
    return result == 0 ? group(c, error) : result;
}

void comparison_close(comparison *c) {
    for (size_t i = 0; i < c->count; i++) {
        attempt *attempts = c->items[i].attempts;
        for (size_t s = 0; attempts != NULL && s < c->seeds; s++)
            results_close(&attempts[s]);
        free(attempts);
        json_decref(c->items[i].tree);
    }
    free(c->items);
    free(c->targets);
    free(c->order);
    *c = (comparison){0};
}

/* ---- targets ---- */

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The final loss of the averaged model, of the seed that ends worst; NaN: none is done. */
static double worst_loss(const comparison *c, const contender *r) {
    double worst = NAN;
    for (size_t s = 0; s < c->seeds; s++) {
        const attempt *a = &r->attempts[s];
        const double loss = is_done(a) ? attempt_end(a)->loss : NAN;
        if (isfinite(loss))
            worst = fmax(worst, loss); /* of a NaN the other one */
    }
    return worst;
}

/* Of variants that are scored on the same data the median one's final loss, of two in the middle
 * the better one: half of the variants reach it with every seed, and a bad one does not move it. */
static double median_loss(const comparison *c, size_t held_out, double *losses) {
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        const double loss = worst_loss(c, &c->items[i]);
        if (isfinite(loss) && c->items[i].held_out == held_out)
            losses[count++] = loss;
    }
    qsort(losses, count, sizeof *losses, by_value);
    return count > 0 ? losses[(count - 1) / 2] : NAN;
}

static int choose_targets(comparison *c, sl_error *error) {
    double *losses = calloc(c->count, sizeof *losses);
    if (losses == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu losses", c->count);
    for (size_t i = 0; i < c->held_out; i++)
        c->targets[i] = c->study->has_target ? c->study->target_loss : median_loss(c, i, losses);
    free(losses);
    return 0;
}

const milestone *attempt_reached(const comparison *c, const contender *r, const attempt *a) {
    for (size_t i = 0; i < a->milestone_count; i++)
        if (a->milestones[i].loss <= c->targets[r->held_out]) /* of a NaN: no */
            return &a->milestones[i];
    return NULL;
}

/* ---- predictions ---- */

static void choose_rivals(comparison *c) {
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->count && is_compressed(&c->items[i]); k++) {
            contender *r = &c->items[k];
            bool same = r->work == c->items[i].work &&
                        sl_topology_hash(r->variant->experiment->topology) ==
                            sl_topology_hash(c->items[i].variant->experiment->topology);
            if (same && !is_compressed(r) && contender_done(c, r) > 0) {
                c->items[i].rival = r;
                break;
            }
        }
}

/* Variants of the same work compute the same gradients with one seed: differences between their
 * times are noise. */
static double gradient_ms_of_all(const comparison *c, size_t work, size_t seed) {
    double sum = 0;
    size_t done = 0;
    for (size_t i = 0; i < c->count; i++) {
        const attempt *a = &c->items[i].attempts[seed];
        if (is_done(a) && c->items[i].work == work) {
            sum += a->cost.gradient_ms;
            done++;
        }
    }
    return done > 0 ? sum / (double)done : 0;
}

static sl_platform platform_of(const comparison *c, const contender *r, size_t seed,
                               const link_profile *l) {
    node_cost cost = {gradient_ms_of_all(c, r->work, seed), r->attempts[seed].cost.coding_ms};
    sl_platform p = forecast_platform(r->variant->experiment, &cost);
    p.seed = r->attempts[seed].seed;
    p.bandwidth_mbit = l->bandwidth_mbit;
    p.latency_ms = l->latency_ms;
    return p;
}

void contender_costs(const comparison *c, const contender *r, size_t seed, double *gradient,
                     double *coding) {
    const node_cost gradients = {.gradient_ms = gradient_ms_of_all(c, r->work, seed)};
    *gradient = 1e-3 * forecast_platform(r->variant->experiment, &gradients).compute_ms;
    *coding = 1e-3 * platform_of(c, r, seed, &c->study->links[0]).compute_ms - *gradient;
}

exchange_case contender_exchange(const contender *r, const link_profile *link) {
    const sl_experiment *e = r->variant->experiment;
    return (exchange_case){.config = &r->plan.config,
                           .topology = e->topology,
                           .shapes = r->shapes,
                           .chunk_bytes = e->transport.chunk_bytes,
                           .link = *link,
                           .links = &e->network.links};
}

/* Seconds at each milestone. Beside agents only the first rounds were simulated: later ones take as
 * long as these. */
static int predict_milestones(double *seconds, const attempt *a, const sl_platform *platform,
                              sl_error *error) {
    uint64_t *rounds = calloc(a->milestone_count, sizeof *rounds);
    if (rounds == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for recorded rounds");
    const uint64_t known = sl_timeline_rounds(a->timeline);
    for (size_t i = 0; i < a->milestone_count; i++)
        rounds[i] = a->milestones[i].round < known ? a->milestones[i].round : known;
    const int result =
        sl_timeline_times(seconds, rounds, a->milestone_count, a->timeline, platform, error);
    for (size_t i = 0; i < a->milestone_count && result == 0; i++)
        seconds[i] *= (double)a->milestones[i].round / (double)rounds[i];
    free(rounds);
    return result;
}

/* Of nodes that went at their own times: the run was on its own links, and on no others. */
static bool has_clock(const contender *r, const attempt *a, const link_profile *link) {
    const sl_network_config *n = &r->variant->experiment->network;
    return a->milestone_count > 0 && a->milestones[0].virtual_s > 0 &&
           link->bandwidth_mbit == n->bandwidth_mbit && link->latency_ms == n->latency_ms;
}

static int fill_seconds(double *seconds, const attempt *a, const sl_platform *platform,
                        sl_error *error) {
    if (seconds == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for recorded rounds");
    if (a->timeline != NULL)
        return predict_milestones(seconds, a, platform, error);
    for (size_t i = 0; i < a->milestone_count; i++)
        seconds[i] = a->milestones[i].virtual_s;
    return 0;
}

static int predict(const comparison *c, contender *r, size_t seed, size_t link, sl_error *error) {
    attempt *a = &r->attempts[seed];
    sl_platform here = platform_of(c, r, seed, &c->study->links[link]);
    const milestone *target = attempt_reached(c, r, a);
    a->seconds_at[link] = calloc(a->milestone_count, sizeof *a->seconds_at[link]);
    const int code = fill_seconds(a->seconds_at[link], a, &here, error);
    if (code != 0)
        return code;
    a->predicted_s[link] = a->seconds_at[link][a->milestone_count - 1];
    a->target_s[link] = target != NULL ? a->seconds_at[link][target - a->milestones] : NAN;
    const attempt *rival = r->rival != NULL ? &r->rival->attempts[seed] : NULL;
    if (!is_compressed(r) || rival == NULL || rival->timeline == NULL || a->timeline == NULL)
        return 0;
    sl_platform rivals = platform_of(c, r->rival, seed, &c->study->links[link]);
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
    const study *s = c->study;
    bool any = false, agree = true;
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->seeds; k++)
            for (size_t l = 0; l < s->link_count; l++) {
                any = any || c->items[i].attempts[k].has_pay[l];
                agree = agree && same_pay(&c->items[i].attempts[k], 0, l);
            }
    for (size_t l = 0; l < s->link_count; l++) {
        c->shows_pay[l] = any && (l == 0 || !agree);
        for (size_t k = 0; k < l; k++)
            c->shows_pay[l] = c->shows_pay[l] && s->links[k].latency_ms != s->links[l].latency_ms;
        c->pay_columns += c->shows_pay[l];
    }
}

static int plan(contender *r, sl_error *error) {
    r->planned = r->facts->known;
    if (!r->planned)
        return 0;
    r->shapes = sl_task_shapes(&r->facts->task);
    const int result = sl_experiment_plan(&r->plan, r->variant->experiment, &r->facts->task, error);
    return result == 0 ? 0 : sl_fail_prefix(error, result, "%s", r->variant->where);
}

static int read_one(comparison *c, contender *r, size_t seed, sl_error *error) {
    char path[SL_PATH_MAX];
    if (contender_skipped(r))
        return 0;
    int result = study_run_path(c->study, r->variant, seed, path, error);
    if (result == 0)
        result = results_read(&r->attempts[seed], path, r->facts, error);
    for (size_t l = 0; l < LINKS_MAX; l++)
        r->attempts[seed].predicted_s[l] = r->attempts[seed].target_s[l] = NAN;
    return result;
}

int comparison_load(comparison *c, sl_error *error) {
    int result = 0;
    for (size_t i = 0; i < c->count && result == 0; i++)
        result = plan(&c->items[i], error);
    for (size_t i = 0; i < c->count; i++)
        for (size_t s = 0; s < c->seeds && result == 0; s++)
            if (s == 0 || c->items[i].variant->run[0] == '\0') /* a run of its own is one */
                result = read_one(c, &c->items[i], s, error);
    if (result == 0)
        result = choose_targets(c, error);
    choose_rivals(c);
    for (size_t i = 0; i < c->count; i++)
        for (size_t s = 0; s < c->seeds; s++)
            for (size_t l = 0; l < c->study->link_count && result == 0; l++) {
                const attempt *a = &c->items[i].attempts[s];
                if (is_done(a) &&
                    (a->timeline != NULL || has_clock(&c->items[i], a, &c->study->links[l])))
                    result = predict(c, &c->items[i], s, l, error);
            }
    choose_pay_columns(c);
    return result;
}

/* ---- names ---- */

void attempt_outcome(const attempt *a, char *out, size_t bytes) {
    static const char *const names[] = {
        [RUN_ABSENT] = "not run", [RUN_UNDER_WAY] = "under way", [RUN_KILLED] = "killed",
        [RUN_DONE] = "done",      [RUN_DIVERGED] = "diverged",   [RUN_STOPPED] = "stopped",
        [RUN_FAILED] = "failed"};
    if (a->ended == RUN_DIVERGED && a->diverged_in > 0)
        snprintf(out, bytes, "diverged in round %llu", (unsigned long long)a->diverged_in);
    else
        snprintf(out, bytes, "%s", names[a->ended]);
}

void contender_outcome(const comparison *c, const contender *r, char *out, size_t bytes) {
    const attempt *a = &r->attempts[0];
    for (size_t s = 0; s < c->seeds && is_done(a); s++)
        a = &r->attempts[s];
    if (contender_skipped(r))
        snprintf(out, bytes, "not run: %s", r->variant->skip);
    else
        attempt_outcome(a, out, bytes);
}

bool contender_skipped(const contender *r) {
    return r->variant->skip[0] != '\0';
}

const char *contender_algorithm(const contender *r) {
    if (contender_skipped(r))
        return "-";
    return r->planned
               ? r->plan.config.name
               : json_string_value(json_object_get(json_object_get(r->tree, "algorithm"), "name"));
}

void contender_compressor(const contender *r, char *out, size_t bytes) {
    if (contender_skipped(r))
        snprintf(out, bytes, "-");
    else
        name_compressor(r->planned ? &r->plan.config.compressor
                                   : &r->variant->experiment->algorithm.compressor,
                        out, bytes);
}

void contender_seeds(const comparison *c, const contender *r, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = '\0';
    const size_t count = r->variant->run[0] == '\0' ? c->seeds : 1; /* a run of its own is one */
    for (size_t s = 0; s < count && used < bytes; s++)
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

json_t *contender_swept(const contender *r, const char *key) {
    return json_object_get(r->variant->swept, key);
}
