/* slowmo.c - SlowMo on local SGD, D-PSGD or SGP: Wang, Tantia, Ballas, Rabbat, "SlowMo: Improving
 * Communication-Efficient Distributed SGD with Slow Momentum", ICLR 2020, Algorithm 1.
 *
 *   `period` steps of the base from a give x_i;  xbar = (1/n) sum_i x_i
 *   u <- beta u + (a - xbar)/gamma;  a <- a - alpha gamma u;  x_i <- a
 *
 * gamma: the learning rate of the round; beta: algorithm.beta; alpha: algorithm.slow_rate; the
 * base: algorithm.base, gossip in slowmo_gossip.c. At a constant gamma it is, on local SGD, DiLoCo
 * without Nesterov; alpha = 1 and beta = 0 is local SGD, on D-PSGD Gossip-PGA. With a learning rate
 * of 0 models are averaged, and a follows. The inner momentum stays, is averaged, or begins anew,
 * as algorithm.buffers says. The first mean of a later view is a, and u = 0. Memory beside what the
 * base has: a and u, two vectors. Wire: the base's; in a `period`-th round all-reduce's, 64 d (n -
 * 1)/n bits, and as much again where buffers are averaged.
 */
#include "algorithm/local/slowmo.h"
#include "algorithm/algorithms.h"
#include "algorithm/own_keys.h"

enum { ANCHOR, MOMENTUM };

static bool is_on_local_sgd(const sl_algorithm_config *c) {
    return c->base == SL_BASE_LOCAL_SGD;
}

/* Vectors of its own stand behind SGP's numerator. */
static float *own(const sl_state *s, int vector) {
    return s->extra[vector + (s->config->base == SL_BASE_SGP)];
}

void sl_slowmo_defaults(sl_algorithm_config *c) {
    sl_default_period(c, 12);
    sl_default(&c->beta, 0.5);
}

void sl_slowmo_start(sl_state *s, size_t dimension) {
    sl_copy(s, own(s, ANCHOR), s->x, dimension);
}

/* On gossip, is it the first average of a later view? One comes in every `period`-th exchange. */
static bool begins_anew(const sl_state *s) {
    return !is_on_local_sgd(s->config) && s->first_exchange > 1 &&
           s->exchange - s->first_exchange < s->config->period;
}

void sl_slowmo_step(sl_state *s, size_t from, size_t count) {
    const float rate = s->sgd.learning_rate, beta = (float)s->config->beta,
                alpha = (float)s->config->slow_rate;
    float *a = own(s, ANCHOR) + from, *u = own(s, MOMENTUM) + from, *x = s->x + from;
    sl_reset_buffers(s, from, count);
    if (begins_anew(s))
        s->vec->fill(u, 0, count);
    if (begins_anew(s) || rate == 0) {
        sl_copy(s, a, x, count);
        return;
    }
    s->vec->combine(u, (const float *const[]){u, a, x}, (const float[]){beta, 1 / rate, -1 / rate},
                    3, count);
    s->vec->combine(a, (const float *const[]){a, u}, (const float[]){1, -alpha * rate}, 2, count);
    sl_copy(s, x, a, count);
}

static const char *const bases[] = {"local-sgd", "d-psgd", "sgp", NULL};
const sl_key sl_slowmo_keys[] = {
    {SL_OWN_CHOICE(base, bases), .fallback = "\"local-sgd\"",
     .help = "what nodes do from one average to the next"},
    {SL_ROW_PERIOD, .help = "rounds from one average to the next, 0 = 12"},
    {SL_ROW_BETA, .help = "momentum of its own, auto = 0.5"},
    {SL_OWN_REAL(slow_rate, 0, 10), .fallback = "1",
     .help = "share of the slow momentum's step that is taken"},
    {SL_ROW_BUFFERS},
    SL_KEYS_END,
};

const sl_algorithm sl_slowmo = {
    .name = "slowmo",
    .when = is_on_local_sgd,
    .is_periodic = true,
    .takes_momentum = true,
    .route = SL_ROUTE_ALL_REDUCE,
    .keys = sl_slowmo_keys,
    .defaults = sl_slowmo_defaults,
    .extra_vectors = SL_SLOWMO_VECTORS,
    .stages = sl_local_stages,
    .stage_count = SL_LOCAL_STAGES,
    .start = sl_slowmo_start,
    .local = sl_local_step,
    .settle = sl_slowmo_step,
};
