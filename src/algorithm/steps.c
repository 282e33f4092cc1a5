/* steps.c - hooks that several algorithms share. */
#include "algorithm/algorithms.h"

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

const float *sl_publish_gradient(const sl_state *s) {
    return s->g;
}
