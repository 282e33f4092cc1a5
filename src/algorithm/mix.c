/* mix.c - see mix.h. */
#include "algorithm/mix.h"

#include "vec/beside_cache.h"
#include "vec/finite.h"

sl_terms sl_terms_begin(const sl_state *s, float *out, size_t count) {
    sl_terms sum; /* its arrays need no first values */
    sum.vec = s->vec;
    sum.out = out;
    sum.count = count;
    sum.used = 0;
    sum.written = false;
    return sum;
}

static void write_out(sl_terms *sum) {
    sum->vec->combine(sum->out, sum->in, sum->weights, sum->used, sum->count);
    sum->in[0] = sum->out;
    sum->weights[0] = 1;
    sum->used = 1;
    sum->written = true;
}

void sl_terms_add(sl_terms *sum, const float *v, float weight) {
    sum->in[sum->used] = v;
    sum->weights[sum->used++] = weight;
    if (sum->used == SL_TERMS_MAX)
        write_out(sum);
}

void sl_terms_end(sl_terms *sum) {
    if (sum->used > 1 || !sum->written)
        write_out(sum);
}

void sl_mix_into(sl_state *s, float *out, const float *self, const sl_mix *mix, float factor_self,
                 float factor, size_t skip, size_t count) {
    sl_terms sum = sl_terms_begin(s, out, count);
    sl_terms_add(&sum, self, factor_self);
    for (size_t j = 0; j < mix->k; j++)
        sl_terms_add(&sum, (const float *)mix->parts[j].payload.data + skip,
                     factor * mix->parts[j].weight);
    sl_terms_end(&sum);
    if (s->vec->on_host && !sl_vec_is_finite(out, count)) /* while it is in cache */
        s->is_finite = false;
}

static void mix_beside_cache(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < s->block ? count - done : s->block;
        sl_mix_into(s, s->scratch, s->x + from + done, mix, mix->self_weight, 1, done, some);
        sl_write_beside_cache(s->sum + from + done, s->scratch, some);
    }
}

void sl_mix_models(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    float *out = s->sum != NULL ? s->sum : s->x;
    if (s->sum != NULL && s->dimension >= SL_BESIDE_CACHE_FROM)
        mix_beside_cache(s, mix, from, count);
    else
        sl_mix_into(s, out + from, s->x + from, mix, mix->self_weight, 1, 0, count);
}

float sl_given(const sl_state *s) {
    float sum = 0;
    for (uint32_t j = 0; j < s->in.count; j++)
        sum += (float)s->in.weights[j];
    return sum;
}

static void add_runs(const sl_mix *mix, const sl_state *s, sl_part_factor *factor_of, float factor,
                     float *acc) {
    sl_run runs[SL_TERMS_MAX];
    for (size_t done = 0, k; done < mix->k; done += k) {
        for (k = 0; k < SL_TERMS_MAX && done + k < mix->k; k++) {
            const sl_part *part = &mix->parts[done + k];
            runs[k] =
                sl_part_run(part, factor_of != NULL ? factor_of(s, part) : factor * part->weight);
        }
        sl_decoder_add_runs(runs, k, acc + mix->parts->base);
    }
}

void sl_mix_add(const sl_mix *mix, float factor, float *acc) {
    add_runs(mix, NULL, NULL, factor, acc);
}

void sl_mix_add_by(const sl_state *s, const sl_mix *mix, sl_part_factor *factor, float *acc) {
    add_runs(mix, s, factor, 1, acc);
}
