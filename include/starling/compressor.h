/* compressor.h - vector to payload, and payloads straight into a weighted sum. */
#ifndef STARLING_COMPRESSOR_H
#define STARLING_COMPRESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"
#include "starling/vec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_payload {
    const void *data; /* aligned to SL_VEC_ALIGNMENT */
    size_t bytes;
} sl_payload;

typedef struct sl_compressor {
    const char *name;
    /* True when the payload is the vector's own bytes: encode then returns its input and no buffer is needed. */
    bool borrows;
    /* Largest payload of `count` elements, in bytes. A received payload that is longer is refused unread. */
    size_t (*bytes_max)(size_t count);
    /* Encodes v (count). buffer holds bytes_max(count), NULL if `borrows`. Returns the payload: buffer or v itself. */
    sl_payload (*encode)(const float *v, size_t count, void *buffer);
    /* 0, or SL_EPROTO: may these bytes from a peer be decoded as `count` elements? Called before `accumulate`. */
    int (*check)(sl_payload payload, size_t count);
    /* out = self_weight*self + sum_j weights[j]*decode(payloads[j]), in that order, fused, no dense temporary. out may be self. */
    void (*accumulate)(const sl_vec_ops *vec, float *out, const float *self, float self_weight, const sl_payload *payloads,
                       const float *weights, size_t k, size_t count);
} sl_compressor;

#define SL_DEGREE_MAX 4096u /* in-neighbours in one phase */

/* By name; NULL when there is none. */
const sl_compressor *sl_compressor_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
