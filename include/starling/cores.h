/* cores.h - how many processors a process has. */
#ifndef STARLING_CORES_H
#define STARLING_CORES_H

#include "starling/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Cores that this process may run on, or what quotas of its control group, and of those above it,
 * leave of them: 1.5. */
SL_API double sl_cores(void);

#ifdef __cplusplus
}
#endif
#endif
