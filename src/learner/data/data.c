/* data.c - what the readers of all kinds share; see data.h. */
#include "learner/data/data.h"

void sl_data_free(sl_data *data) {
    sl_samples_free(&data->train);
    sl_samples_free(&data->test);
}

int sl_data_count(uint32_t *out, uint32_t wanted, uint64_t available, const char *key,
                  const char *where, sl_error *error) {
    if (wanted > available)
        return sl_fail(
            error, SL_EINVAL,
            "data.%s is %u, but %s has only %llu; ask for at most that many, or 0 for all", key,
            wanted, where, (unsigned long long)available);
    if (available > SL_SAMPLES_MAX)
        return sl_fail(error, SL_EFILE, "%s: has %llu samples; at most %u are allowed", where,
                       (unsigned long long)available, SL_SAMPLES_MAX);
    *out = wanted != 0 ? wanted : (uint32_t)available;
    return 0;
}
