/* fuzz_idx.c - a pair of IDX files from one input: two bytes (big-endian) tell how many bytes of
 * images precede the labels. */
#include <assert.h>

#include "learner/data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    size_t images_size = (size_t)data[0] << 8 | data[1];
    data += 2;
    size -= 2;
    if (images_size > size)
        images_size = size;
    /* The parser only reads; sl_bytes owns its bytes elsewhere, hence the casts. */
    sl_bytes images = {.data = (uint8_t *)data, .size = images_size, .name = "images"};
    sl_bytes labels = {
        .data = (uint8_t *)data + images_size, .size = size - images_size, .name = "labels"};
    sl_samples samples;
    sl_error error;
    if (sl_idx_parse(&samples, &images, &labels, 0, "train_samples", &error) != 0)
        return 0;
    for (uint32_t i = 0; i < samples.count; i++)
        assert(samples.labels[i] < samples.classes);
    assert((size_t)samples.count * samples.features == images_size - 16);
    sl_samples_close(&samples);
    return 0;
}
