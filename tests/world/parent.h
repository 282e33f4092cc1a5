/* parent.h - a run of agents in the virtual world: what run/cmd_run.c does around agents_run,
 * without folder and terminal. */
#ifndef PARENT_H
#define PARENT_H

#include "run/agents.h"
#include "scenario.h"
#include "virtual.h"

typedef struct parent {
    process *process;
    bool finished; /* it has finished its folder */
    int result;
    sl_error error;
    double ended_s;
    bool complained; /* an agent has named whom a blow has hit (blame.h), on standard error */
    uint32_t losses, restarts; /* that it has told its owner of */
    bool is_back[NODES_MAX];   /* likewise */
} parent;
extern parent run;

/* Starts it, with `experiment` and `task` (expected.h), which has so many nodes. The checkpoints
 * outlive it. */
void parent_begin(const sl_checkpoints *checkpoints, uint32_t nodes);
bool parent_is_over(void);
/* It has ended. */
void parent_judge(bool verbose);

#endif
