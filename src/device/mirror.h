/* mirror.h - a task and vectors that a device keeps: where the task computes on the host, copies
 * between the two.
 *
 * A task that can is attached to the vectors (sl_task.attach), and only its start, what is recorded
 * and what is evaluated is copied. Where vectors are on the host nothing is copied, and nothing
 * allocated. One thread at a time.
 */
#ifndef SL_MIRROR_H
#define SL_MIRROR_H

#include "starling/task.h"
#include "starling/vec.h"

typedef struct sl_mirror {
    const sl_vec_ops *vec;
    const sl_task *task;
    float *x, *g; /* (dimension) on the host; NULL where vectors are; g also where the task takes
                     the device's */
} sl_mirror;

/* Attaches the task, which is borrowed. */
int sl_mirror_open(sl_mirror *out, const sl_vec_ops *vec, const sl_task *task, sl_error *error);
void sl_mirror_close(sl_mirror *mirror);
/* The vector's elements on the host, until the next call. */
const float *sl_mirror_view(const sl_mirror *mirror, const float *v);
/* The task's calls, on vectors of mirror->vec. */
void sl_mirror_initial(const sl_mirror *mirror, uint32_t rank, float *x);
double sl_mirror_gradient(const sl_mirror *mirror, uint32_t rank, uint64_t round, const float *x,
                          float *g);

#endif
