/* mirror.c - see mirror.h. */
#include "device/mirror.h"

int sl_mirror_open(sl_mirror *out, const sl_vec_ops *vec, size_t dimension, sl_error *error) {
    sl_mirror m = {.vec = vec, .dimension = dimension};
    if (!vec->on_host) {
        m.x = vec->allocate_host(dimension * sizeof *m.x);
        m.g = vec->allocate_host(dimension * sizeof *m.g);
        if (m.x == NULL || m.g == NULL) {
            sl_mirror_close(&m);
            return sl_fail(error, SL_ENOMEM, "%s: out of host memory for %zu parameters", vec->name, dimension);
        }
    }
    *out = m;
    return 0;
}

void sl_mirror_close(sl_mirror *m) {
    if (m->x != NULL)
        m->vec->release_host(m->x);
    if (m->g != NULL)
        m->vec->release_host(m->g);
    m->x = m->g = NULL;
}

const float *sl_mirror_view(const sl_mirror *m, const float *v) {
    if (m->vec->on_host)
        return v;
    m->vec->copy_out(m->x, v, m->dimension * sizeof *v);
    return m->x;
}

void sl_mirror_initial(const sl_mirror *m, const sl_task *task, uint32_t rank, float *x) {
    if (m->vec->on_host) {
        task->initial(task->context, rank, x);
        return;
    }
    task->initial(task->context, rank, m->x);
    m->vec->copy_in(x, m->x, m->dimension * sizeof *x);
}

double sl_mirror_gradient(const sl_mirror *m, const sl_task *task, uint32_t rank, uint64_t round, const float *x, float *g) {
    double loss = task->gradient(task->context, rank, round, sl_mirror_view(m, x), m->vec->on_host ? g : m->g);
    if (!m->vec->on_host)
        m->vec->copy_in(g, m->g, m->dimension * sizeof *g);
    return loss;
}
