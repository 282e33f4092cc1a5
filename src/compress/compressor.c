/* compressor.c - the list of compressors, and the plainest of them; see starling/compressor.h.
 *
 * identity: C(v) = v, 32 bits an element (delta = 1). The payload is the vector itself, borrowed; a combine of k payloads is one
 * k-ary linear combination.
 */
#include "starling/compressor.h"

#include <string.h>

static size_t identity_bytes_max(size_t count) {
    return count * sizeof(float);
}

static sl_payload identity_encode(const float *v, size_t count, void *buffer) {
    (void)buffer;
    return (sl_payload){v, count * sizeof(float)};
}

static int identity_check(sl_payload payload, size_t count) {
    return payload.bytes == count * sizeof(float) ? 0 : SL_EPROTO;
}

static void identity_accumulate(const sl_vec_ops *vec, float *out, const float *self, float self_weight,
                                const sl_payload *payloads, const float *weights, size_t k, size_t count) {
    const float *in[SL_DEGREE_MAX + 1];
    float w[SL_DEGREE_MAX + 1];
    in[0] = self;
    w[0] = self_weight;
    for (size_t j = 0; j < k; j++) {
        in[j + 1] = payloads[j].data;
        w[j + 1] = weights[j];
    }
    vec->combine(out, in, w, k + 1, count);
}

static const sl_compressor identity = {
    .name = "identity",
    .borrows = true,
    .bytes_max = identity_bytes_max,
    .encode = identity_encode,
    .check = identity_check,
    .accumulate = identity_accumulate,
};

static const sl_compressor *const compressors[] = {&identity};

const sl_compressor *sl_compressor_find(const char *name) {
    for (size_t i = 0; i < sizeof compressors / sizeof *compressors; i++)
        if (strcmp(compressors[i]->name, name) == 0)
            return compressors[i];
    return NULL;
}
