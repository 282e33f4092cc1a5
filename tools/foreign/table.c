/* table.c - text in lines and columns: edge lists and matrices, as networkx, numpy and pandas write
 * them, separated by blanks, tabs, commas or semicolons. '#' and '%' begin comments.
 *
 * An edge is two names and maybe a weight, or networkx's data, {'weight': 0.5}; a head line may
 * name the columns source, target and weight. A matrix may have a head line of names, and then a
 * name before each row. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "foreign/graph_file.h"

typedef struct table {
    char **fields;        /* (count) within the text */
    size_t *starts;       /* (rows + 1) of each row's fields */
    unsigned long *lines; /* (rows) */
    size_t count, field_room, rows, row_room;
    char separator; /* ' ': blanks */
} table;

static void table_close(table *t) {
    free(t->fields);
    free(t->starts);
    free(t->lines);
}

static size_t columns_of(const table *t, size_t row) {
    return t->starts[row + 1] - t->starts[row];
}

static char *field(const table *t, size_t row, size_t column) {
    return t->fields[t->starts[row] + column];
}

/* ---- cutting ---- */

static bool reserve(table *t) {
    if (t->count + 1 >= t->field_room) {
        t->field_room = 2 * t->field_room + 64;
        char **fields = realloc(t->fields, t->field_room * sizeof *fields);
        t->fields = fields != NULL ? fields : t->fields;
        if (fields == NULL)
            return false;
    }
    if (t->rows + 2 >= t->row_room) {
        t->row_room = 2 * t->row_room + 64;
        size_t *starts = realloc(t->starts, t->row_room * sizeof *starts);
        t->starts = starts != NULL ? starts : t->starts;
        unsigned long *lines = realloc(t->lines, t->row_room * sizeof *lines);
        t->lines = lines != NULL ? lines : t->lines;
        return starts != NULL && lines != NULL;
    }
    return true;
}

/* The first of these that the line has outside quotes and braces. */
static char separator_of(const char *line) {
    static const char kinds[] = ",;\t";
    bool quoted = false;
    bool has[3] = {false};
    for (; *line != '\0' && *line != '{'; line++) {
        quoted ^= *line == '"';
        const char *kind = quoted ? NULL : strchr(kinds, *line);
        if (kind != NULL)
            has[kind - kinds] = true;
    }
    return has[0] ? ',' : has[1] ? ';' : has[2] ? '\t' : ' ';
}

static char *trim(char *text) {
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && isblank((unsigned char)text[length - 1]))
        text[--length] = '\0';
    if (length >= 2 && text[0] == '"' && text[length - 1] == '"') {
        text[length - 1] = '\0';
        text++;
    }
    return text;
}

/* Where the field ends: at its separator, or at the line's end. Data in braces is one field. */
static char *end_of(char *at, char separator) {
    bool quoted = false;
    if (*at == '{')
        return at + strlen(at);
    for (; *at != '\0'; at++) {
        quoted ^= *at == '"';
        if (!quoted && (separator == ' ' ? isblank((unsigned char)*at) : *at == separator))
            return at;
    }
    return at;
}

static bool cut_line(table *t, char *line) {
    for (;;) {
        line += t->separator == ' ' ? strspn(line, " \t") : 0;
        if (t->separator == ' ' && *line == '\0')
            return true;
        while (t->separator != ' ' && *line == ' ')
            line++;
        char *end = end_of(line, t->separator);
        const bool last = *end == '\0';
        *end = '\0';
        if (!reserve(t))
            return false;
        t->fields[t->count++] = trim(line);
        if (last)
            return true;
        line = end + 1;
    }
}

static int cut(table *t, char *text, sl_error *error) {
    unsigned long line = 1;
    if (!reserve(t))
        return sl_fail(error, SL_ENOMEM, "out of memory for a table");
    t->starts[0] = 0;
    for (char *next; *text != '\0'; text = next, line++) {
        const size_t length = strcspn(text, "\n");
        next = text + length + (text[length] == '\n');
        text[length] = '\0';
        const char first = text[strspn(text, " \t")];
        if (first == '\0' || first == '#' || first == '%')
            continue;
        if (t->rows == 0)
            t->separator = separator_of(text);
        if (t->separator == ' ')
            text[strcspn(text, "#")] = '\0';
        if (!cut_line(t, text))
            return sl_fail(error, SL_ENOMEM, "out of memory for a table");
        t->lines[t->rows] = line;
        t->starts[++t->rows] = t->count;
    }
    return t->rows > 0 ? 0 : sl_fail(error, SL_EFILE, "has no edges");
}

/* ---- matrices ---- */

/* The numbers from row and column `from` on, (n, n); NULL: not all are. */
static double *numbers_of(const table *t, size_t from_row, size_t from_column, size_t n) {
    double *numbers = malloc((n * n + 1) * sizeof *numbers);
    for (size_t i = 0; numbers != NULL && i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (columns_of(t, from_row + i) != from_column + n ||
                !graph_number(field(t, from_row + i, from_column + j), &numbers[i * n + j])) {
                free(numbers);
                return NULL;
            }
    return numbers;
}

/* Rows have the columns' names, in the same order. */
static int take_head(graph_file *g, const table *t, size_t column, sl_error *error) {
    int result = 0;
    uint32_t node;
    for (size_t j = column; result == 0 && j < columns_of(t, 0); j++) {
        const char *name = field(t, 0, j), *row = column > 0 ? field(t, j, 0) : name;
        if (strcmp(name, row) != 0)
            return sl_fail(error, SL_EFILE, "line %lu: row \"%s\" stands where column \"%s\" does",
                           t->lines[j], row, name);
        result = graph_declare(g, name, &node, error);
    }
    return result;
}

/* Takes the square that begins there if it is a matrix; *taken says so. */
static int try_matrix(graph_file *g, const table *t, size_t row, size_t column, bool *taken,
                      sl_error *error) {
    const size_t n = t->rows - row;
    int result = 0;
    *taken = false;
    if (t->rows <= row || columns_of(t, t->rows - 1) != n + column ||
        (row > 0 && columns_of(t, 0) != n + column))
        return 0;
    double *numbers = numbers_of(t, row, column, n);
    *taken = numbers != NULL && graph_is_matrix(numbers, n, n);
    if (*taken && row > 0)
        result = take_head(g, t, column, error);
    if (*taken && result == 0)
        result = graph_take_numbers(g, numbers, n, n, error);
    free(numbers);
    return result;
}

/* ---- edges ---- */

typedef struct columns {
    size_t from, to, weight, type, all; /* weight, type == all: none */
    bool head;
} columns;

static bool is_one_of(const char *word, const char *const *words) {
    for (; *words != NULL; words++)
        if (strcasecmp(word, *words) == 0)
            return true;
    return false;
}

static columns find_columns(const table *t) {
    static const char
        *const from[] = {"source", "from", "src", "node1", "u", NULL},
               *const to[] = {"target", "to", "dst", "dest", "destination", "node2", "v", NULL},
               *const weight[] = {"weight", "w", NULL}, *const type[] = {"type", NULL};
    const size_t all = columns_of(t, 0);
    columns c = {all, all, all, all, all, true};
    for (size_t j = 0; j < all; j++) {
        const char *word = field(t, 0, j);
        c.from = c.from == all && is_one_of(word, from) ? j : c.from;
        c.to = c.to == all && is_one_of(word, to) ? j : c.to;
        c.weight = c.weight == all && is_one_of(word, weight) ? j : c.weight;
        c.type = c.type == all && is_one_of(word, type) ? j : c.type;
    }
    return c.from < all && c.to < all ? c : (columns){0, 1, 2, all, all, false};
}

/* {'weight': 0.5, ...}; NaN: there is none. */
static bool data_weight(const char *data, double *out) {
    const char *key = strstr(data, "weight");
    char *end;
    *out = NAN;
    if (key == NULL)
        return true;
    key += strcspn(key, ":");
    *out = strtod(*key == ':' ? key + 1 : key, &end);
    return *key == ':' && end > key + 1 && strchr(" ,}", *end) != NULL;
}

/* Numbers are written in many ways: "1.0e+00" is node 1. */
static uint32_t node_of(graph_file *g, const char *word) {
    char name[32];
    double number;
    if (!graph_number(word, &number) || !(fabs(number) <= 1e15) || number != floor(number))
        return graph_node(g, word);
    snprintf(name, sizeof name, "%.0f", number);
    return graph_node(g, name);
}

static int take_edge(graph_file *g, const table *t, const columns *c, size_t row, sl_error *error) {
    const size_t count = columns_of(t, row);
    const unsigned long line = t->lines[row];
    double weight = NAN;
    if (count < 2 || (c->head ? count != c->all : count > 3))
        return sl_fail(error, SL_EFILE,
                       "line %lu: has %zu columns; an edge is two names, maybe with a weight", line,
                       count);
    const char *from = field(t, row, c->from), *to = field(t, row, c->to),
               *last = c->weight < count ? field(t, row, c->weight) : "";
    if (*last == '{' ? !data_weight(last, &weight) : *last != '\0' && !graph_number(last, &weight))
        return sl_fail(error, SL_EFILE, "line %lu: weight \"%.60s\" is no number", line, last);
    if (*from == '\0' || *to == '\0')
        return sl_fail(error, SL_EFILE, "line %lu: a node has no name", line);
    if (c->type < count && strcasecmp(field(t, row, c->type), "directed") == 0)
        g->directed = true;                  /* of Gephi */
    const uint32_t first = node_of(g, from); /* new nodes in the order of the file */
    graph_edge(g, first, node_of(g, to), weight);
    return 0;
}

static int take_edges(graph_file *g, const table *t, const columns *c, sl_error *error) {
    int result = 0;
    for (size_t row = c->head ? 1 : 0; result == 0 && row < t->rows; row++)
        result = take_edge(g, t, c, row, error);
    return result == 0 ? graph_settle_directions(g, error) : result;
}

/* Rows of numbers may be either; those of whole numbers written as 1.0 too. */
static int take_table(graph_file *g, const table *t, sl_error *error) {
    bool taken = false;
    const columns c = find_columns(t);
    int result = 0;
    if (!c.head)
        result = try_matrix(g, t, 0, 0, &taken, error);
    if (result == 0 && !taken && !c.head)
        result = try_matrix(g, t, 1, 0, &taken, error);
    if (result == 0 && !taken && !c.head)
        result = try_matrix(g, t, 1, 1, &taken, error);
    if (result != 0 || taken)
        return result;
    return c.head || c.all <= 3
               ? take_edges(g, t, &c, error)
               : sl_fail(error, SL_EFILE,
                         "has %zu rows of %zu columns: neither a matrix of numbers, which has as "
                         "many rows as columns, nor edges of two or three columns",
                         t->rows, c.all);
}

int read_table(graph_file *g, char *text, size_t bytes, sl_error *error) {
    table t = {0};
    (void)bytes;
    int result = cut(&t, text, error);
    if (result == 0)
        result = take_table(g, &t, error);
    table_close(&t);
    return result;
}
