/* origin.h - from where a process of a job was started.
 *
 * RANK and WORLD_SIZE do not say of which job they are. Two jobs that wait at one port can be told
 * apart only by how their processes were started: as whom, where, with which command line and which
 * experiment, and on one host with which variables. Processes of one job may differ in that too, so
 * it is evidence, and no proof.
 */
#ifndef SL_ORIGIN_H
#define SL_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_origin {
    uint64_t command; /* user, folder, command line, experiment */
    uint64_t place;   /* the same, but for numbers in it that are the process's own rank */
    uint64_t host;    /* 0: not known */
    uint64_t variables;
} sl_origin;

/* Of this process; of the one that it was made by, where that is Python's multiprocessing.
 * local_rank: its number on this host. False: out of memory. */
bool sl_origin_find(sl_origin *out, uint32_t rank, uint32_t local_rank, uint64_t experiment);
/* Does all that is known of both agree? */
bool sl_origin_agrees(const sl_origin *a, const sl_origin *b);
/* For how long this process has been there: others of its job may be as much later. */
double sl_origin_age_s(void);

#endif
