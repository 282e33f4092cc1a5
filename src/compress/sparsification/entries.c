/* entries.c - see entries.h. */
#include "compress/sparsification/entries.h"

#include <math.h>

size_t sl_entries_kept(const sl_compressor_config *config, size_t dimension) {
    if (config->k > 0)
        return (size_t)config->k;
    double rounded = round(config->fraction * (double)dimension);
    return rounded > 1 ? (size_t)rounded : 1;
}

int sl_entries_check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    if (config->k > dimension)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.k: %llu is not allowed; of a vector of %zu elements 1 "
                       "to %zu can be kept",
                       (unsigned long long)config->k, dimension, dimension);
    if (config->k == 0 && !(config->fraction > 0 && config->fraction <= 1))
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.compressor.fraction: %g is not allowed; it must be above 0 and at most 1 "
            "(or give algorithm.compressor.k, the number of entries)",
            config->fraction);
    return 0;
}

FOR_EACH_CPU(bool, all_finite, (const void *values, size_t count), (values, count)) {
    const unsigned char *bytes = values;
    uint32_t refused = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
        refused |= (bits & FLOAT_MAGNITUDE) >= FLOAT_INFINITY;
    }
    return refused == 0;
}

bool sl_entries_finite(const void *values, size_t count) {
    return all_finite(values, count);
}
