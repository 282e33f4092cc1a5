/* fuzz_data.c - files of data sets. The first byte says which: 'c' a table with classes, 'r' one
 * with numbers as labels, 'l' LIBSVM, 'n' NumPy's archive, 'i' a pair of IDX, 't' a text, '1'
 * CIFAR-10, 'p' the list of a partition, 'q' a quadratic. Tables and LIBSVM have a training file
 * and, behind the first NUL byte if there is one, a held-out file. What is taken is within bounds.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/data/data.h"
#include "learner/data/listed.h"
#include "learner/quadratic.h"

enum { RECORD = 3073, RECORDS_MAX = 4, DESCRIPTION = 4, LISTED = 5, NODES = 3 };

static sl_data_config config;
static sl_error error;

/* The parsers only read; sl_bytes owns its bytes elsewhere, hence the cast. */
static sl_bytes bytes_of(const uint8_t *data, size_t size) {
    return (sl_bytes){.data = (uint8_t *)data, .size = size, .name = "input"};
}

static void check(const sl_samples *s) {
    const size_t numbers = (size_t)s->count * s->features,
                 labels = s->codes != NULL ? numbers : s->count;
    assert((s->targets != NULL) == config.real_labels);
    for (size_t i = 0; i < labels; i++)
        assert(config.real_labels ? isfinite(s->targets[i]) : s->labels[i] < s->classes);
    for (size_t i = 0; i < numbers && s->codes != NULL; i++)
        assert(s->codes[i] < s->classes && s->groups[i / s->features] < s->group_count);
    for (size_t i = 0; i < numbers && s->values != NULL; i++)
        assert(isfinite(s->values[i]));
}

static void take(int result, sl_data *parsed) {
    if (result != 0)
        return;
    check(&parsed->train);
    check(&parsed->test);
    assert(parsed->train.features == parsed->test.features);
    sl_data_close(parsed);
}

static void try_lines(int (*parse)(sl_data *, const sl_bytes *, const sl_bytes *,
                                   const sl_data_config *, sl_error *),
                      const uint8_t *data, size_t size) {
    const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
    const size_t first = nul != NULL ? (size_t)(nul - data) : size;
    const sl_bytes train = bytes_of(data, first),
                   test = bytes_of(data + first + 1, nul != NULL ? size - first - 1 : 0);
    sl_data parsed;
    take(parse(&parsed, &train, nul != NULL ? &test : NULL, &config, &error), &parsed);
}

/* Two bytes (big-endian) tell how many bytes of images precede the labels. */
static void try_idx(const uint8_t *data, size_t size) {
    const size_t told = (size_t)data[0] << 8 | data[1], bytes = told < size - 2 ? told : size - 2;
    const sl_bytes images = bytes_of(data + 2, bytes),
                   labels = bytes_of(data + 2 + bytes, size - 2 - bytes);
    sl_samples samples;
    if (sl_idx_parse(&samples, &images, &labels, 0, "train_samples", &error) != 0)
        return;
    check(&samples);
    assert((size_t)samples.count * samples.features == bytes - 16);
    sl_samples_close(&samples);
}

/* Records of 3,073 bytes are beyond what an input can spell out: each file is described by 4 bytes
 * - its length in records, how many bytes that length is off, a record, and that record's label. */
static void describe(sl_bytes *file, const uint8_t *data, const uint8_t *pixels, size_t count) {
    const size_t records = data[0] % (RECORDS_MAX + 1);
    *file = (sl_bytes){.size = records * RECORD, .name = "batch"};
    if (data[1] > 127) /* most files are whole */
        file->size += data[1] - 127u;
    file->data = calloc(1, file->size + 1);
    assert(file->data != NULL);
    for (size_t r = 0; r < records; r++)
        memcpy(file->data + r * RECORD + 1, pixels, count < RECORD - 1 ? count : RECORD - 1);
    if (records > 0)
        file->data[data[2] % records * RECORD] = data[3];
}

/* The rest of the input is pixels. */
static void try_cifar10(const uint8_t *data, size_t size) {
    enum { HEAD = 2 + SL_CIFAR10_FILES * DESCRIPTION };
    sl_bytes files[SL_CIFAR10_FILES];
    sl_data parsed;
    if (size < HEAD)
        return;
    config.train_samples = data[0] % 32;
    config.test_samples = data[1] % 8;
    for (int i = 0; i < SL_CIFAR10_FILES; i++)
        describe(&files[i], data + 2 + i * DESCRIPTION, data + HEAD, size - HEAD);
    const int result = sl_cifar10_parse(&parsed, files, &config, &error);
    assert(result != 0 ||
           (parsed.train.features == RECORD - 1 &&
            (config.train_samples == 0 || parsed.train.count == config.train_samples)));
    take(result, &parsed);
    for (int i = 0; i < SL_CIFAR10_FILES; i++)
        sl_bytes_close(&files[i]);
}

static void try_listed(const uint8_t *data, size_t size) {
    uint32_t owners[LISTED];
    sl_bytes file = bytes_of(malloc(size + 1), size); /* with a zero behind it */
    assert(file.data != NULL);
    memcpy(file.data, data, size);
    file.data[size] = 0;
    if (sl_listed_parse(owners, &file, LISTED, NODES, &error) != 0)
        assert(error.text[0] != '\0');
    else
        for (int i = 0; i < LISTED; i++)
            assert(owners[i] < NODES || owners[i] == SL_LISTED_NOBODY);
    free(file.data);
}

/* Of one to four nodes. Losses and gradients of what is taken read and write only their own. */
static void try_quadratic(const uint8_t *data, size_t size) {
    const sl_bytes file = bytes_of(data + 1, size - 1);
    sl_quadratic q;
    if (sl_quadratic_parse(&q, &file, 1 + data[0] % 4, &error) != 0)
        return;
    float *g = malloc(q.dimension * sizeof *g);
    assert(g != NULL);
    for (uint32_t i = 0; i < q.nodes; i++) {
        const float *x0 = q.x0 + (size_t)i * q.dimension;
        for (uint32_t k = 0; k < q.dimension; k++)
            assert(isfinite(x0[k]));
        sl_quadratic_gradient(&q, i, x0, g);
        sl_quadratic_mean(&q, x0);
    }
    free(g);
    sl_quadratic_close(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    const uint8_t kind = *data++;
    const sl_bytes whole = bytes_of(data, --size), text = bytes_of(data + 1, size - 1);
    sl_data parsed;
    config = (sl_data_config){.path = "/nowhere", .label = "last"};
    config.real_labels = kind == 'r' || kind == 'n';
    if (kind == 'c' || kind == 'r') {
        config.kind = SL_DATA_CSV;
        try_lines(sl_csv_parse, data, size);
    } else if (kind == 'l') {
        config.kind = SL_DATA_LIBSVM;
        try_lines(sl_libsvm_parse, data, size);
    } else if (kind == 'n') {
        config.kind = SL_DATA_NUMPY;
        take(sl_npz_parse(&parsed, &whole, &config, &error), &parsed);
    } else if (kind == 't') { /* a byte tells how long a sample is, and how many are wanted */
        config.kind = SL_DATA_TEXT;
        config.sequence = 1 + data[0] % 16;
        config.train_samples = data[0] / 16;
        take(sl_text_parse(&parsed, &text, &config, &error), &parsed);
    } else if (kind == '1') {
        config.kind = SL_DATA_CIFAR10;
        try_cifar10(data, size);
    } else if (kind == 'i') {
        try_idx(data, size);
    } else if (kind == 'p') {
        try_listed(data, size);
    } else if (kind == 'q') {
        try_quadratic(data, size);
    }
    return 0;
}
