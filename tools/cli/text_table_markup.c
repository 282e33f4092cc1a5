/* text_table_markup.c - a table as Markdown or LaTeX; see text_table.h. */
#include <string.h>

#include "cli/complain.h"
#include "cli/text_table_parts.h"

/* Bytes of UTF-8 that LaTeX sets best by a command, and those that mean something to it. */
static void put_latex(FILE *out, const char *text) {
    static const char plus_minus[] = "±";
    for (; *text != '\0'; text++) {
        if (strncmp(text, plus_minus, sizeof plus_minus - 1) == 0) {
            fputs("$\\pm$", out);
            text += sizeof plus_minus - 2;
        } else if (*text == '\\') {
            fputs("\\textbackslash{}", out);
        } else if (*text == '~' || *text == '^') {
            fprintf(out, "\\%c{}", *text);
        } else if (strchr("%&#_${}", *text) != NULL) {
            fprintf(out, "\\%c", *text);
        } else {
            fputc(*text, out);
        }
    }
}

static void put_markdown(FILE *out, const char *text) {
    for (; *text != '\0'; text++)
        fprintf(out, strchr("|\\`*_<>", *text) != NULL ? "\\%c" : "%c", *text);
}

typedef struct marks {
    const char *begin, *between, *end; /* of a row */
    void (*put)(FILE *out, const char *text);
} marks;
static const marks all_marks[] = {[MARKUP_MARKDOWN] = {"| ", " | ", " |\n", put_markdown},
                                  [MARKUP_LATEX] = {"", " & ", " \\\\\n", put_latex}};

static void put_heads(const text_table *t, FILE *out, const marks *m, int rank) {
    fputs(m->begin, out);
    for (size_t i = 0, shown = 0; i < t->column_count; i++) {
        const column *c = &t->columns[i];
        if (c->rank > rank)
            continue;
        fputs(shown++ > 0 ? m->between : "", out);
        m->put(out, c->above);
        fputs(c->above[0] != '\0' && c->head[0] != '\0' ? " " : "", out);
        m->put(out, c->head);
    }
    fputs(m->end, out);
}

static void put_row(const text_table *t, const row *r, FILE *out, const marks *m, int rank) {
    fputs(m->begin, out);
    for (size_t i = 0, shown = 0; i < t->column_count; i++) {
        if (t->columns[i].rank > rank)
            continue;
        fputs(shown++ > 0 ? m->between : "", out);
        m->put(out, i < r->count ? r->cells[i] : "");
    }
    fputs(m->end, out);
}

/* A mark for each column. */
static void put_alignment(const text_table *t, FILE *out, int rank, const char *right,
                          const char *left) {
    for (size_t i = 0; i < t->column_count; i++)
        if (t->columns[i].rank <= rank)
            fputs(t->columns[i].align == ALIGN_RIGHT ? right : left, out);
}

void text_table_write(const text_table *t, FILE *out, table_markup markup, int rank) {
    const marks *m = &all_marks[markup];
    if (t == NULL)
        return;
    if (t->failed) {
        complain("out of memory for a table");
        return;
    }
    if (markup == MARKUP_LATEX) {
        fputs("\\begin{tabular}{", out);
        put_alignment(t, out, rank, "r", "l");
        fputs("}\n\\toprule\n", out);
        put_heads(t, out, m, rank);
        fputs("\\midrule\n", out);
    } else {
        put_heads(t, out, m, rank);
        put_alignment(t, out, rank, "| ---: ", "| --- ");
        fputs("|\n", out);
    }
    for (size_t i = 0; i < t->row_count; i++)
        put_row(t, &t->rows[i], out, m, rank);
    if (markup == MARKUP_LATEX)
        fputs("\\bottomrule\n\\end{tabular}\n", out);
}
