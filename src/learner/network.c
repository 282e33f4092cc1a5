/* network.c - the multi-layer perceptron; see network.h.
 *
 * Backward, with n rows and D_l = d loss / d (layer l's output before relu):  D_L = (softmax -
 * onehot)/n; dW_l = H_{l-1}^T D_l;  db_l = column sums of D_l;  D_{l-1} = (D_l W_l^T) where H_{l-1}
 * > 0.
 */
#include "network.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "product.h"
#include "starling/rng.h"
#include "starling/vec.h"

#define ALIGNED(count) (((count) + 15) / 16 * 16) /* floats, to SL_VEC_ALIGNMENT */

static int count_parameters(sl_network *net, sl_error *error) {
    net->dimension = 0;
    for (size_t l = 0; l < net->layers; l++) {
        net->tensor_ends[2 * l] = net->dimension + (size_t)net->sizes[l] * net->sizes[l + 1]; /* each below 2^56 */
        net->tensor_ends[2 * l + 1] = net->dimension = net->tensor_ends[2 * l] + net->sizes[l + 1];
    }
    if (net->dimension <= SL_NETWORK_DIMENSION_MAX)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "model: %zu parameters; at most %zu are allowed, use smaller hidden layers",
                   net->dimension, SL_NETWORK_DIMENSION_MAX);
}

/* One block for all activations, deltas and the panel. */
static int allocate_work(sl_network *net, sl_error *error) {
    size_t offsets[SL_NETWORK_SIZES_MAX], total = 0, widest = 0;
    for (size_t l = 0; l <= net->layers; l++) {
        offsets[l] = total;
        total += ALIGNED((size_t)net->rows_max * net->sizes[l]);
        if (l > 0 && l < net->layers && net->sizes[l] > widest)
            widest = net->sizes[l];
    }
    size_t delta = ALIGNED(net->rows_max * widest);
    if (total + 2 * delta > SL_NETWORK_WORK_MAX)
        return sl_fail(error, SL_EINVAL,
                       "model: a batch of %u needs %zu activations; at most %zu are allowed, use a "
                       "smaller batch",
                       net->rows_max, total + 2 * delta, SL_NETWORK_WORK_MAX);
    net->work =
        aligned_alloc(SL_VEC_ALIGNMENT, (total + 2 * delta + SL_PRODUCT_PANEL_MAX) * sizeof(float));
    net->labels = malloc(net->rows_max * sizeof *net->labels);
    if (net->work == NULL || net->labels == NULL)
        return sl_fail(error, SL_ENOMEM, "model: out of memory for %zu activations",
                       total + 2 * delta);
    for (size_t l = 0; l <= net->layers; l++)
        net->activations[l] = net->work + offsets[l];
    net->deltas[0] = net->work + total;
    net->deltas[1] = net->deltas[0] + delta;
    net->panel = net->deltas[1] + delta;
    return 0;
}

int sl_network_open(sl_network *out, const uint32_t *sizes, size_t size_count, uint32_t rows_max,
                    sl_error *error) {
    assert(size_count >= 2 && size_count <= SL_NETWORK_SIZES_MAX && rows_max > 0);
    sl_network net = {.layers = size_count - 1, .rows_max = rows_max};
    for (size_t l = 0; l < size_count; l++) {
        if (sizes[l] < 1 || sizes[l] > INT32_MAX / 16)
            return sl_fail(error, SL_EINVAL, "model: layer %zu has size %u; allowed are 1 to %d", l,
                           sizes[l], INT32_MAX / 16);
        net.sizes[l] = sizes[l];
    }
    int code = count_parameters(&net, error);
    if (code == 0)
        code = allocate_work(&net, error);
    if (code != 0)
        sl_network_close(&net);
    else
        *out = net;
    return code;
}

void sl_network_close(sl_network *network) {
    free(network->work);
    free(network->labels);
    *network = (sl_network){0};
}

void sl_network_initial(const sl_network *network, uint64_t seed, float *x) {
    memset(x, 0, network->dimension * sizeof *x);
    if (network->layers == 1)
        return;
    for (size_t l = 0; l < network->layers; l++) {
        size_t in = network->sizes[l], out = network->sizes[l + 1];
        double deviation = sqrt(2.0 / (double)in);
        sl_rng rng = sl_rng_open(seed, (uint32_t)l, 0, SL_PURPOSE_INIT);
        for (size_t i = 0; i < in * out; i++)
            x[i] = (float)(deviation * sl_rng_normal(&rng));
        x += (in + 1) * out;
    }
}

/* y (rows, out) = y + b, and relu if asked. */
static void add_bias(float *y, const float *b, uint32_t rows, uint32_t out, bool relu) {
    for (uint32_t row = 0; row < rows; row++, y += out) {
        if (relu)
            for (uint32_t j = 0; j < out; j++) {
                float sum = y[j] + b[j];
                y[j] = sum < 0 ? 0 : sum; /* a NaN stays, so that divergence shows */
            }
        else
            for (uint32_t j = 0; j < out; j++)
                y[j] += b[j];
    }
}

static void forward(sl_network *net, uint32_t rows, const float *x) {
    for (size_t l = 0; l < net->layers; l++) {
        uint32_t in = net->sizes[l], out = net->sizes[l + 1];
        sl_product_forward(net->activations[l + 1], net->activations[l], x, rows, in, out,
                           net->panel);
        add_bias(net->activations[l + 1], x + (size_t)in * out, rows, out, l + 1 < net->layers);
        x += ((size_t)in + 1) * out;
    }
}

static uint32_t largest(const float *z, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (z[i] > z[best])
            best = i;
    return best;
}

/* -log softmax(z)[label]; exp(z - max) is left in z and its sum in *sum: no overflow whatever z is.
 */
static double cross_entropy(float *z, uint32_t count, uint16_t label, float *sum) {
    float top = z[largest(z, count)], at_label = z[label], total = 0;
    for (uint32_t i = 0; i < count; i++) {
        z[i] = expf(z[i] - top);
        total += z[i];
    }
    *sum = total;
    return log((double)total) - ((double)at_label - (double)top);
}

/* Outputs become D_L; the mean loss is returned. */
static double output_delta(sl_network *net, uint32_t rows) {
    uint32_t classes = net->sizes[net->layers];
    float *z = net->activations[net->layers], sum;
    double loss = 0;
    for (uint32_t row = 0; row < rows; row++, z += classes) {
        loss += cross_entropy(z, classes, net->labels[row], &sum);
        float scale = 1.0f / (sum * (float)rows);
        for (uint32_t i = 0; i < classes; i++)
            z[i] *= scale;
        z[net->labels[row]] -= 1.0f / (float)rows;
    }
    return loss / rows;
}

/* db (out) = column sums of d (rows, out); where `h` is given, d counts, and stays, only where h >
 * 0. */
static void bias_gradient(float *db, float *d, const float *h, uint32_t rows, uint32_t out) {
    memset(db, 0, out * sizeof *db);
    for (uint32_t row = 0; row < rows; row++, d += out) {
        if (h != NULL) {
            for (uint32_t j = 0; j < out; j++)
                d[j] = h[j] > 0 ? d[j] : 0;
            h += out;
        }
        for (uint32_t j = 0; j < out; j++)
            db[j] += d[j];
    }
}

double sl_network_gradient(sl_network *network, uint32_t rows, const float *x, float *g) {
    assert(rows > 0 && rows <= network->rows_max);
    forward(network, rows, x);
    double loss = output_delta(network, rows);
    float *d = network->activations[network->layers];
    size_t end = network->dimension;
    for (size_t l = network->layers; l > 0; l--) {
        uint32_t in = network->sizes[l - 1], out = network->sizes[l];
        size_t start = end - ((size_t)in + 1) * out;
        bool is_output = l == network->layers;
        bias_gradient(g + end - out, d, is_output ? NULL : network->activations[l], rows, out);
        sl_product_gradient(g + start, network->activations[l - 1], d, rows, in, out,
                            network->panel);
        if (l > 1) {
            float *next = network->deltas[l % 2];
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)in, (int)out, 1.0f,
                        d, (int)out, x + start, (int)out, 0.0f, next, (int)in);
            d = next;
        }
        end = start;
    }
    return loss;
}

double sl_network_score(sl_network *network, uint32_t rows, const float *x, uint64_t *correct) {
    assert(rows > 0 && rows <= network->rows_max);
    forward(network, rows, x);
    uint32_t classes = network->sizes[network->layers];
    float *z = network->activations[network->layers], sum;
    double loss = 0;
    for (uint32_t row = 0; row < rows; row++, z += classes) {
        *correct += largest(z, classes) == network->labels[row];
        loss += cross_entropy(z, classes, network->labels[row], &sum);
    }
    return loss;
}
