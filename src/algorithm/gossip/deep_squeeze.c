/* deep_squeeze.c - DeepSqueeze: Tang, Lian, Qiu, Yuan, Zhang, Zhang, Liu, "DeepSqueeze:
 * Decentralization Meets Error-Compensated Compression", 2019.
 *
 *   h_i = x_i - gamma mom(g_i);  v_i = h_i + delta_i;  q_i = C(v_i);  delta_i = v_i - q_i;  x_i =
 *                                h_i + eta sum_j (W_ij - I_ij) q_j
 *
 * W symmetric, doubly stochastic; C contractive, biased is fine. Memory beside x, g, momentum: the
 * error delta, one vector, which holds v while it is encoded. Wire: one compressed message a round.
 * The messages do not add up, so W may change with the round.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { ERROR = 0 };

static void compensate(sl_state *s, size_t from, size_t count) {
    float *error = s->extra[ERROR] + from;
    sl_local_step(s, from, count);
    s->vec->combine(error, (const float *const[]){s->x + from, error}, (const float[]){1, 1}, 2,
                    count);
}

static const float *compensated(const sl_state *s) {
    return s->extra[ERROR];
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -1, s->extra[ERROR]);
    sl_part_add(mine, s->step_size * (mine->weight - 1), s->x);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, s->step_size, s->x);
}

static const sl_stage stages[] = {
    {.prepare = compensate, .vector = compensated, .own = take_own, .combine = take_theirs}};

static const sl_key keys[] = {
    {SL_OWN_REAL(eta, 0, 1), .fallback = "0",
     .help = "step size of the mixing; 0 = derived from the compressor"},
    SL_KEYS_END,
};

const sl_algorithm sl_deep_squeeze = {
    .name = "deep-squeeze",
    .matrix = SL_MATRIX_SYMMETRIC,
    .compressor = SL_TAKES_CONTRACTIVE,
    .step_rule = SL_STEP_ETA,
    .keys = keys,
    .takes_momentum = true,
    .takes_local_steps = true,
    .extra_vectors = 1,
    .stages = stages,
    .stage_count = 1,
    .local = sl_local_step,
};
