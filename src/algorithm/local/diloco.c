/* diloco.c - DiLoCo: Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language
 * Models", 2023, Algorithm 1.
 *
 *   `period` inner steps on each node from phi give theta_i;  Delta = phi - (1/n) sum_i theta_i
 *   b <- mu b + Delta;  phi <- phi - eta (nesterov: Delta + mu b; else b);  theta_i <- phi
 *
 * eta, mu, nesterov: algorithm.outer. The inner optimizer's buffers stay where they are. eta = 1
 * and mu = 0 is local SGD. Memory beside x, g and
 * momentum: phi and b, two vectors. Wire: local SGD's, 64 d (n - 1)/n bits every `period` rounds.
 */
#include "algorithm/algorithms.h"
#include "algorithm/own_keys.h"

enum { OUTER = 0, MOMENTUM = 1 };

static void defaults(sl_algorithm_config *c) {
    sl_default_period(c, 500);
    sl_default(&c->outer.learning_rate, 0.7);
    sl_default(&c->outer.momentum, 0.9);
}

static void start(sl_state *s, size_t dimension) {
    sl_copy(s, s->extra[OUTER], s->x, dimension);
}

/* x is the mean. phi - eta (Delta + mu b) = (1 - eta) phi + eta x - eta mu b. */
static void step(sl_state *s, size_t from, size_t count) {
    const float eta = (float)s->config->outer.learning_rate, mu = (float)s->config->outer.momentum;
    const bool ahead = s->config->outer.nesterov;
    float *phi = s->extra[OUTER] + from, *b = s->extra[MOMENTUM] + from, *x = s->x + from;
    s->vec->combine(b, (const float *const[]){b, phi, x}, (const float[]){mu, 1, -1}, 3, count);
    if (ahead)
        s->vec->combine(phi, (const float *const[]){phi, x, b},
                        (const float[]){1 - eta, eta, -eta * mu}, 3, count);
    else
        s->vec->combine(phi, (const float *const[]){phi, b}, (const float[]){1, -eta}, 2, count);
    sl_copy(s, x, phi, count);
}

static const sl_key keys[] = {
    {SL_ROW_PERIOD, .help = "rounds from one exchange to the next, 0 = 500"},
    {SL_ROW_OUTER_RATE},
    {SL_ROW_OUTER_MOMENTUM, .help = "momentum of the outer steps, auto = 0.9"},
    {SL_OWN_BOOL(outer.nesterov), .fallback = "true",
     .help = "look ahead along the outer momentum"},
    SL_KEYS_END,
};

const sl_algorithm sl_diloco = {
    .name = "diloco",
    .is_periodic = true,
    .route = SL_ROUTE_ALL_REDUCE,
    .takes_momentum = true,
    .keys = keys,
    .defaults = defaults,
    .extra_vectors = 2,
    .stages = sl_local_stages,
    .stage_count = SL_LOCAL_MODEL_STAGES,
    .start = start,
    .local = sl_local_step,
    .settle = step,
};
