/* page.c - see page.h. */
#include "check/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/complain.h"
#include "cli/text_table.h"

enum { LABEL = 20, INDENT = 2 };

typedef enum row_kind { ROW_BEGIN, ROW_HEADING, ROW_TEXT, ROW_LINE, ROW_END } row_kind;

typedef struct row {
    row_kind kind;
    bool is_detail;
    char label[LABEL + 1];
    char *text;
} row;

struct page {
    row *rows; /* (count) */
    size_t count, room;
    char heading[64]; /* of the next row; "": it is printed */
    bool failed;      /* out of memory */
};

page *page_open(void) {
    page *p = calloc(1, sizeof *p);
    if (p == NULL)
        complain("out of memory for what there is to say");
    return p;
}

void page_close(page **p) {
    if (*p == NULL)
        return;
    for (size_t i = 0; i < (*p)->count; i++)
        free((*p)->rows[i].text);
    free((*p)->rows);
    free(*p);
    *p = NULL;
}

/* Takes the text. */
static void append(page *p, row_kind kind, bool is_detail, const char *label, char *text) {
    if (p->count == p->room && !p->failed) {
        row *rows = realloc(p->rows, (2 * p->room + 32) * sizeof *rows);
        p->failed = rows == NULL;
        p->rows = rows != NULL ? rows : p->rows;
        p->room = rows != NULL ? 2 * p->room + 32 : p->room;
    }
    if (p->failed || text == NULL) {
        p->failed = true;
        free(text);
        return;
    }
    row *r = &p->rows[p->count++];
    *r = (row){.kind = kind, .is_detail = is_detail, .text = text};
    snprintf(r->label, sizeof r->label, "%s", label);
}

static void say(page *p, row_kind kind, bool is_detail, const char *label, const char *format,
                va_list arguments) {
    if (p == NULL)
        return;
    if (p->heading[0] != '\0' && kind != ROW_END)
        append(p, ROW_HEADING, false, "", strdup(p->heading));
    p->heading[0] = '\0';
    append(p, kind, is_detail, label, shown_format(format, arguments));
}

#define SAY(p, kind, is_detail, label, format)                                                     \
    do {                                                                                           \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        say(p, kind, is_detail, label, format, arguments);                                         \
        va_end(arguments);                                                                         \
    } while (0)

void page_heading(page *p, const char *heading) {
    if (p != NULL)
        snprintf(p->heading, sizeof p->heading, "%s", heading);
}

void page_say(page *p, const char *label, const char *format, ...) {
    SAY(p, ROW_TEXT, false, label, format);
}

void page_detail(page *p, const char *label, const char *format, ...) {
    SAY(p, ROW_TEXT, true, label, format);
}

void page_line(page *p, bool is_detail, const char *format, ...) {
    SAY(p, ROW_LINE, is_detail, "", format);
}

void page_begin(page *p, const char *format, ...) {
    SAY(p, ROW_BEGIN, false, "", format);
}

void page_end(page *p, const char *format, ...) {
    SAY(p, ROW_END, false, "", format);
}

/* ---- lines ---- */

static size_t columns(void) {
    const size_t width = isatty(STDOUT_FILENO) ? output_width(false) : PAGE_COLUMNS;
    return width < PAGE_COLUMNS ? width : PAGE_COLUMNS;
}

static size_t head_of(const row *r) {
    return r->kind == ROW_TEXT ? INDENT + LABEL : r->kind == ROW_LINE ? INDENT : 0;
}

/* Lines that print_wrapped makes of the text. */
static size_t lines_of(const row *r, size_t width) {
    const size_t indent = head_of(r);
    size_t lines = 1, at = indent;
    if (r->kind == ROW_LINE)
        return 1;
    for (const char *text = r->text; *text != '\0'; text += strspn(text, " ")) {
        const size_t bytes = strcspn(text, " "), word = text_width(text) - text_width(text + bytes);
        const bool fits = at == indent || (word < width && at + 1 <= width - word);
        at = (at == indent || !fits ? indent : at + 1) + word;
        lines += !fits;
        text += bytes;
    }
    /* a blank line before a heading and before the end */
    return lines + (r->kind == ROW_HEADING || r->kind == ROW_END);
}

static void print_row(const row *r, size_t width) {
    char head[INDENT + LABEL + 1] = "";
    if (r->kind == ROW_HEADING || r->kind == ROW_END)
        putchar('\n');
    if (r->kind == ROW_TEXT)
        snprintf(head, sizeof head, "%*s%-*s", INDENT, "", LABEL, r->label);
    else if (r->kind == ROW_LINE) {
        printf("%*s%s\n", INDENT, "", r->text);
        return;
    }
    print_wrapped(head, r->text, width);
}

/* How many lines are too many. */
static size_t excess(const page *p, size_t width) {
    size_t lines = 0;
    for (size_t i = 0; i < p->count; i++)
        lines += lines_of(&p->rows[i], width);
    return lines > PAGE_LINES ? lines - PAGE_LINES : 0;
}

/* Is any row below the heading kept? */
static bool is_kept(const page *p, size_t at, size_t first) {
    if (p->rows[at].kind != ROW_HEADING)
        return !(p->rows[at].is_detail && at >= first);
    bool kept = false;
    for (size_t i = at + 1; i < p->count && p->rows[i].kind != ROW_HEADING; i++)
        kept = kept || (p->rows[i].kind != ROW_END && is_kept(p, i, first));
    return kept;
}

void page_print(const page *p, bool whole) {
    if (p == NULL)
        return;
    if (p->failed) {
        complain("out of memory for what there is to say");
        return;
    }
    const size_t width = columns();
    size_t over = whole ? 0 : excess(p, width), left_out = 0, first = p->count;
    over += over > 0 ? 2 : 0; /* the line that says so, and a blank one */
    for (; first > 0 && over > 0; first--) {
        const row *r = &p->rows[first - 1];
        const size_t lines = r->is_detail ? lines_of(r, width) : 0;
        left_out += r->is_detail;
        over -= lines < over ? lines : over;
    }
    for (size_t i = 0; i < p->count; i++) {
        if (p->rows[i].kind == ROW_END && left_out > 0)
            printf("\n%zu more lines: --all\n", left_out);
        if (is_kept(p, i, first))
            print_row(&p->rows[i], width);
    }
}
