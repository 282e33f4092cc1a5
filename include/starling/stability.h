/* stability.h - the largest step with which an experiment's algorithm converges. */
#ifndef STARLING_STABILITY_H
#define STARLING_STABILITY_H

#include "starling/api.h"
#include "starling/experiment.h"
#include "starling/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Learning rates times curvature, below which models converge where every node's loss is quadratic
 * with that curvature. INFINITY: no limit was found. */
typedef struct sl_stability {
    double mean;   /* of what the models have in common */
    double apart;  /* of what they differ by; INFINITY: it is not below `mean` */
    double lambda; /* the eigenvalue of W that `apart` follows from */
    double most;   /* the lesser of both */
    double lazy;   /* the same with (I + W)/2 in place of W */
} sl_stability;

/* Of a linear algorithm with plain SGD, momentum and local steps. Of a fixed symmetric W the second
 * largest and smallest eigenvalue are given; another one, with NaN, or a schedule has to be small:
 * its network is run whole, and all is said of `mean`. Messages are taken as uncompressed.
 * SL_EINVAL: it is not known of this experiment; the text says why. */
SL_API int sl_stability_find(sl_stability *out, const sl_experiment *experiment,
                             const sl_plan *plan, double lambda_2, double lambda_n,
                             sl_error *error);

/* The largest curvature of the task's losses at its first models, by power iteration over a few
 * nodes' gradients of round 1: of a quadratic its L, else an estimate. NaN: it is not finite, or
 * out of memory. */
SL_API double sl_stability_curvature(const sl_task *task, uint32_t nodes);

#ifdef __cplusplus
}
#endif
#endif
