/* slowmo.c - SlowMo on local SGD: Wang, Tantia, Ballas, Rabbat, "SlowMo: Improving
 * Communication-Efficient Distributed SGD with Slow Momentum", ICLR 2020, Algorithm 1.
 *
 *   `period` local steps from a give x_i;  xbar = (1/n) sum_i x_i
 *   u <- beta u + (a - xbar)/gamma;  a <- a - alpha gamma u;  x_i <- a
 *
 * gamma: the learning rate of the round; beta: algorithm.beta; alpha: algorithm.slow_rate. At a
 * constant gamma it is DiLoCo without Nesterov. alpha = 1 and beta = 0 is local SGD. With a
 * learning rate of 0 models are averaged, and a follows. The inner momentum stays. Memory beside x,
 * g and momentum: a and u, two vectors. Wire: local SGD's.
 */
#include "algorithm/algorithms.h"

enum { ANCHOR = 0, MOMENTUM = 1 };

static void defaults(sl_algorithm_config *c) {
    sl_default_period(c, 12);
    sl_default(&c->beta, 0.5);
}

static void start(sl_state *s, size_t dimension) {
    sl_copy(s, s->extra[ANCHOR], s->x, dimension);
}

/* x is the mean. */
static void step(sl_state *s, size_t from, size_t count) {
    const float rate = s->sgd.learning_rate, beta = (float)s->config->beta,
                alpha = (float)s->config->slow_rate;
    float *a = s->extra[ANCHOR] + from, *u = s->extra[MOMENTUM] + from, *x = s->x + from;
    if (rate == 0) {
        sl_copy(s, a, x, count);
        return;
    }
    s->vec->combine(u, (const float *const[]){u, a, x}, (const float[]){beta, 1 / rate, -1 / rate},
                    3, count);
    s->vec->combine(a, (const float *const[]){a, u}, (const float[]){1, -alpha * rate}, 2, count);
    sl_copy(s, x, a, count);
}

const sl_algorithm sl_slowmo = {
    .name = "slowmo",
    .is_periodic = true,
    .route = SL_ROUTE_ALL_REDUCE,
    .takes_momentum = true,
    .keys = "beta slow_rate",
    .defaults = defaults,
    .extra_vectors = 2,
    .stages = sl_average_models,
    .stage_count = SL_AVERAGE_STAGES,
    .start = start,
    .local = sl_local_step,
    .settle = step,
};
