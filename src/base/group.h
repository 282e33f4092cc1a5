/* group.h - what the control group of this process (cgroups(7), either version) may take.
 *
 * The lowest limit counts, of the process's own group and of those above it. What a container does
 * not show of these, it mounts as "/". */
#ifndef SL_GROUP_H
#define SL_GROUP_H

/* 0: no limit. */
double sl_group_bytes(void);
double sl_group_cores(void);

#endif
