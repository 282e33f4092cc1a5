/* layers.c - the table of layers over device memory, the loss, and the sums that all layers use;
 * see learner/layers/layer.h. */
#include "gpu/layers.h"

#include <pthread.h>
#include <stdio.h>

#include "gpu/memory.h"
#include "gpu/vec.h"

static const sl_layer_ops *const kinds[] = {
#define ROW(kind, name, text) &name##_layer,
    SL_LAYER_TABLE(ROW)
#undef ROW
};

/* ---- sums over rows ---- */

size_t sums_floats(size_t groups, size_t columns) {
    size_t rows = groups;
    while (groups > 1)
        rows += groups = slices_of(groups);
    return 2 * (rows + 1) * columns;
}

double *finish_sums(double *parts, size_t groups, size_t columns, double *total, float *rounded) {
    for (;;) {
        const size_t left = slices_of(groups);
        double *out = left == 1 && total != NULL ? total : parts + groups * columns;
        launch_add_rows(&(add_rows_args){parts, out, left == 1 ? rounded : NULL, (uint32_t)groups,
                                         (uint32_t)columns},
                        left * columns);
        if (left == 1)
            return out;
        parts = out;
        groups = left;
    }
}

/* ---- the loss ---- */

static size_t loss_scratch(uint32_t rows) {
    return sums_floats(rows, 2);
}

static void find_all_losses(const sl_loss_call *c) {
    double *found = as_doubles(c->scratch);
    device_expect(c->z);
    device_expect(c->labels);
    launch_find_loss(&(find_loss_args){c->z, c->labels, found, c->rows, c->classes, c->gradient},
                     row_blocks(c->rows));
    finish_sums(found, c->rows, 2, c->result, NULL);
}

/* ---- the table: checks arguments, then calls the kind ---- */

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    return kinds[layer->kind]->memory(layer, rows);
}

static void expect(const void *const *all, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (all[i] != NULL)
            device_expect(all[i]);
}

static void forward(const sl_layer_call *c) {
    expect((const void *const[]){c->w, c->in, c->shortcut, c->out, c->saved, c->kept, c->scratch},
           7);
    kinds[c->layer->kind]->forward(c);
}

static void backward(const sl_layer_call *c) {
    expect((const void *const[]){c->w, c->in, c->out, c->saved, c->scratch, c->g, c->d_out, c->d_in,
                                 c->d_shortcut},
           9);
    kinds[c->layer->kind]->backward(c);
}

/* Their work space counts as device memory, as vectors do. */
static int open_products(sl_error *error) {
    char text[DEVICE_TEXT_MAX];
    void *space = memory_take(device_product_bytes());
    if (space == NULL)
        return SL_ENOMEM;
    if (device_open_products(space, text))
        return 0;
    memory_give_back(space);
    return vec_fail(error, text);
}

/* With the first network of the process. */
static int open_backend(sl_error *error) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool is_open;
    pthread_mutex_lock(&mutex);
    const int result = is_open ? 0 : open_products(error);
    is_open = result == 0;
    pthread_mutex_unlock(&mutex);
    return result;
}

const sl_layer_backend *layers_backend(void) {
    static const sl_layer_ops any = {memory, forward, backward};
    static const sl_layer_ops *table[SL_LAYER_KINDS];
    for (size_t k = 0; k < SL_LAYER_KINDS; k++)
        table[k] = kinds[k] != NULL ? &any : NULL;
    static const sl_layer_backend backend = {table, loss_scratch, find_all_losses, open_backend};
    return &backend;
}
