/* easgd.c - elastic averaging SGD, synchronous: Zhang, Choromanska, LeCun, "Deep Learning with
 * Elastic Averaging SGD", NeurIPS 2015, section 3.
 *
 *   every `period` rounds, old values on the right:
 *   x_i <- x_i - gamma mom(g_i) - alpha (x_i - c);  c <- c + alpha sum_i (x_i - c)
 *
 * alpha: algorithm.elastic (0: 0.9/n). All start at c, and every node keeps it: the servers send
 * the sum. sum_i x_i + c is conserved where the gradients are 0. Memory beside x, g and momentum: c
 * and x_i - c, two vectors. Wire: 32 d bits up, 32 d down every `period` rounds.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { CENTRE = 0, PULL = 1 };

static void defaults(sl_algorithm_config *c) {
    sl_default_period(c, 10);
}

static void start(sl_state *s, size_t dimension) {
    sl_copy(s, s->extra[CENTRE], s->x, dimension);
}

static float elastic(const sl_state *s) {
    return (float)(s->config->elastic > 0 ? s->config->elastic : 0.9 / s->nodes);
}

static void stretch(sl_state *s, size_t from, size_t count) {
    float *x = s->x + from, *pull = s->extra[PULL] + from;
    sl_subtract(s, pull, x, s->extra[CENTRE] + from, count);
    sl_local_step(s, from, count);
    s->vec->combine(x, (const float *const[]){x, pull}, (const float[]){1, -elastic(s)}, 2, count);
}

static const float *pull(const sl_state *s) {
    return s->extra[PULL];
}

static void add(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->extra[PULL] + from, s->extra[PULL] + from, mix, 1, 1, 0, count);
}

static void copy(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_copy(s, s->extra[PULL] + from, mix->parts[0].payload.data, count);
}

static void move_centre(sl_state *s, size_t from, size_t count) {
    float *c = s->extra[CENTRE] + from;
    s->vec->combine(c, (const float *const[]){c, s->extra[PULL] + from},
                    (const float[]){1, elastic(s)}, 2, count);
}

static const sl_stage stages[] = {
    {.plain = true, .prepare = stretch, .vector = pull, .combine = add},
    {.plain = true, .gather = true, .vector = pull, .combine = copy},
};

static const sl_key keys[] = {
    {SL_ROW_PERIOD, .help = "rounds from one exchange to the next, 0 = 10"},
    {SL_OWN_REAL(elastic, 0, 1), .fallback = "0",
     .help = "share of its distance by which a node and the centre move; 0 = 0.9/nodes"},
    SL_KEYS_END,
};

const sl_algorithm sl_easgd = {
    .name = "easgd",
    .stable_by = SL_STABLE_BY_NETWORK,
    .is_periodic = true,
    .route = SL_ROUTE_SERVER,
    .takes_momentum = true,
    .keys = keys,
    .defaults = defaults,
    .extra_vectors = 2,
    .stages = stages,
    .stage_count = 2,
    .start = start,
    .local = sl_local_step,
    .settle = move_centre,
};
