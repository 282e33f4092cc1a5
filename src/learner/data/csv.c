/* csv.c - tables of numbers as text: a line per sample, a column of labels.
 *
 * The first comma, semicolon or tab of the file is its separator. Its first line is a header if a
 * field of it is no number. Fields may stand in double quotes. Every field below the header is a
 * number; data.label says which column has the labels.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/data/labelled.h"

enum { FIELD_MAX = 64 };

typedef struct table {
    const char *name;
    char separator;
    uint32_t count, columns, label; /* rows; columns of the file; the one with labels */
    float *values;                  /* (count, columns - 1) */
    double *labels;                 /* (count) */
} table;

/* The position of the parser. */
typedef struct cursor {
    const table *of;
    const char *at, *end;
    uint64_t line;
} cursor;

static void table_free(table *t) {
    free(t->values);
    free(t->labels);
    *t = (table){0};
}

static char find_separator(const sl_bytes *file) {
    for (size_t i = 0; i < file->size; i++)
        if (strchr(",;\t", file->data[i]) != NULL && file->data[i] != '\0')
            return (char)file->data[i];
    return '\0';
}

static bool is_blank(char c) {
    return c == ' ' || c == '\r';
}

static bool is_empty_line(const cursor *c) {
    const char *at = c->at;
    while (at < c->end && is_blank(*at))
        at++;
    return at == c->end || *at == '\n';
}

/* Copies the next field of the line into `field`, without blanks and quotes around it, and cut to
 * FIELD_MAX - 1; *last: the line ends behind it. */
static void next_field(cursor *c, char field[FIELD_MAX], bool *last) {
    const char *from, *to;
    while (c->at < c->end && is_blank(*c->at))
        c->at++;
    const bool quoted = c->at < c->end && *c->at == '"';
    from = c->at += quoted;
    while (c->at < c->end && *c->at != '\n' &&
           (quoted ? *c->at != '"' : *c->at != c->of->separator))
        c->at++;
    to = c->at;
    while (c->at < c->end && *c->at != '\n' && *c->at != c->of->separator)
        c->at++;
    while (to > from && is_blank(to[-1]))
        to--;
    const size_t length = (size_t)(to - from) < FIELD_MAX ? (size_t)(to - from) : FIELD_MAX - 1;
    memcpy(field, from, length);
    field[length] = '\0';
    *last = c->at == c->end || *c->at == '\n';
    c->at += c->at < c->end;
}

static bool read_number(double *out, const char *field) {
    char *end;
    *out = strtod(field, &end);
    return end != field && *end == '\0' && strlen(field) < FIELD_MAX - 1;
}

/* ---- the first line ---- */

/* Which column of the first line has the labels, the line itself being a header or not. */
static int choose_label(table *t, cursor line, bool has_header, const char *label,
                        sl_error *error) {
    char field[FIELD_MAX], *end;
    bool last = false;
    if (strcmp(label, "last") == 0 || strcmp(label, "first") == 0) {
        t->label = strcmp(label, "last") == 0 ? t->columns - 1 : 0;
        return 0;
    }
    for (t->label = 0; has_header && !last; t->label++) {
        next_field(&line, field, &last);
        if (strcmp(field, label) == 0)
            return 0;
    }
    const unsigned long number = strtoul(label, &end, 10);
    if (*end == '\0' && number >= 1 && number <= t->columns) {
        t->label = (uint32_t)number - 1;
        return 0;
    }
    return sl_fail(error, SL_EFILE,
                   "%s: data.label is \"%s\"; it must be last, first, %sor a number from 1 to %u",
                   t->name, label, has_header ? "a name of its first line, " : "", t->columns);
}

/* Counts columns, finds the labels, and passes over a header. */
static int read_first_line(table *t, cursor *c, const sl_data_config *config, sl_error *error) {
    const cursor first = *c;
    bool has_header = false, last = false;
    char field[FIELD_MAX];
    double number;
    for (t->columns = 0; !last; t->columns++) {
        next_field(c, field, &last);
        has_header = has_header || !read_number(&number, field);
    }
    if (t->columns < 2)
        return sl_fail(error, SL_EFILE,
                       "%s: line %llu: has one column, \"%.40s\"; numbers must be separated by "
                       "commas, semicolons or tabs%s",
                       t->name, (unsigned long long)c->line, field,
                       strchr(field, ':') != NULL ? " (index:value is data.name libsvm)" : "");
    if (has_header)
        c->line++;
    else
        *c = first;
    return choose_label(t, first, has_header, config->label, error);
}

/* ---- the rows ---- */

static int take_field(table *t, const cursor *c, uint32_t column, const char *field,
                      const sl_data_config *config, sl_error *error) {
    double number;
    const bool is = read_number(&number, field);
    if (column == t->label) {
        t->labels[t->count] = number;
        if (is && sl_label_is_allowed(number, config))
            return 0;
        return sl_fail(error, SL_EFILE, "%s: line %llu: label \"%s\", of column %u, is not %s",
                       t->name, (unsigned long long)c->line, field, column + 1,
                       sl_label_allowed(config));
    }
    t->values[(size_t)t->count * (t->columns - 1) + column - (column > t->label)] = (float)number;
    if (is && fabs(number) <= (double)FLT_MAX)
        return 0;
    return sl_fail(error, SL_EFILE,
                   "%s: line %llu: column %u is \"%s\"; it must be a finite float32 number",
                   t->name, (unsigned long long)c->line, column + 1, field);
}

static int read_row(table *t, cursor *c, const sl_data_config *config, sl_error *error) {
    char field[FIELD_MAX];
    bool last = false;
    uint32_t column = 0;
    int result = 0;
    for (; !last && result == 0; column++) {
        next_field(c, field, &last);
        if (column < t->columns)
            result = take_field(t, c, column, field, config, error);
    }
    if (result == 0 && column != t->columns)
        result = sl_fail(error, SL_EFILE, "%s: line %llu: has %u columns, and those before it %u",
                         t->name, (unsigned long long)c->line, column, t->columns);
    t->count += result == 0;
    return result;
}

/* A row has a separator less than columns: so many numbers beside its label. */
static int allocate(table *t, const sl_bytes *file, sl_error *error) {
    size_t lines = 1, separators = 0;
    for (size_t i = 0; i < file->size; i++) {
        lines += file->data[i] == '\n';
        separators += (char)file->data[i] == t->separator;
    }
    if (lines > SL_SAMPLES_MAX)
        return sl_fail(error, SL_EFILE, "%s: has %zu lines; at most %u are allowed", t->name, lines,
                       SL_SAMPLES_MAX);
    /* the row that is refused for its length has been read as far as it goes */
    t->values = malloc((separators + t->columns) * sizeof *t->values);
    t->labels = malloc(lines * sizeof *t->labels);
    return t->values != NULL && t->labels != NULL
               ? 0
               : sl_fail(error, SL_ENOMEM, "%s: out of memory for %zu numbers", t->name,
                         separators);
}

static int parse_table(table *t, const sl_bytes *file, const sl_data_config *config,
                       sl_error *error) {
    *t = (table){.name = file->name, .separator = find_separator(file)};
    const char *text = (const char *)file->data;
    cursor c = {.of = t, .at = text, .end = text + file->size, .line = 1};
    while (c.at < c.end && is_empty_line(&c)) {
        const char *newline = memchr(c.at, '\n', (size_t)(c.end - c.at));
        c.at = newline != NULL ? newline + 1 : c.end;
        c.line++;
    }
    if (c.at == c.end)
        return sl_fail(error, SL_EFILE, "%s: holds no samples", t->name);
    int result = read_first_line(t, &c, config, error);
    if (result == 0)
        result = allocate(t, file, error);
    for (; result == 0 && c.at < c.end; c.line++) {
        if (!is_empty_line(&c))
            result = read_row(t, &c, config, error);
        else
            while (c.at < c.end && *c.at++ != '\n')
                ;
    }
    if (result == 0 && t->count == 0)
        result = sl_fail(error, SL_EFILE, "%s: holds no samples", t->name);
    return result;
}

static void get_row(const void *self, uint32_t index, float *x) {
    const table *t = self;
    const size_t features = t->columns - 1;
    memcpy(x, t->values + index * features, features * sizeof *x);
}

static sl_labelled labelled(const table *t) {
    return (sl_labelled){
        .name = t->name, .count = t->count, .labels = t->labels, .rows = t, .get = get_row};
}

int sl_csv_parse(sl_data *out, const sl_bytes *train, const sl_bytes *test,
                 const sl_data_config *config, sl_error *error) {
    table a = {0}, b = {0};
    int result = parse_table(&a, train, config, error);
    if (result == 0 && test != NULL)
        result = parse_table(&b, test, config, error);
    if (result == 0 && test != NULL && a.columns != b.columns)
        result = sl_fail(error, SL_EFILE, "%s: has %u columns, and %s has %u", b.name, b.columns,
                         a.name, a.columns);
    if (result == 0) {
        const sl_labelled rows = labelled(&a), held_out = labelled(&b);
        result = sl_labelled_split(out, &rows, test != NULL ? &held_out : NULL, a.columns - 1,
                                   config, error);
    }
    table_free(&a);
    table_free(&b);
    return result;
}

static int load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    (void)seed;
    return sl_labelled_load(out, config, sl_csv_parse, error);
}

const sl_data_reader sl_csv_reader = {.load = load, .raw = "csv's numbers", .real_labels = true};
