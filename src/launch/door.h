/* door.h - of all processes that call themselves rank 0 of one job, one waits at a time. */
#ifndef SL_DOOR_H
#define SL_DOOR_H

#include "launch/rendezvous.h"

/* Takes the name of the rendezvous, in at most timeout_s; *out: a descriptor, closed when others
 * may have it; -1: this system has no such names. SL_EINVAL: another job has it, and says so. */
int sl_door_open(int *out, const sl_rendezvous *rendezvous, sl_error *error);

#endif
