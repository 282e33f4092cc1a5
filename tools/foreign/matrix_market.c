/* matrix_market.c - Matrix Market files. https://math.nist.gov/MatrixMarket/formats.html
 *
 * "%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric", comments, the
 * sizes, the entries: of a coordinate file those that are not 0, counted from 1; of an array all,
 * column by column; of a symmetric one those on and below the diagonal. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "foreign/graph_file.h"

enum { WORD_MAX = 64 };

typedef struct market {
    graph_file *g;
    sl_error *error;
    const char *at;
    unsigned long line;
    bool is_array, is_pattern, is_symmetric;
} market;

static int refuse(const market *m, const char *what) {
    return sl_fail(m->error, SL_EFILE, "line %lu: %s", m->line, what);
}

static void skip_line(market *m) {
    m->at += strcspn(m->at, "\n");
}

/* Behind blanks and comments. */
static void skip(market *m) {
    for (; isspace((unsigned char)*m->at) || *m->at == '%'; m->at += *m->at != '\0') {
        if (*m->at == '%')
            skip_line(m);
        m->line += *m->at == '\n';
    }
}

static int take_number(market *m, double *out, const char *what) {
    char word[WORD_MAX];
    size_t length = 0;
    skip(m);
    for (; *m->at != '\0' && !isspace((unsigned char)*m->at) && length < WORD_MAX - 1; m->at++)
        word[length++] = *m->at;
    word[length] = '\0';
    if (length == 0)
        return refuse(m, "the file ends before its last entry");
    return graph_number(word, out)
               ? 0
               : sl_fail(m->error, SL_EFILE, "line %lu: %s \"%.40s\" is no number", m->line, what,
                         word);
}

/* From 1 to `most`. */
static int take_index(market *m, uint32_t most, uint32_t *out, const char *what) {
    double number;
    int result = take_number(m, &number, what);
    if (result != 0)
        return result;
    if (!(number >= 1 && number <= most) || number != (double)(uint32_t)number)
        return sl_fail(m->error, SL_EFILE, "line %lu: %s %g is not from 1 to %u", m->line, what,
                       number, most);
    *out = (uint32_t)number;
    return 0;
}

/* ---- the first line ---- */

static bool is_one_of(const char *word, const char *a, const char *b) {
    return strcasecmp(word, a) == 0 || strcasecmp(word, b) == 0;
}

static int take_head(market *m) {
    char object[WORD_MAX], format[WORD_MAX], field[WORD_MAX], symmetry[WORD_MAX];
    if (sscanf(m->at, "%*s %63s %63s %63s %63s", object, format, field, symmetry) != 4)
        return refuse(m, "the first line must be %%MatrixMarket matrix FORMAT FIELD SYMMETRY");
    if (strcasecmp(object, "matrix") != 0 || !is_one_of(format, "coordinate", "array"))
        return sl_fail(
            m->error, SL_EFILE,
            "line 1: \"%s %s\" is not read; it must be matrix coordinate or matrix array", object,
            format);
    m->is_array = strcasecmp(format, "array") == 0;
    m->is_pattern = strcasecmp(field, "pattern") == 0;
    if (!m->is_pattern && !is_one_of(field, "real", "integer") &&
        !is_one_of(field, "double", "real"))
        return sl_fail(m->error, SL_EFILE,
                       "line 1: \"%s\" numbers are not read; allowed are real, integer and pattern",
                       field);
    m->is_symmetric = strcasecmp(symmetry, "symmetric") == 0;
    if (!is_one_of(symmetry, "general", "symmetric"))
        return sl_fail(m->error, SL_EFILE,
                       "line 1: \"%s\" is not read; allowed are general and symmetric", symmetry);
    if (m->is_array && m->is_pattern)
        return refuse(m, "an array has no pattern");
    skip_line(m);
    return 0;
}

/* ---- entries ---- */

static void add(market *m, uint32_t row, uint32_t column, double value) {
    graph_entry(m->g, row, column, value);
    if (m->is_symmetric && row != column)
        graph_entry(m->g, column, row, value);
}

static int take_entry(market *m) {
    uint32_t row = 1, column = 1;
    double value = 1;
    int result = take_index(m, m->g->nodes, &row, "row");
    if (result == 0)
        result = take_index(m, m->g->nodes, &column, "column");
    if (result == 0 && !m->is_pattern)
        result = take_number(m, &value, "entry");
    if (result == 0)
        add(m, row - 1, column - 1, value);
    return result;
}

static int take_array(market *m) {
    int result = 0;
    double value = 0;
    for (uint32_t column = 0; result == 0 && column < m->g->nodes; column++)
        for (uint32_t row = m->is_symmetric ? column : 0; result == 0 && row < m->g->nodes; row++) {
            result = take_number(m, &value, "entry");
            if (result == 0)
                add(m, row, column, value);
        }
    return result;
}

static int take_entries(market *m) {
    double rows = 0, columns = 0, count = 0;
    int result = take_number(m, &rows, "size");
    if (result == 0)
        result = take_number(m, &columns, "size");
    if (result == 0 && rows != columns)
        result = sl_fail(m->error, SL_EFILE,
                         "line %lu: the matrix has %g rows and %g columns; a graph's has as many",
                         m->line, rows, columns);
    if (result == 0 && !m->is_array)
        result = take_number(m, &count, "number of entries");
    if (result == 0)
        result = graph_number_nodes(m->g, rows >= 1 && rows <= 1e9 ? (uint64_t)rows : 0, m->error);
    if (result == 0 && m->is_array)
        return take_array(m);
    for (double k = 0; result == 0 && k < count; k++)
        result = take_entry(m);
    return result;
}

int read_matrix_market(graph_file *g, char *text, size_t bytes, sl_error *error) {
    market m = {.g = g, .error = error, .at = text, .line = 1};
    (void)bytes;
    int result = take_head(&m);
    if (result == 0)
        result = take_entries(&m);
    skip(&m);
    return result == 0 && *m.at != '\0' ? refuse(&m, "more entries than the sizes say") : result;
}
