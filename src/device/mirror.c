/* mirror.c - see mirror.h. */
#include "device/mirror.h"

static int open_copies(sl_mirror *m, sl_error *error) {
    size_t bytes = m->task->dimension * sizeof *m->x;
    m->x = m->vec->allocate_host(bytes);
    m->g = m->task->attach == NULL ? m->vec->allocate_host(bytes) : NULL;
    if (m->x != NULL && (m->g != NULL || m->task->attach != NULL))
        return 0;
    sl_mirror_close(m);
    return sl_fail(error, SL_ENOMEM, "%s: out of host memory for %zu parameters", m->vec->name,
                   m->task->dimension);
}

int sl_mirror_open(sl_mirror *out, const sl_vec_ops *vec, const sl_task *task, sl_error *error) {
    sl_mirror m = {.vec = vec, .task = task};
    int result = task->attach != NULL ? task->attach(task->context, vec, error) : 0;
    if (result == 0 && !vec->on_host)
        result = open_copies(&m, error);
    if (result == 0)
        *out = m;
    return result;
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
    m->vec->copy_out(m->x, v, m->task->dimension * sizeof *v);
    return m->x;
}

void sl_mirror_initial(const sl_mirror *m, uint32_t rank, float *x) {
    if (m->vec->on_host) {
        m->task->initial(m->task->context, rank, x);
        return;
    }
    m->task->initial(m->task->context, rank, m->x);
    m->vec->copy_in(x, m->x, m->task->dimension * sizeof *x);
}

double sl_mirror_gradient(const sl_mirror *m, uint32_t rank, uint64_t round, const float *x,
                          float *g) {
    if (m->g == NULL)
        return m->task->gradient(m->task->context, rank, round, x, g);
    double loss = m->task->gradient(m->task->context, rank, round, sl_mirror_view(m, x), m->g);
    m->vec->copy_in(g, m->g, m->task->dimension * sizeof *g);
    return loss;
}
