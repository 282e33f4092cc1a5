/* readers.c - which reader serves which kind; see data.h. */
#include "learner/data/data.h"

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
    return sl_fail(error, SL_EINVAL, "data.kind is %d, not a data set", (int)config->kind);
}

static void standardise(sl_samples *samples) {
    for (uint32_t c = 0; c < SL_CHANNELS_MAX; c++)
        samples->scale[c] = 1 / samples->deviation[c];
}

int sl_data_load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    if (config->standardise == SL_SWITCH_ON &&
        (config->kind == SL_DATA_LIBSVM || config->kind == SL_DATA_TEXT))
        return sl_fail(error, SL_EINVAL,
                       "data.standardise: true needs pixels; %s taken as they are",
                       config->kind == SL_DATA_TEXT ? "characters are" : "libsvm's numbers are");
    int result = read_data(out, config, seed, error);
    if (result == 0 && config->standardise == SL_SWITCH_ON) {
        standardise(&out->train);
        standardise(&out->test);
    }
    return result;
}
