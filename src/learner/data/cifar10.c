/* cifar10.c - the binary version of CIFAR-10.
 *
 * A file is a sequence of records of 3,073 bytes: the label, then 1,024 red, 1,024 green and 1,024
 * blue pixels, row by row.
 */
#include "learner/data/data.h"

#include <string.h>

#define SIDE 32u
#define PIXELS (3 * SIDE * SIDE)
#define RECORD (PIXELS + 1)
#define CLASSES 10u

static const float channel_means[SL_CHANNELS_MAX] = {0.4914f, 0.4822f,
                                                     0.4465f}; /* of the 50,000 training images */

static const float channel_deviations[SL_CHANNELS_MAX] = {0.2470f, 0.2435f,
                                                          0.2616f}; /* of the same */

static int check_records(const sl_bytes *file, sl_error *error) {
    if (file->size == 0 || file->size % RECORD != 0)
        return sl_fail(error, SL_EFILE,
                       "%s: has %zu bytes, not a multiple of the %u-byte record; is the "
                       "file truncated?",
                       file->name, file->size, RECORD);
    for (size_t offset = 0; offset < file->size; offset += RECORD)
        if (file->data[offset] >= CLASSES)
            return sl_fail(error, SL_EFILE, "%s: label at byte %zu is %u; allowed are 0 to %u",
                           file->name, offset, file->data[offset], CLASSES - 1);
    return 0;
}

/* Copies the first `samples->count` records of the files into the table. */
static void copy_records(sl_samples *samples, const sl_bytes *files) {
    size_t offset = 0;
    for (uint32_t i = 0; i < samples->count; i++, offset += RECORD) {
        if (offset == files->size) {
            files++;
            offset = 0;
        }
        samples->labels[i] = files->data[offset];
        memcpy(samples->pixels + (size_t)i * PIXELS, files->data + offset + 1, PIXELS);
    }
}

static int join(sl_samples *out, const sl_bytes *files, size_t file_count, uint32_t wanted,
                const char *key, const char *folder, sl_error *error) {
    uint64_t available = 0;
    uint32_t count;
    for (size_t i = 0; i < file_count; i++)
        available += files[i].size / RECORD;
    int result = sl_data_count(&count, wanted, available, key, folder, error);
    if (result == 0)
        result = sl_samples_allocate(out, SL_SAMPLES_PIXELS, count, PIXELS, folder, error);
    if (result != 0)
        return result;
    out->classes = CLASSES;
    out->channels = SL_CHANNELS_MAX;
    out->height = out->width = SIDE;
    memcpy(out->mean, channel_means, sizeof channel_means);
    memcpy(out->deviation, channel_deviations, sizeof channel_deviations);
    copy_records(out, files);
    return 0;
}

int sl_cifar10_parse(sl_data *out, const sl_bytes files[SL_CIFAR10_FILES],
                     const sl_data_config *config, sl_error *error) {
    const sl_bytes *test = &files[SL_CIFAR10_FILES - 1];
    sl_data data = {0};
    int result = 0;
    for (int i = 0; i < SL_CIFAR10_FILES && result == 0; i++)
        result = check_records(&files[i], error);
    if (result == 0)
        result = join(&data.train, files, SL_CIFAR10_FILES - 1, config->train_samples,
                      "train_samples", config->path, error);
    if (result == 0)
        result =
            join(&data.test, test, 1, config->test_samples, "test_samples", config->path, error);
    return sl_data_hand_over(out, &data, result);
}

static int load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    (void)seed;
    static const char *const names[SL_CIFAR10_FILES] = {"data_batch_1.bin", "data_batch_2.bin",
                                                        "data_batch_3.bin", "data_batch_4.bin",
                                                        "data_batch_5.bin", "test_batch.bin"};
    static const char *const places[] = {"cifar-10-batches-bin", NULL};
    static const char python[] = "is of CIFAR-10's Python version; read is the binary one, "
                                 "cifar-10-binary.tar.gz, whose files end in .bin";
    sl_bytes files[SL_CIFAR10_FILES] = {0};
    int result = 0;
    for (int i = 0; i < SL_CIFAR10_FILES && result == 0; i++)
        result =
            sl_data_find(&files[i], config->path,
                         &(sl_data_names){&names[i], 1, places, "data_batch_1", python}, error);
    if (result == 0)
        result = sl_cifar10_parse(out, files, config, error);
    for (int i = 0; i < SL_CIFAR10_FILES; i++)
        sl_bytes_close(&files[i]);
    return result;
}

const sl_data_reader sl_cifar10_reader = {.load = load};
