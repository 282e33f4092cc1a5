/* mirror.h - a task, which works on host memory, and vectors that a device keeps: copies between the two, where they are needed.
 *
 * Where vectors are on the host nothing is copied, and nothing allocated. One thread at a time.
 */
#ifndef SL_MIRROR_H
#define SL_MIRROR_H

#include "starling/task.h"
#include "starling/vec.h"

typedef struct sl_mirror {
    const sl_vec_ops *vec;
    size_t dimension;
    float *x, *g; /* (dimension) NULL where vectors are on the host */
} sl_mirror;

int sl_mirror_open(sl_mirror *out, const sl_vec_ops *vec, size_t dimension, sl_error *error);
void sl_mirror_close(sl_mirror *mirror);
/* The vector's elements on the host, until the next call. */
const float *sl_mirror_view(const sl_mirror *mirror, const float *v);
/* The task's calls, on vectors of mirror->vec. */
void sl_mirror_initial(const sl_mirror *mirror, const sl_task *task, uint32_t rank, float *x);
double sl_mirror_gradient(const sl_mirror *mirror, const sl_task *task, uint32_t rank, uint64_t round, const float *x, float *g);

#endif
