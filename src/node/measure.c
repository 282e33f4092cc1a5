/* measure.c - see measure.h. */
#include "node/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "starling/error.h"
#include "vec/finite.h"

static size_t sums_of(const sl_measure *m) {
    return m->width * m->parts;
}

int sl_measure_open(sl_measure *m, const sl_vec_ops *vec, size_t width, size_t parts,
                    size_t dimension) {
    *m = (sl_measure){.vec = vec, .width = width, .parts = parts};
    const size_t count = sums_of(m) + 1;
    if (vec->async != NULL) {
        m->sums = (double *)(void *)vec->allocate(count * sizeof(double) / sizeof(float));
        m->work = vec->allocate(vec->async->distance_floats(dimension, parts));
    }
    m->found = calloc(count, sizeof *m->found);
    m->weights = calloc(count, sizeof *m->weights);
    const bool complete = vec->async == NULL || (m->sums != NULL && m->work != NULL);
    return complete && m->found != NULL && m->weights != NULL ? 0 : SL_ENOMEM;
}

void sl_measure_close(sl_measure *m) {
    if (m->sums != NULL)
        m->vec->release((float *)(void *)m->sums);
    if (m->work != NULL)
        m->vec->release(m->work);
    free(m->found);
    free(m->weights);
    *m = (sl_measure){0};
}

void sl_measure_begin(sl_measure *m) {
    memset(m->weights, 0, sums_of(m) * sizeof *m->weights);
}

void sl_measure_add(sl_measure *m, size_t neighbour, double weight, size_t first,
                    const float *theirs, const float *own, size_t count, size_t each) {
    const size_t at = neighbour * m->parts + first;
    for (size_t i = 0; i * each < count; i++)
        m->weights[at + i] = weight;
    if (m->sums == NULL)
        m->found[at] = m->vec->distance_squared(theirs, own, count);
    else
        m->vec->async->begin_distances(m->sums + at, m->work, theirs, own, count, each);
}

static double total(const sl_measure *m) {
    double sum = 0;
    for (size_t p = 0; p < m->parts; p++)
        for (size_t i = 0; i < m->width; i++) {
            const size_t at = i * m->parts + p;
            if (m->weights[at] != 0)
                sum += m->weights[at] * m->found[at];
        }
    return sum;
}

bool sl_measure_read(sl_measure *m, const float *model, size_t dimension, double *distance) {
    const size_t norm = sums_of(m);
    if (m->sums != NULL) {
        m->vec->async->begin_distances(m->sums + norm, m->work, model, NULL, dimension, dimension);
        m->vec->copy_out(m->found, m->sums, (norm + 1) * sizeof *m->sums);
    }
    *distance = total(m);
    return m->sums != NULL ? isfinite(m->found[norm]) : sl_vec_is_finite(model, dimension);
}
