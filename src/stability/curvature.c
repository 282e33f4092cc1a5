/* curvature.c - the largest curvature of a task's losses; see starling/stability.h.
 *
 * H v is (g(x + e v) - g(x - e v)) / 2 e, so that a gradient is all that a task needs. A node's
 * batch of a round is the same each time.
 */
#include <math.h>
#include <stdlib.h>

#include "starling/stability.h"

enum { NODES = 4, STEPS = 24 };
static const double reach = 1e-2; /* e, of a v of length 1 */

typedef struct probe {
    const sl_task *task;
    uint32_t rank;
    float *x, *v, *shifted, *ahead, *behind; /* (d) */
} probe;

static double norm(const float *v, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)v[i] * v[i];
    return sqrt(sum);
}

static void take_gradient(const probe *p, double e, float *g) {
    const size_t d = p->task->dimension;
    for (size_t i = 0; i < d; i++)
        p->shifted[i] = (float)(p->x[i] + e * p->v[i]);
    p->task->gradient(p->task->context, p->rank, 1, p->shifted, g);
}

/* v becomes H v / |H v|; returns |H v|. */
static double step(const probe *p) {
    const size_t d = p->task->dimension;
    take_gradient(p, reach, p->ahead);
    take_gradient(p, -reach, p->behind);
    for (size_t i = 0; i < d; i++)
        p->v[i] = (float)((p->ahead[i] - p->behind[i]) / (2 * reach));
    const double length = norm(p->v, d);
    for (size_t i = 0; i < d && length > 0; i++)
        p->v[i] = (float)(p->v[i] / length);
    return length;
}

static double curvature_of(const probe *p) {
    const size_t d = p->task->dimension;
    double found = 0;
    p->task->initial(p->task->context, p->rank, p->x);
    for (size_t i = 0; i < d; i++)
        p->v[i] = i % 3 == 0 ? 1 : i % 3 == 1 ? -0.7f : 0.4f;
    const double length = norm(p->v, d);
    for (size_t i = 0; i < d; i++)
        p->v[i] = (float)(p->v[i] / length);
    for (int i = 0; i < STEPS; i++)
        found = step(p);
    return found;
}

double sl_stability_curvature(const sl_task *task, uint32_t nodes) {
    const size_t d = task->dimension;
    float *memory = malloc(5 * d * sizeof *memory);
    double most = 0;
    if (memory == NULL)
        return NAN;
    probe p = {task, 0, memory, memory + d, memory + 2 * d, memory + 3 * d, memory + 4 * d};
    for (uint32_t i = 0; i < NODES && i < nodes; i++) {
        p.rank = (uint32_t)((uint64_t)i * nodes / NODES);
        const double of_one = curvature_of(&p);
        most = of_one > most || isnan(of_one) ? of_one : most;
    }
    free(memory);
    return isfinite(most) ? most : NAN;
}
