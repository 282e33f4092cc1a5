/* synthetic.c - a model of others, by its sizes: what its training sends, and how long that takes.
 *
 * Vectors have the length and the tensors of the model (layer_table.h), and a gradient is said to
 * take the model's operations at model.gflops. What stands in the vectors is no training:
 * f_i(x) = 1/2 |x|^2 with the gradient x + s, where s is noise of that node and round. First
 * parameters and noise are normal numbers of two tables, over and over, noise from a random place
 * on, so that a gradient costs one pass. Their lengths have no common factor: numbers of a gradient
 * are alike only every 2^32 elements, about.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "learner/layer_table.h"
#include "learner/problem.h"
#include "starling/rng.h"

enum { STARTS = 65521, NOISE = 1 << 16, LANES = 8 };
#define DEVIATION 0.02 /* of first parameters, and of noise */

typedef struct synthetic {
    uint64_t seed;
    sl_layer_table table;
    float *start; /* (STARTS) */
    float *noise; /* (NOISE) */
} synthetic;

static float *draw(size_t count, uint64_t seed, sl_purpose purpose, sl_error *error) {
    sl_rng rng = sl_rng_open(seed, 0, 0, purpose);
    float *out = malloc(count * sizeof *out);
    for (size_t i = 0; out != NULL && i < count; i++)
        out[i] = (float)(DEVIATION * sl_rng_normal(&rng));
    if (out == NULL)
        sl_fail(error, SL_ENOMEM, "learner: out of memory");
    return out;
}

static int open(sl_problem *out, const sl_problem_source *source, char *text, size_t size,
                sl_error *error) {
    const sl_learner_settings *settings = source->settings;
    const sl_model_config *model = &settings->model;
    synthetic *s = calloc(1, sizeof *s);
    if (s == NULL)
        return sl_fail(error, SL_ENOMEM, "learner: out of memory");
    out->self = s;
    s->seed = settings->seed;
    int result = sl_layer_table_open(&s->table, model->table, error);
    if (result != 0)
        return result;
    s->start = draw(STARTS, s->seed, SL_PURPOSE_INIT, error);
    s->noise = s->start != NULL ? draw(NOISE, s->seed, SL_PURPOSE_DATA, error) : NULL;
    if (s->noise == NULL)
        return SL_ENOMEM;
    out->dimension = s->table.dimension;
    out->tensors = s->table.tensors;
    out->tensor_count = s->table.count;
    out->products = s->table.products;
    out->bytes = (STARTS + NOISE) * sizeof *s->noise;
    out->data_hash = SL_HASH_START;
    snprintf(text, size, "synthetic %s, %zu parameters in %zu tensors; batches of %u",
             sl_layer_table_name(model->table), out->dimension, out->tensor_count,
             settings->data.batch);
    return 0;
}

static void close_it(void *self) {
    synthetic *s = self;
    if (s == NULL)
        return;
    sl_layer_table_close(&s->table);
    free(s->start);
    free(s->noise);
    free(s);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static void initial(const void *self, uint32_t rank, float *x) {
    const synthetic *s = self;
    const size_t d = s->table.dimension;
    (void)rank; /* all start alike */
    for (size_t from = 0; from < d; from += STARTS)
        memcpy(x + from, s->start, least(STARTS, d - from) * sizeof *x);
}

/* 1/2 |x|^2, in lanes: one order of sums. */
static double half_square(const float *x, size_t count) {
    double lanes[LANES] = {0}, sum = 0;
    const size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += (double)x[i + l] * (double)x[i + l];
    for (size_t i = whole; i < count; i++)
        lanes[i - whole] += (double)x[i] * (double)x[i];
    for (size_t l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum / 2;
}

static double gradient(void *self, uint32_t rank, uint64_t round, const float *x, float *g) {
    const synthetic *s = self;
    sl_rng rng = sl_rng_open(s->seed, rank, round, SL_PURPOSE_DATA);
    size_t at = sl_rng_below(&rng, NOISE);
    double loss = 0;
    for (size_t from = 0, count; from < s->table.dimension; from += count, at = 0) {
        count = least(NOISE - at, s->table.dimension - from);
        const float *noise = s->noise + at;
        for (size_t i = 0; i < count; i++)
            g[from + i] = x[from + i] + noise[i];
        loss += half_square(x + from, count);
    }
    return loss;
}

static sl_evaluation evaluate(void *self, const float *x) {
    const synthetic *s = self;
    return (sl_evaluation){.loss = half_square(x, s->table.dimension), .accuracy = NAN};
}

const sl_problem_ops sl_synthetic_problem = {
    .open = open,
    .close = close_it,
    .initial = initial,
    .gradient = gradient,
    .evaluate = evaluate,
};
