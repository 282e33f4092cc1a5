/* linear.c - linear regression and two-class logistic regression, with an l2 term.
 *
 * Of a sample a with label y, and parameters x = (w, b), the score is z = w a + b. A node's
 * function in a round is the mean over its batch, plus l2/2 |x|^2:
 *
 *     squared    1/2 (z - y)^2, y a number
 *     logistic   log(1 + exp(-y z)), y = -1 for class 0 and 1 for class 1
 *
 * With l2 above 0 both are strongly convex. Sums are of doubles, in the order of the samples.
 * Held-out loss is without the l2 term: it says how well labels are predicted.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner/problem.h"

enum { TENSORS = 2, TWO = 2 };

typedef struct linear {
    const sl_data *data; /* borrowed, as all that is no memory of it */
    sl_shares *shares;
    sl_loss_kind loss;
    double l2;
    uint32_t batch, features;
    float *row;  /* (features) a sample */
    double *sum; /* (features + 1) of gradients */
    sl_tensor tensors[TENSORS];
} linear;

static int check_classes(const sl_learner_settings *settings, const sl_samples *train,
                         sl_error *error) {
    if (settings->model.loss != SL_LOSS_LOGISTIC || train->classes == TWO)
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "model.loss: logistic is of two classes, but data.name %s has %u; use model.name "
        "softmax",
        sl_data_name(settings->data.kind), train->classes);
}

static int open(sl_problem *out, const sl_problem_source *source, char *text, size_t size,
                sl_error *error) {
    const sl_model_config *model = &source->settings->model;
    const sl_samples *train = &source->data->train;
    linear *l = out->self = calloc(1, sizeof *l);
    if (l == NULL)
        return sl_fail(error, SL_ENOMEM, "learner: out of memory");
    *l = (linear){.data = source->data,
                  .shares = source->shares,
                  .loss = model->loss,
                  .l2 = model->l2,
                  .batch = source->settings->data.batch,
                  .features = train->features,
                  .row = malloc(train->features * sizeof *l->row),
                  .sum = malloc((train->features + (size_t)1) * sizeof *l->sum),
                  .tensors = {{"weight", {train->features}, 1}, {"bias", {1}, 1}}};
    if (l->row == NULL || l->sum == NULL)
        return sl_fail(error, SL_ENOMEM, "learner: out of memory for %u features", train->features);
    out->dimension = train->features + (size_t)1;
    out->tensors = l->tensors;
    out->tensor_count = TENSORS;
    out->products = train->features;
    out->bytes = out->dimension * (sizeof *l->sum + sizeof *l->row);
    snprintf(text, size, "linear %u-1, %s loss%s", train->features,
             l->loss == SL_LOSS_SQUARED ? "squared" : "logistic",
             l->l2 > 0 ? " with an l2 term" : "");
    return check_classes(source->settings, train, error);
}

static void close_it(void *self) {
    linear *l = self;
    if (l == NULL)
        return;
    free(l->row);
    free(l->sum);
    free(l);
}

static void initial(const void *self, uint32_t rank, float *x) {
    (void)rank; /* all start alike */
    memset(x, 0, (((const linear *)self)->features + (size_t)1) * sizeof *x);
}

/* Of a sample: its loss, and the loss's derivative by the score. */
typedef struct scored {
    double loss, slope;
    bool correct;
} scored;

static scored score_of(double z, double target, uint16_t label, sl_loss_kind loss) {
    if (loss == SL_LOSS_SQUARED) {
        const double r = z - target;
        return (scored){.loss = r * r / 2, .slope = r};
    }
    const double y = label == 1 ? 1 : -1, margin = y * z, e = exp(-fabs(margin));
    return (scored){.loss = log1p(e) + (margin < 0 ? -margin : 0),
                    .slope = -y * (margin < 0 ? 1 : e) / (1 + e),
                    .correct = (z > 0) == (label == 1)};
}

/* Leaves the sample's numbers in `row`. */
static scored take(linear *l, const sl_samples *samples, uint32_t index, const float *x) {
    const uint16_t *label = sl_samples_get(samples, index, l->row);
    double z = x[l->features];
    for (uint32_t k = 0; k < l->features; k++)
        z += (double)l->row[k] * (double)x[k];
    return score_of(z, samples->targets != NULL ? samples->targets[index] : 0, *label, l->loss);
}

static double gradient(void *self, uint32_t rank, uint64_t round, const float *x, float *g) {
    linear *l = self;
    const uint32_t d = l->features + 1, *indices,
                   rows = sl_shares_batch(l->shares, rank, round, l->batch, &indices);
    double loss = 0, square = 0;
    memset(l->sum, 0, d * sizeof *l->sum);
    for (uint32_t i = 0; i < rows; i++) {
        const scored s = take(l, &l->data->train, indices[i], x);
        loss += s.loss;
        for (uint32_t k = 0; k < l->features; k++)
            l->sum[k] += s.slope * (double)l->row[k];
        l->sum[l->features] += s.slope;
    }
    for (uint32_t k = 0; k < d; k++) {
        g[k] = (float)(l->sum[k] / rows + l->l2 * (double)x[k]);
        square += (double)x[k] * (double)x[k];
    }
    return loss / rows + l->l2 / 2 * square;
}

static sl_evaluation evaluate(void *self, const float *x) {
    linear *l = self;
    const sl_samples *test = &l->data->test;
    double loss = 0;
    uint64_t correct = 0;
    for (uint32_t i = 0; i < test->count; i++) {
        const scored s = take(l, test, i, x);
        loss += s.loss;
        correct += s.correct;
    }
    return (sl_evaluation){.loss = loss / test->count,
                           .accuracy =
                               l->loss == SL_LOSS_LOGISTIC ? (double)correct / test->count : NAN};
}

const sl_problem_ops sl_linear_problem = {
    .takes_data = true,
    .open = open,
    .close = close_it,
    .initial = initial,
    .gradient = gradient,
    .evaluate = evaluate,
};
