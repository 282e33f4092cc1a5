/* plan.c - do algorithm, topology and compressor suit each other, and which steps follow; see
 * sl_algorithm_plan. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "algorithm/algorithms.h"
#include "starling/spectrum.h"

static bool is_servers(const sl_algorithm *a) {
    return a->route == SL_ROUTE_SERVER;
}

/* ---- the matrix ---- */

static int refuse_sums(const sl_algorithm *a, sl_stochasticity w, sl_error *error) {
    return sl_fail(error, SL_EINVAL,
                   "algorithm '%s' needs a doubly stochastic W, but this topology's %s sum to 1 "
                   "only within %.3g; use weights "
                   "\"metropolis\", correct the listed weights, or take sgp, which works on "
                   "column-stochastic ones",
                   a->name, w.row ? "columns" : "rows", w.row ? w.column_residual : w.row_residual);
}

static int check_matrix(const sl_algorithm *a, sl_replicas replicas, const sl_topology *topology,
                        sl_error *error) {
    sl_stochasticity w = sl_topology_stochasticity(topology);
    if (a->matrix == SL_MATRIX_COLUMN && !w.column)
        return sl_fail(error, SL_EINVAL,
                       "algorithm '%s' needs a column-stochastic P, but this topology's columns "
                       "sum to 1 only within %.3g; use weights "
                       "\"push-sum\"",
                       a->name, w.column_residual);
    if (a->matrix >= SL_MATRIX_DOUBLY && !(w.row && w.column))
        return refuse_sums(a, w, error);
    if (a->matrix == SL_MATRIX_SYMMETRIC && !w.symmetric)
        return sl_fail(error, SL_EINVAL,
                       "algorithm '%s' needs a symmetric W, and this topology is directed; take an "
                       "undirected one, or sgp or d-psgd",
                       a->name);
    if (a->fixed_matrix && replicas == SL_REPLICAS_SUM && sl_topology_period(topology) > 1)
        return sl_fail(error, SL_EINVAL,
                       "algorithm '%s' keeps sums over its neighbours and needs the same W in "
                       "every round, but this topology is a schedule of "
                       "%u; take a fixed one, or deep-squeeze%s",
                       a->name, sl_topology_period(topology),
                       a->keeps_replicas ? ", or set algorithm.replicas to \"per-neighbour\": a "
                                           "vector for each neighbour of the whole schedule, "
                                           "and every message to all of them"
                                         : "");
    return 0;
}

/* ---- parameters ---- */

static int check_server(const sl_algorithm *a, const sl_algorithm_config *c, uint32_t nodes,
                        sl_error *error) {
    if (is_servers(a) && c->server >= (int64_t)nodes)
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.server: %lld is no rank of 0..%u; name one of them, or \"sharded\"",
            (long long)c->server, nodes - 1);
    return 0;
}

static int check_parameters(const sl_algorithm *a, const sl_algorithm_config *c, bool momentum,
                            sl_error *error) {
    if (momentum && !a->takes_momentum)
        return sl_fail(
            error, SL_EINVAL,
            "optimizer.momentum: algorithm '%s' is defined without momentum; set it to 0", a->name);
    if (c->replicas != SL_REPLICAS_SUM && !a->keeps_replicas)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.replicas: \"per-neighbour\", but algorithm '%s' keeps none that "
                       "could be told apart; leave the key out",
                       a->name);
    if (c->local_steps > 1 && !a->takes_local_steps)
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.local_steps: %llu, but algorithm '%s' cannot take local steps: its messages "
            "follow the model from exchange to "
            "exchange; use d-psgd, choco-sgd, deep-squeeze or sgp, or local-sgd with `period`",
            (unsigned long long)c->local_steps, a->name);
    return 0;
}

/* ---- the compressor ---- */

static bool resolve_switch(sl_switch chosen, bool fallback) {
    return chosen == SL_SWITCH_AUTO ? fallback : chosen == SL_SWITCH_ON;
}

static int check_scope(const sl_algorithm *a, const sl_algorithm_config *c, sl_error *error) {
    if (c->compressor.scope == SL_SCOPE_TENSOR && is_servers(a) && c->server == SL_SERVER_SHARDED)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.per: \"tensor\" and algorithm.server: \"sharded\" cut "
                       "the vector in two ways; take one of them");
    return 0;
}

static int check_threshold(const sl_algorithm *a, sl_compressor_kind kind, sl_error *error) {
    bool is_cd = a == &sl_cd_sgd;
    if (is_cd && kind != SL_COMPRESSOR_THRESHOLD && kind != SL_COMPRESSOR_IDENTITY)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.name: \"%s\"; cd-sgd has a compressor of its own "
                       "(algorithm.threshold): leave the key out",
                       sl_compressor_name(kind));
    return 0;
}

static int check_compressor(const sl_algorithm *a, sl_plan *plan, sl_error *error) {
    const sl_compressor_config *c = &plan->config.compressor;
    const char *name = sl_compressor_name(c->kind);
    if (a->compressor == SL_TAKES_IDENTITY && c->kind != SL_COMPRESSOR_IDENTITY)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.name: \"%s\", but algorithm '%s' sends vectors as "
                       "they are, and would stall at an error floor "
                       "otherwise; use choco-sgd, deep-squeeze or dcd-psgd (or naive-compression, "
                       "to see it stall)",
                       name, a->name);
    if (a->compressor == SL_TAKES_CONTRACTIVE && !plan->quality.is_contractive)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor: %s is not contractive here (omega = %.3g), and "
                       "algorithm '%s' would diverge; set %s",
                       name, plan->quality.omega, a->name,
                       c->scaled ? "scaled=false, or contractive=true to divide by 1 + omega"
                                 : "contractive=true, which divides by 1 + omega, or leave it out");
    if (a->compressor == SL_TAKES_UNBIASED && !plan->quality.unbiased)
        snprintf(plan->warning, sizeof plan->warning,
                 "%s is biased, and the theory of %s asks for an unbiased compressor: expect slow "
                 "or no convergence; choco-sgd and deep-squeeze "
                 "are made for biased ones",
                 name, a->name);
    else if (a->compressor == SL_TAKES_UNBIASED && plan->quality.omega > 1)
        snprintf(plan->warning, sizeof plan->warning,
                 "%s has a variance of omega = %.3g, and %s may diverge above a small one: use "
                 "more levels or a larger fraction, or choco-sgd",
                 name, plan->quality.omega, a->name);
    return 0;
}

/* A raw unbiased C with omega < 1 is contractive too, with delta = 1 - omega. */
static void note_raw_contraction(sl_quality *q) {
    if (q->unbiased && !q->is_contractive && q->omega < 1) {
        q->is_contractive = true;
        q->delta = 1 - q->omega;
    }
}

static int plan_compressor(const sl_algorithm *a, sl_plan *plan, size_t dimension,
                           sl_error *error) {
    sl_algorithm_config *c = &plan->config;
    int result = check_threshold(a, c->compressor.kind, error);
    if (result == 0)
        result = check_scope(a, c, error);
    if (result != 0)
        return result;
    if (a == &sl_cd_sgd)
        c->compressor.kind = SL_COMPRESSOR_THRESHOLD;
    c->compressor.threshold = c->threshold;
    c->compressor.scaled = resolve_switch(c->scaled, a->compressor == SL_TAKES_UNBIASED);
    c->compressor.contractive = resolve_switch(
        c->contractive, a->compressor == SL_TAKES_CONTRACTIVE && !c->compressor.scaled);
    if (dimension == 0)
        return 0;
    result = sl_compressor_check(&c->compressor, dimension, error);
    if (result != 0)
        return result;
    plan->quality = sl_compressor_quality(&c->compressor, dimension);
    note_raw_contraction(&plan->quality);
    return check_compressor(a, plan, error);
}

/* ---- steps ---- */

/* Koloskova et al. 2019, theorem 2: gamma = rho^2 delta / (16 rho + rho^2 + 4 beta^2 + 2 rho beta^2
 * - 8 rho delta), with rho = 1 - |lambda_2| and beta = ||I - W||_2 = 1 - lambda_n. */
static double choco_bound(double gap, double beta, double delta) {
    return gap * gap * delta /
           (16 * gap + gap * gap + 4 * beta * beta + 2 * gap * beta * beta - 8 * gap * delta);
}

/* The largest share of a model that a mixing moves: max_i (1 - W_ii), over a schedule's rounds. */
static double mixed_share(const sl_topology *topology) {
    double largest = 0;
    for (uint64_t r = 1; r <= sl_topology_period(topology); r++)
        for (uint32_t i = 0; i < sl_topology_nodes(topology); i++)
            largest = fmax(largest, 1 - sl_topology_in(topology, r, i).self);
    return largest;
}

/* What a sign keeps of a vector is between 1/d (theory) and 1; of a normal one 2/pi. */
static double usual_delta(const sl_plan *plan) {
    bool sign = plan->config.compressor.kind == SL_COMPRESSOR_SCALED_SIGN ||
                plan->config.compressor.kind == SL_COMPRESSOR_ONE_BIT;
    return sign ? 0.5 : plan->quality.delta;
}

/* With m the share of a model that mixing moves, a coordinate that is sent every 1/delta rounds
 * drifts by gamma m in each, and is stable while gamma m < 2 delta / (2 - delta) if it is chosen at
 * random, 2 delta if the largest are. Half of that; docs/algorithms.md has the measurements. */
static double stable_consensus_step(const sl_plan *plan, double share) {
    double delta = usual_delta(plan),
           kept = plan->config.compressor.kind == SL_COMPRESSOR_TOP_K ? delta : delta / (2 - delta);
    return kept < share ? kept / share : 1;
}

/* DeepSqueeze is stable up to the same step, but what has not been sent yet leaves a consensus
 * floor proportional to it. */
static double stable_eta(const sl_plan *plan, double share) {
    return stable_consensus_step(plan, share) / (1 + 6 * (1 - usual_delta(plan)));
}

static const double theory_work_max =
    1e9; /* about a second: a start should not wait longer for a number that is only shown */

static int derive_step(const sl_algorithm *a, sl_plan *plan, const sl_topology *topology,
                       sl_error *error) {
    bool choco = a == &sl_choco_compress_then_mix || a == &sl_choco_mix_then_compress;
    if (!choco && a != &sl_deep_squeeze)
        return 0;
    double given = choco ? plan->config.consensus_step : plan->config.eta,
           share = mixed_share(topology);
    plan->step_size_derived = given <= 0;
    plan->step_size = !plan->step_size_derived ? given
                      : share <= 0             ? 1
                      : choco                  ? stable_consensus_step(plan, share)
                                               : stable_eta(plan, share);
    if (!choco || !sl_topology_stochasticity(topology).symmetric ||
        sl_topology_period(topology) > 1)
        return 0;
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    settings.method = SL_SPECTRUM_LANCZOS;
    settings.work_max = theory_work_max;
    sl_spectrum spectrum;
    int result = sl_spectrum_compute(&spectrum, topology, &settings, error);
    if (result == 0 && spectrum.converged)
        plan->step_size_theory =
            choco_bound(spectrum.gap, 1 - spectrum.lambda_n, plan->quality.delta);
    return result;
}

/* Averages that swing between the two sides of a bipartite graph. A step below 1 leaves the models
 * something of their own, and so does exact diffusion with (I + W)/2. */
static void warn_of_swinging(const sl_algorithm *a, sl_plan *plan, const sl_topology *topology) {
    bool keeps = a->route != SL_ROUTE_TOPOLOGY || a == &sl_exact_diffusion ||
                 (plan->step_size > 0 && plan->step_size < 1);
    if (keeps || plan->warning[0] != '\0' || !sl_topology_alternates(topology))
        return;
    const sl_topology_spec *spec = sl_topology_description(topology);
    bool listed = spec->weighting == SL_WEIGHTING_EXPLICIT;
    snprintf(plan->warning, sizeof plan->warning,
             "the graph is bipartite and no node keeps a weight for itself (lambda_n = -1), so "
             "that models of its two sides change places for ever and never agree; take %s",
             listed ? "(I + W)/2 in place of the listed W" : "the lazy form of the weights, ");
    if (!listed)
        snprintf(plan->warning + strlen(plan->warning),
                 sizeof plan->warning - strlen(plan->warning), "\"%s\"",
                 sl_weighting_name(spec->weighting, true));
}

int sl_algorithm_plan(sl_plan *out, const sl_algorithm_config *config, const sl_topology *topology,
                      bool momentum, size_t dimension, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_find(config->name, config->variant, error);
    if (a == NULL)
        return SL_EINVAL;
    *out = (sl_plan){.config = *config, .step_size_theory = NAN};
    int result = check_matrix(a, config->replicas, topology, error);
    if (result == 0)
        result = check_server(a, config, sl_topology_nodes(topology), error);
    if (result == 0)
        result = check_parameters(a, config, momentum, error);
    if (result == 0)
        result = plan_compressor(a, out, dimension, error);
    if (result == 0 && dimension > 0)
        result = derive_step(a, out, topology, error);
    if (result == 0)
        warn_of_swinging(a, out, topology);
    return result;
}
