/* libsvm.c - LIBSVM text: one line per sample, "label index:value index:value ... # comment".
 *
 * Labels are integers, also written as 1.0. The distinct labels of the training file, in rising
 * order, become classes 0, 1, ... Indices rise along a line. They count from 1, or from 0 where
 * some line of either file has index 0: scikit-learn writes so, and tells both apart by that rule.
 *
 * The parser first reads rows of nonzeros, whose memory is bounded by the length of the text. Then
 * it knows the number of features and classes, and copies the rows into a dense table. Without a
 * test file, the last fifth of the samples is held out.
 */
#include "learner/data/data.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_MAX 64 /* characters of a label or of index:value */
#define HELD_OUT_PART 5

/* The rows of one file. Row i has the nonzeros starts[i] to starts[i + 1] - 1. */
typedef struct rows {
    uint32_t count;
    uint32_t last;     /* the largest index */
    bool from_0;       /* index 0 was seen */
    int32_t *labels;   /* (count) */
    size_t *starts;    /* (count + 1) */
    uint32_t *indices; /* as they are written */
    float *values;
} rows;

/* The position of the parser. */
typedef struct cursor {
    const char *name, *at, *end;
    uint64_t line;
} cursor;

static void rows_free(rows *r) {
    free(r->labels);
    free(r->starts);
    free(r->indices);
    free(r->values);
    *r = (rows){0};
}

/* Allocates by upper bounds: one sample per line, one nonzero per colon. */
static int rows_allocate(rows *r, const sl_bytes *file, sl_error *error) {
    size_t lines = 1, colons = 0;
    for (size_t i = 0; i < file->size; i++) {
        lines += file->data[i] == '\n';
        colons += file->data[i] == ':';
    }
    if (lines > SL_SAMPLES_MAX)
        return sl_fail(error, SL_EFILE, "%s: has %zu lines; at most %u are allowed", file->name,
                       lines, SL_SAMPLES_MAX);
    *r = (rows){.labels = malloc(lines * sizeof *r->labels),
                .starts = malloc((lines + 1) * sizeof *r->starts),
                .indices = malloc((colons + 1) * sizeof *r->indices),
                .values = malloc((colons + 1) * sizeof *r->values)};
    if (r->labels == NULL || r->starts == NULL || r->indices == NULL || r->values == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for %zu lines with %zu values",
                       file->name, lines, colons);
    r->starts[0] = 0;
    return 0;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static void skip_blanks_and_comment(cursor *c) {
    while (c->at < c->end && is_blank(*c->at))
        c->at++;
    if (c->at < c->end && *c->at == '#')
        while (c->at < c->end && *c->at != '\n')
            c->at++;
}

/* Copies the next word of the line into token. Returns 1, 0 at the end of the line, or an error. */
static int next_token(cursor *c, char token[TOKEN_MAX], sl_error *error) {
    skip_blanks_and_comment(c);
    size_t length = 0;
    while (c->at < c->end && *c->at != '\n' && *c->at != '#' && !is_blank(*c->at)) {
        if (length == TOKEN_MAX - 1 || *c->at == '\0')
            return sl_fail(error, SL_EFILE,
                           "%s: line %llu: \"%.*s...\" is neither a label nor index:value", c->name,
                           (unsigned long long)c->line, (int)length, token);
        token[length++] = *c->at++;
    }
    token[length] = '\0';
    return length > 0;
}

static int parse_label(int32_t *out, const cursor *c, const char *token, sl_error *error) {
    char *end;
    double label = strtod(token, &end);
    if (end == token || *end != '\0' || !(label >= INT32_MIN && label <= INT32_MAX) ||
        label != floor(label))
        return sl_fail(
            error, SL_EFILE,
            "%s: line %llu: label \"%s\" is not a 32-bit integer; classes are integers%s", c->name,
            (unsigned long long)c->line, token,
            strchr(token, ':') != NULL ? ", and a line begins with one" : "");
    *out = (int32_t)label;
    return 0;
}

static int parse_pair(rows *r, size_t at, const cursor *c, const char *token, sl_error *error) {
    unsigned long long line = c->line;
    char *colon, *end;
    errno = 0;
    long index = strtol(token, &colon, 10);
    if (strncmp(token, "qid:", 4) == 0)
        return sl_fail(error, SL_EFILE,
                       "%s: line %llu: \"%s\" names a query, which ranking has and classification "
                       "has not; take it out: sed -i 's/ qid:[0-9]*//' %s",
                       c->name, line, token, c->name);
    if (colon == token || *colon != ':')
        return sl_fail(error, SL_EFILE, "%s: line %llu: \"%s\" is not index:value", c->name, line,
                       token);
    if (errno != 0 || index < 0 || index > (long)SL_FEATURES_MAX)
        return sl_fail(error, SL_EFILE,
                       "%s: line %llu: index of \"%s\" is out of range; allowed are 1 to %u, or 0 "
                       "to %u",
                       c->name, line, token, SL_FEATURES_MAX, SL_FEATURES_MAX - 1);
    if (at > r->starts[r->count] && index <= (long)r->indices[at - 1])
        return sl_fail(error, SL_EFILE, "%s: line %llu: index %ld follows %u; indices must rise",
                       c->name, line, index, r->indices[at - 1]);
    double value = strtod(colon + 1, &end);
    if (end == colon + 1 || *end != '\0' || !(fabs(value) <= (double)FLT_MAX))
        return sl_fail(error, SL_EFILE,
                       "%s: line %llu: value of \"%s\" is not a finite float32 number", c->name,
                       line, token);
    r->indices[at] = (uint32_t)index;
    r->values[at] = (float)value;
    r->last = r->indices[at] > r->last ? r->indices[at] : r->last;
    r->from_0 = r->from_0 || index == 0;
    return 0;
}

static int parse_line(rows *r, cursor *c, sl_error *error) {
    char token[TOKEN_MAX];
    int found = next_token(c, token, error);
    if (found <= 0)
        return found;
    int result = parse_label(&r->labels[r->count], c, token, error);
    size_t at = r->starts[r->count];
    while (result == 0 && (found = next_token(c, token, error)) > 0)
        result = parse_pair(r, at++, c, token, error);
    if (result == 0 && found == 0)
        r->starts[++r->count] = at;
    return result != 0 ? result : found;
}

static int parse_rows(rows *out, const sl_bytes *file, sl_error *error) {
    cursor c = {.name = file->name, .at = (const char *)file->data, .line = 1};
    rows r;
    int result = rows_allocate(&r, file, error);
    for (c.end = c.at + file->size; result == 0 && c.at < c.end; c.line++) {
        result = parse_line(&r, &c, error);
        if (c.at < c.end)
            c.at++; /* the newline */
    }
    if (result == 0 && r.count == 0)
        result = sl_fail(error, SL_EFILE, "%s: holds no samples", file->name);
    if (result != 0)
        rows_free(&r);
    else
        *out = r;
    return result;
}

static int compare_labels(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Allocates *out, which begins with the `count` distinct labels in rising order. */
static int collect_classes(int32_t **out, uint32_t *count, const rows *r, const char *name,
                           sl_error *error) {
    int32_t *sorted = malloc(r->count * sizeof *sorted);
    if (sorted == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for %u labels", name, r->count);
    memcpy(sorted, r->labels, r->count * sizeof *sorted);
    qsort(sorted, r->count, sizeof *sorted, compare_labels);
    uint32_t distinct = 1;
    for (uint32_t i = 1; i < r->count; i++)
        if (sorted[i] != sorted[distinct - 1])
            sorted[distinct++] = sorted[i];
    if (distinct < 2 || distinct > SL_CLASSES_MAX) {
        free(sorted);
        return sl_fail(error, SL_EFILE, "%s: has %u different labels; allowed are 2 to %u", name,
                       distinct, SL_CLASSES_MAX);
    }
    *out = sorted;
    *count = distinct;
    return 0;
}

typedef struct dense_shape {
    uint32_t first; /* index: 0 or 1 */
    uint32_t features, class_count;
    const int32_t *classes; /* (class_count), rising */
    const char *train_name;
} dense_shape;

/* Copies `count` rows from row `first` on into a dense table. */
static int densify(sl_samples *out, const rows *r, uint32_t first, uint32_t count,
                   const dense_shape *shape, const char *name, sl_error *error) {
    sl_samples samples;
    int result =
        sl_samples_allocate(&samples, SL_SAMPLES_VALUES, count, shape->features, name, error);
    if (result != 0)
        return result;
    samples.classes = shape->class_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = first + i;
        const int32_t *class = bsearch(&r->labels[row], shape->classes, shape->class_count,
                                       sizeof(int32_t), compare_labels);
        if (class == NULL) {
            sl_samples_close(&samples);
            return sl_fail(error, SL_EFILE,
                           "%s: sample %u: label %d does not occur in %s; the held-out classes "
                           "must be trained",
                           name, row + 1, r->labels[row], shape->train_name);
        }
        samples.labels[i] = (uint16_t)(class - shape->classes);
        for (size_t k = r->starts[row]; k < r->starts[row + 1]; k++)
            samples.values[(size_t)i * shape->features + r->indices[k] - shape->first] =
                r->values[k];
    }
    *out = samples;
    return 0;
}

/* Makes both tables. Without a test file, the held-out rows are the last ones of `train`. */
static int split(sl_data *out, const rows *train, const rows *test, const sl_bytes *train_file,
                 const sl_bytes *test_file, const sl_data_config *config, const dense_shape *shape,
                 sl_error *error) {
    uint32_t held_out = test != NULL ? 0 : train->count / HELD_OUT_PART;
    uint32_t train_count, test_count;
    if (test == NULL && held_out == 0)
        return sl_fail(error, SL_EFILE,
                       "%s: has %u samples; at least %d are needed to hold out a fifth, or name "
                       "data.test_path",
                       train_file->name, train->count, HELD_OUT_PART);
    int result = sl_data_count(&train_count, config->train_samples, train->count - held_out,
                               "train_samples", train_file->name, error);
    if (result == 0)
        result =
            sl_data_count(&test_count, config->test_samples, test != NULL ? test->count : held_out,
                          "test_samples", test_file->name, error);
    if (result == 0)
        result = densify(&out->train, train, 0, train_count, shape, train_file->name, error);
    if (result == 0)
        result = densify(&out->test, test != NULL ? test : train,
                         test != NULL ? 0 : train->count - held_out, test_count, shape,
                         test_file->name, error);
    return result;
}

int sl_libsvm_parse(sl_data *out, const sl_bytes *train, const sl_bytes *test,
                    const sl_data_config *config, sl_error *error) {
    rows train_rows = {0}, test_rows = {0};
    int32_t *classes = NULL;
    sl_data data = {0};
    dense_shape shape = {.train_name = train->name};
    int result = parse_rows(&train_rows, train, error);
    if (result == 0 && test != NULL)
        result = parse_rows(&test_rows, test, error);
    if (result == 0)
        result = collect_classes(&classes, &shape.class_count, &train_rows, train->name, error);
    if (result == 0) {
        shape.classes = classes;
        shape.first = train_rows.from_0 || test_rows.from_0 ? 0 : 1;
        shape.features =
            (train_rows.last > test_rows.last ? train_rows.last : test_rows.last) + 1 - shape.first;
        result = split(&data, &train_rows, test != NULL ? &test_rows : NULL, train,
                       test != NULL ? test : train, config, &shape, error);
    }
    if (result == 0)
        data.train.names = classes;
    else
        free(classes);
    rows_free(&train_rows);
    rows_free(&test_rows);
    return sl_data_hand_over(out, &data, result);
}

static int load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    (void)seed;
    sl_bytes train = {0}, test = {0};
    bool has_test = config->test_path[0] != '\0';
    int result = sl_bytes_read_text(&train, config->path, SL_BYTES_MAX, error);
    if (result == 0 && has_test)
        result = sl_bytes_read_text(&test, config->test_path, SL_BYTES_MAX, error);
    if (result == 0)
        result = sl_libsvm_parse(out, &train, has_test ? &test : NULL, config, error);
    sl_bytes_close(&train);
    sl_bytes_close(&test);
    return result;
}

const sl_data_reader sl_libsvm_reader = {.load = load, .raw = "libsvm's numbers"};
