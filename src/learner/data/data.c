/* data.c - what the readers of all kinds share; see data.h. */
#include "learner/data/data.h"

const char *sl_data_name(sl_data_kind kind) {
    static const char *const names[] = {
#define DATA_NAME(kind, name) #name,
        SL_DATA_SETS(DATA_NAME)
#undef DATA_NAME
    };
    return names[kind];
}

void sl_data_close(sl_data *data) {
    sl_samples_close(&data->train);
    sl_samples_close(&data->test);
}

int sl_data_hand_over(sl_data *out, sl_data *data, int result) {
    if (result == 0)
        *out = *data;
    else
        sl_data_close(data);
    return result;
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
