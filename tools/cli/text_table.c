/* text_table.c - a table that fits the terminal; see text_table.h. */
#include "cli/text_table_parts.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/complain.h"

enum { WIDTH_DEFAULT = 80, WIDTH_MIN = 20, GAP = 2, FILL_MIN = 28 };

size_t output_width(bool wide) {
    if (wide)
        return SIZE_MAX;
    const char *set = getenv("COLUMNS");
    long columns = set != NULL ? strtol(set, NULL, 10) : 0;
    struct winsize size;
    if (columns <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    if (columns <= 0)
        columns = WIDTH_DEFAULT;
    return columns < WIDTH_MIN ? WIDTH_MIN : (size_t)columns;
}

/* Bytes that continue a character take no column. */
size_t text_width(const char *text) {
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

size_t text_bytes(const char *text, size_t columns) {
    size_t bytes = 0;
    while (text[bytes] != '\0') {
        bool begins = ((unsigned char)text[bytes] & 0xC0) != 0x80;
        if (begins && columns-- == 0)
            break;
        bytes++;
    }
    return bytes;
}

void print_wrapped(const char *head, const char *text, size_t width) {
    char *whole = shown_text(text);
    size_t indent = text_width(head), at = indent;
    fputs(head, stdout);
    text = whole != NULL ? whole : "";
    while (*text != '\0') {
        size_t bytes = strcspn(text, " "), word = text_width(text) - text_width(text + bytes);
        bool fits = at == indent || (word < width && at + 1 <= width - word);
        if (at > indent)
            printf(fits ? " " : "\n%*s", fits ? 0 : (int)indent, "");
        at = (at == indent || !fits ? indent : at + 1) + word;
        printf("%.*s", (int)bytes, text);
        text += bytes;
        text += strspn(text, " ");
    }
    putchar('\n');
    free(whole);
}

text_table *text_table_open(void) {
    text_table *t = calloc(1, sizeof *t);
    if (t == NULL)
        complain("out of memory for a table");
    return t;
}

void text_table_close(text_table **table) {
    text_table *t = *table;
    *table = NULL;
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->column_count; i++) {
        free(t->columns[i].above);
        free(t->columns[i].head);
    }
    for (size_t i = 0; i < t->row_count; i++)
        for (size_t k = 0; k < t->rows[i].count; k++)
            free(t->rows[i].cells[k]);
    free(t->rows);
    free(t);
}

void text_table_column(text_table *t, text_align align, int rank, const char *above,
                       const char *head) {
    if (t == NULL || t->column_count == COLUMNS_MAX)
        return;
    column *c = &t->columns[t->column_count++];
    *c = (column){strdup(above), strdup(head), align, rank};
    t->failed = t->failed || c->above == NULL || c->head == NULL;
}

void text_table_row(text_table *t) {
    if (t == NULL || t->failed)
        return;
    if (t->row_count == t->row_room) {
        size_t room = t->row_room > 0 ? 2 * t->row_room : 16;
        row *rows = realloc(t->rows, room * sizeof *rows);
        t->failed = rows == NULL;
        if (t->failed)
            return;
        t->rows = rows;
        t->row_room = room;
    }
    t->rows[t->row_count++] = (row){0};
}

static void put(text_table *t, const char *format, va_list arguments) {
    if (t == NULL || t->failed)
        return;
    row *r = &t->rows[t->row_count - 1];
    if (r->count == t->column_count)
        return;
    r->cells[r->count] = shown_format(format, arguments);
    t->failed = r->cells[r->count] == NULL;
    r->count += !t->failed;
}

void text_table_put(text_table *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put(t, format, arguments);
    va_end(arguments);
}

void text_table_put_rest(text_table *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put(t, format, arguments);
    va_end(arguments);
    if (t != NULL && !t->failed)
        t->rows[t->row_count - 1].rest = true;
}

/* ---- what fits ---- */

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t column_width(const text_table *t, size_t index) {
    const column *c = &t->columns[index];
    size_t width = larger(text_width(c->above), text_width(c->head));
    for (size_t i = 0; i < t->row_count; i++) {
        const row *r = &t->rows[i];
        if (index < r->count && !(r->rest && index + 1 == r->count))
            width = larger(width, text_width(r->cells[index]));
    }
    return width;
}

/* Of the columns that are shown; what fills the line counts with its least width. */
static size_t table_width(const text_table *t, const size_t *widths, const bool *shown) {
    size_t width = 0, columns = 0;
    for (size_t i = 0; i < t->column_count; i++) {
        bool fills = t->columns[i].align == ALIGN_FILL && widths[i] > FILL_MIN;
        if (shown[i])
            width += fills ? (size_t)FILL_MIN : widths[i];
        columns += shown[i];
    }
    return columns > 0 ? width + GAP * (columns - 1) : 0;
}

/* The shown column that can be spared first, of equals the last; column_count: none can. */
static size_t least_important(const text_table *t, const bool *shown) {
    size_t found = t->column_count;
    for (size_t i = 0; i < t->column_count; i++)
        if (shown[i] && t->columns[i].rank > 0 &&
            (found == t->column_count || t->columns[i].rank >= t->columns[found].rank))
            found = i;
    return found;
}

static void choose_columns(const text_table *t, size_t *widths, bool *shown, size_t width) {
    size_t dropped = 0;
    for (size_t i = 0; i < t->column_count; i++) {
        widths[i] = column_width(t, i);
        shown[i] = true;
    }
    while (table_width(t, widths, shown) > width &&
           (dropped = least_important(t, shown)) < t->column_count)
        shown[dropped] = false;
    size_t taken = table_width(t, widths, shown);
    for (size_t i = 0; i < t->column_count; i++)
        if (shown[i] && t->columns[i].align == ALIGN_FILL && widths[i] > FILL_MIN && taken < width)
            widths[i] = widths[i] - FILL_MIN < width - taken ? widths[i] : FILL_MIN + width - taken;
}

/* ---- printing ---- */

/* Blanks before the next text; none are printed at the end of a line. */
typedef struct pen {
    FILE *out;
    size_t blanks;
    bool begun;
} pen;

static void print_text(pen *p, const char *text, size_t bytes) {
    if (bytes == 0)
        return;
    fprintf(p->out, "%*s%.*s", (int)p->blanks, "", (int)bytes, text);
    p->blanks = 0;
}

/* Text in so many columns; what is longer ends in "...". */
static void print_cell(pen *p, const char *text, size_t width, text_align align) {
    size_t length = text_width(text), padding = width > length ? width - length : 0;
    p->blanks += (p->begun ? (size_t)GAP : 0) + (align == ALIGN_RIGHT ? padding : 0);
    p->begun = true;
    bool cut = align == ALIGN_FILL && length > width;
    print_text(p, text, cut ? text_bytes(text, width - 3) : strlen(text));
    if (cut)
        print_text(p, "...", 3);
    p->blanks += align == ALIGN_RIGHT ? 0 : padding;
}

static void print_head(const text_table *t, FILE *out, const size_t *widths, const bool *shown,
                       bool above) {
    pen p = {.out = out};
    for (size_t i = 0; i < t->column_count; i++)
        if (shown[i])
            print_cell(&p, above ? t->columns[i].above : t->columns[i].head, widths[i],
                       t->columns[i].align);
    fputc('\n', out);
}

static void print_row(const text_table *t, FILE *out, const row *r, const size_t *widths,
                      const bool *shown) {
    pen p = {.out = out};
    for (size_t i = 0; i < r->count; i++) {
        bool rest = r->rest && i + 1 == r->count;
        if (rest)
            print_cell(&p, r->cells[i], 0, ALIGN_LEFT);
        else if (shown[i])
            print_cell(&p, r->cells[i], widths[i], t->columns[i].align);
    }
    fputc('\n', out);
}

static void print_left_out(const text_table *t, const bool *shown, size_t width) {
    char names[1024] = "";
    for (size_t i = 0; i < t->column_count; i++) {
        const column *c = &t->columns[i];
        size_t used = strlen(names);
        if (!shown[i])
            snprintf(names + used, sizeof names - used, "%s%s%s%s", used > 0 ? ", " : "", c->above,
                     c->above[0] != '\0' ? " " : "", c->head);
    }
    if (names[0] != '\0')
        print_wrapped("left out (--wide shows all): ", names, width);
}

static void print(const text_table *t, FILE *out, size_t width, bool *shown) {
    size_t widths[COLUMNS_MAX];
    bool has_above = false;
    choose_columns(t, widths, shown, width);
    for (size_t i = 0; i < t->column_count; i++)
        has_above = has_above || (shown[i] && t->columns[i].above[0] != '\0');
    if (has_above)
        print_head(t, out, widths, shown, true);
    print_head(t, out, widths, shown, false);
    for (size_t i = 0; i < t->row_count; i++)
        print_row(t, out, &t->rows[i], widths, shown);
}

void text_table_print(const text_table *t, size_t width) {
    bool shown[COLUMNS_MAX];
    if (t == NULL)
        return;
    if (t->failed) {
        complain("out of memory for a table");
        return;
    }
    print(t, stdout, width, shown);
    print_left_out(t, shown, width);
}

void text_table_draw(const text_table *t, FILE *out, size_t width) {
    bool shown[COLUMNS_MAX];
    if (t != NULL && !t->failed)
        print(t, out, width, shown);
}
