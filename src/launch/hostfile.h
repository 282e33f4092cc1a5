/* hostfile.h - the lists of hosts that launchers read, as hosts with slots.
 *
 *   node01 slots=4 max_slots=8     Open MPI
 *   node01:4                       MPICH, Intel MPI, MVAPICH: 4 slots, unless it must be a port
 *   node01                         one slot for each line: PBS_NODEFILE, `scontrol show hostnames`
 *   rack[1-2]n[07,09-12]           Slurm's nodelists
 */
#ifndef SL_HOSTFILE_H
#define SL_HOSTFILE_H

#include "launch/names.h"
#include "starling/error.h"

typedef struct sl_slots {
    uint32_t host; /* in `names` */
    uint32_t count;
    int line;
} sl_slots;

typedef struct sl_hostfile {
    sl_slots *hosts; /* (count) in the order of the lines */
    size_t count, room;
    sl_names names;
    uint64_t slots; /* in all */
} sl_hostfile;

/* ranks: how many are wanted, by which "node01:4" is told from a roster's HOST:PORT. Returns 1: it
 * is filled, and to be closed; 0: the text is no list of hosts, but may be a roster; SL_EFILE: it
 * is one, with a mistake. */
int sl_hostfile_parse(sl_hostfile *out, const char *text, const char *where, uint32_t ranks,
                      sl_error *error);
const char *sl_hostfile_host(const sl_hostfile *hostfile, size_t at);
void sl_hostfile_close(sl_hostfile *hostfile);

#endif
