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

void sl_local_step(sl_state *s, size_t from, size_t count) {
    sl_descend(s, s->x + from, s->x + from, from, count);
}

const float *sl_publish_model(const sl_state *s) {
    return s->x;
}

void sl_divide_by_nodes(const sl_state *s, float *v, size_t count) {
    s->vec->combine(v, (const float *const[]){v}, (const float[]){1 / (float)s->nodes}, 1, count);
}

void sl_copy_gradient(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_copy(s, s->g + from, mix->parts[0].payload.data, count);
}

void sl_add_models(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->x + from, s->x + from, mix, 1, 1, 0, count);
}

void sl_average_model(sl_state *s, size_t from, size_t count) {
    sl_divide_by_nodes(s, s->x + from, count);
}

void sl_copy_model(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_copy(s, s->x + from, mix->parts[0].payload.data, count);
}

const float *sl_publish_gradient(const sl_state *s) {
    return s->g;
}

void sl_add_gradients(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_into(s, s->g + from, s->g + from, mix, 1, 1, 0, count);
}

void sl_average_gradient(sl_state *s, size_t from, size_t count) {
    sl_divide_by_nodes(s, s->g + from, count);
}
