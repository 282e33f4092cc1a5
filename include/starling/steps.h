/* steps.h - what algorithms are made of, for one in a file of its own outside Starling's tree
 * (docs/your-algorithm.md): steps and sums that several papers share, and the shared object's
 * entry.
 *
 * Such a file has an sl_algorithm (starling/algorithm.h) for each form, and SL_ALGORITHM_LIBRARY.
 * It is built for one version of these structs: another Starling refuses it.
 */
#ifndef STARLING_STEPS_H
#define STARLING_STEPS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/algorithm.h"
#include "starling/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- of one vector ---- */

/* v -= gamma mom(g), weight decay at `decay`, over `count` elements; v and decay point to the first
 * of them, which is element `from` of g. A learning rate of 0 is pure averaging: the gradient is
 * not even read. */
SL_API void sl_descend(sl_state *s, float *v, const float *decay, size_t from, size_t count);
/* x -= gamma mom(g), in place. */
SL_API void sl_local_step(sl_state *s, size_t from, size_t count);
/* to <- from */
SL_API void sl_copy(const sl_state *s, float *to, const float *from, size_t count);
/* out <- a - b */
SL_API void sl_subtract(const sl_state *s, float *out, const float *a, const float *b,
                        size_t count);
static inline void sl_swap(float **a, float **b) {
    float *kept = *a;
    *a = *b;
    *b = kept;
}
/* g += weight_decay * at: the gradient of the regularized objective, for algorithms that treat g
 * itself. `at` is a whole vector. */
SL_API void sl_regularize(sl_state *s, const float *at, size_t from, size_t count);

/* ---- of what neighbours sent ---- */

/* sl_stage.vector: the model. */
SL_API const float *sl_publish_model(const sl_state *s);
/* x <- sum_j W_ij x_j, in place or to s->sum. */
SL_API void sl_mix_models(sl_state *s, const sl_mix *mix, size_t from, size_t count);
/* out = factor_self * self + sum_j factor * W_ij * part_j, in that order, over `count` elements
 * from the parts' element `skip` on; out may be self. The parts are plain vectors. On the host, a
 * sum that is not finite is noted in s->is_finite. */
SL_API void sl_mix_into(sl_state *s, float *out, const float *self, const sl_mix *mix,
                        float factor_self, float factor, size_t skip, size_t count);
/* acc += factor sum_{j != i} W_ij q_j; acc is a whole vector. */
SL_API void sl_mix_add(const sl_mix *mix, float factor, float *acc);

/* ---- sl_algorithm.defaults ---- */

/* A parameter that is not given. A form reads those whose keys it lists (sl_algorithm.keys), by
 * path alone: {{"algorithm.beta"}, SL_KEYS_END}. */
static inline void sl_default(double *parameter, double usual) {
    if (isnan(*parameter))
        *parameter = usual;
}

/* ---- sl_algorithm.lazy_below ---- */

/* Of those that send a model with its step in it, and of those that send the old one. */
SL_API double sl_lazy_adapting(const sl_algorithm_config *config, double momentum);
SL_API double sl_lazy_while_adapting(const sl_algorithm_config *config, double momentum);

/* ---- a shared object ---- */

/* Rises with each change of what a form may be, or may call. */
#define SL_ALGORITHM_ABI 1u
#define SL_ALGORITHM_SIZES                                                                         \
    (uint64_t)(sizeof(sl_algorithm) ^ sizeof(sl_state) << 16 ^ sizeof(sl_stage) << 32 ^            \
               sizeof(sl_algorithm_config) << 40)

enum { SL_LIBRARY_FORMS_MAX = 32 };
struct sl_algorithm_library {
    uint32_t abi;
    uint64_t sizes;
    const sl_algorithm *const *forms; /* (count) */
    size_t count;
};
/* What the shared object exports: pointers to its forms. */
#define SL_ALGORITHM_LIBRARY(...)                                                                  \
    static const sl_algorithm *const starling_forms[] = {__VA_ARGS__};                             \
    __attribute__((visibility("default")))                                                         \
    const struct sl_algorithm_library starling_algorithm_library = {                               \
        SL_ALGORITHM_ABI, SL_ALGORITHM_SIZES, starling_forms,                                      \
        sizeof starling_forms / sizeof *starling_forms}

#ifdef __cplusplus
}
#endif
#endif
