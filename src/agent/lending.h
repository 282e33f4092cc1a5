/* lending.h - what a task lends (sl_task.lend) is published from where it is. */
#ifndef SL_LENDING_H
#define SL_LENDING_H

#include "arena/arena.h"
#include "starling/agent.h"
#include "starling/node.h"

/* Memory that neighbours of this host read where it is (SL_NODE_ROOMS, *stride floats): what is
 * lent from there stays there until its room is free. NULL: there is none. *in: it is there, for
 * who holds it. Each begins a page. */
float *sl_agent_rooms(const sl_agent *agent, size_t *stride, sl_arena **in);
/* Those that nobody reads, a bit each. In sl_task.lend, or on the agent's own thread. */
unsigned sl_agent_free_rooms(const sl_agent *agent);

/* Before GRADIENT: asks the task. */
int sl_agent_lend(sl_agent *agent, sl_error *error);

#endif
