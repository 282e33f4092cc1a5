/* plan.c - what follows from a configuration, a topology and a dimension: how good the compressor
 * is and which steps are stable; see sl_algorithm_plan. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "algorithm/algorithms.h"
#include "algorithm/plan/phases.h"
#include "starling/spectrum.h"

/* ---- the compressor ---- */

static bool resolve_switch(sl_switch chosen, bool fallback) {
    return chosen == SL_SWITCH_AUTO ? fallback : chosen == SL_SWITCH_ON;
}

/* Error feedback under an unbiased C whose variance is high diverges; a biased one that is not
 * known to be contractive, as threshold, loses little enough in practice. */
static bool must_contract(const sl_algorithm *a, const sl_plan *plan) {
    return a->compressor == SL_TAKES_CONTRACTIVE ||
           (plan->config.error_feedback == SL_SWITCH_ON && plan->quality.unbiased);
}

static int check_compressor(const sl_algorithm *a, sl_plan *plan, sl_error *error) {
    const sl_compressor_config *c = &plan->config.compressor;
    const char *name = sl_compressor_name(c->kind);
    if (must_contract(a, plan) && !plan->quality.is_contractive)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor: %s is not contractive here (omega = %.3g), and "
                       "algorithm '%s' would diverge; %s",
                       name, plan->quality.omega, a->name,
                       !plan->quality.unbiased ? "take one that is, such as top-k"
                       : c->scaled
                           ? "set scaled=false, or contractive=true to divide by 1 + omega"
                           : "set contractive=true, which divides by 1 + omega, or leave it out");
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

/* Error feedback is for what is biased: the mean of unbiased messages is right without. */
static void plan_feedback(const sl_algorithm *a, sl_plan *plan, size_t dimension) {
    sl_algorithm_config *c = &plan->config;
    if (!sl_reads(a, "error_feedback"))
        return;
    const char *name = sl_compressor_name(c->compressor.kind);
    sl_compressor_config raw = c->compressor;
    raw.contractive = false;
    const bool biased = !sl_compressor_quality(&raw, dimension).unbiased,
               on = resolve_switch(c->error_feedback, !plan->quality.unbiased);
    c->error_feedback = on ? SL_SWITCH_ON : SL_SWITCH_OFF;
    if (biased && !on)
        snprintf(plan->warning, sizeof plan->warning,
                 "%s is biased, and without error feedback %s stops at an error that no learning "
                 "rate lowers; leave algorithm.error_feedback out",
                 name, a->name);
    else if (!biased && on)
        snprintf(plan->warning, sizeof plan->warning,
                 "%s is unbiased, and error feedback is for biased compressors: the mean is right "
                 "without it; leave algorithm.error_feedback out",
                 name);
}

static int plan_compressor(const sl_algorithm *a, sl_plan *plan, size_t dimension,
                           sl_error *error) {
    sl_algorithm_config *c = &plan->config;
    c->compressor.kind = sl_algorithm_compressor(c);
    if (!sl_reads(a, "error_feedback"))
        c->error_feedback = SL_SWITCH_OFF;
    if (a->tune != NULL)
        a->tune(c);
    c->compressor.scaled =
        resolve_switch(c->compressor.scaling, a->compressor == SL_TAKES_UNBIASED);
    const bool contracts =
        a->compressor == SL_TAKES_CONTRACTIVE || c->error_feedback == SL_SWITCH_ON;
    c->compressor.contractive =
        resolve_switch(c->compressor.contracting, contracts && !c->compressor.scaled);
    int result = sl_compressor_check(&c->compressor, dimension, error);
    if (result != 0)
        return result;
    plan->quality = sl_compressor_quality(&c->compressor, dimension);
    note_raw_contraction(&plan->quality);
    plan_feedback(a, plan, dimension);
    return check_compressor(a, plan, error);
}

/* Quality that holds for both. */
static sl_quality worse(sl_quality a, sl_quality b) {
    return (sl_quality){.unbiased = a.unbiased && b.unbiased,
                        .omega = fmax(a.omega, b.omega),
                        .is_contractive = a.is_contractive && b.is_contractive,
                        .delta = fmin(a.delta, b.delta),
                        .usual_delta = fmin(a.usual_delta, b.usual_delta),
                        .takes_largest = a.takes_largest};
}

/* Each of a schedule, as configured; steps go by the worst of them. */
static int plan_compressors(const sl_algorithm *a, sl_plan *plan, size_t dimension,
                            sl_error *error) {
    const sl_plan given = *plan;
    const size_t rows = given.config.compressor_schedule.rows;
    sl_quality worst = {0};
    int result = 0;
    for (size_t row = 0; row <= rows && result == 0; row++) {
        plan->config = given.config;
        plan->config.compressor = sl_schedule_compressor(&given.config, row);
        result = plan_compressor(a, plan, dimension, error);
        worst = row == 0 ? plan->quality : worse(worst, plan->quality);
        if (row < rows) {
            const double *next = given.config.compressor_schedule.values + 2 * row;
            plan->phases[row] = plan->config.compressor;
            plan->phase_ends[row] = (uint64_t)next[0] - 1;
        }
    }
    plan->quality = worst;
    plan->phase_count = (uint32_t)rows;
    return result;
}

/* ---- steps ---- */

/* The largest share of a model that a mixing moves: max_i (1 - W_ii), over a schedule's rounds. */
static double mixed_share(const sl_topology *topology) {
    double largest = 0;
    for (uint64_t r = 1; r <= sl_topology_period(topology); r++)
        for (uint32_t i = 0; i < sl_topology_nodes(topology); i++)
            largest = fmax(largest, 1 - sl_topology_in(topology, r, i).self);
    return largest;
}

/* DeepSqueeze is stable up to the same step, but what has not been sent yet leaves a consensus
 * floor proportional to it. */
static double stable_eta(const sl_plan *plan) {
    return sl_stable_consensus_step(&plan->quality, plan->mixed) /
           (1 + 6 * (1 - sl_usual_delta(&plan->quality)));
}

static void derive_step(const sl_algorithm *a, sl_plan *plan, const sl_topology *topology) {
    const bool mixes = a->step_rule == SL_STEP_CONSENSUS || a->step_rule == SL_STEP_ETA;
    plan->mixed = mixes || a->route == SL_ROUTE_EDGES ? mixed_share(topology) : 0;
    if (a->step_rule == SL_STEP_NONE)
        return;
    if (a->step_rule == SL_STEP_ALPHA) {
        const sl_quality *q = &plan->quality;
        plan->step_size_derived = isnan(plan->config.alpha);
        plan->step_size = !plan->step_size_derived ? plan->config.alpha
                          : q->unbiased            ? 1 / (1 + q->omega)
                                                   : 1;
        return;
    }
    const bool consensus = a->step_rule == SL_STEP_CONSENSUS;
    double given = consensus ? plan->config.consensus_step : plan->config.eta;
    plan->step_size_derived = given <= 0;
    plan->step_size = !plan->step_size_derived ? given
                      : plan->mixed <= 0       ? 1
                      : consensus ? sl_stable_consensus_step(&plan->quality, plan->mixed)
                                  : stable_eta(plan);
}

/* Koloskova et al. 2019, theorem 2: gamma = rho^2 delta / (16 rho + rho^2 + 4 beta^2 + 2 rho beta^2
 * - 8 rho delta), with rho = 1 - |lambda_2| and beta = ||I - W||_2 = 1 - lambda_n. */
static double choco_bound(double gap, double beta, double delta) {
    return gap * gap * delta /
           (16 * gap + gap * gap + 4 * beta * beta + 2 * gap * beta * beta - 8 * gap * delta);
}

static const double theory_work_max = 1e9; /* about a second */

int sl_plan_theory(double *step, const sl_plan *plan, const sl_topology *topology,
                   sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(&plan->config, error);
    *step = NAN;
    if (a == NULL)
        return SL_EINVAL;
    if (a->step_rule != SL_STEP_CONSENSUS || !sl_topology_stochasticity(topology).symmetric ||
        sl_topology_period(topology) > 1)
        return 0;
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    settings.method = SL_SPECTRUM_LANCZOS;
    settings.work_max = theory_work_max;
    sl_spectrum spectrum;
    int result = sl_spectrum_compute(&spectrum, topology, &settings, error);
    if (result == 0 && spectrum.converged)
        *step = choco_bound(spectrum.gap, 1 - spectrum.lambda_n, plan->quality.delta);
    return result;
}

/* An algorithm with a step gamma mixes with I + gamma (W - I), whose smallest eigenvalue is 1 -
 * gamma (1 - lambda_n). It contracts while gamma (1 - lambda_n) < 2: with lambda_n = -1, while
 * gamma < 1. */
static int check_step(const sl_algorithm *a, const sl_plan *plan, const sl_topology *topology,
                      sl_error *error) {
    if (a->route != SL_ROUTE_TOPOLOGY || a->step_rule == SL_STEP_NONE || plan->step_size < 1 ||
        !sl_topology_alternates(topology))
        return 0;
    const char *key = a->step_rule == SL_STEP_CONSENSUS ? "consensus_step" : "eta";
    return sl_fail(error, SL_EINVAL,
                   "topology.weights: rho is 1 (lambda_n = -1), and with algorithm.%s 1 models of "
                   "the two sides of a bipartite graph change places for ever; set algorithm.%s "
                   "below 1, or take the lazy form of the weights",
                   key, key);
}

int sl_algorithm_plan(sl_plan *out, const sl_algorithm_config *config, const sl_topology *topology,
                      size_t dimension, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(config, error);
    if (a == NULL)
        return SL_EINVAL;
    sl_plan plan = {.config = *config};
    int result = plan_compressors(a, &plan, dimension, error);
    if (result != 0)
        return result;
    if (sl_reads(a, "warmup") && plan.phase_count == 0 &&
        (result = sl_phases_plan(&plan, dimension, error)) != 0)
        return result;
    if (a->warn != NULL)
        a->warn(config, plan.warning, sizeof plan.warning);
    derive_step(a, &plan, topology);
    result = check_step(a, &plan, topology, error);
    if (result == 0)
        *out = plan;
    return result;
}
