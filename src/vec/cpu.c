/* cpu.c - the vector operations on the CPU; see starling/vec.h.
 *
 * One plain C body per operation, compiled for three instruction sets and chosen when the program
 * is loaded. Contraction is off (-ffp-contract=off) and reductions keep the order of element/sum.h,
 * so that every choice gives the same bits. A combine of k vectors must read 4k and write 4 bytes
 * an element; blocks of BLOCK elements keep partial sums of high-degree rows in L1, so that this
 * holds for any k.
 */
#include "starling/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/kernels.h"
#include "base/round_up.h"
#include "element/adam.h"
#include "element/sum.h"

enum { BLOCK = 2048, CACHED = 8192, HUGE_PAGE = 2 << 20, LARGE = 4000000 };

static float *allocate(size_t count) {
    if (count > (SIZE_MAX - HUGE_PAGE) / sizeof(float))
        return NULL;
    size_t alignment = count * sizeof(float) < LARGE ? SL_VEC_ALIGNMENT : HUGE_PAGE;
    size_t bytes = sl_round_up(count * sizeof(float), alignment);
    float *v = aligned_alloc(alignment, bytes ? bytes : alignment);
    if (v == NULL)
        return NULL;
    /* Where the system gives huge pages only on request: a model is walked from end to end, and 4
     * KiB pages cost a tenth of that. */
    if (alignment == HUGE_PAGE)
        madvise(v, bytes, MADV_HUGEPAGE);
    memset(v, 0, bytes);
    return v;
}

static void release(float *v) {
    free(v);
}

static void memory(sl_vec_memory *out) {
    *out = (sl_vec_memory){0};
}

static void *allocate_host(size_t bytes) {
    size_t rounded = sl_round_up(bytes, SL_VEC_ALIGNMENT);
    return rounded >= bytes ? aligned_alloc(SL_VEC_ALIGNMENT, rounded) : NULL;
}

static void copy(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}

FOR_EACH_CPU(void, combine_1, (float *out, const float *a, float wa, size_t n), (out, a, wa, n)) {
    for (size_t i = 0; i < n; i++)
        out[i] = wa * a[i];
}

FOR_EACH_CPU(void, combine_2,
             (float *out, const float *a, const float *b, float wa, float wb, size_t n),
             (out, a, b, wa, wb, n)) {
    for (size_t i = 0; i < n; i++)
        out[i] = wa * a[i] + wb * b[i];
}

FOR_EACH_CPU(void, combine_3,
             (float *out, const float *a, const float *b, const float *c, const float *w, size_t n),
             (out, a, b, c, w, n)) {
    float wa = w[0], wb = w[1], wc = w[2];
    for (size_t i = 0; i < n; i++)
        out[i] = wa * a[i] + wb * b[i] + wc * c[i];
}

FOR_EACH_CPU(void, add_1, (float *out, const float *a, float wa, size_t n), (out, a, wa, n)) {
    for (size_t i = 0; i < n; i++)
        out[i] += wa * a[i];
}

FOR_EACH_CPU(void, add_2,
             (float *out, const float *a, const float *b, float wa, float wb, size_t n),
             (out, a, b, wa, wb, n)) {
    for (size_t i = 0; i < n; i++)
        out[i] = out[i] + wa * a[i] + wb * b[i];
}

static void combine_block(float *out, const float *const *in, const float *w, size_t k, size_t from,
                          size_t n) {
    size_t done;
    if (k >= 3) {
        combine_3(out + from, in[0] + from, in[1] + from, in[2] + from, w, n);
        done = 3;
    } else if (k == 2) {
        combine_2(out + from, in[0] + from, in[1] + from, w[0], w[1], n);
        done = 2;
    } else {
        combine_1(out + from, in[0] + from, w[0], n);
        done = 1;
    }
    for (; done + 2 <= k; done += 2)
        add_2(out + from, in[done] + from, in[done + 1] + from, w[done], w[done + 1], n);
    if (done < k)
        add_1(out + from, in[done] + from, w[done], n);
}

static void combine(float *out, const float *const *in, const float *weights, size_t k,
                    size_t count) {
    size_t block = k <= 3 ? count : BLOCK;
    for (size_t from = 0; from < count; from += block)
        combine_block(out, in, weights, k, from, count - from < block ? count - from : block);
}

FOR_EACH_CPU(void, step_plain,
             (float *x, const float *x_decay, const float *g, float rate, float decay, size_t n),
             (x, x_decay, g, rate, decay, n)) {
    for (size_t i = 0; i < n; i++)
        x[i] -= rate * (g[i] + decay * x_decay[i]);
}

FOR_EACH_CPU(void, step_momentum,
             (float *x, const float *x_decay, const float *g, float *m, float rate, float decay,
              float mu, size_t n),
             (x, x_decay, g, m, rate, decay, mu, n)) {
    for (size_t i = 0; i < n; i++) {
        m[i] = mu * m[i] + (g[i] + decay * x_decay[i]);
        x[i] -= rate * m[i];
    }
}

FOR_EACH_CPU(void, step_nesterov,
             (float *x, const float *x_decay, const float *g, float *m, float rate, float decay,
              float mu, size_t n),
             (x, x_decay, g, m, rate, decay, mu, n)) {
    for (size_t i = 0; i < n; i++) {
        float direction = g[i] + decay * x_decay[i];
        m[i] = mu * m[i] + direction;
        x[i] -= rate * (direction + mu * m[i]);
    }
}

static void sgd_step(float *x, const float *x_decay, const float *g, float *m, const sl_sgd *s,
                     size_t count) {
    if (m == NULL && s->learning_rate == 0) /* pure averaging: the gradient need not be read */
        return;
    if (m == NULL)
        step_plain(x, x_decay, g, s->learning_rate, s->weight_decay, count);
    else if (s->nesterov)
        step_nesterov(x, x_decay, g, m, s->learning_rate, s->weight_decay, s->momentum, count);
    else
        step_momentum(x, x_decay, g, m, s->learning_rate, s->weight_decay, s->momentum, count);
}

FOR_EACH_CPU(void, adam_direction,
             (float *g, const float *x, float *m, float *v, const sl_adam *a, size_t count),
             (g, x, m, v, a, count)) {
    const sl_adam s = *a;
    for (size_t i = 0; i < count; i++)
        g[i] = adam_element(&s, g[i], x[i], &m[i], &v[i]);
}

static void fill(float *v, float value, size_t count) {
    for (size_t i = 0; i < count; i++)
        v[i] = value;
}

FOR_EACH_CPU(void, keep_where, (float *v, const float *kept, size_t count), (v, kept, count)) {
    for (size_t i = 0; i < count; i++)
        v[i] = kept[i] != 0 ? v[i] : 0;
}

/* Sums of one tile; see element/sum.h. */
FOR_EACH_CPU(double, tile_norm2_squared, (const float *x, size_t count), (x, count)) {
    double lanes[SUM_LANES] = {0};
    size_t i = 0;
    for (; i + SUM_LANES <= count; i += SUM_LANES)
        for (int l = 0; l < SUM_LANES; l++)
            lanes[l] += (double)x[i + l] * x[i + l];
    for (int l = 0; i < count; i++, l++)
        lanes[l] += (double)x[i] * x[i];
    return sum_lanes(lanes);
}

FOR_EACH_CPU(double, tile_distance_squared, (const float *x, const float *y, size_t count),
             (x, y, count)) {
    double lanes[SUM_LANES] = {0};
    size_t i = 0;
    for (; i + SUM_LANES <= count; i += SUM_LANES)
        for (int l = 0; l < SUM_LANES; l++) {
            double difference = (double)x[i + l] - y[i + l];
            lanes[l] += difference * difference;
        }
    for (int l = 0; i < count; i++, l++) {
        double difference = (double)x[i] - y[i];
        lanes[l] += difference * difference;
    }
    return sum_lanes(lanes);
}

/* ||x - y||^2, ||x||^2 where y is NULL. */
static double sum_of_squares(const float *x, const float *y, size_t count) {
    double folds[SUM_FOLDS];
    const size_t tiles = sum_tiles(count);
    for (size_t t = 0; t < tiles; t++) {
        const size_t at = t * SUM_TILE, n = count - at < SUM_TILE ? count - at : SUM_TILE;
        sum_fold(folds, t,
                 y != NULL ? tile_distance_squared(x + at, y + at, n)
                           : tile_norm2_squared(x + at, n));
    }
    return sum_in_order(folds, sum_folds(tiles));
}

static double norm2_squared(const float *x, size_t count) {
    return sum_of_squares(x, NULL, count);
}

static double distance_squared(const float *x, const float *y, size_t count) {
    return sum_of_squares(x, y, count);
}

static int fence(sl_error *error) {
    (void)error;
    return 0;
}

const sl_vec_ops *sl_vec_cpu(void) {
    static const sl_vec_ops ops = {
        .name = "cpu",
        .on_host = true,
        .cuda_index = -1,
        .block = CACHED,
        .allocate = allocate,
        .release = release,
        .memory = memory,
        .allocate_host = allocate_host,
        .release_host = free,
        .copy_in = copy,
        .copy_out = copy,
        .copy_in_later = copy,
        .copy = copy,
        .combine = combine,
        .sgd_step = sgd_step,
        .adam_direction = adam_direction,
        .fill = fill,
        .keep_where = keep_where,
        .norm2_squared = norm2_squared,
        .distance_squared = distance_squared,
        .fence = fence,
    };
    return &ops;
}
