/* steps.c - hooks that several algorithms share. */
#include "algorithm/algorithms.h"

void sl_local_step(sl_state *s, size_t from, size_t count) {
    sl_descend(s, s->x + from, s->x + from, from, count);
}

const float *sl_publish_model(const sl_state *s) {
    return s->x;
}

const float *sl_publish_gradient(const sl_state *s) {
    return s->g;
}
