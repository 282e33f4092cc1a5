/* idx.c - MNIST's IDX files.
 *
 * Big-endian: 00 00 08 (unsigned bytes), the number of dimensions, one 32-bit size per dimension,
 * then the bytes. Images have three dimensions (count, rows, columns), labels one.
 */
#include "learner/data/data.h"

#include <stdio.h>
#include <string.h>

#define IMAGES_MAGIC 0x00000803u
#define LABELS_MAGIC 0x00000801u
#define SIDE_MAX 1024u /* rows or columns of an image */
#define CLASSES 10u
#define MNIST_MEAN 0.1307f      /* of pixel/255 over the 60,000 training images */
#define MNIST_DEVIATION 0.3081f /* of the same pixels */

static uint32_t word_at(const uint8_t *bytes, size_t offset) {
    const uint8_t *p = bytes + offset;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Checks the magic, and that the sizes in the header account for the file's bytes exactly. */
static int check_header(const sl_bytes *file, uint32_t magic, uint32_t dimensions,
                        uint32_t sizes[3], sl_error *error) {
    size_t header = 4 + 4 * (size_t)dimensions;
    if (file->size < header)
        return sl_fail(error, SL_EFILE,
                       "%s: has %zu bytes, but an IDX header takes %zu; is the file truncated?",
                       file->name, file->size, header);
    uint32_t found = word_at(file->data, 0);
    if (found != magic)
        return sl_fail(error, SL_EFILE,
                       "%s: magic number at byte 0 is 0x%08x; an IDX file of %s starts with 0x%08x",
                       file->name, found, dimensions == 3 ? "images" : "labels", magic);
    uint64_t bytes = 1;
    for (uint32_t i = 0; i < dimensions; i++) {
        sizes[i] = word_at(file->data, 4 + 4 * (size_t)i);
        uint32_t most = i == 0 ? SL_SAMPLES_MAX : SIDE_MAX;
        if (sizes[i] < 1 || sizes[i] > most)
            return sl_fail(error, SL_EFILE, "%s: size at byte %u is %u; allowed are 1 to %u",
                           file->name, 4 + 4 * i, sizes[i], most);
        bytes *= sizes[i]; /* < 2^27 * 2^20 */
    }
    if (bytes != file->size - header)
        return sl_fail(error, SL_EFILE,
                       "%s: header promises %llu bytes after byte %zu, but %zu are there; is the "
                       "file truncated?",
                       file->name, (unsigned long long)bytes, header, file->size - header);
    return 0;
}

static int copy_labels(sl_samples *samples, const sl_bytes *labels, sl_error *error) {
    for (uint32_t i = 0; i < samples->count; i++) {
        uint8_t label = labels->data[8 + (size_t)i];
        if (label >= CLASSES)
            return sl_fail(error, SL_EFILE, "%s: label at byte %zu is %u; allowed are 0 to %u",
                           labels->name, 8 + (size_t)i, label, CLASSES - 1);
        samples->labels[i] = label;
    }
    return 0;
}

int sl_idx_parse(sl_samples *out, const sl_bytes *images, const sl_bytes *labels, uint32_t wanted,
                 const char *key, sl_error *error) {
    uint32_t shape[3] = {0}, label_count[3] = {0}, count = 0;
    int result = check_header(images, IMAGES_MAGIC, 3, shape, error);
    if (result == 0)
        result = check_header(labels, LABELS_MAGIC, 1, label_count, error);
    if (result == 0 && label_count[0] != shape[0])
        result = sl_fail(error, SL_EFILE,
                         "%s: has %u labels, but %s has %u images; the two must belong together",
                         labels->name, label_count[0], images->name, shape[0]);
    if (result == 0)
        result = sl_data_count(&count, wanted, shape[0], key, images->name, error);
    if (result != 0)
        return result;
    sl_samples samples;
    result = sl_samples_allocate(&samples, SL_SAMPLES_PIXELS, count, (uint64_t)shape[1] * shape[2],
                                 images->name, error);
    if (result != 0)
        return result;
    samples.classes = CLASSES;
    samples.height = shape[1];
    samples.width = shape[2];
    samples.mean[0] = MNIST_MEAN;
    samples.deviation[0] = MNIST_DEVIATION;
    memcpy(samples.pixels, images->data + 16, (size_t)samples.count * samples.features);
    result = copy_labels(&samples, labels, error);
    if (result != 0)
        sl_samples_close(&samples);
    else
        *out = samples;
    return result;
}

/* "train-images-idx3-ubyte", or "train-images.idx3-ubyte", as the same file is also handed out. */
static int find(sl_bytes *out, const char *folder, const char *stem, const char *kind,
                sl_error *error) {
    static const char *const places[] = {"raw", "MNIST/raw", "FashionMNIST/raw", "KMNIST/raw",
                                         NULL}; /* of torchvision */
    char dash[64], point[64];
    const char *const names[] = {dash, point};
    snprintf(dash, sizeof dash, "%s-%s-ubyte", stem, kind);
    snprintf(point, sizeof point, "%s.%s-ubyte", stem, kind);
    return sl_data_find(out, folder, &(sl_data_names){names, 2, places, NULL, NULL}, error);
}

static int load_pair(sl_samples *out, const char *folder, const char *const stems[2],
                     uint32_t wanted, const char *key, sl_error *error) {
    sl_bytes images = {0}, labels = {0};
    int result = find(&images, folder, stems[0], "idx3", error);
    if (result == 0)
        result = find(&labels, folder, stems[1], "idx1", error);
    if (result == 0)
        result = sl_idx_parse(out, &images, &labels, wanted, key, error);
    sl_bytes_close(&images);
    sl_bytes_close(&labels);
    return result;
}

static int load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    (void)seed;
    static const char *const train[] = {"train-images", "train-labels"}, *const test[] = {
                                                                             "t10k-images",
                                                                             "t10k-labels"};
    sl_data data = {0};
    int result =
        load_pair(&data.train, config->path, train, config->train_samples, "train_samples", error);
    if (result == 0)
        result =
            load_pair(&data.test, config->path, test, config->test_samples, "test_samples", error);
    if (result == 0 && data.train.features != data.test.features)
        result = sl_fail(
            error, SL_EFILE,
            "%s: training images have %u pixels, test images %u; both must have the same size",
            config->path, data.train.features, data.test.features);
    return sl_data_hand_over(out, &data, result);
}

const sl_data_reader sl_mnist_reader = {.load = load};
