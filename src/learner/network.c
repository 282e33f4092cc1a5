/* network.c - forward and backward through a table of layers; see network.h. */
#include "network.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "starling/vec.h"

#define ALIGNED(count) (((count) + 15) / 16 * 16) /* floats, to SL_VEC_ALIGNMENT */

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

/* Backwards: a layer's inputs get buffers while its output's is still in use; then that one is free. */
static void plan_deltas(delta_plan *plan, const sl_network *net) {
    *plan = (delta_plan){0};
    for (size_t i = 0; i <= net->table.count; i++)
        plan->buffers[i] = NO_BUFFER;
    for (size_t l = net->table.count; l > 0; l--) {
        const sl_layer *layer = &net->table.items[l - 1];
        take_buffer(plan, layer->input, ALIGNED(net->rows_max * sl_shape_size(layer->in)));
        take_buffer(plan, layer->shortcut, ALIGNED(net->rows_max * sl_shape_size(sl_layers_shape(&net->table, layer->shortcut))));
        if (plan->buffers[l] != NO_BUFFER) /* the last activation has none: it becomes its own gradient */
            plan->taken[plan->buffers[l]] = false;
    }
}

/* Where everything lies: offsets from `work` while its size is being counted, pointers when it is there. */
static size_t lay_out(sl_network *net, const delta_plan *plan, float *work) {
    size_t total = 0, kept = 0, scratch = 0, offsets[SL_LAYERS_MAX + 1];
    for (uint32_t i = 0; i <= net->table.count; i++) {
        net->activations[i] = work == NULL ? NULL : work + total;
        total += ALIGNED(net->rows_max * sl_shape_size(sl_layers_shape(&net->table, i)));
    }
    for (size_t b = 0; b < plan->count; b++) {
        offsets[b] = total;
        total += plan->sizes[b];
    }
    for (size_t i = 0; i <= net->table.count && work != NULL; i++)
        net->deltas[i] = plan->buffers[i] == NO_BUFFER ? NULL : work + offsets[plan->buffers[i]];
    for (size_t l = 0; l < net->table.count; l++) {
        sl_layer_memory m = net->ops[net->table.items[l].kind]->memory(&net->table.items[l], net->rows_max);
        net->saved[l] = work == NULL ? NULL : work + total;
        net->kept[l] = net->statistics == NULL ? NULL : net->statistics + kept;
        total += ALIGNED(m.saved);
        kept += m.kept;
        scratch = m.scratch > scratch ? m.scratch : scratch;
    }
    net->scratch = work == NULL ? NULL : work + total;
    net->statistics_count = kept;
    return total + ALIGNED(scratch);
}

static int allocate_work(sl_network *net, sl_error *error) {
    delta_plan plan;
    plan_deltas(&plan, net);
    size_t floats = lay_out(net, &plan, NULL);
    if (floats > SL_NETWORK_WORK_MAX)
        return sl_fail(error, SL_EINVAL, "model: a batch of %u needs %zu floats of working memory; at most %zu are allowed, use a smaller batch",
                       net->rows_max, floats, SL_NETWORK_WORK_MAX);
    net->work = aligned_alloc(SL_VEC_ALIGNMENT, floats * sizeof(float));
    net->labels = malloc((size_t)net->rows_max * net->positions * sizeof *net->labels);
    net->statistics = calloc(net->statistics_count + 1, sizeof *net->statistics);
    if (net->work == NULL || net->labels == NULL || net->statistics == NULL)
        return sl_fail(error, SL_ENOMEM, "model: out of memory for %zu floats of working memory", floats);
    lay_out(net, &plan, net->work);
    return 0;
}

size_t sl_network_row_floats(const sl_layers *table) {
    size_t floats = sl_shape_size(table->input);
    for (size_t l = 0; l < table->count; l++)
        floats += sl_shape_size(table->items[l].out) + sl_layer_ops_cpu()[table->items[l].kind]->memory(&table->items[l], 1).saved;
    return floats;
}

int sl_network_open(sl_network *out, const sl_layers *table, uint32_t rows_max, sl_error *error) {
    assert(table->count > 0 && rows_max > 0);
    sl_shape end = sl_layers_shape(table, sl_layers_last(table));
    sl_network net = {.table = *table, .ops = sl_layer_ops_cpu(), .rows_max = rows_max};
    net.positions = end.height * end.width;
    net.classes = end.channels;
    int code = allocate_work(&net, error);
    if (code != 0)
        sl_network_close(&net);
    else
        *out = net;
    return code;
}

void sl_network_close(sl_network *network) {
    free(network->work);
    free(network->labels);
    free(network->statistics);
    *network = (sl_network){0};
}

/* ---- the loss ---- */

static uint32_t largest(const float *z, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (z[i] > z[best])
            best = i;
    return best;
}

/* -log softmax(z)[label]; exp(z - max) is left in z and its sum in *sum: no overflow whatever z is. */
static double cross_entropy(float *z, uint32_t count, uint16_t label, float *sum) {
    float top = z[largest(z, count)], at_label = z[label], total = 0;
    for (uint32_t i = 0; i < count; i++) {
        z[i] = expf(z[i] - top);
        total += z[i];
    }
    *sum = total;
    return log((double)total) - ((double)at_label - (double)top);
}

/* Outputs z become (softmax - onehot)/n; the mean loss is returned. n rows, counting positions. */
static double output_delta(sl_network *net, float *z, uint32_t n) {
    float sum;
    double loss = 0;
    for (uint32_t row = 0; row < n; row++, z += net->classes) {
        loss += cross_entropy(z, net->classes, net->labels[row], &sum);
        float scale = 1.0f / (sum * (float)n);
        for (uint32_t i = 0; i < net->classes; i++)
            z[i] *= scale;
        z[net->labels[row]] -= 1.0f / (float)n;
    }
    return loss / n;
}

/* ---- passes ---- */

static sl_layer_call call_of(const sl_network *net, size_t l, sl_pass pass, uint32_t rows, const float *x) {
    const sl_layer *layer = &net->table.items[l];
    return (sl_layer_call){.layer = layer,
                           .pass = pass,
                           .rows = rows,
                           .w = x + layer->offset,
                           .in = net->activations[layer->input],
                           .shortcut = layer->shortcut != 0 ? net->activations[layer->shortcut] : NULL,
                           .shortcut_shape = sl_layers_shape(&net->table, layer->shortcut),
                           .out = net->activations[l + 1],
                           .saved = net->saved[l],
                           .kept = net->kept[l],
                           .scratch = net->scratch};
}

/* The last activation is returned. */
static float *forward(sl_network *net, sl_pass pass, uint32_t rows, const float *x) {
    assert(rows > 0 && rows <= net->rows_max);
    for (size_t l = 0; l < net->table.count; l++) {
        sl_layer_call call = call_of(net, l, pass, rows, x);
        net->ops[call.layer->kind]->forward(&call);
    }
    return net->activations[net->table.count];
}

double sl_network_gradient(sl_network *network, uint32_t rows, const float *x, float *g) {
    bool written[SL_LAYERS_MAX + 1] = {false}; /* activations whose gradient has a first part */
    float *z = forward(network, SL_PASS_TRAIN, rows, x);
    double loss = output_delta(network, z, rows * network->positions);
    for (size_t l = network->table.count; l > 0; l--) {
        sl_layer_call call = call_of(network, l - 1, SL_PASS_TRAIN, rows, x);
        const sl_layer *layer = call.layer;
        call.g = g + layer->offset;
        call.d_out = l == network->table.count ? z : network->deltas[l];
        call.d_in = network->deltas[layer->input];
        call.d_shortcut = network->deltas[layer->shortcut];
        call.add_in = written[layer->input] || layer->input == layer->shortcut;
        call.add_shortcut = written[layer->shortcut];
        network->ops[layer->kind]->backward(&call);
        written[layer->input] = written[layer->shortcut] = true;
    }
    return loss;
}

void sl_network_forget(sl_network *network) {
    memset(network->statistics, 0, network->statistics_count * sizeof *network->statistics);
}

void sl_network_collect(sl_network *network, uint32_t rows, const float *x) {
    forward(network, SL_PASS_COLLECT, rows, x);
}

double sl_network_score(sl_network *network, uint32_t rows, const float *x, uint64_t *correct) {
    float *z = forward(network, SL_PASS_EVALUATE, rows, x), sum;
    double loss = 0;
    for (uint32_t row = 0; row < rows * network->positions; row++, z += network->classes) {
        *correct += largest(z, network->classes) == network->labels[row];
        loss += cross_entropy(z, network->classes, network->labels[row], &sum);
    }
    return loss;
}
