/* network.c - forward and backward through a table of layers; see network.h. */
#include "learner/layers/network.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"

#define ALIGNED(count) sl_round_up(count, SL_VEC_ALIGNMENT / sizeof(float)) /* floats */

/* ---- working memory ---- */

/* Which buffer holds each activation's gradient, and how large each must be. */
typedef struct delta_plan {
    size_t buffers[SL_LAYERS_MAX + 1]; /* of activation i; count: none yet */
    size_t sizes[SL_LAYERS_MAX + 1], count;
    bool taken[SL_LAYERS_MAX + 1];
} delta_plan;

#define NO_BUFFER SIZE_MAX

static void take_buffer(delta_plan *plan, uint32_t activation, size_t size) {
    if (activation == 0 || plan->buffers[activation] != NO_BUFFER)
        return;
    size_t b = 0;
    while (b < plan->count && plan->taken[b])
        b++;
    plan->count += b == plan->count;
    plan->taken[b] = true;
    plan->sizes[b] = size > plan->sizes[b] ? size : plan->sizes[b];
    plan->buffers[activation] = b;
}

/* Walks backwards. A layer's inputs get buffers while its output's buffer is in use; then that one
 * is free. */
static void plan_deltas(delta_plan *plan, const sl_network *net) {
    *plan = (delta_plan){0};
    for (size_t i = 0; i <= net->table.count; i++)
        plan->buffers[i] = NO_BUFFER;
    for (size_t l = net->table.count; l > 0; l--) {
        const sl_layer *layer = &net->table.items[l - 1];
        take_buffer(plan, layer->input, ALIGNED(net->rows_max * sl_shape_size(layer->in)));
        take_buffer(
            plan, layer->shortcut,
            ALIGNED(net->rows_max * sl_shape_size(sl_layers_shape(&net->table, layer->shortcut))));
        if (plan->buffers[l] != NO_BUFFER) /* the last activation becomes its own gradient */
            plan->taken[plan->buffers[l]] = false;
    }
}

/* Takes the next `floats` of `work`; NULL while they are only counted. */
static float *take(float *work, size_t *used, size_t floats) {
    float *at = work == NULL ? NULL : work + *used;
    *used += ALIGNED(floats);
    return at;
}

static double *take_doubles(float *work, size_t *used, size_t count) {
    return (double *)(void *)take(work, used, 2 * count);
}

static sl_layer_memory memory_of(const sl_network *net, size_t l) {
    return net->backend->kinds[net->table.items[l].kind]->memory(&net->table.items[l],
                                                                 net->rows_max);
}

/* Places everything in `work` and returns how many floats it takes. With NULL it only counts. */
static size_t lay_out(sl_network *net, const delta_plan *plan, float *work) {
    float *deltas[SL_LAYERS_MAX + 1];
    size_t used = 0, scratch = net->backend->loss_scratch(net->rows_max * net->positions);
    for (uint32_t i = 0; i <= net->table.count; i++)
        net->activations[i] =
            take(work, &used, net->rows_max * sl_shape_size(sl_layers_shape(&net->table, i)));
    for (size_t b = 0; b < plan->count; b++)
        deltas[b] = take(work, &used, plan->sizes[b]);
    for (size_t i = 0; i <= net->table.count; i++)
        net->deltas[i] = plan->buffers[i] == NO_BUFFER ? NULL : deltas[plan->buffers[i]];
    for (size_t l = 0; l < net->table.count; l++) {
        sl_layer_memory m = memory_of(net, l);
        net->saved[l] = take(work, &used, m.saved);
        scratch = m.scratch > scratch ? m.scratch : scratch;
    }
    net->scratch = take(work, &used, scratch);
    net->result = take_doubles(work, &used, 2);
    net->labels_there =
        (uint16_t *)(void *)take(work, &used, ((size_t)net->rows_max * net->positions + 1) / 2);
    net->statistics = take(work, &used, 0);
    const size_t before = used;
    for (size_t l = 0; l < net->table.count; l++)
        net->kept[l] = take_doubles(work, &used, memory_of(net, l).kept);
    net->statistics_count = used - before;
    return used;
}

/* Allocates the caller's input: in place, or in host memory that a device can read. */
static bool open_input(sl_network *net) {
    if (net->vec->on_host) {
        net->input = net->activations[0];
        net->labels = net->labels_there;
        return true;
    }
    net->input = net->vec->allocate_host(net->rows_max * sl_shape_size(net->table.input) *
                                         sizeof *net->input);
    net->labels =
        net->vec->allocate_host((size_t)net->rows_max * net->positions * sizeof *net->labels);
    net->taken = net->vec->async->event_open();
    const char *wanted = getenv("STARLING_GRAPHS");
    net->repeats = wanted == NULL || strcmp(wanted, "0") != 0;
    return net->input != NULL && net->labels != NULL && net->taken != NULL;
}

static int allocate_work(sl_network *net, sl_error *error) {
    delta_plan plan;
    plan_deltas(&plan, net);
    size_t floats = lay_out(net, &plan, NULL);
    if (floats > SL_NETWORK_WORK_MAX)
        return sl_fail(error, SL_EINVAL,
                       "model: a batch of %u needs %zu floats of working memory; at most %zu are "
                       "allowed, use a smaller batch",
                       net->rows_max, floats, SL_NETWORK_WORK_MAX);
    net->work_floats = floats;
    net->work = net->vec->allocate(floats);
    if (net->work == NULL)
        return sl_vec_no_memory(net->vec, error, "model: working memory for %u samples at a time",
                                net->rows_max);
    lay_out(net, &plan, net->work);
    return open_input(net) ? 0
                           : sl_fail(error, SL_ENOMEM,
                                     "model: out of host memory for a batch of %u", net->rows_max);
}

size_t sl_network_row_floats(const sl_layers *table) {
    size_t floats = sl_shape_size(table->input);
    for (size_t l = 0; l < table->count; l++)
        floats +=
            sl_shape_size(table->items[l].out) +
            sl_layer_backend_cpu()->kinds[table->items[l].kind]->memory(&table->items[l], 1).saved;
    return floats;
}

static int check_kinds(const sl_network *net, sl_error *error) {
    for (size_t l = 0; l < net->table.count; l++)
        if (net->backend->kinds[net->table.items[l].kind] == NULL)
            return sl_fail(error, SL_EINVAL,
                           "model: %s has no kernel for layer %zu, %s; use device \"cpu\"",
                           net->vec->name, l + 1, sl_layer_name(net->table.items[l].kind));
    return 0;
}

static int open_backend(const sl_network *net, sl_error *error) {
    const int result = net->backend->open != NULL ? net->backend->open(error) : 0;
    return result == SL_ENOMEM
               ? sl_vec_no_memory(net->vec, error, "model: working memory of matrix products")
               : result;
}

int sl_network_open(sl_network *out, const sl_layers *table, const sl_vec_ops *vec,
                    uint32_t rows_max, sl_error *error) {
    assert(table->count > 0 && rows_max > 0);
    sl_shape end = sl_layers_shape(table, sl_layers_last(table));
    sl_network net = {.table = *table,
                      .vec = vec,
                      .backend = vec->on_host ? sl_layer_backend_cpu() : vec->layers,
                      .rows_max = rows_max};
    net.positions = end.height * end.width;
    net.classes = end.channels;
    int result = check_kinds(&net, error);
    if (result == 0)
        result = allocate_work(&net, error);
    if (result == 0)
        result = open_backend(&net, error);
    if (result != 0)
        sl_network_close(&net);
    else
        *out = net;
    return result;
}

void sl_network_close(sl_network *network) {
    if (network->vec != NULL && !network->vec->on_host) {
        network->vec->release_host(network->input);
        network->vec->release_host(network->labels);
        network->vec->async->event_close(network->taken);
        for (size_t l = 0; l < network->table.count; l++)
            network->vec->async->event_close(network->passed[l]);
        for (size_t i = 0; i < 2; i++)
            network->vec->async->graph_close(network->latest[i].graph);
    }
    if (network->work != NULL)
        network->vec->release(network->work);
    *network = (sl_network){0};
}

/* ---- passes ---- */

static sl_layer_call call_of(const sl_network *net, size_t l, sl_pass pass, uint32_t rows,
                             const float *x) {
    const sl_layer *layer = &net->table.items[l];
    return (sl_layer_call){.layer = layer,
                           .pass = pass,
                           .rows = rows,
                           .w = x + layer->offset,
                           .in = net->activations[layer->input],
                           .shortcut =
                               layer->shortcut != 0 ? net->activations[layer->shortcut] : NULL,
                           .shortcut_shape = sl_layers_shape(&net->table, layer->shortcut),
                           .out = net->activations[l + 1],
                           .saved = net->saved[l],
                           .kept = net->kept[l],
                           .scratch = net->scratch};
}

/* To the device. */
static void send_batch(sl_network *net, uint32_t rows) {
    assert(rows > 0 && rows <= net->rows_max);
    if (net->vec->on_host)
        return;
    net->vec->copy_in_later(net->activations[0], net->input,
                            rows * sl_shape_size(net->table.input) * sizeof *net->input);
    net->vec->copy_in_later(net->labels_there, net->labels,
                            (size_t)rows * net->positions * sizeof *net->labels);
    net->vec->async->event_record(net->taken);
}

/* The last activation is returned. */
static float *forward(sl_network *net, sl_pass pass, uint32_t rows, const float *x) {
    for (size_t l = 0; l < net->table.count; l++) {
        sl_layer_call call = call_of(net, l, pass, rows, x);
        net->backend->kinds[call.layer->kind]->forward(&call);
    }
    return net->activations[net->table.count];
}

/* Into net->result, from the outputs z. */
static void find_loss(sl_network *net, float *z, uint32_t rows, bool gradient) {
    net->backend->loss(&(sl_loss_call){.z = z,
                                       .labels = net->labels_there,
                                       .rows = rows * net->positions,
                                       .classes = net->classes,
                                       .gradient = gradient,
                                       .result = net->result,
                                       .scratch = net->scratch});
}

/* A device that has failed leaves NaN. */
static void read_result(const sl_network *net, double result[2]) {
    result[0] = result[1] = NAN;
    net->vec->copy_out(result, net->result, 2 * sizeof *result);
}

static double mean_loss(const sl_network *net, uint32_t rows, double sum) {
    return sum / (rows * net->positions);
}

static void tell(const sl_network *net, double loss, size_t from) {
    if (net->progress != NULL && from > 0)
        net->progress->tell(net->progress->context, loss, from);
}

/* A device comes to the layer's end later. Where it has no room for an event, all behind the next
 * layer's is told of there. */
static void note_passed(sl_network *net, size_t l) {
    const sl_async_ops *async = net->vec->async;
    if (net->passed[l] == NULL)
        net->passed[l] = async->event_open();
    if (net->passed[l] != NULL)
        async->event_record(net->passed[l]);
}

/* Layers lie in their order, each with a range of its own: none is final later. */
static void tell_of_layer(sl_network *net, size_t l, double loss) {
    if (net->progress == NULL || net->table.items[l].count == 0)
        return;
    if (net->vec->on_host)
        tell(net, loss, net->table.items[l].offset);
    else
        note_passed(net, l);
}

/* As a device comes to them. */
static void tell_passed(const sl_network *net, double loss) {
    for (size_t l = net->table.count; !net->vec->on_host && l > 0; l--) {
        const sl_layer *layer = &net->table.items[l - 1];
        if (layer->count == 0 || net->passed[l - 1] == NULL)
            continue;
        net->vec->async->event_wait(net->passed[l - 1]);
        tell(net, loss, layer->offset);
    }
}

static void backward(sl_network *net, uint32_t rows, const float *x, float *g, float *z,
                     double loss) {
    bool written[SL_LAYERS_MAX + 1] = {false}; /* activations whose gradient has a first part */
    for (size_t l = net->table.count; l > 0; l--) {
        sl_layer_call call = call_of(net, l - 1, SL_PASS_TRAIN, rows, x);
        const sl_layer *layer = call.layer;
        call.g = g + layer->offset;
        call.d_out = l == net->table.count ? z : net->deltas[l];
        call.d_in = net->deltas[layer->input];
        call.d_shortcut = net->deltas[layer->shortcut];
        call.add_in = written[layer->input] || layer->input == layer->shortcut;
        call.add_shortcut = written[layer->shortcut];
        net->backend->kinds[layer->kind]->backward(&call);
        written[layer->input] = written[layer->shortcut] = true;
        tell_of_layer(net, l - 1, loss);
    }
}

static void compute_gradient(sl_network *net, uint32_t rows, const float *x, float *g) {
    float *z = forward(net, SL_PASS_TRAIN, rows, x);
    find_loss(net, z, rows, true);
    const double loss = net->progress != NULL ? sl_network_end_gradient(net, rows) : NAN;
    tell(net, loss, net->table.dimension);
    backward(net, rows, x, g, z, loss);
    if (net->progress != NULL)
        tell_passed(net, loss);
}

static bool is_same(const sl_network_repeat *r, uint32_t rows, const float *x, const float *g) {
    return r->x == x && r->g == g && r->rows == rows;
}

/* The gradient that was computed so before; NULL: none was, or work cannot be noted. */
static sl_network_repeat *find_repeat(sl_network *net, uint32_t rows, const float *x, float *g) {
    sl_network_repeat *first = &net->latest[0], *second = &net->latest[1];
    if (!net->repeats)
        return NULL;
    if (is_same(first, rows, x, g))
        return first;
    if (is_same(second, rows, x, g))
        return second;
    net->vec->async->graph_close(second->graph);
    *second = *first;
    *first = (sl_network_repeat){.x = x, .g = g, .rows = rows};
    return NULL;
}

static void note_gradient(sl_network *net, sl_network_repeat *r) {
    const sl_async_ops *async = net->vec->async;
    if (async->graph_begin()) {
        compute_gradient(net, r->rows, r->x, r->g);
        r->graph = async->graph_end();
    }
    net->repeats = r->graph != NULL;
}

void sl_network_begin_gradient(sl_network *network, uint32_t rows, const float *x, float *g) {
    send_batch(network, rows);
    /* Nobody hears how far a repeated one is. */
    sl_network_repeat *repeat = network->progress == NULL ? find_repeat(network, rows, x, g) : NULL;
    if (repeat != NULL && repeat->graph == NULL)
        note_gradient(network, repeat);
    if (repeat != NULL && repeat->graph != NULL)
        network->vec->async->graph_run(repeat->graph);
    else
        compute_gradient(network, rows, x, g);
    if (network->taken != NULL)
        network->vec->async->event_wait(network->taken);
}

double sl_network_end_gradient(sl_network *network, uint32_t rows) {
    double result[2];
    read_result(network, result);
    return mean_loss(network, rows, result[0]);
}

double sl_network_gradient(sl_network *network, uint32_t rows, const float *x, float *g) {
    sl_network_begin_gradient(network, rows, x, g);
    return sl_network_end_gradient(network, rows);
}

void sl_network_forget(sl_network *network) {
    network->vec->fill(network->statistics, 0, network->statistics_count);
}

void sl_network_collect(sl_network *network, uint32_t rows, const float *x) {
    send_batch(network, rows);
    forward(network, SL_PASS_COLLECT, rows, x);
    if (network->taken != NULL)
        network->vec->async->event_wait(network->taken); /* the caller may fill in the next batch */
}

double sl_network_score(sl_network *network, uint32_t rows, const float *x, uint64_t *correct) {
    double result[2];
    send_batch(network, rows);
    find_loss(network, forward(network, SL_PASS_EVALUATE, rows, x), rows, false);
    read_result(network, result);
    *correct += result[1] > 0 ? (uint64_t)result[1] : 0;
    return result[0];
}
