/* life.h - an agent of a run in the virtual world: what run/cmd_agent.c does, without files. */
#ifndef LIFE_H
#define LIFE_H

#include "children.h"

/* What happens to a process as it begins and ends. */
typedef struct life_fate {
    double start_s; /* until it comes up */
    bool silent;    /* it never does */
    bool refused;   /* it does not start, and says why */
    bool exits;     /* it does not start, and says nothing */
    bool hangs;     /* it does not exit when it is through */
} life_fate;

/* All children are such agents, of `experiment` and `task` (expected.h). Forgets all before. */
void life_open(life_fate (*fate)(uint32_t rank, bool joins));

#endif
