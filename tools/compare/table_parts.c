/* table_parts.c - columns and cells that tables share; see comparison_table.h. */
#include <stdlib.h>
#include <string.h>

#include "compare/comparison_table.h"
#include "compare/sweep.h"

/* "learning_rate" */
void add_swept_columns(text_table *t, json_t *keys) {
    size_t i;
    json_t *key;
    json_array_foreach(keys, i, key) {
        const char *path = json_string_value(key), *dot = strrchr(path, '.');
        text_table_column(t, ALIGN_RIGHT, 0, "", dot != NULL ? dot + 1 : path);
    }
}

void put_swept(text_table *t, const contender *r, json_t *keys) {
    size_t i;
    json_t *key;
    json_array_foreach(keys, i, key) {
        json_t *value = contender_swept(r, json_string_value(key));
        char *text = value != NULL ? swept_text(value) : NULL;
        text_table_put(t, "%s", text != NULL ? text : "-");
        free(text);
    }
}

void add_metric_column(text_table *t, const metric *m, int rank) {
    text_table_column(t, ALIGN_RIGHT, rank, m->above, m->head);
}
