/* models.c - the models whose gradients checkvec repeats and times. */
#include <stdio.h>
#include <stdlib.h>

#include "checkvec.h"

bool open_network(sl_network *net, const target *t, const model_row *m) {
    sl_layers table;
    sl_error error;
    const bool good = sl_model_build(&table, &m->model, m->in, m->classes, "noise", &error) == 0 &&
                      sl_network_open(net, &table, t->vec, m->rows, &error) == 0;
    if (!good)
        printf("# %s: %s\n", m->name, error.text);
    return good;
}

float *initial_model(const target *t, const sl_network *net) {
    float *start = host_vector(net->table.dimension);
    sl_layers_initial(&net->table, 1, start);
    float *x = upload(t, start, net->table.dimension);
    free(start);
    return x;
}

void fill_batch(sl_network *net, const model_row *m, size_t number) {
    const bool is_text = sl_model_takes_text(m->model.kind);
    for (size_t i = 0; i < m->rows * sl_shape_size(m->in); i++)
        net->input[i] = is_text ? (float)((i * 31 + number) % m->classes)
                                : (float)((i * 7 + number * 13) % 19) / 19;
    for (size_t i = 0; i < m->rows * net->positions; i++)
        net->labels[i] = (uint16_t)((i * 7 + number) % m->classes);
}
