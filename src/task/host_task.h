/* host_task.h - a task whose vectors are kept on a device.
 *
 * A task that can attach computes on the device; only initial models, records and evaluations are
 * copied. Any other task computes on the host, and its vectors are copied to and fro. Where vectors
 * are on the host, nothing is copied and nothing allocated. One thread at a time.
 */
#ifndef SL_HOST_TASK_H
#define SL_HOST_TASK_H

#include "starling/task.h"
#include "starling/vec.h"

typedef struct sl_host_task {
    const sl_vec_ops *vec;
    const sl_task *task;
    float *x; /* (dimension) host copy; NULL where vectors are on the host */
    float *g; /* (dimension) likewise; NULL also where the task computes on the device */
} sl_host_task;

/* Attaches the task, which is borrowed. */
int sl_host_task_open(sl_host_task *out, const sl_vec_ops *vec, const sl_task *task,
                      sl_error *error);
void sl_host_task_close(sl_host_task *host);
/* The elements of v on the host; valid until the next call. */
const float *sl_host_task_view(const sl_host_task *host, const float *v);
/* The task's calls, on vectors of host->vec. */
void sl_host_task_initial(const sl_host_task *host, uint32_t rank, float *x);
double sl_host_task_gradient(const sl_host_task *host, uint32_t rank, uint64_t round,
                             const float *x, float *g);

#endif
