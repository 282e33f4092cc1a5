/* steps.c - hooks that several algorithms share. */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

sl_adam sl_adam_of(const sl_state *s, double count) {
    const sl_algorithm_config *c = s->config;
    return (sl_adam){.beta1 = (float)c->beta1,
                     .beta2 = (float)c->beta2,
                     .m_new = (float)(1 - c->beta1),
                     .v_new = (float)(1 - c->beta2),
                     .m_scale = (float)(1 / (1 - pow(c->beta1, count))),
                     .v_scale = (float)(1 / (1 - pow(c->beta2, count))),
                     .epsilon = (float)c->epsilon,
                     .weight_decay = s->sgd.weight_decay};
}

void sl_descend(sl_state *s, float *v, const float *decay, size_t from, size_t count) {
    if (s->sgd.learning_rate != 0)
        s->vec->sgd_step(v, decay, s->g + from, s->m ? s->m + from : NULL, &s->sgd, count);
}

void sl_copy(const sl_state *s, float *to, const float *from, size_t count) {
    s->vec->combine(to, &from, (const float[]){1}, 1, count);
}

void sl_subtract(const sl_state *s, float *out, const float *a, const float *b, size_t count) {
    s->vec->combine(out, (const float *const[]){a, b}, (const float[]){1, -1}, 2, count);
}

void sl_regularize(sl_state *s, const float *at, size_t from, size_t count) {
    if (s->sgd.weight_decay != 0)
        s->vec->combine(s->g + from, (const float *const[]){s->g + from, at + from},
                        (const float[]){1, s->sgd.weight_decay}, 2, count);
}

void sl_local_step(sl_state *s, size_t from, size_t count) {
    sl_descend(s, s->x + from, s->x + from, from, count);
}

void sl_divide_by_nodes(const sl_state *s, float *v, size_t count) {
    s->vec->combine(v, (const float *const[]){v}, (const float[]){1 / (float)s->nodes}, 1, count);
}

#define AVERAGED(name, member)                                                                     \
    const float *sl_publish_##name(const sl_state *s) {                                            \
        return s->member;                                                                          \
    }                                                                                              \
    void sl_add_##name(sl_state *s, const sl_mix *mix, size_t from, size_t count) {                \
        sl_mix_into(s, s->member + from, s->member + from, mix, 1, 1, 0, count);                   \
    }                                                                                              \
    void sl_average_##name(sl_state *s, size_t from, size_t count) {                               \
        sl_divide_by_nodes(s, s->member + from, count);                                            \
    }                                                                                              \
    void sl_copy_##name(sl_state *s, const sl_mix *mix, size_t from, size_t count) {               \
        sl_copy(s, s->member + from, mix->parts[0].payload.data, count);                           \
    }
SL_AVERAGED_VECTORS(AVERAGED)
#undef AVERAGED

bool sl_averages_buffers(const sl_state *s) {
    return s->config->buffers == SL_BUFFERS_AVERAGE;
}

void sl_reset_buffers(sl_state *s, size_t from, size_t count) {
    if (s->config->buffers == SL_BUFFERS_RESET)
        s->vec->fill(s->m + from, 0, count);
}

double sl_usual_delta(const sl_quality *quality) {
    return quality->usual_delta > 0 ? quality->usual_delta : quality->delta;
}

/* With m the share of a model that mixing moves, a coordinate that is sent every 1/delta rounds
 * drifts by gamma m in each, and is stable while gamma m < 2 delta / (2 - delta) if it is chosen at
 * random, 2 delta if the largest are. Half of that; docs/algorithms.md has the measurements. */
double sl_stable_consensus_step(const sl_quality *quality, double mixed) {
    double delta = sl_usual_delta(quality),
           kept = quality->takes_largest ? delta : delta / (2 - delta);
    return kept < mixed ? kept / mixed : 1;
}
