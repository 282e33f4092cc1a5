/* readers.c - which reader serves which kind; see data.h. */
#include "learner/data/data.h"

static const sl_data_reader *const readers[] = {
#define READER(kind, name) &sl_##name##_reader,
    SL_DATA_SETS(READER)
#undef READER
};

bool sl_data_has_pixels(sl_data_kind kind) {
    return readers[kind]->raw == NULL;
}

static void standardise(sl_samples *samples) {
    for (uint32_t c = 0; c < SL_CHANNELS_MAX; c++)
        samples->scale[c] = 1 / samples->deviation[c];
}

int sl_data_load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    if ((size_t)config->kind >= sizeof readers / sizeof *readers)
        return sl_fail(error, SL_EINVAL, "data.kind is %d, not a data set", (int)config->kind);
    const sl_data_reader *reader = readers[config->kind];
    if (config->standardise == SL_SWITCH_ON && reader->raw != NULL)
        return sl_fail(error, SL_EINVAL,
                       "data.standardise: true needs pixels; %s are taken as they are",
                       reader->raw);
    if (config->real_labels && !reader->real_labels)
        return sl_fail(error, SL_EINVAL,
                       "model.loss: squared needs labels that are numbers, but those of data.name "
                       "%s are classes; use libsvm, csv or numpy, or model.name softmax",
                       sl_data_name(config->kind));
    int result = reader->load(out, config, seed, error);
    if (result == 0 && config->standardise == SL_SWITCH_ON) {
        standardise(&out->train);
        standardise(&out->test);
    }
    return result;
}
