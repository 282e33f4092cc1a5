/* comparison_table.h - the tables of `starling compare`. */
#ifndef COMPARISON_TABLE_H
#define COMPARISON_TABLE_H

#include "cli/text_table.h"
#include "compare/best.h"

/* All of them and their notes, as wide as the terminal, or with all columns. */
void comparison_print(const comparison *c, const view *v);
/* The same tables as compare.md and compare.tex in the study's folder. */
int comparison_write(const comparison *c, const view *v, sl_error *error);

/* A row for each variant. */
text_table *variants_table(const comparison *c, const view *v);
/* The best of each method, where something is swept; and their differences from one of them, where
 * there are seeds. NULL: there is nothing to tell. */
text_table *best_table(const comparison *c, const view *v);
text_table *apart_table(const comparison *c, const view *v);

/* Columns and cells that these tables share. */
void add_swept_columns(text_table *t, json_t *keys);
void put_swept(text_table *t, const contender *r, json_t *keys);
void add_metric_column(text_table *t, const metric *m, int rank);

/* What a round is made of, and the fastest forms of all-reduce: below the tables. */
void comparison_print_rounds(const comparison *c, size_t width);

#endif
