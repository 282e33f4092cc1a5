/* host_task.c - see host_task.h. */
#include "task/host_task.h"

static int open_copies(sl_host_task *h, sl_error *error) {
    size_t bytes = h->task->dimension * sizeof *h->x;
    h->x = h->vec->allocate_host(bytes);
    h->g = h->task->attach == NULL ? h->vec->allocate_host(bytes) : NULL;
    if (h->x != NULL && (h->g != NULL || h->task->attach != NULL))
        return 0;
    sl_host_task_close(h);
    return sl_fail(error, SL_ENOMEM, "%s: out of host memory for %zu parameters", h->vec->name,
                   h->task->dimension);
}

int sl_host_task_open(sl_host_task *out, const sl_vec_ops *vec, const sl_task *task,
                      sl_error *error) {
    sl_host_task h = {.vec = vec, .task = task};
    int result = task->attach != NULL ? task->attach(task->context, vec, error) : 0;
    if (result == 0 && !vec->on_host)
        result = open_copies(&h, error);
    if (result == 0)
        *out = h;
    return result;
}

void sl_host_task_close(sl_host_task *h) {
    if (h->x != NULL)
        h->vec->release_host(h->x);
    if (h->g != NULL)
        h->vec->release_host(h->g);
    h->x = h->g = NULL;
}

const float *sl_host_task_view(const sl_host_task *h, const float *v) {
    if (h->vec->on_host)
        return v;
    h->vec->copy_out(h->x, v, h->task->dimension * sizeof *v);
    return h->x;
}

void sl_host_task_initial(const sl_host_task *h, uint32_t rank, float *x) {
    if (h->vec->on_host) {
        h->task->initial(h->task->context, rank, x);
        return;
    }
    h->task->initial(h->task->context, rank, h->x);
    h->vec->copy_in(x, h->x, h->task->dimension * sizeof *x);
}

double sl_host_task_gradient(const sl_host_task *h, uint32_t rank, uint64_t round, const float *x,
                             float *g) {
    if (h->g == NULL)
        return h->task->gradient(h->task->context, rank, round, x, g);
    double loss = h->task->gradient(h->task->context, rank, round, sl_host_task_view(h, x), h->g);
    h->vec->copy_in(g, h->g, h->task->dimension * sizeof *g);
    return loss;
}
