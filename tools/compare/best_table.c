/* best_table.c - the best of each method, and how far others are from one of them; see
 * comparison_table.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compare/comparison_table.h"
#include "compare/differing.h"

static const char *const told[] = {"accuracy", "loss", "rounds_to_target", "mb_to_target"};
enum { TOLD = sizeof told / sizeof *told };

text_table *best_table(const comparison *c, const view *v) {
    json_t *keys = swept_keys(c);
    bool *shown = calloc(c->count, sizeof *shown);
    text_table *t = json_array_size(keys) > 0 && shown != NULL ? text_table_open() : NULL;
    if (t != NULL) {
        best_find(c, v->by, shown);
        text_table_column(t, ALIGN_LEFT, 0, "", "best of each");
        add_swept_columns(t, keys);
        text_table_column(t, ALIGN_RIGHT, 0, "", "n");
        for (size_t i = 0; i < TOLD; i++)
            add_metric_column(t, metric_find(told[i]), (int)i);
    }
    for (size_t i = 0; i < c->count && t != NULL; i++) {
        const contender *r = &c->items[i];
        const size_t done = contender_done(c, r);
        char text[STATISTIC_BYTES];
        if (!shown[i] || contender_skipped(r))
            continue;
        text_table_row(t);
        text_table_put(t, "%s", r->variant->method);
        put_swept(t, r, keys);
        text_table_put(t, "%zu", done);
        for (size_t m = 0; m < TOLD; m++) {
            const metric *row = metric_find(told[m]);
            const statistic s = metric_over(c, r, row);
            statistic_text(text, &s, v->over, row->style, done);
            text_table_put(t, "%s", text);
        }
    }
    json_decref(keys);
    free(shown);
    return t;
}

/* "+0.012 ± 0.004" */
static void put_apart(text_table *t, const comparison *c, const contender *r,
                      const contender *other, const metric *m, const view *v) {
    char text[STATISTIC_BYTES];
    const statistic s = metric_apart(c, r, other, m);
    statistic_text(text, &s, v->over, m->style, s.count);
    const double middle = v->over == STATISTIC_MEAN ? s.mean : s.median;
    text_table_put(t, "%s%s", middle > 0 ? "+" : "", text);
}

text_table *apart_table(const comparison *c, const view *v) {
    json_t *keys = swept_keys(c);
    bool *shown = calloc(c->count, sizeof *shown);
    text_table *t = NULL;
    size_t rows = 0;
    if (shown != NULL)
        best_find(c, v->by, shown);
    for (size_t i = 0; i < c->count && shown != NULL && c->seeds > 1; i++) {
        const contender *r = &c->items[i],
                        *other = shown[i] ? best_against(c, r, v->against, shown) : NULL;
        if (other == NULL || contender_skipped(r) ||
            metric_apart(c, r, other, metric_find("loss")).count == 0)
            continue;
        if (rows++ == 0) {
            t = text_table_open();
            text_table_column(t, ALIGN_LEFT, 0, "minus", other->variant->method);
            add_swept_columns(t, keys);
            text_table_column(t, ALIGN_RIGHT, 0, "", "n");
            for (size_t m = 0; m < TOLD; m++)
                add_metric_column(t, metric_find(told[m]), (int)m);
        }
        text_table_row(t);
        text_table_put(t, "%s", r->variant->method);
        put_swept(t, r, keys);
        text_table_put(t, "%zu", metric_apart(c, r, other, metric_find("loss")).count);
        for (size_t m = 0; m < TOLD; m++)
            put_apart(t, c, r, other, metric_find(told[m]), v);
    }
    json_decref(keys);
    free(shown);
    return t;
}
