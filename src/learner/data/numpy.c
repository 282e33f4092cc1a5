/* numpy.c - arrays of NumPy's: an .npz archive, or a folder of .npy files.
 *
 * x has a sample per row, y its label. With x_train and y_train may come x_test and y_test. Other
 * axes of x are flattened. Samples of two axes, or of three with one or three channels first or
 * last, are images; those of uint8 become pixel/255. Other numbers are taken as they are.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/zip.h"
#include "learner/data/labelled.h"
#include "starling/tensors.h"

/* Where arrays are. */
typedef struct place {
    const char *path;
    const sl_bytes *archive; /* NULL: it is a folder */
} place;

/* The samples of a part of the data. */
typedef struct rows {
    sl_bytes x_file, y_file;
    sl_npy x, y;
    double *labels; /* (count) */
    uint64_t features;
    uint32_t height, width, channels; /* of images; 0: they are none */
    bool channels_last;
} rows;

static void rows_free(rows *r) {
    sl_bytes_close(&r->x_file);
    sl_bytes_close(&r->y_file);
    free(r->labels);
    *r = (rows){0};
}

/* ---- finding arrays ---- */

static bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static int find_file(sl_bytes *out, bool *found, const place *at, const char *name,
                     sl_error *error) {
    char path[SL_PATH_MAX + 32];
    if (at->archive != NULL)
        return sl_zip_read(out, found, at->archive, name, error);
    snprintf(path, sizeof path, "%s/%s", at->path, name);
    *found = is_file(path);
    return *found ? sl_bytes_read(out, path, SL_BYTES_MAX, error) : 0;
}

/* The first of `names` that is there. */
static int find_array(sl_bytes *file, sl_npy *array, bool *found, const place *at,
                      const char *const *names, sl_error *error) {
    int result = 0;
    *found = false;
    for (; *names != NULL && !*found && result == 0; names++)
        result = find_file(file, found, at, *names, error);
    if (result != 0 || !*found)
        return result;
    result = sl_npy_parse(array, file->data, file->size, error);
    return result == 0 ? 0 : sl_fail_prefix(error, result, "%s", file->name);
}

/* ---- what they hold ---- */

static int check_finite(const rows *r, sl_error *error) {
    for (size_t i = 0; r->x.kind == 'f' && i < r->x.count; i++)
        if (!(fabs(sl_npy_number(&r->x, i)) <= (double)FLT_MAX))
            return sl_fail(error, SL_EFILE,
                           "%s: number %llu of sample %llu is not a finite float32 number",
                           r->x_file.name, (unsigned long long)(i % r->features + 1),
                           (unsigned long long)(i / r->features + 1));
    return 0;
}

static bool are_channels(size_t axis) {
    return axis == 1 || axis == 3;
}

static void find_images(rows *r) {
    const size_t *s = r->x.shape;
    if (r->features > SL_FEATURES_MAX)
        return; /* refused later */
    if (r->x.axes == 3) {
        r->height = (uint32_t)s[1];
        r->width = (uint32_t)s[2];
        r->channels = 1;
    } else if (r->x.axes == 4 && (are_channels(s[3]) || are_channels(s[1]))) {
        r->channels_last = are_channels(s[3]);
        const size_t *side = r->channels_last ? s + 1 : s + 2;
        r->height = (uint32_t)side[0];
        r->width = (uint32_t)side[1];
        r->channels = (uint32_t)(r->channels_last ? s[3] : s[1]);
    }
}

static int read_labels(rows *r, const sl_data_config *config, sl_error *error) {
    const sl_npy *x = &r->x, *y = &r->y;
    if (x->axes == 0 || x->shape[0] != y->count)
        return sl_fail(error, SL_EFILE,
                       "%s: has %zu labels, and %s %zu samples; there must be one for each",
                       r->y_file.name, y->count, r->x_file.name, x->axes > 0 ? x->shape[0] : 1);
    if (y->count > SL_SAMPLES_MAX)
        return sl_fail(error, SL_EFILE, "%s: has %zu labels; at most %u are allowed",
                       r->y_file.name, y->count, SL_SAMPLES_MAX);
    r->labels = malloc(y->count * sizeof *r->labels);
    if (r->labels == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for %zu labels", r->y_file.name,
                       y->count);
    for (size_t i = 0; i < y->count; i++) {
        r->labels[i] = sl_npy_number(y, i);
        if (!sl_label_is_allowed(r->labels[i], config))
            return sl_fail(error, SL_EFILE, "%s: label %g of sample %zu is not %s", r->y_file.name,
                           r->labels[i], i + 1, sl_label_allowed(config));
    }
    return 0;
}

/* *found: there is an x of one of these names; then there must be a y. */
static int find_rows(rows *r, bool *found, const place *at, const char *const *x_names,
                     const char *const *y_names, const sl_data_config *config, sl_error *error) {
    bool labelled = false;
    int result = find_array(&r->x_file, &r->x, found, at, x_names, error);
    if (result != 0 || !*found)
        return result;
    result = find_array(&r->y_file, &r->y, &labelled, at, y_names, error);
    if (result == 0 && !labelled)
        result = sl_fail(error, SL_EFILE, "%s: has no %s, the labels of %s", at->path, y_names[0],
                         r->x_file.name);
    if (result == 0)
        result = read_labels(r, config, error);
    if (result != 0)
        return result;
    r->features = r->x.count / r->x.shape[0];
    find_images(r);
    return check_finite(r, error);
}

/* Channels become planes. */
static void get_row(const void *self, uint32_t index, float *x) {
    const rows *r = self;
    const size_t first = (size_t)index * r->features, plane = (size_t)r->height * r->width;
    const bool pixels = r->channels > 0 && r->x.kind == 'u' && r->x.bytes == 1;
    for (size_t i = 0; i < r->features; i++) {
        const size_t to = r->channels_last ? i % r->channels * plane + i / r->channels : i;
        const float number = (float)sl_npy_number(&r->x, first + i);
        x[to] = pixels ? number / 255 : number;
    }
}

/* ---- a data set ---- */

static const char *const x_names[] = {"x_train.npy", "X_train.npy", "x.npy", "X.npy", NULL},
                         *const y_names[] = {"y_train.npy", "Y_train.npy", "y.npy", "Y.npy", NULL},
                         *const x_held_out[] = {"x_test.npy", "X_test.npy", NULL},
                         *const y_held_out[] = {"y_test.npy", "Y_test.npy", NULL};

static int find_train(rows *r, const place *at, const sl_data_config *config, sl_error *error) {
    bool found;
    int result = find_rows(r, &found, at, x_names, y_names, config, error);
    if (result != 0 || found)
        return result;
    return sl_fail(
        error, SL_EFILE, "%s: has no x_train.npy, and no x.npy; samples are x, their labels y%s",
        at->path, at->archive != NULL ? ": save it with numpy.savez(FILE, x=..., y=...)" : "");
}

static void set_images(sl_samples *samples, const rows *r) {
    if (r->channels == 0)
        return;
    samples->height = r->height;
    samples->width = r->width;
    samples->channels = r->channels;
}

static sl_labelled labelled(const rows *r) {
    return (sl_labelled){.name = r->x_file.name,
                         .count = (uint32_t)r->y.count,
                         .labels = r->labels,
                         .rows = r,
                         .get = get_row};
}

static bool are_alike(const rows *a, const rows *b) {
    return a->features == b->features && a->height == b->height && a->channels == b->channels;
}

/* test: where held-out samples are, as x and y; NULL: beside the others, or nowhere. */
static int parse(sl_data *out, const place *train, const place *test, const sl_data_config *config,
                 sl_error *error) {
    rows a = {0}, b = {0};
    bool has_test = test != NULL;
    int result = find_train(&a, train, config, error);
    if (result == 0 && has_test)
        result = find_train(&b, test, config, error);
    else if (result == 0)
        result = find_rows(&b, &has_test, train, x_held_out, y_held_out, config, error);
    if (result == 0 && has_test && !are_alike(&a, &b))
        result = sl_fail(error, SL_EFILE, "%s: its samples have another shape than those of %s",
                         b.x_file.name, a.x_file.name);
    if (result == 0) {
        const sl_labelled rows_of = labelled(&a), held_out = labelled(&b);
        result = sl_labelled_split(out, &rows_of, has_test ? &held_out : NULL, a.features, config,
                                   error);
    }
    if (result == 0) {
        set_images(&out->train, &a);
        set_images(&out->test, &a);
    }
    rows_free(&a);
    rows_free(&b);
    return result;
}

int sl_npz_parse(sl_data *out, const sl_bytes *archive, const sl_data_config *config,
                 sl_error *error) {
    const place at = {archive->name, archive};
    return parse(out, &at, NULL, config, error);
}

/* *archive stays empty for a folder. */
static int open_place(place *out, sl_bytes *archive, const char *path, sl_error *error) {
    struct stat status;
    *out = (place){.path = path};
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return 0;
    int result = sl_bytes_read_packed(archive, path, SL_BYTES_MAX, error);
    if (result != 0)
        return result;
    if (sl_npy_is(archive->data, archive->size))
        return sl_fail(error, SL_EFILE,
                       "%s: is one array; name the folder of x.npy and y.npy, or an .npz file",
                       path);
    if (!sl_zip_is(archive))
        return sl_fail(
            error, SL_EFILE,
            "%s: is neither an .npz file nor a folder of .npy files; texts are data.name "
            "csv or libsvm",
            path);
    out->archive = archive;
    return 0;
}

static int load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    (void)seed;
    sl_bytes train_archive = {0}, test_archive = {0};
    place train, test;
    const bool has_test = config->test_path[0] != '\0';
    int result = open_place(&train, &train_archive, config->path, error);
    if (result == 0 && has_test)
        result = open_place(&test, &test_archive, config->test_path, error);
    if (result == 0)
        result = parse(out, &train, has_test ? &test : NULL, config, error);
    sl_bytes_close(&train_archive);
    sl_bytes_close(&test_archive);
    return result;
}

const sl_data_reader sl_numpy_reader = {
    .load = load, .raw = "numpy's numbers", .real_labels = true};
