/* mix.c - see mix.h. */
#include "algorithm/mix.h"

enum { AT_ONCE = 64 };

void sl_mix_into(const sl_state *s, float *out, const float *self, const sl_mix *mix, float factor_self, float factor, size_t skip,
                 size_t count) {
    const float *in[AT_ONCE + 1] = {self};
    float weights[AT_ONCE + 1] = {factor_self};
    size_t used = 1;
    for (size_t j = 0; j < mix->k; j++) {
        in[used] = (const float *)mix->parts[j].payload.data + skip;
        weights[used++] = factor * mix->parts[j].weight;
        if (used > AT_ONCE) { /* the sum so far is the first term of the rest */
            s->vec->combine(out, in, weights, used, count);
            in[0] = out;
            weights[0] = 1;
            used = 1;
        }
    }
    if (used > 1 || mix->k == 0 || in[0] != out)
        s->vec->combine(out, in, weights, used, count);
}
