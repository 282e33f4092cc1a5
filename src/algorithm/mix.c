/* mix.c - see mix.h. */
#include "algorithm/mix.h"

enum { AT_ONCE = 64 };

void sl_mix_into(const sl_state *s, float *out, const float *self, const sl_mix *mix, float factor_self, float factor, size_t from,
                 size_t count) {
    const float *in[AT_ONCE + 1] = {self + from};
    float weights[AT_ONCE + 1] = {factor_self};
    size_t used = 1;
    for (size_t j = 0; j < mix->k; j++) {
        in[used] = mix->parts[j].payload.data;
        weights[used++] = factor * mix->parts[j].weight;
        if (used > AT_ONCE) { /* the sum so far is the first term of the rest */
            s->vec->combine(out + from, in, weights, used, count);
            in[0] = out + from;
            weights[0] = 1;
            used = 1;
        }
    }
    if (used > 1 || mix->k == 0 || in[0] != out + from)
        s->vec->combine(out + from, in, weights, used, count);
}
