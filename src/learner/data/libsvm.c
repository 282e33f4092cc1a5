/* libsvm.c - LIBSVM text: one line per sample, "label index:value index:value ... # comment".
 *
 * Labels that are classes may be written as 1.0. Indices rise along a line. They count from 1, or
 * from 0 where some line of either file has index 0: scikit-learn writes so, and tells both apart
 * by that rule.
 *
 * The parser first reads rows of nonzeros, whose memory is bounded by the length of the text. Then
 * it knows the number of features and classes, and the rows become dense tables (labelled.h).
 */
#include "learner/data/labelled.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_MAX 64 /* characters of a label or of index:value */

/* The rows of one file. Row i has the nonzeros starts[i] to starts[i + 1] - 1. */
typedef struct rows {
    uint32_t count;
    uint32_t last;     /* the largest index */
    uint32_t first;    /* the lowest index: 0 or 1 */
    bool from_0;       /* index 0 was seen */
    double *labels;    /* (count) */
    size_t *starts;    /* (count + 1) */
    uint32_t *indices; /* as they are written */
    float *values;
} rows;

/* The position of the parser. */
typedef struct cursor {
    const sl_data_config *config;
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

static int parse_label(double *out, const cursor *c, const char *token, sl_error *error) {
    char *end;
    *out = strtod(token, &end);
    if (end == token || *end != '\0' || !sl_label_is_allowed(*out, c->config))
        return sl_fail(error, SL_EFILE, "%s: line %llu: label \"%s\" is not %s%s", c->name,
                       (unsigned long long)c->line, token, sl_label_allowed(c->config),
                       strchr(token, ':') != NULL   ? ", and a line begins with one"
                       : strchr(token, ',') != NULL ? "; lines with commas are data.name csv"
                                                    : "");
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

static int parse_rows(rows *out, const sl_bytes *file, const sl_data_config *config,
                      sl_error *error) {
    cursor c = {.config = config, .name = file->name, .at = (const char *)file->data, .line = 1};
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

/* The row's nonzeros, from the lowest index of both files on. */
static void get_row(const void *self, uint32_t index, float *x) {
    const rows *r = self;
    for (size_t k = r->starts[index]; k < r->starts[index + 1]; k++)
        x[r->indices[k] - r->first] = r->values[k];
}

static sl_labelled labelled(const rows *r, const char *name) {
    return (sl_labelled){
        .name = name, .count = r->count, .labels = r->labels, .rows = r, .get = get_row};
}

int sl_libsvm_parse(sl_data *out, const sl_bytes *train, const sl_bytes *test,
                    const sl_data_config *config, sl_error *error) {
    rows train_rows = {0}, test_rows = {0};
    int result = parse_rows(&train_rows, train, config, error);
    if (result == 0 && test != NULL)
        result = parse_rows(&test_rows, test, config, error);
    if (result == 0) {
        const uint32_t last = train_rows.last > test_rows.last ? train_rows.last : test_rows.last;
        train_rows.first = test_rows.first = train_rows.from_0 || test_rows.from_0 ? 0 : 1;
        const sl_labelled a = labelled(&train_rows, train->name),
                          b = labelled(&test_rows, test != NULL ? test->name : "");
        result = sl_labelled_split(out, &a, test != NULL ? &b : NULL,
                                   (uint64_t)last + 1 - train_rows.first, config, error);
    }
    rows_free(&train_rows);
    rows_free(&test_rows);
    return result;
}

static int load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    (void)seed;
    return sl_labelled_load(out, config, sl_libsvm_parse, error);
}

const sl_data_reader sl_libsvm_reader = {
    .load = load, .raw = "libsvm's numbers", .real_labels = true};
