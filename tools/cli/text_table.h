/* text_table.h - a table for people, as wide as the terminal: it drops columns, the least important
 * first, and shortens its last one, until it fits. */
#ifndef TEXT_TABLE_H
#define TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Columns of the terminal; SIZE_MAX: no limit. `wide` asks for all. Otherwise COLUMNS says it, then
 * the terminal; 80 where standard output is none. */
size_t output_width(bool wide);
/* Columns that UTF-8 text takes. */
size_t text_width(const char *text);
/* Bytes of its first so many columns. */
size_t text_bytes(const char *text, size_t columns);

/* `head`, then `text` broken between words, its lines indented below its first. */
void print_wrapped(const char *head, const char *text, size_t width);

typedef struct text_table text_table;

/* NULL: out of memory. The other functions then do nothing. */
text_table *text_table_open(void);
void text_table_close(text_table **t);

typedef enum text_align { ALIGN_RIGHT, ALIGN_LEFT, ALIGN_FILL } text_align;
/* One more column, before the first row. Of two columns the one with the larger `rank` is dropped
 * first; rank 0 stays. `above` and `head` are the two lines of its head, copied.
 * ALIGN_FILL, for the last one: left, and shortened where the line is full. */
void text_table_column(text_table *t, text_align align, int rank, const char *above,
                       const char *head);
/* Begins a row. */
void text_table_row(text_table *t);
/* The row's next cell. */
void text_table_put(text_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next cell runs to the end of the row, whatever the width of its column. */
void text_table_put_rest(text_table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints it, and a line that names what was left out. */
void text_table_print(const text_table *t, size_t width);
/* The same without that line, as a part of something else; nothing where memory was out. */
void text_table_draw(const text_table *t, FILE *out, size_t width);

typedef enum table_markup { MARKUP_MARKDOWN, MARKUP_LATEX } table_markup;
/* Its columns of at most this rank, for another program to set; LaTeX with the rules of its package
 * booktabs. */
void text_table_write(const text_table *t, FILE *out, table_markup markup, int rank);

#endif
