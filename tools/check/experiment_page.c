/* experiment_page.c - see experiment_page.h. */
#include "check/experiment_page.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/budget_page.h"
#include "check/scenario.h"
#include "check/times_page.h"
#include "cli/names.h"
#include "cli/patience.h"
#include "cli/stable_steps.h"

enum { NAME_BYTES = 128 };
static const double near_limit = 0.8; /* of the largest learning rate: a warning */
#define AGREED 0.001                  /* of the first differences: who is so close agrees */

/* Appends to a text. */
static void add(char *out, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *out, size_t bytes, const char *format, ...) {
    const size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + used, bytes - used, format, arguments);
    va_end(arguments);
}

/* ---- what will run ---- */

void name_optimizer(const sl_optimizer_config *o, char *out, size_t bytes) {
    static const char *const schedules[] = {
#define SCHEDULE_NAME(kind, name) name,
        SL_SCHEDULES(SCHEDULE_NAME)
#undef SCHEDULE_NAME
    };
    snprintf(out, bytes, "%s, learning rate %g", sl_optimizer_name(o->kind), o->learning_rate);
    if (o->momentum > 0)
        add(out, bytes, ", momentum %g%s", o->momentum, o->nesterov ? " (Nesterov)" : "");
    if (o->weight_decay > 0)
        add(out, bytes, ", weight decay %g", o->weight_decay);
    if (o->schedule.kind != SL_SCHEDULE_CONSTANT)
        add(out, bytes, ", %s schedule", schedules[o->schedule.kind]);
    if (o->schedule.warmup_rounds > 0)
        add(out, bytes, ", warm-up of %llu rounds", (unsigned long long)o->schedule.warmup_rounds);
}

void page_say_learner(page *p, const trial *t, const char *optimizer) {
    const sl_experiment *e = t->experiment;
    char samples[NAME_BYTES] = "";
    if (sl_learner_operations(t->learner) > 0)
        snprintf(samples, sizeof samples, " of %u samples a node", e->data.batch);
    page_say(p, "model and data", "%s", sl_learner_describe(t->learner));
    page_say(p, "training", "%llu rounds%s; %s", (unsigned long long)t->task.rounds, samples,
             optimizer);
}

/* What the topology's file says: its family, if it is one. */
static void name_graph(const sl_topology *topology, char *out, size_t bytes) {
    char *text = sl_topology_json(topology);
    json_t *root = text != NULL ? json_loads(text, 0, NULL) : NULL;
    const char *family = json_string_value(json_object_get(root, "family")),
               *weights = json_string_value(json_object_get(root, "weights"));
    snprintf(out, bytes, "%s%s%s", family != NULL ? family : "listed edges",
             weights != NULL ? ", weights " : "", weights != NULL ? weights : "");
    json_decref(root);
    free(text);
}

void name_topology(const sl_topology *topology, const sl_topology_report *r, char *out,
                   size_t bytes) {
    char graph[NAME_BYTES], slots[NAME_BYTES] = "";
    name_graph(topology, graph, sizeof graph);
    if (r->period > 1)
        snprintf(slots, sizeof slots, " in a schedule of %u slots", r->period);
    if (sl_topology_is_endless(topology))
        snprintf(out, bytes, "%s: %u nodes, other edges in every round", graph, r->nodes);
    else
        snprintf(out, bytes, "%s: %u nodes, %llu edges%s", graph, r->nodes,
                 (unsigned long long)r->edges, slots);
    if (r->degree_min == r->degree_max)
        add(out, bytes, ", degree %u", r->degree_min);
    else
        add(out, bytes, ", degree %u to %u, mean %.4g", r->degree_min, r->degree_max,
            r->degree_mean);
}

/* The value of the key in a resolved experiment, borrowed; NULL: it is not there. */
static json_t *value_of(json_t *root, const char *path) {
    char part[NAME_BYTES];
    for (size_t length; root != NULL && *path != '\0'; path += length + (path[length] == '.')) {
        length = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        root = json_object_get(root, part);
    }
    return root;
}

/* Is it what nobody has to say? A parameter that the algorithm has set itself counts unless 0. */
static bool is_usual(const sl_key *k, json_t *value) {
    json_t *usual = json_loads(k->fallback, JSON_DECODE_ANY, NULL);
    bool same = json_equal(value, usual);
    if (json_is_number(usual) && json_is_number(value))
        same = json_number_value(value) == json_number_value(usual);
    if (k->type == SL_KEY_PARAMETER || k->type == SL_KEY_COUNT)
        same = same || (json_is_number(value) && json_number_value(value) == 0);
    json_decref(usual);
    return same;
}

/* ", period 50": settings of the algorithm's own. */
static void add_settings(const sl_experiment *e, char *out, size_t bytes) {
    static const char group[] = "algorithm.";
    char *text = sl_experiment_resolved(e);
    json_t *root = text != NULL ? json_loads(text, 0, NULL) : NULL;
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++) {
        const sl_key *k = keys.items[i];
        json_t *value = value_of(root, k->path);
        const bool is_own =
            k->owner == SL_KEY_OF_ALGORITHM || strcmp(k->path, "algorithm.variant") == 0;
        if (!is_own || value == NULL || is_usual(k, value))
            continue;
        char *said = json_is_array(value)
                         ? NULL
                         : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        add(out, bytes, ", %s %s", k->path + strlen(group),
            said == NULL            ? "as listed"
            : json_is_string(value) ? json_string_value(value)
                                    : said);
        free(said);
    }
    json_decref(root);
    free(text);
}

static void say_what_runs(page *p, const trial *t, const sl_topology_report *r) {
    const sl_algorithm_config *c = &t->plan.config;
    char compressor[NAME_BYTES], topology[MEANING_BYTES], optimizer[MEANING_BYTES];
    char settings[MEANING_BYTES] = "", weights[MEANING_BYTES];
    name_optimizer(&t->experiment->optimizer, optimizer, sizeof optimizer);
    name_compressor(&c->compressor, compressor, sizeof compressor);
    name_topology(t->experiment->topology, r, topology, sizeof topology);
    page_heading(p, "what will run");
    page_say_learner(p, t, optimizer);
    add_settings(t->experiment, settings, sizeof settings);
    page_say(p, "algorithm", "%s%s%s%s", c->name, settings,
             c->compressor.kind != SL_COMPRESSOR_IDENTITY ? ", compressor " : "",
             c->compressor.kind != SL_COMPRESSOR_IDENTITY ? compressor : "");
    page_say(p, "topology", "%s", topology);
    sl_experiment_say_weights(t->experiment, weights, sizeof weights);
    if (weights[0] != '\0')
        page_say(p, "", "%s", weights);
    if (t->experiment->final_average)
        page_say(p, "final average", "of all models, exact; their distance before it is reported");
}

/* ---- what it means ---- */

/* Entries of each, and how long each lasts. */
static void say_phases(page *p, const sl_plan *plan, size_t dimension) {
    char text[MEANING_BYTES] = "";
    for (uint32_t i = 0; i < plan->phase_count; i++)
        add(text, sizeof text, "%s%.0f bytes up to %s %llu", i > 0 ? ", " : "",
            ceil(sl_compressor_bits(&plan->phases[i], dimension) / 8),
            plan->phase_is_epoch ? "epoch" : "exchange", (unsigned long long)plan->phase_ends[i]);
    if (plan->phase_count > 0)
        page_say(p, "before that", "%s", text);
}

static void say_message(page *p, const trial *t) {
    const sl_plan *plan = &t->plan;
    sl_budget_extent extent;
    double share, bytes = message_bytes(t, &share);
    if (budget_extent(&extent, t)) {
        page_say_budget(p, t);
        return;
    }
    const bool stays = t->experiment->transport.memory == SL_MEMORY_AUTO &&
                       !sl_device_describe(t->experiment->device, &(sl_device_info){0});
    page_say(p, "message", "%.0f bytes, %.3g of the vector's%s", bytes, share,
             stays ? "; edges of one host and user: in memory" : "");
    say_phases(p, plan, t->task.dimension);
    if (plan->config.compressor.kind != SL_COMPRESSOR_IDENTITY && plan->quality.unbiased)
        page_say(p, "compressor", "%s, unbiased, omega %.4g%s",
                 sl_compressor_name(plan->config.compressor.kind), plan->quality.omega,
                 plan->quality.is_contractive ? ", contractive too" : "");
    else if (plan->config.compressor.kind != SL_COMPRESSOR_IDENTITY && plan->quality.is_contractive)
        page_say(p, "compressor", "%s, contractive, delta at least %.4g",
                 sl_compressor_name(plan->config.compressor.kind), plan->quality.delta);
}

static void say_replicas(page *p, const sl_topology *topology) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < sl_topology_nodes(topology); i++) {
        const uint32_t *peers, count = sl_topology_peers(topology, i, &peers);
        most = count > most ? count : most;
    }
    page_say(p, "replicas",
             "one of each neighbour, up to %u vectors a node; each message goes to all of them",
             most);
}

static void say_step(page *p, const trial *t) {
    const sl_plan *plan = &t->plan;
    double theory;
    if (plan->config.replicas == SL_REPLICAS_PER_NEIGHBOUR)
        say_replicas(p, t->experiment->topology);
    if (plan->step_size > 0)
        page_say(p, "step in use", "%.4g (%s)", plan->step_size,
                 plan->step_size_derived ? "derived" : "as configured");
    if (sl_plan_theory(&theory, plan, t->experiment->topology, NULL) == 0 && !isnan(theory))
        page_detail(p, "step by theory", "%.4g (sufficient, far from necessary)", theory);
}

/* How fast plain averaging with W removes differences. */
/* Whose nodes go at their own times. */
static void say_waiting(page *p, const trial *t, const sl_algorithm *a) {
    char text[MEANING_BYTES];
    if (a->async == NULL)
        return;
    a->async->waits_for(&t->plan.config, text, sizeof text);
    page_say(p, "a node waits for", "%s", text);
    if (!t->experiment->final_average)
        page_say(p, "last models", "%s; final_average makes them one",
                 a->async->pattern == SL_PATTERN_COMMITS ? "are the server's at different times"
                                                         : "differ as the last averages left them");
}

static void say_mixing(page *p, const sl_algorithm *a, const sl_topology *topology,
                       const sl_topology_report *r) {
    const bool endless = sl_topology_is_endless(topology);
    char rounds[NAME_BYTES] = "nodes never agree by averaging with this W";
    const double needed =
        r->rho <= GAP_ROUNDING ? r->period : ceil(r->period * log(AGREED) / log(r->rho));
    if (a->matrix == SL_MATRIX_NONE && a->async != NULL)
        return;
    if (a->matrix == SL_MATRIX_NONE) {
        page_say(p, "mixing", "exact averages of all; of the topology the number of nodes counts");
        return;
    }
    if (r->rho < 1 - GAP_ROUNDING)
        snprintf(rounds, sizeof rounds,
                 "averaging brings differences down to 1/1000 in %.0f round%s", needed,
                 needed > 1 ? "s" : "");
    page_say(p, "mixing", "spectral gap %.4g%s%s: %s",
             endless ? 1 - pow(r->rho, 1.0 / r->period) : r->gap,
             endless         ? " a round, on average"
             : r->period > 1 ? " over the schedule"
                             : "",
             r->spectrum_known ? "" : " at most, within the limit of work", rounds);
}

/* Model intensity: operations of a sample's gradient for each parameter. */
static void say_work(page *p, const trial *t) {
    const double each = sl_learner_operations(t->learner) / t->experiment->data.batch;
    if (each > 0)
        page_say(p, "work", "%.4g million operations for a sample's gradient, %.4g a parameter",
                 1e-6 * each, each / (double)t->task.dimension);
    if (t->task.gradient_seconds > 0)
        page_say(p, "gradient", "%.4g ms at model.gflops, of a batch",
                 1e3 * t->task.gradient_seconds);
}

/* Of local_epochs: known once the data are. */
static void say_clients(page *p, const trial *t) {
    const sl_algorithm_config *c = &t->plan.config;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; c->batch > 0 && i < t->nodes; i++) {
        const uint64_t steps = sl_clients_steps(c, t->task.samples(t->task.context, i));
        least = steps < least ? steps : least;
    }
    if (c->batch > 0)
        page_say(p, "clients", "train %llu to %llu of a turn's %llu rounds",
                 (unsigned long long)least, (unsigned long long)c->local_steps,
                 (unsigned long long)c->local_steps);
}

/* Of one-bit-adam: the rounds between which warmup_ratio may end it. */
static bool ends_warm_up(const trial *t, uint64_t *earliest, uint64_t *last) {
    const sl_algorithm_config *c = &t->plan.config;
    *earliest = sl_warm_up_earliest(c);
    *last = c->warmup_rounds < t->task.rounds ? c->warmup_rounds : t->task.rounds;
    return *earliest < *last;
}

static void say_what_it_means(page *p, const trial *t, const sl_topology_report *r) {
    const sl_algorithm_config *c = &t->plan.config;
    uint64_t earliest, last;
    page_heading(p, "what it means");
    say_message(p, t);
    say_step(p, t);
    say_waiting(p, t, sl_algorithm_of(c, NULL));
    say_mixing(p, sl_algorithm_of(c, NULL), t->experiment->topology, r);
    if (c->warmup_ratio > 0 && ends_warm_up(t, &earliest, &last))
        page_say(p, "warm-up",
                 "ends after round %llu at the earliest, after round %llu at the latest",
                 (unsigned long long)earliest, (unsigned long long)last);
    say_clients(p, t);
    say_work(p, t);
    page_say_times(p, t);
}

/* ---- what it needs ---- */

static void say_what_it_needs(page *p, const trial *t) {
    sl_run_memory m;
    char host[NAME_BYTES] = "", limit[NAME_BYTES] = "";
    trial_memory(t, &m);
    if (m.available > 0)
        snprintf(host, sizeof host, "; this host has %.0f MB", 1e-6 * (double)m.available);
    if (m.limit > 0)
        snprintf(limit, sizeof limit, "; a process may take %.0f MB", 1e-6 * (double)m.limit);
    page_heading(p, "what it needs");
    page_say(p, "one agent", "%.1f MB: vectors %.1f MB%s, data and work %.1f MB, buffers %.1f MB",
             1e-6 * (double)m.agent, 1e-6 * (double)m.vectors, m.on_device ? " on the GPU" : "",
             1e-6 * (double)m.task, 1e-6 * (double)m.buffers);
    page_say(p, "all of them", "%.1f MB as agents, %.1f MB in the simulator%s%s",
             1e-6 * (double)m.agents, 1e-6 * (double)m.simulator, host, limit);
}

/* ---- what to watch ---- */

void name_loss(const sl_experiment *e, char *out, size_t bytes) {
    const char *why = sl_experiment_why_stop(e);
    if (e->membership.on_loss == SL_ON_LOSS_CONTINUE && e->faults.count > 0)
        snprintf(out, bytes, "the others go on without it, as faults says");
    else if (e->membership.on_loss == SL_ON_LOSS_CONTINUE)
        snprintf(out, bytes, "the others go on without it, after %g s of silence at most%s",
                 e->membership.grace_s,
                 e->membership.restart != SL_RESTART_NEVER ? "; `starling run` starts it again"
                                                           : "");
    else if (why != NULL)
        snprintf(out, bytes, "ends the run: %s %s", e->algorithm.name, why);
    else
        snprintf(out, bytes, "ends the run; membership.on_loss \"continue\" lets the others go on");
}

static void print_day(int64_t seconds, char out[16]) {
    const time_t time = (time_t)seconds;
    struct tm utc;
    strftime(out, 16, "%Y-%m-%d", gmtime_r(&time, &utc));
}

/* Whose certificates are taken, and until when. */
static void say_authority(page *p, const sl_security_config *c) {
    sl_authority_ends ends;
    char ca[16], revoked[16];
    if (sl_security_look(c, &ends, NULL) != 0 || ends.ca_s == 0)
        return;
    print_day(ends.ca_s, ca);
    print_day(ends.revoked_s, revoked);
    if (ends.revoked_s != 0)
        page_say(p, "the CA", "ends %s, its list of revoked certificates %s (UTC)", ca, revoked);
    else
        page_say(p, "the CA", "ends %s (UTC); %s", ca,
                 c->revoked[0] != '\0' ? "its list of revoked certificates does not end"
                                       : "no list says which certificates are revoked");
}

void page_say_connections(page *p, const sl_experiment *e) {
    const sl_security_config *c = &e->security;
    static const char *const proofs[] = {
        [SL_SECURITY_AUTO] = "",
        [SL_SECURITY_NONE] = "",
        [SL_SECURITY_KEY] = "TLS 1.3 with the run's key",
        [SL_SECURITY_CERTIFICATES] = "TLS 1.3 with the certificates that the roster pins",
    };
    static const char *const seals[] = {
        [SL_SEAL_AUTO] = "AES-256-GCM beyond loopback; on loopback data is in the clear",
        [SL_SEAL_ON] = "AES-256-GCM",
        [SL_SEAL_OFF] = "data is in the clear, on loopback; beyond it agents refuse to start",
        [SL_SEAL_HANDSHAKE_ONLY] = "data is in the clear",
    };
    const sl_security_mode mode = sl_security_mode_of(c);
    const char *proof =
        c->ca[0] != '\0' ? "TLS 1.3 with certificates of the CA (security.ca)" : proofs[mode];
    if (mode != SL_SECURITY_NONE)
        page_say(p, "who can take part", "%s; %s", proof, seals[c->seal]);
    else
        page_say(p, "who can take part", "%s; nothing is encrypted",
                 c->trusted_network ? "whoever reaches an agent's port"
                                    : "every process of this host, and nobody beyond it");
    say_authority(p, c);
    if (sl_security_is_unsaid(c))
        page_say(p, "starling run", "makes a key of its own: TLS 1.3; %s",
                 seals[c->seal == SL_SEAL_AUTO ? SL_SEAL_HANDSHAKE_ONLY : c->seal]);
    if (!e->transport.checksums)
        page_say(p, "checksums",
                 "off: if a link alters data in the clear, only the link can notice");
}

/* Messages that do not hold the step bound it. */
static bool is_bound(const sl_algorithm_config *c, bool overlap) {
    return strcmp(c->name, "d-psgd") == 0 &&
           (overlap || c->variant == SL_VARIANT_COMBINE_WHILE_ADAPT);
}

static double least_self_weight(const sl_topology *topology) {
    double least = 1;
    for (uint32_t slot = 0; slot < sl_topology_period(topology); slot++)
        for (uint32_t rank = 0; rank < sl_topology_nodes(topology); rank++)
            least = fmin(least, sl_topology_in(topology, slot, rank).self);
    return least;
}

/* Without lambda_n: W = w I + (1 - w) Q, where w is the least W_ii and Q is doubly stochastic too,
 * so that |W - s I| <= |w - s| + 1 - w, which is at most 1 for s from 0 to 2 w. */
void name_bound(const sl_experiment *e, bool overlap, const sl_topology_report *r, char *out,
                size_t bytes) {
    out[0] = '\0';
    if (!is_bound(&e->algorithm, overlap))
        return;
    if (!isnan(r->lambda_n))
        snprintf(out, bytes, "learning rate * curvature < 1 + lambda_n = %.4g", 1 + r->lambda_n);
    else if (r->stochastic.row && r->stochastic.column && r->stochastic.nonnegative)
        snprintf(out, bytes, "learning rate * curvature < 2 min W_ii = %.4g",
                 2 * least_self_weight(e->topology));
}

/* For which steps it converges, and how near the experiment's is. */
static void say_steps(page *p, const trial *t, const sl_topology_report *r) {
    char other[NAME_BYTES];
    stable_steps steps;
    stable_steps_find(&steps, t, r->lambda_2, r->lambda_n);
    name_bound(t->experiment, false, r, other, sizeof other);
    const char *bound = steps.bound[0] != '\0' ? steps.bound : other;
    if (steps.share > near_limit)
        page_say(p, "warning", "learning rate %g is %s%.0f %% of the largest that is stable%s",
                 t->experiment->optimizer.learning_rate, steps.known ? "" : "about ",
                 100 * steps.share,
                 steps.known ? "" : " at the first models; later ones are often less curved");
    if (bound[0] != '\0')
        page_say(p, "stable for", "%s", bound);
    else if (steps.why[0] != '\0')
        page_say(p, "stable for", "not known: %s", steps.why);
    if (steps.rate[0] != '\0')
        page_say(p, "", "%s", steps.rate);
}

static void say_what_to_watch(page *p, const trial *t, const sl_topology_report *r) {
    char loss[MEANING_BYTES];
    sl_warnings w;
    name_loss(t->experiment, loss, sizeof loss);
    page_heading(p, "what to watch");
    sl_experiment_warnings(&w, t->experiment, &t->plan, &t->task);
    for (size_t i = 0; i < w.count; i++)
        page_say(p, "warning", "%s", w.texts[i]);
    say_steps(p, t, r);
    if (sl_experiment_is_asynchronous(t->experiment))
        return; /* there are no agents to lose */
    page_say(p, "a lost peer", "%s", loss);
    page_say_connections(p, t->experiment);
}

int page_say_experiment(page *p, const trial *t, sl_error *error) {
    sl_topology_report report;
    int result = sl_topology_analyse(t->experiment->topology, &report, patience_watch(), error);
    if (result != 0)
        return result;
    say_what_runs(p, t, &report);
    say_what_it_means(p, t, &report);
    say_what_it_needs(p, t);
    say_what_to_watch(p, t, &report);
    page_heading(p, "faults");
    return scenario_say(p, t->experiment, error);
}
