/* labelled.c - rows with labels become tables; see labelled.h. */
#include "learner/data/labelled.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/zip.h"
#include "starling/tensors.h"

#define HELD_OUT_PART 5

bool sl_label_is_allowed(double label, const sl_data_config *config) {
    if (config->real_labels)
        return fabs(label) <= (double)FLT_MAX;
    return label >= INT32_MIN && label <= INT32_MAX && label == floor(label);
}

const char *sl_label_allowed(const sl_data_config *config) {
    return config->real_labels ? "a finite float32 number"
                               : "a 32-bit integer; classes are integers";
}

static int compare_labels(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Allocates *out, which begins with the `count` distinct labels in rising order. */
static int collect_classes(int32_t **out, uint32_t *count, const sl_labelled *rows,
                           sl_error *error) {
    int32_t *sorted = malloc(rows->count * sizeof *sorted);
    if (sorted == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for %u labels", rows->name,
                       rows->count);
    for (uint32_t i = 0; i < rows->count; i++)
        sorted[i] = (int32_t)rows->labels[i];
    qsort(sorted, rows->count, sizeof *sorted, compare_labels);
    uint32_t distinct = 1;
    for (uint32_t i = 1; i < rows->count; i++)
        if (sorted[i] != sorted[distinct - 1])
            sorted[distinct++] = sorted[i];
    if (distinct < 2 || distinct > SL_CLASSES_MAX) {
        free(sorted);
        return sl_fail(error, SL_EFILE, "%s: has %u different labels; allowed are 2 to %u%s",
                       rows->name, distinct, SL_CLASSES_MAX,
                       distinct < 2 ? ""
                                    : " (numbers to predict need model.name linear, model.loss "
                                      "squared)");
    }
    *out = sorted;
    *count = distinct;
    return 0;
}

typedef struct classes {
    const int32_t *labels; /* (count), rising; NULL: labels are numbers */
    uint32_t count;
    const char *train_name;
} classes;

static int put_label(sl_samples *samples, uint32_t i, const sl_labelled *rows, uint32_t row,
                     const classes *all, sl_error *error) {
    if (all->labels == NULL) {
        samples->targets[i] = (float)rows->labels[row];
        return 0;
    }
    const int32_t label = (int32_t)rows->labels[row];
    const int32_t *class = bsearch(&label, all->labels, all->count, sizeof label, compare_labels);
    if (class == NULL)
        return sl_fail(error, SL_EFILE,
                       "%s: sample %u: label %d does not occur in %s; the held-out classes must be "
                       "trained",
                       rows->name, row + 1, label, all->train_name);
    samples->labels[i] = (uint16_t)(class - all->labels);
    return 0;
}

/* Copies `count` rows from row `first` on into a dense table. */
static int copy(sl_samples *out, const sl_labelled *rows, uint32_t first, uint32_t count,
                uint64_t features, const classes *all, sl_error *error) {
    sl_samples samples;
    int result =
        sl_samples_allocate(&samples, SL_SAMPLES_VALUES, count, features, rows->name, error);
    if (result != 0)
        return result;
    samples.classes = all->count;
    if (all->labels == NULL) {
        samples.targets = calloc(count, sizeof *samples.targets);
        if (samples.targets == NULL)
            result =
                sl_fail(error, SL_ENOMEM, "%s: out of memory for %u labels", rows->name, count);
    }
    for (uint32_t i = 0; i < count && result == 0; i++) {
        rows->get(rows->rows, first + i, samples.values + (size_t)i * features);
        result = put_label(&samples, i, rows, first + i, all, error);
    }
    if (result != 0)
        sl_samples_close(&samples);
    else
        *out = samples;
    return result;
}

/* Makes both tables. Without a test file, the held-out rows are the last ones of `train`. */
static int split(sl_data *out, const sl_labelled *train, const sl_labelled *test, uint64_t features,
                 const sl_data_config *config, const classes *all, sl_error *error) {
    const uint32_t held_out = test != NULL ? 0 : train->count / HELD_OUT_PART;
    const sl_labelled *from = test != NULL ? test : train;
    uint32_t train_count, test_count;
    if (test == NULL && held_out == 0)
        return sl_fail(error, SL_EFILE,
                       "%s: has %u samples; at least %d are needed to hold out a fifth, or name "
                       "data.test_path",
                       train->name, train->count, HELD_OUT_PART);
    int result = sl_data_count(&train_count, config->train_samples, train->count - held_out,
                               "train_samples", train->name, error);
    if (result == 0)
        result =
            sl_data_count(&test_count, config->test_samples, test != NULL ? test->count : held_out,
                          "test_samples", from->name, error);
    if (result == 0)
        result = copy(&out->train, train, 0, train_count, features, all, error);
    if (result == 0)
        result = copy(&out->test, from, test != NULL ? 0 : train->count - held_out, test_count,
                      features, all, error);
    out->is_tail = test == NULL;
    return result;
}

int sl_labelled_split(sl_data *out, const sl_labelled *train, const sl_labelled *test,
                      uint64_t features, const sl_data_config *config, sl_error *error) {
    int32_t *labels = NULL;
    classes all = {.count = 1, .train_name = train->name};
    sl_data data = {0};
    int result = config->real_labels ? 0 : collect_classes(&labels, &all.count, train, error);
    all.labels = labels;
    if (result == 0)
        result = split(&data, train, test, features, config, &all, error);
    if (result == 0)
        data.train.names = labels;
    else
        free(labels);
    return sl_data_hand_over(out, &data, result);
}

/* ---- texts ---- */

/* Is it an array of NumPy's, or an archive of arrays? The archive begins with a member's name. */
static bool is_numpy(const sl_bytes *file) {
    enum { NAME_BYTES_AT = 26, NAME_AT = 30, ENDING_BYTES = 4 };
    if (sl_npy_is(file->data, file->size))
        return true;
    if (!sl_zip_is(file) || file->size < NAME_AT)
        return false;
    const size_t name = file->data[NAME_BYTES_AT] | (size_t)file->data[NAME_BYTES_AT + 1] << 8;
    return name >= ENDING_BYTES && file->size >= NAME_AT + name &&
           memcmp(file->data + NAME_AT + name - ENDING_BYTES, ".npy", ENDING_BYTES) == 0;
}

static int read_text(sl_bytes *out, const char *path, const sl_data_config *config,
                     sl_error *error) {
    sl_bytes file;
    int result = sl_bytes_read_packed(&file, path, SL_BYTES_MAX, error);
    if (result != 0)
        return result;
    if (is_numpy(&file))
        result = sl_fail(error, SL_EFILE, "%s: holds arrays of NumPy; data.name is %s, take numpy",
                         path, sl_data_name(config->kind));
    if (result == 0)
        result = sl_bytes_refuse_packed(&file, error);
    if (result == 0)
        result = sl_bytes_to_text(&file, error);
    if (result == 0)
        *out = file;
    else
        sl_bytes_close(&file);
    return result;
}

int sl_labelled_load(sl_data *out, const sl_data_config *config, sl_labelled_parser *parse,
                     sl_error *error) {
    sl_bytes train = {0}, test = {0};
    bool has_test = config->test_path[0] != '\0';
    int result = read_text(&train, config->path, config, error);
    if (result == 0 && has_test)
        result = read_text(&test, config->test_path, config, error);
    if (result == 0)
        result = parse(out, &train, has_test ? &test : NULL, config, error);
    sl_bytes_close(&train);
    sl_bytes_close(&test);
    return result;
}
