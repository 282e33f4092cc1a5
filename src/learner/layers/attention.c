/* attention.c - causal multi-head self-attention (Vaswani et al. 2017, section 3.2).
 *
 *     P = softmax over s <= t of (q_t k_s / sqrt(n)),  y_t = sum over s of P[t, s] v_s
 *
 * The input is (positions, 3, heads, n): queries, keys and values with n channels per head. The
 * layer has no parameters: dense layers before and after it make q, k, v and mix the heads. Only
 * one P, of one head of one sample, is in memory at a time. The backward pass computes P again:
 *
 *     dv = P^T dy;  dP = dy v^T;  dS = P (dP - row sums of P dP);  dq = dS k / sqrt(n);  dk = dS^T
 *                   q / sqrt(n)
 */
#include "learner/layers/layer_cpu.h"

#include <cblas.h>
#include <math.h>

#include "learner/layers/simd_math.h"

/* One head of one sample. */
typedef struct head {
    int positions, channels,
        stride; /* n; floats from one position to the next in q, k, v; in y they are a third */
    float scale;
    const float *q, *k, *v;
    float *y, *p, *dp; /* p, dp: (positions, positions) */
    const float *dy;
    float *dq, *dk, *dv;
} head;

static sl_layer_memory memory(const sl_layer *layer, uint32_t rows) {
    (void)rows;
    return (sl_layer_memory){.scratch = 2 * (size_t)layer->in.width * layer->in.width};
}

static head head_of(const sl_layer_call *c, uint32_t row, uint32_t index) {
    const sl_layer *l = c->layer;
    size_t width = l->out.channels, n = width / l->heads,
           from = row * sl_shape_size(l->in) + index * n,
           to = row * sl_shape_size(l->out) + index * n;
    head h = {.positions = (int)l->in.width,
              .channels = (int)n,
              .stride = (int)(3 * width),
              .scale = 1 / sqrtf((float)n)};
    h.q = c->in + from;
    h.k = h.q + width;
    h.v = h.k + width;
    h.y = c->out + to;
    h.p = c->scratch;
    h.dp = c->scratch + (size_t)l->in.width * l->in.width;
    if (c->d_in != NULL) {
        h.dy = c->d_out + to;
        h.dq = c->d_in + from;
        h.dk = h.dq + width;
        h.dv = h.dk + width;
    }
    return h;
}

/* Turns row t of p into the softmax of its first t + 1 numbers, followed by zeros. */
KERNEL void softmax_row(float *p, uint32_t t, uint32_t positions) {
    float top = p[0], sum = 0;
    for (uint32_t s = 1; s <= t; s++)
        top = p[s] > top ? p[s] : top;
    for (uint32_t s = 0; s <= t; s += LANES) {
        uint32_t width = t + 1 - s < LANES ? t + 1 - s : LANES;
        store_part(p + s, exp_lanes(load_part(p + s, width) - top), width);
    }
    for (uint32_t s = 0; s <= t; s++)
        sum += p[s];
    float inverse = 1 / sum;
    for (uint32_t s = 0; s < positions; s++)
        p[s] = s <= t ? p[s] * inverse : 0;
}

static void softmax(float *p, uint32_t positions) {
    for (uint32_t t = 0; t < positions; t++)
        softmax_row(p + (size_t)t * positions, t, positions);
}

/* Turns dp into dS/sqrt(n). */
static void softmax_gradient(float *dp, const float *p, uint32_t positions, float scale) {
    for (uint32_t t = 0; t < positions; t++, dp += positions, p += positions) {
        float sum = 0;
        for (uint32_t s = 0; s <= t; s++)
            sum += p[s] * dp[s];
        for (uint32_t s = 0; s < positions; s++)
            dp[s] = p[s] * (dp[s] - sum) * scale;
    }
}

static void find_weights(const head *h) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->positions, h->positions, h->channels,
                h->scale, h->q, h->stride, h->k, h->stride, 0, h->p, h->positions);
    softmax(h->p, (uint32_t)h->positions);
}

/* z (positions, n) = a b, or a^T b, or added. */
static void mix(const head *h, CBLAS_TRANSPOSE order, const float *a, const float *b, int b_stride,
                float *z, int z_stride, bool add) {
    cblas_sgemm(CblasRowMajor, order, CblasNoTrans, h->positions, h->channels, h->positions, 1, a,
                h->positions, b, b_stride, add ? 1 : 0, z, z_stride);
}

static void forward(const sl_layer_call *c) {
    for (uint32_t row = 0; row < c->rows; row++)
        for (uint32_t index = 0; index < c->layer->heads; index++) {
            head h = head_of(c, row, index);
            find_weights(&h);
            mix(&h, CblasNoTrans, h.p, h.v, h.stride, h.y, h.stride / 3, false);
        }
}

static void backward_head(const head *h, bool add) {
    find_weights(h);
    mix(h, CblasTrans, h->p, h->dy, h->stride / 3, h->dv, h->stride, add);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->positions, h->positions, h->channels, 1,
                h->dy, h->stride / 3, h->v, h->stride, 0, h->dp, h->positions);
    softmax_gradient(h->dp, h->p, (uint32_t)h->positions, h->scale);
    mix(h, CblasNoTrans, h->dp, h->k, h->stride, h->dq, h->stride, add);
    mix(h, CblasTrans, h->dp, h->q, h->stride, h->dk, h->stride, add);
}

static void backward(const sl_layer_call *c) {
    for (uint32_t row = 0; row < c->rows && c->d_in != NULL; row++)
        for (uint32_t index = 0; index < c->layer->heads; index++) {
            head h = head_of(c, row, index);
            backward_head(&h, c->add_in);
        }
}

static bool shape(sl_layer *layer) {
    layer->out = (sl_shape){1, layer->in.width, layer->in.channels / 3};
    return layer->in.height == 1 && layer->in.channels % 3 == 0 && layer->heads > 0 &&
           layer->out.channels % layer->heads == 0;
}

SL_LAYER(attention) = {.shape = shape, .ops = {memory, forward, backward}};
