/* collective.h - what all agents of a run do at the same point: meet in one round, add vectors up,
 * end.
 *
 * For tasks of agents that were opened with sl_agent_settings.meets: their `initial` and `gradient`
 * call this, on the agent's worker thread. Agents need not come in the same round:
 *
 *   double gradient(context, rank, round, x, g):
 *       wait until the user wants a round, an average, or to leave
 *       ... an average:
 *       result = sl_agent_meet(agent, round, SL_MEET_SUM, &error);
 *       if (result == 0)                  others still train, and need this round of us
 *           fill g with zeros, return; the next call of gradient calls sl_agent_meet again
 *       if (result == SL_MEET_SUM)        all are here, in this round, between two exchanges
 *           sl_agent_sum(agent, &share, &error), as often as all others, then the next wish
 *
 * An agent that has come answers the others' rounds with displacement 0, as long as they go on
 * training; all meet in the latest round in which any of them came. So an agent with fewer batches
 * waits for the others without stopping them, and the result depends on nobody's speed.
 *
 * An agent that came to leave takes part in the sums of the others, and then comes to leave
 * again.
 */
#ifndef SL_COLLECTIVE_H
#define SL_COLLECTIVE_H

#include "route/tree.h"
#include "starling/agent.h"

typedef enum sl_meet {
    SL_MEET_SUM = 1, /* sums follow */
    SL_MEET_END,     /* the run ends well when the gradient that met has returned, on all agents */
    SL_MEET_STANDS,  /* of agents alone, as a view begins: `round` is how many meetings for sums are
                        behind it */
    SL_MEET_CUT /* at their own times, after a sum: all rest, and a view of the same members begins
                 */
} sl_meet;

/* What a call returns where the run goes on without a lost peer: the loss has cut this sum, which
 * counts as done, on all agents that did not finish it. */
#define SL_SUM_VOID 4

/* Comes to the next meeting, or stays in it. `round`: the gradient's; 0 in `initial`.
 *   SL_MEET_SUM: all have come, at least one of them for sums.
 *   SL_MEET_END: all have come to end.
 *   SL_SUM_VOID: others are past a sum that this agent came for; or a loss has cut a CUT.
 *   0: return a gradient of zeros, and call again from the next one. Never in `initial`. Of CUT:
 *     the view has begun, and sl_checkpoints.cut was called before.
 *   negative: the run has failed. SL_EPEER if an agent did not come and nothing moved for
 *     transport.round_timeout_s; the text names it. Return; sl_agent_run returns the same error.
 * Blocks until it knows. */
int sl_agent_meet(sl_agent *agent, uint64_t round, sl_meet purpose, sl_error *error);

/* Waits until this agent's node rests (sl_node_rests): its pieces then stay as they are until the
 * gradient returns. In `gradient`. */
int sl_agent_rest(sl_agent *agent, sl_error *error);

/* The sum over all agents of the view, after a meeting for it. Blocks; share->x and share->numbers
 * hold the result when it returns 0. Has the bits of sl_tree_sum over the tree of this experiment.
 * SL_SUM_VOID: there is no result, and no further sum of this meeting. */
int sl_agent_sum(sl_agent *agent, const sl_share *share, sl_error *error);

#endif
