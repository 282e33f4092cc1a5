/* first_view.h - which agents begin, or go on from a checkpoint, together: all of the topology, or
 * the members of the view that the checkpoint was written in.
 *
 * Of such a view's members the run goes on as it does with any view: the next round is the first
 * one under a view of their own, from the models that they have. Other ranks join.
 */
#ifndef SL_FIRST_VIEW_H
#define SL_FIRST_VIEW_H

#include "starling/checkpoint.h"
#include "starling/view.h"

struct sl_agent;

/* Before the node is opened: finds the view that the newest checkpoint is of. */
int sl_first_view_find(struct sl_agent *agent, sl_error *error);
/* Is that rank one of them? */
bool sl_first_view_has(const struct sl_agent *agent, uint32_t rank);
/* As a view, without its first exchange. members: room for all ranks. */
sl_view sl_first_view_members(const struct sl_agent *agent, sl_member *members);
/* The round to go on from is chosen: is it of the view that was found? */
int sl_first_view_check(const struct sl_agent *agent, sl_error *error);
/* Of the node's view, for a checkpoint; number 0: all are in it, or there are too many. */
sl_checkpoint_view sl_first_view_now(const struct sl_agent *agent);

#endif
