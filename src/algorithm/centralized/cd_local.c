/* cd_local.c - see cd_local.h. */
#include "algorithm/centralized/cd_local.h"

bool sl_cd_is_warm_up(const sl_state *s) {
    return s->round <= s->config->warmup_rounds;
}

/* Is the gradient of this round, after the warm-up, sent whole? */
static bool is_correction(const sl_state *s, uint64_t round) {
    return (round - s->config->warmup_rounds - 1) % s->config->correction_period == 0;
}

/* In the first round after the warm-up, no gradient is left to be sent. */
bool sl_cd_has_gradient(const sl_state *s) {
    return s->round != s->config->warmup_rounds + 1;
}

bool sl_cd_has_compressed(const sl_state *s) {
    return !sl_cd_is_warm_up(s) && sl_cd_has_gradient(s) && !is_correction(s, s->round - 1);
}

bool sl_cd_has_whole(const sl_state *s) {
    return sl_cd_has_gradient(s) && !sl_cd_has_compressed(s);
}

void sl_cd_start(sl_state *s, size_t dimension) {
    sl_copy(s, s->extra[SL_CD_MODEL], s->x, dimension);
}

const float *sl_cd_point(const sl_state *s) {
    return sl_cd_is_warm_up(s) ? s->x : s->extra[SL_CD_MODEL];
}

void sl_cd_step(sl_state *s, size_t from, size_t count) {
    float rate = s->config->local_learning_rate > 0 ? (float)s->config->local_learning_rate
                                                    : s->sgd.learning_rate;
    s->vec->combine(s->extra[SL_CD_MODEL] + from, (const float *const[]){s->x + from, s->g + from},
                    (const float[]){1, -rate}, 2, count);
}

void sl_cd_keep_gradient(sl_state *s, size_t from, size_t count) {
    float *sum = s->extra[SL_CD_TOTAL] + from, *rest = s->extra[SL_CD_RESIDUAL] + from;
    const float *g = s->g + from;
    if (is_correction(s, s->round)) {
        sl_copy(s, sum, g, count);
        return;
    }
    s->vec->fill(sum, 0, count);
    s->vec->combine(rest, (const float *const[]){rest, g}, (const float[]){1, 1}, 2, count);
}
