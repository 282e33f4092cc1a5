/* cores.c - see starling/cores.h. */
#include "starling/cores.h"

#include <sched.h>
#include <unistd.h>

#include "base/group.h"

double sl_cores(void) {
    cpu_set_t set;
    const double quota = sl_group_cores();
    const double cores = sched_getaffinity(0, sizeof set, &set) == 0
                             ? CPU_COUNT(&set)
                             : (double)sysconf(_SC_NPROCESSORS_ONLN);
    return quota > 0 && quota < cores ? quota : cores;
}
