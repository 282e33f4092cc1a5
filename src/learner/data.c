/* data.c - which reader serves which kind; see data.h. */
#include "data.h"

static int read_data(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    switch (config->kind) {
    case SL_DATA_DIGITS:
        return sl_digits_draw(out, config, seed, error);
    case SL_DATA_MNIST:
        return sl_idx_load(out, config, error);
    case SL_DATA_CIFAR10:
        return sl_cifar10_load(out, config, error);
    case SL_DATA_LIBSVM:
        return sl_libsvm_load(out, config, error);
    case SL_DATA_TEXT:
        return sl_text_load(out, config, error);
    }
    return sl_fail(error, SL_EINVAL, "data.kind is %d, which is no data set", (int)config->kind);
}

static void standardise(sl_samples *samples) {
    for (uint32_t c = 0; c < SL_CHANNELS_MAX; c++)
        samples->scale[c] = 1 / samples->deviation[c];
}

int sl_data_load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    if (config->standardise == SL_SWITCH_ON && (config->kind == SL_DATA_LIBSVM || config->kind == SL_DATA_TEXT))
        return sl_fail(error, SL_EINVAL, "data.standardise: true needs pixels; %s taken as they are", config->kind == SL_DATA_TEXT ? "characters are" : "libsvm's numbers are");
    int code = read_data(out, config, seed, error);
    if (code == 0 && config->standardise == SL_SWITCH_ON) {
        standardise(&out->train);
        standardise(&out->test);
    }
    return code;
}

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
