/* apply.c - W times a vector; see apply.h. */
#include "topology/graph/apply.h"

#include <math.h>

#include "starling/rng.h"

static void multiply(const side *s, const double *self, uint32_t nodes, const double *x,
                     double *y) {
    for (uint32_t i = 0; i < nodes; i++) {
        double sum = self[i] * x[i];
        for (uint64_t e = s->start[i]; e < s->start[i + 1]; e++)
            sum += s->weights[e] * x[s->peers[e]];
        y[i] = sum;
    }
}

void sl_slot_apply(const slot *p, uint32_t nodes, const double *x, double *y) {
    multiply(&p->in, p->self, nodes, x, y);
}

void sl_slot_apply_transposed(const slot *p, uint32_t nodes, const double *x, double *y) {
    multiply(&p->out, p->self, nodes, x, y);
}

void sl_vector_center(double *x, uint32_t nodes) {
    double sum = 0;
    for (uint32_t i = 0; i < nodes; i++)
        sum += x[i];
    for (uint32_t i = 0; i < nodes; i++)
        x[i] -= sum / nodes;
}

double sl_vector_length(const double *x, uint32_t nodes) {
    double squares = 0;
    for (uint32_t i = 0; i < nodes; i++)
        squares += x[i] * x[i];
    return sqrt(squares);
}

/* Rank UINT32_MAX draws no graph. */
void sl_vector_random(double *x, uint32_t nodes, uint64_t which) {
    sl_rng rng = sl_rng_open(0, UINT32_MAX, which, SL_PURPOSE_TOPOLOGY);
    for (uint32_t i = 0; i < nodes; i++)
        x[i] = sl_rng_uniform(&rng) - 0.5;
    sl_vector_center(x, nodes);
    double length = sl_vector_length(x, nodes);
    for (uint32_t i = 0; i < nodes && length > 0; i++)
        x[i] /= length;
}
