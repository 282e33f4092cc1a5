/* mix.h - weighted sums of vectors: of those that came uncompressed, and of any. */
#ifndef SL_MIX_H
#define SL_MIX_H

#include "starling/steps.h"

/* A sum of any number of terms, in the order in which they are added, in one pass over `count`
 * elements for each SL_TERMS_MAX of them. */
enum { SL_TERMS_MAX = 65 };
typedef struct sl_terms {
    const sl_vec_ops *vec;
    float *out;
    size_t count;
    const float *in[SL_TERMS_MAX];
    float weights[SL_TERMS_MAX];
    size_t used;
    bool written; /* to out: its first term is what is there */
} sl_terms;

/* out may be the first term; no other. */
sl_terms sl_terms_begin(const sl_state *s, float *out, size_t count);
void sl_terms_add(sl_terms *sum, const float *v, float weight);
void sl_terms_end(sl_terms *sum);

/* sl_mix_add with a factor of each part's own. */
typedef float sl_part_factor(const sl_state *s, const sl_part *part);
void sl_mix_add_by(const sl_state *s, const sl_mix *mix, sl_part_factor *factor, float *acc);

/* sum_{j != i} W_ij, of the weights as they were rounded. */
float sl_given(const sl_state *s);

#endif
