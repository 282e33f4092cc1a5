/* layer_table.h - models of others as tables: the tensors of each, in their order, and what a
 * sample costs. Sizes and times follow from these, without a network that could be trained. */
#ifndef SL_LEARNER_LAYER_TABLE_H
#define SL_LEARNER_LAYER_TABLE_H

#include "starling/error.h"
#include "starling/model.h"
#include "starling/tensors.h"

typedef struct sl_table_name {
    char text[96];
} sl_table_name;

typedef struct sl_layer_table {
    sl_tensor *tensors;   /* (count) */
    sl_table_name *names; /* (count) */
    size_t count, room;
    size_t dimension; /* parameters */
    double products;  /* multiplications, with an addition each, that a sample takes forward */
    sl_error error;   /* the first; code 0: none */
} sl_layer_table;

int sl_layer_table_open(sl_layer_table *out, sl_layer_table_kind kind, sl_error *error);
void sl_layer_table_close(sl_layer_table *table);
const char *sl_layer_table_name(sl_layer_table_kind kind);

#endif
