/* ef21.c - EF21: Richtarik, Sokolov, Fatkhullin, "EF21: A New, Simpler, Theoretically Better, and
 * Practically Faster Error Feedback", NeurIPS 2021, Algorithm 1.
 *
 *   q_i = C(g_i - h_i);  h_i <- h_i + q_i;  h <- h + (1/n) sum_i q_i;  x <- x - gamma mom(h)
 *
 * h_i(0) = 0; h, the mean of the h_i, is kept by servers. C contractive. The optimum is reached
 * with full gradients and a constant gamma; C = identity is C-SGD. Momentum and weight decay come
 * after averaging. Memory beside x, g, momentum: h_i and h. Wire: one compressed message up, the
 * dense h down.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { KNOWN = 0, MEAN = 1 };

static void subtract_known(sl_state *s, size_t from, size_t count) {
    sl_subtract(s, s->g + from, s->g + from, s->extra[KNOWN] + from, count);
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, 1, s->extra[KNOWN]);
    if (mine->weight > 0)
        sl_part_add(mine, 1 / (float)s->nodes, s->extra[MEAN]);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1 / (float)s->nodes, s->extra[MEAN]);
}

static void load_mean(sl_state *s, size_t from, size_t count) {
    sl_copy(s, s->g + from, s->extra[MEAN] + from, count);
}

static const sl_stage stages[] = {
    {.prepare = subtract_known,
     .vector = sl_publish_gradient,
     .own = take_own,
     .combine = take_theirs},
    {.plain = true,
     .gather = true,
     .prepare = load_mean,
     .vector = sl_publish_gradient,
     .combine = sl_copy_gradient},
};

const sl_algorithm sl_ef21 = {
    .name = "ef21",
    .route = SL_ROUTE_SERVER,
    .compressor = SL_TAKES_CONTRACTIVE,
    .takes_momentum = true,
    .averages_gradient = true,
    .tied_to_members = true,
    .keeps_gradient = true,
    .extra_vectors = 2,
    .stages = stages,
    .stage_count = 2,
    .settle = sl_local_step,
};
