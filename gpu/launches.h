/* launches.h - counts the launches of each kernel, and what else the device costs the host, so that
 * tests can show where a run computed, and hold what it cost against limits.
 *
 * With STARLING_LAUNCHES=FILE in the environment, a process appends a line "KERNEL COUNT" to FILE
 * at exit for each kernel that it launched, "product COUNT" for matrix products, "graph
 * COUNT" for what is repeated, whose kernels count when it is noted, and "calls COUNT",
 * "bells COUNT" and "waits COUNT" for the costs below, which a GPU's plug-in does not count. */
#ifndef SL_LAUNCHES_H
#define SL_LAUNCHES_H

#include "gpu/kernels.h"
#include "gpu/layer_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NAME_LAUNCH(kernel) LAUNCH_##kernel,
typedef enum launch {
    SL_KERNELS(NAME_LAUNCH) SL_BLOCK_KERNELS(NAME_LAUNCH) SL_LAYER_BLOCK_KERNELS(NAME_LAUNCH)
        SL_LAYER_KERNELS(NAME_LAUNCH) LAUNCH_product,
    LAUNCH_graph,
    LAUNCHES
} launch;
#undef NAME_LAUNCH

/* Counts one launch. Thread-safe, as the next one. */
void launches_count(launch kernel);

typedef enum cost {
    COST_CALLS, /* of the CUDA runtime */
    COST_BELLS, /* callbacks, each of which ends a sleep */
    COST_WAITS, /* calls that return when the device has done something */
    COSTS
} cost;
void costs_count(cost what, unsigned count);

#ifdef __cplusplus
}
#endif
#endif
