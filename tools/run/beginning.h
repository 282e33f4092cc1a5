/* beginning.h - what an agent's run folder says of how it begins: with the run, from a checkpoint
 * of its own, or with the others, as its process before has recorded some of their run. */
#ifndef BEGINNING_H
#define BEGINNING_H

#include "cli/tool.h"

typedef struct beginning {
    bool ended;    /* the folder holds a run that has come to its end */
    bool recorded; /* or one of this rank that has not */
    bool saved;    /* and checkpoints of this rank */
} beginning;

int beginning_find(beginning *out, const char *folder, const sl_experiment *experiment,
                   uint32_t rank, sl_error *error);
/* Refuses --join where it cannot be. */
int beginning_check_join(const options *o, sl_error *error);

#endif
