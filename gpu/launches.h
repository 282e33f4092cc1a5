/* launches.h - counts the launches of each kernel, so that a test can show where a run computed.
 *
 * With STARLING_LAUNCHES=FILE in the environment, a process appends a line "KERNEL COUNT" to FILE
 * at exit for each kernel that it launched, and "product COUNT" for matrix products. */
#ifndef SL_LAUNCHES_H
#define SL_LAUNCHES_H

#include "gpu/kernels.h"
#include "gpu/layer_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NAME_LAUNCH(kernel) LAUNCH_##kernel,
typedef enum launch {
    SL_ALL_KERNELS(NAME_LAUNCH) SL_LAYER_KERNELS(NAME_LAUNCH) LAUNCH_product,
    LAUNCHES
} launch;
#undef NAME_LAUNCH

/* Counts one launch. Thread-safe. */
void launches_count(launch kernel);

#ifdef __cplusplus
}
#endif
#endif
