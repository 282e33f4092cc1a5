/* loss.c - softmax and cross-entropy on the CPU: see sl_loss_call. */
#include <math.h>

#include "learner/layers/layer_cpu.h"

static uint32_t largest(const float *z, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (z[i] > z[best])
            best = i;
    return best;
}

/* -log softmax(z)[label]; exp(z - top) is left in z and its sum in *sum: no overflow whatever z is.
 */
static double cross_entropy(float *z, uint32_t count, uint16_t label, float top, float *sum) {
    float at_label = z[label], total = 0;
    for (uint32_t i = 0; i < count; i++) {
        z[i] = expf(z[i] - top);
        total += z[i];
    }
    *sum = total;
    return log((double)total) - ((double)at_label - (double)top);
}

static void become_gradient(float *z, uint32_t classes, uint16_t label, float sum, uint32_t rows) {
    float scale = 1.0f / (sum * (float)rows);
    for (uint32_t i = 0; i < classes; i++)
        z[i] *= scale;
    z[label] -= 1.0f / (float)rows;
}

void sl_loss_cpu(const sl_loss_call *c) {
    float *z = c->z, sum;
    double loss = 0, correct = 0;
    for (uint32_t row = 0; row < c->rows; row++, z += c->classes) {
        uint32_t best = largest(z, c->classes);
        correct += best == c->labels[row];
        loss += cross_entropy(z, c->classes, c->labels[row], z[best], &sum);
        if (c->gradient)
            become_gradient(z, c->classes, c->labels[row], sum, c->rows);
    }
    c->result[0] = loss;
    c->result[1] = correct;
}

size_t sl_loss_scratch_cpu(uint32_t rows) {
    (void)rows;
    return 0;
}
