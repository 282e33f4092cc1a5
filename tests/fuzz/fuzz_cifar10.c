/* fuzz_cifar10.c - the six files of CIFAR-10. Records of 3,073 bytes are beyond what an input can
 * spell out: each file is described by 4 bytes - its length in records, how many bytes that length
 * is off, a record, and that record's label. The rest of the input is pixels. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "learner/data/data.h"

enum { RECORD = 3073, PIXELS = RECORD - 1, RECORDS_MAX = 4, DESCRIPTION = 4 };

static void describe(sl_bytes *file, const uint8_t *data, const uint8_t *pixels, size_t count) {
    const size_t records = data[0] % (RECORDS_MAX + 1);
    *file = (sl_bytes){.size = records * RECORD, .name = "batch"};
    if (data[1] > 127) /* most files are whole */
        file->size += data[1] - 127u;
    file->data = calloc(1, file->size + 1);
    assert(file->data != NULL);
    for (size_t r = 0; r < records; r++)
        memcpy(file->data + r * RECORD + 1, pixels, count < PIXELS ? count : PIXELS);
    if (records > 0)
        file->data[data[2] % records * RECORD] = data[3];
}

static void check(const sl_samples *samples) {
    for (uint32_t i = 0; i < samples->count; i++)
        assert(samples->labels[i] < samples->classes);
    assert(samples->features == PIXELS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { HEAD = 2 + SL_CIFAR10_FILES * DESCRIPTION };
    if (size < HEAD)
        return 0;
    sl_data_config config = {.kind = SL_DATA_CIFAR10,
                             .path = "/nowhere",
                             .train_samples = data[0] % 32,
                             .test_samples = data[1] % 8};
    sl_bytes files[SL_CIFAR10_FILES];
    for (int i = 0; i < SL_CIFAR10_FILES; i++)
        describe(&files[i], data + 2 + i * DESCRIPTION, data + HEAD, size - HEAD);
    sl_data parsed;
    sl_error error;
    if (sl_cifar10_parse(&parsed, files, &config, &error) == 0) {
        check(&parsed.train);
        check(&parsed.test);
        assert(config.train_samples == 0 || parsed.train.count == config.train_samples);
        sl_data_close(&parsed);
    }
    for (int i = 0; i < SL_CIFAR10_FILES; i++)
        sl_bytes_close(&files[i]);
    return 0;
}
