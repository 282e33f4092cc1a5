/* cmd_check.c - `starling check`: validates an experiment or a topology and says what it means. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/scenario.h"
#include "cli/file_kind.h"
#include "cli/patience.h"
#include "compare/time_model.h"
#include "compare/variants.h"
#include "topology/topology_report.h"

#define ROUNDING 1e-12 /* of a spectral gap */

/* Messages that do not hold the step bound it. */
static bool is_bound_by_lambda(const sl_algorithm_config *c, bool overlap) {
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
static void print_bound(const sl_topology *topology, const sl_topology_report *report) {
    if (!isnan(report->lambda_n))
        printf("  stable for          learning rate * curvature < 1 + lambda_n = %.4g\n",
               1 + report->lambda_n);
    else if (report->stochastic.row && report->stochastic.column && report->stochastic.nonnegative)
        printf("  stable for          learning rate * curvature < 2 min W_ii = %.4g\n",
               2 * least_self_weight(topology));
}

/* With a gap of `hopeless` or less nodes never agree, which is worth a word. bound: the learning
 * rate is limited by lambda_n. */
static int analyse(const sl_topology *topology, double hopeless, bool bound, sl_error *error) {
    sl_topology_report report;
    int result = sl_topology_analyse(topology, &report, error);
    if (result != 0)
        return result;
    topology_report_print(&report);
    if (report.gap <= hopeless)
        puts("  warning             nodes never agree by averaging with this W; starling topology "
             "analyse says why");
    if (bound)
        print_bound(topology, &report);
    return 0;
}

static int check_topology(const char *path, sl_error *error) {
    sl_topology *topology = NULL;
    int result = sl_topology_load(&topology, path, error);
    if (result == 0)
        result = analyse(topology, 0, false, error);
    sl_topology_close(&topology);
    return result;
}

static void print_replicas(const sl_topology *topology) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < sl_topology_nodes(topology); i++) {
        const uint32_t *peers, count = sl_topology_peers(topology, i, &peers);
        most = count > most ? count : most;
    }
    printf("  replicas            one of each neighbour, up to %u vectors a node; each message "
           "goes to all of them\n",
           most);
}

/* Entries of each, and how long each lasts. */
static void print_phases(const sl_plan *plan, size_t dimension) {
    if (plan->phase_count == 0)
        return;
    printf("  warm-up             %s", plan->phase_is_epoch ? "an epoch each" : "a round each");
    for (uint32_t i = 0; i < plan->phase_count; i++)
        printf("%s %.0f bytes", i > 0 ? "," : ":",
               ceil(sl_compressor_bits(&plan->phases[i], dimension) / 8));
    putchar('\n');
}

/* What a node sends of its vector, and how much that is of it. */
static void print_message(const sl_plan *plan, const sl_shapes *shapes) {
    const double whole = 32 * (double)shapes->dimension;
    size_t elements;
    double bits = sl_compressor_bits(&plan->config.compressor, shapes->dimension);
    if (sl_algorithm_shortens(&elements, &plan->config, shapes))
        bits = 32 * (double)elements;
    printf("\n  message             %.0f bytes, %.3g of the vector's\n", ceil(bits / 8),
           bits / whole);
}

static void print_plan(const sl_plan *plan, const sl_topology *topology, const sl_shapes *shapes) {
    const sl_compressor_config *c = &plan->config.compressor;
    printf("algorithm\n  %s\n  compressor          %s", plan->config.name,
           sl_compressor_name(c->kind));
    if (c->kind != SL_COMPRESSOR_IDENTITY && plan->quality.unbiased)
        printf(", unbiased, omega %.4g", plan->quality.omega);
    if (c->kind != SL_COMPRESSOR_IDENTITY && plan->quality.is_contractive)
        printf(", contractive, delta at least %.4g", plan->quality.delta);
    print_message(plan, shapes);
    print_phases(plan, shapes->dimension);
    if (plan->config.replicas == SL_REPLICAS_PER_NEIGHBOUR)
        print_replicas(topology);
    if (plan->step_size > 0)
        printf("  step in use         %.4g (%s)\n", plan->step_size,
               plan->step_size_derived ? "derived" : "as configured");
    double theory;
    if (sl_plan_theory(&theory, plan, topology, NULL) == 0 && !isnan(theory))
        printf("  step by theory      %.4g (sufficient, far from necessary)\n", theory);
    if (plan->warning[0] != '\0')
        printf("  warning             %s\n", plan->warning);
}

static void print_memory(const trial *t) {
    sl_run_memory m;
    trial_memory(t, &m);
    printf(
        "memory\n"
        "  one agent           %.1f MB: vectors %.1f MB%s, data and work %.1f MB, buffers %.1f MB\n"
        "  all agents          %.1f MB\n"
        "  simulator           %.1f MB\n",
        1e-6 * (double)m.agent, 1e-6 * (double)m.vectors, m.on_device ? " on the GPU" : "",
        1e-6 * (double)m.task, 1e-6 * (double)m.buffers, 1e-6 * (double)m.agents,
        1e-6 * (double)m.simulator);
    if (m.available > 0)
        printf("  this host has       %.1f MB\n", 1e-6 * (double)m.available);
    if (m.limit > 0)
        printf("  limit on a process  %.1f MB\n", 1e-6 * (double)m.limit);
}

/* What the others do when an agent is lost, and why. */
static void print_losses(const sl_experiment *e) {
    const char *why = sl_experiment_why_stop(e), *cost = sl_experiment_what_going_on_costs(e);
    printf("membership\n  a lost peer         ");
    if (e->membership.on_loss == SL_ON_LOSS_CONTINUE && e->faults.count > 0)
        puts("the others go on without it, as faults says");
    else if (e->membership.on_loss == SL_ON_LOSS_CONTINUE)
        printf("the others go on without it, after %g s of silence at most%s\n",
               e->membership.grace_s,
               e->membership.restart != SL_RESTART_NEVER ? "; `starling run` starts it again" : "");
    else if (why != NULL)
        printf("ends the run: %s %s; d-psgd, choco-sgd, deep-squeeze or sgp can\n",
               e->algorithm.name, why);
    else if (e->final_average)
        puts("ends the run: final_average is an average of all nodes; without it the others go on");
    else
        printf("ends the run; membership.on_loss \"continue\" lets the others go on%s%s\n",
               cost != NULL ? ", and costs each agent " : "", cost != NULL ? cost : "");
}

/* Who may take part, and what of it is sealed (docs/security.md). */
static void print_connections(const sl_experiment *e) {
    const sl_security_config *c = &e->security;
    static const char *const proofs[] = {
        [SL_SECURITY_AUTO] = "",
        [SL_SECURITY_NONE] = "nobody proves who he is, and nothing is encrypted",
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
    printf("connections\n  proof               %s\n", proofs[mode]);
    if (mode != SL_SECURITY_NONE)
        printf("  frames              %s\n", seals[c->seal]);
    else
        printf("  who can take part   %s\n", c->trusted_network
                                                 ? "whoever reaches an agent's port"
                                                 : "every process of this host; not beyond it");
    if (sl_security_is_unsaid(c))
        printf("  starling run        makes a key of its own: TLS 1.3; %s\n",
               seals[c->seal == SL_SEAL_AUTO ? SL_SEAL_HANDSHAKE_ONLY : c->seal]);
    if (!e->transport.checksums)
        puts("  checksums           off: if a link alters data in the clear, only the link can "
             "notice");
}

/* Model intensity: operations of a sample's gradient for each parameter. */
static void print_intensity(const trial *t) {
    const double each = sl_learner_operations(t->learner) / t->experiment->data.batch;
    if (each > 0)
        printf("  operations          %.4g million for a sample's gradient\n"
               "  model intensity     %.4g operations a parameter\n",
               1e-6 * each, each / (double)t->task.dimension);
    if (t->task.gradient_seconds > 0)
        printf("  gradient            %.4g ms at model.gflops, of a batch\n",
               1e3 * t->task.gradient_seconds);
}

/* Of local_epochs: known once the data are. */
static void print_clients(const trial *t) {
    const sl_algorithm_config *c = &t->plan.config;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; c->batch > 0 && i < t->nodes; i++) {
        const uint64_t steps = sl_clients_steps(c, t->task.samples(t->task.context, i));
        least = steps < least ? steps : least;
    }
    if (c->batch > 0)
        printf("  clients             train %llu to %llu of a turn's %llu rounds\n",
               (unsigned long long)least, (unsigned long long)c->local_steps,
               (unsigned long long)c->local_steps);
}

static void print_warm_up(const trial *t) {
    const sl_algorithm_config *c = &t->plan.config;
    const bool is_bounded = c->warmup_rounds < t->task.rounds;
    const uint64_t earliest = sl_warm_up_earliest(c),
                   last = is_bounded ? c->warmup_rounds : t->task.rounds;
    if (c->warmup_ratio > 0 && earliest < last)
        printf(
            "  warm-up             ends after round %llu at the earliest, after round %llu at the "
            "latest\n",
            (unsigned long long)earliest, (unsigned long long)last);
    else if (c->warmup_ratio > 0)
        printf("  warning             algorithm.warmup_ratio: can end the warm-up after round %llu "
               "at the earliest, and %s %llu: it never does\n",
               (unsigned long long)earliest,
               is_bounded ? "algorithm.warmup_rounds is" : "rounds are", (unsigned long long)last);
}

/* What all nodes average exactly beside the algorithm's exchanges. */
static void print_averages(const trial *t) {
    const sl_algorithm_config *c = &t->plan.config;
    const sl_algorithm *a = sl_algorithm_of(c, NULL);
    const uint64_t exchanges = t->task.rounds / sl_algorithm_interval(a, c);
    if (t->experiment->final_average)
        puts("  final average       of all models, exact; their distance before it is reported");
    if (c->switch_round >= t->task.rounds &&
        sl_algorithm_reads(a, SL_COMPRESSOR_IDENTITY, "switch_round"))
        printf(
            "  warning             algorithm.switch_round: %llu, and the run has %llu rounds: all "
            "are all-reduce's\n",
            (unsigned long long)c->switch_round, (unsigned long long)t->task.rounds);
    if (a->route == SL_ROUTE_BOTH && sl_algorithm_average_period(a, c) > exchanges)
        printf(
            "  warning             algorithm.%s: %llu, but the run has %llu "
            "exchanges, and so no exact average; take %llu or less%s\n",
            sl_algorithm_reads(a, SL_COMPRESSOR_IDENTITY, "period") ? "period" : "average_period",
            (unsigned long long)sl_algorithm_average_period(a, c), (unsigned long long)exchanges,
            (unsigned long long)exchanges,
            t->experiment->final_average ? "" : ", or final_average, which takes one at the end");
}

/* On the links of network.*; without encoding, which is measured. */
static void print_model(const trial *t, const exchange_case *c) {
    const sl_network_config *n = &t->experiment->network;
    const double tau = n->gradient_ms > 0 ? 1e-3 * n->gradient_ms : t->task.gradient_seconds;
    time_model m;
    if (tau <= 0 || time_model_of(c) == MODEL_NONE || time_model_open(&m, c, NULL) != 0)
        return;
    printf("  model of a round    %s: %s\n", time_model_name(m.kind), time_model_formula(m.kind));
    printf("  tau, a gradient     %.4g ms\n", 1e3 * tau);
    if (!isnan(m.phi))
        printf("  phi, an exchange    %.4g ms\n", 1e3 * m.phi);
    if (!isnan(m.psi))
        printf("  psi, compressed     %.4g ms\n", 1e3 * m.psi);
    if (m.kind == MODEL_CD_SGD)
        printf("  k                   %llu\n", (unsigned long long)m.period);
    printf("  a round             %.4g ms%s\n", 1e3 * time_model_seconds(&m, tau, 0),
           isnan(m.psi) ? "" : " and delta, encoding and combining, which compare measures");
}

static void print_forms(const exchange_case *c) {
    double seconds[SL_ALL_REDUCE_FORMS];
    size_t fastest;
    if (!all_reduce_is_used(c) || all_reduce_times(seconds, &fastest, c, NULL) != 0)
        return;
    for (size_t form = 0; form < SL_ALL_REDUCE_FORMS; form++)
        printf("  %-19s %.4g ms%s\n", all_reduce_name(form), 1e3 * seconds[form],
               form == fastest ? ", the fastest form" : "");
}

/* A few are enough to see which are meant. */
static void print_links(const sl_network_config *n) {
    enum { SHOWN = 4 };
    const sl_number_rows *l = &n->links;
    if (l->rows > 0)
        puts("links of single pairs");
    for (size_t row = 0; row < l->rows && row < SHOWN; row++) {
        const double *link = l->values + row * l->columns;
        char pair[32];
        snprintf(pair, sizeof pair, "%.0f and %.0f", link[0], link[1]);
        printf("  nodes %-13s %.6g Mbit/s, %.4g ms\n", pair, link[2],
               l->columns > 3 ? link[3] : n->latency_ms);
    }
    if (l->rows > SHOWN)
        printf("  and %zu more\n", l->rows - SHOWN);
}

static void print_round(const trial *t) {
    const sl_network_config *n = &t->experiment->network;
    const exchange_case c = {&t->plan.config,
                             t->experiment->topology,
                             sl_task_shapes(&t->task),
                             t->experiment->transport.chunk_bytes,
                             {n->bandwidth_mbit, n->latency_ms},
                             &n->links};
    if (!(n->bandwidth_mbit > 0 || n->latency_ms > 0 || n->links.rows > 0) ||
        (time_model_of(&c) == MODEL_NONE && !all_reduce_is_used(&c)))
        return;
    puts("time on the links of network.*");
    print_model(t, &c);
    print_forms(&c);
}

static void print_trial(const trial *t) {
    printf("learner\n  %s\n  %llu rounds\n", sl_learner_describe(t->learner),
           (unsigned long long)t->task.rounds);
    print_intensity(t);
    const sl_shapes shapes = sl_task_shapes(&t->task);
    print_plan(&t->plan, t->experiment->topology, &shapes);
    print_links(&t->experiment->network);
    print_round(t);
    print_clients(t);
    print_warm_up(t);
    print_averages(t);
    print_memory(t);
    print_losses(t->experiment);
    print_connections(t->experiment);
}

/* The whole configuration. */
static int check_single(const sl_experiment *e, sl_error *error) {
    trial t = {.experiment = (sl_experiment *)e};
    char *json = sl_experiment_json(e);
    int result =
        json != NULL ? trial_prepare(&t, false, error) : sl_fail(error, SL_ENOMEM, "out of memory");
    if (result == 0)
        result = trial_check_key(e, error);
    if (result == 0) {
        warn_of_keys(e);
        printf("%s\n\n", json);
        print_trial(&t);
        result = analyse(e->topology, -ROUNDING, /* a gap of 0: the plan has warned */
                         is_bound_by_lambda(&e->algorithm, false), error);
    }
    if (result == 0)
        result = scenario_print(e, error);
    free(json);
    sl_learner_close(&t.learner);
    return result;
}

/* Of one variant, with its topology where the one before has another. */
static int check_variant(const variant *v, const variant *before, sl_error *error) {
    trial t = {.experiment = v->experiment};
    printf("%svariant %s\n", before != NULL ? "\n" : "", v->name);
    int result = trial_prepare(&t, false, error);
    if (result != 0)
        sl_fail_prefix(error, result, "%s", v->where);
    else
        print_trial(&t);
    bool same = before != NULL && sl_topology_hash(before->experiment->topology) ==
                                      sl_topology_hash(v->experiment->topology);
    if (result == 0 && !same)
        result = analyse(v->experiment->topology, -ROUNDING,
                         is_bound_by_lambda(&v->experiment->algorithm, false), error);
    if (result == 0)
        result = scenario_print(v->experiment, error);
    sl_learner_close(&t.learner);
    return result;
}

static int check_experiment(const options *o, sl_error *error) {
    variants v;
    int result = variants_load(&v, o, error);
    if (result == 0 && !v.from_list)
        result = check_single(v.items[0].experiment, error);
    for (size_t i = 0; i < v.count && v.from_list && result == 0; i++)
        result = check_variant(&v.items[i], i > 0 ? &v.items[i - 1] : NULL, error);
    variants_close(&v);
    return result;
}

/* ---- of a session ---- */

/* What its user should know of an algorithm. */
static void print_notes(const sl_algorithm_config *c, bool overlap) {
    static const struct {
        const char *name, *note;
    } notes[] = {
        {"gradient-tracking", "exact only with optimizers that are linear in the gradient"},
        {"exact-diffusion", "exact only with optimizers that are linear in the gradient"},
        {"beer", "exact only with optimizers that are linear in the gradient"},
        {"lead", "exact only with optimizers that are linear in the gradient"},
        {"qgm", "its momentum is of displacements; take an optimizer without momentum"},
        {"decentlam", "its momentum is of displacements; take an optimizer without momentum"},
        {"d-adam", "its steps are Adam's at rate 1; take d-psgd, and AdamW in the loop"},
        {"d-amsgrad", "its steps are Adam's at rate 1; take d-psgd, and AdamW in the loop"},
        {"one-bit-adam", "its steps are Adam's at rate 1; no session has a use for them"},
        {"dgc", "without momentum here: error feedback of displacements"},
        {"gmc", "without momentum here: error feedback of displacements"},
        {"sign-vote", "it steps by 1 in each coordinate, at rate 1; no session has a use for it"},
        {"sgp", "x is the de-biased model; its displacement acts on the numerator"},
    };
    printf("session\n  algorithm           %s\n", c->name);
    printf("  gradient            x before - x after the step, at rate 1\n");
    if (overlap)
        printf("  overlap             x is sent between begin and end, which leaves W x in it\n");
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (strcmp(notes[i].name, c->name) == 0)
            printf("  note                %s\n", notes[i].note);
}

static int check_session(const options *o, sl_error *error) {
    const bool overlap = strcmp(o->session, "overlap") == 0;
    if (!overlap && strcmp(o->session, "mix") != 0)
        return sl_fail(error, SL_EINVAL,
                       "--session %s: is not allowed; it must be \"mix\" or \"overlap\"",
                       o->session);
    const sl_session_reading how = {.overrides = (const char *const *)o->overrides,
                                    .override_count = o->override_count,
                                    .overlap = overlap};
    sl_experiment *e = NULL;
    int result = sl_experiment_load_session(&e, o->file, &how, error);
    if (result == 0 && overlap && strcmp(e->algorithm.name, "d-psgd") != 0)
        result = sl_fail(error, SL_EINVAL, "--session overlap: is for d-psgd only, not for '%s'",
                         e->algorithm.name);
    if (result == 0) {
        warn_of_keys(e);
        print_notes(&e->algorithm, overlap);
        result = analyse(e->topology, -ROUNDING, is_bound_by_lambda(&e->algorithm, overlap), error);
    }
    sl_experiment_close(&e);
    return result;
}

static int check(const options *o, sl_error *error) {
    if (o->session != NULL)
        return check_session(o, error);
    if (!is_topology_file(o->file))
        return check_experiment(o, error);
    if (o->override_count > 0)
        return sl_fail(error, SL_EINVAL, "--set %s: %s is a topology, which has no keys to set",
                       o->overrides[0], o->file);
    return check_topology(o->file, error);
}

static int run(void *request, char *const *operands, size_t count) {
    options *o = request;
    sl_error error = {0};
    options_take_files(o, operands, count);
    patience *p = patience_begin("checking %s", o->file);
    int result = check(o, &error);
    patience_end(p);
    if (result == 0)
        return TOOL_OK;
    complain("%s", error.text);
    return TOOL_USAGE;
}

static const char *session_forms(size_t index) {
    static const char *const forms[] = {"mix", "overlap", NULL};
    return forms[index];
}

static const command_option option_session = {
    "session",
    .argument = "FORM",
    .help = "the experiment is a session's, of a training loop of your own: mix or overlap",
    .take = take_text,
    .offset = offsetof(options, session),
    .offer = OFFER_WORDS,
    .words = session_forms,
};
static const command_option *const option_rows[] = {&option_set, &option_session, NULL};

const command check_command = {
    .name = "check",
    .summary = "validate an experiment or a topology and print what it means",
    OPERAND_FILE("FILE"),
    .text =
        "Validates an experiment or a topology.\n\n"
        "Of an experiment it prints the configuration with all defaults, the model and its data, "
        "and how algorithm and compressor suit each other; of a file with variants the latter of "
        "each.\n\n"
        "Of the topology it prints nodes, edges, degrees, whether it is connected and stochastic "
        "(with the largest |sum - 1|), and how fast it mixes: the eigenvalues lambda_2 and "
        "lambda_n, rho = max(|lambda_2|, |lambda_n|) and the spectral gap 1 - rho.",
    .options = option_rows,
    .sections = {{"keys of an experiment", sl_experiment_keys_help}},
    REQUEST_OPTIONS,
    .run = run,
};
