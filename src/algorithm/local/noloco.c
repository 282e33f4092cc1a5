/* noloco.c - NoLoCo: Kolehmainen, Blagoev, Donaghy, Ersoy, Nies, "NoLoCo: No-all-reduce Low
 * Communication Training Method for Large Models", 2025.
 *
 *   `period` inner steps on each node from phi_i give theta_i, then with its neighbours of the
 *   exchange
 *   b_i <- mu b_i + eta sum_j W_ij (theta_j - phi_j) + kappa sum_j W_ij (phi_j - phi_i)
 *   phi_i <- phi_i + b_i;  theta_i <- phi_i
 *
 * eta, mu: algorithm.outer; kappa: algorithm.consensus_step (0: eta). W symmetric, doubly
 * stochastic, any schedule; random pairs are the paper's. The mean takes DiLoCo's steps without
 * Nesterov, and W = J is that. period = 1, eta = kappa = 1, mu = 0 is D-PSGD. A fixed W is stable
 * while kappa (1 - lambda_n) < 2 (1 + mu), random pairs while kappa < 2 (1 - mu^2) (in mean square,
 * many nodes). Memory beside x, g and momentum: phi and b, two vectors. Wire: 64 d bits to each
 * out-neighbour every `period` rounds. The authors' program (jkolehm/noloco) takes eta = 0.7, mu =
 * 0.5, pairs and 50 inner steps.
 */
#include <math.h>

#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"
#include "starling/spectrum.h"

enum { OUTER = 0, MOMENTUM = 1 };
static const double spectrum_work_max = 1e9; /* about a second */

static void defaults(sl_algorithm_config *c) {
    sl_default_period(c, 500);
    sl_default(&c->outer.learning_rate, 0.7);
    sl_default(&c->outer.momentum, 0.5);
}

static double consensus_step(const sl_algorithm_config *c) {
    return c->consensus_step > 0 ? c->consensus_step : c->outer.learning_rate;
}

static void start(sl_state *s, size_t dimension) {
    sl_copy(s, s->extra[OUTER], s->x, dimension);
}

static const float *outer(const sl_state *s) {
    return s->extra[OUTER];
}

/* b <- mu b + self own + each sum_{j != i} W_ij theirs_j */
static void add_to_momentum(sl_state *s, const sl_mix *mix, float mu, const float *own, float self,
                            float each, size_t from, size_t count) {
    for (size_t at = 0; at < count; at += s->block) {
        const size_t n = count - at < s->block ? count - at : s->block;
        float *b = s->extra[MOMENTUM] + from + at;
        sl_mix_into(s, s->scratch, own + from + at, mix, self, each, at, n);
        s->vec->combine(b, (const float *const[]){b, s->scratch}, (const float[]){mu, 1}, 2, n);
    }
}

static void pull(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    const float mu = (float)s->config->outer.momentum, kappa = (float)consensus_step(s->config);
    float given = 0; /* by those whose parts are here */
    for (size_t j = 0; j < mix->k; j++)
        given += mix->parts[j].weight;
    add_to_momentum(s, mix, mu, s->extra[OUTER], -kappa * given, kappa, from, count);
}

/* x <- theta - phi, which is small, is what leaves; settle sets x anew. */
static void displace(sl_state *s, size_t from, size_t count) {
    sl_local_step(s, from, count);
    sl_subtract(s, s->x + from, s->x + from, s->extra[OUTER] + from, count);
}

static void push(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    const float eta = (float)s->config->outer.learning_rate;
    add_to_momentum(s, mix, 1, s->x, eta * mix->self_weight, eta, from, count);
}

static void step(sl_state *s, size_t from, size_t count) {
    float *phi = s->extra[OUTER] + from, *b = s->extra[MOMENTUM] + from;
    s->vec->combine(phi, (const float *const[]){phi, b}, (const float[]){1, 1}, 2, count);
    sl_copy(s, s->x + from, phi, count);
}

static int check(const sl_algorithm_config *c, const sl_topology *topology, sl_error *error) {
    const double mu = c->outer.momentum, kappa = consensus_step(c);
    const bool fixed = sl_topology_period(topology) == 1;
    sl_spectrum spectrum = {0};
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    settings.work_max = spectrum_work_max;
    const int result = fixed ? sl_spectrum_compute(&spectrum, topology, &settings, error) : 0;
    if (result != 0)
        return result;
    const double most = fixed ? 2 * (1 + mu) / (1 - spectrum.lambda_n) : 2 * (1 - mu * mu);
    if (kappa < most)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.consensus_step: %.4g diverges with algorithm.outer.momentum %.4g on "
                   "this %s: it must be below %.4g; lower one of them",
                   kappa, mu, fixed ? "topology" : "schedule", most);
}

static const sl_stage stages[] = {
    {.prepare = displace, .vector = outer, .combine = pull},
    {.vector = sl_publish_model, .combine = push},
};

static const sl_key keys[] = {
    {SL_ROW_PERIOD, .help = "rounds from one exchange to the next, 0 = 500"},
    {SL_ROW_OUTER_RATE},
    {SL_ROW_OUTER_MOMENTUM, .help = "momentum of the outer steps, auto = 0.5"},
    {SL_ROW_CONSENSUS_STEP, .help = "step size of the mixing, 0 = algorithm.outer.learning_rate"},
    SL_KEYS_END,
};

const sl_algorithm sl_noloco = {
    .name = "noloco",
    .is_periodic = true,
    .matrix = SL_MATRIX_SYMMETRIC,
    .takes_momentum = true,
    .keys = keys,
    .defaults = defaults,
    .check = check,
    .extra_vectors = 2,
    .stages = stages,
    .stage_count = 2,
    .start = start,
    .local = sl_local_step,
    .settle = step,
};
