/* folding.h - which neighbours the node goes on without, in the midst of a view or with its begin.
 *
 * A neighbour is folded once it is lost, or will send nothing more of this epoch: as it is in a
 * later one, has folded this agent, or has stepped aside.
 */
#ifndef SL_AGENT_FOLDING_H
#define SL_AGENT_FOLDING_H

#include "agent/neighbour.h"
#include "starling/epoch.h"

struct sl_agent;

/* The node folds it now. What is on its way to it is given up. */
void sl_folding_lose(struct sl_agent *agent, sl_neighbour *n);
/* An exchange that is to be void is so once nothing of it is on its way out. */
void sl_folding_go_on(struct sl_agent *agent);
/* All, who are told: whoever is in this agent's epoch folds it, too. */
void sl_folding_lose_all(struct sl_agent *agent);
/* Those who are near and not in the view have nothing more to say. */
void sl_folding_lose_absent(struct sl_agent *agent, const sl_epoch *view);
/* The node's view begins: what is sent is of it from now on. */
void sl_folding_turn(struct sl_agent *agent, const sl_epoch *view);
/* After that: those whose edges are broken, or who were lost after the view was agreed on. */
void sl_folding_repeat(struct sl_agent *agent);
/* Notes which other process may go on in a neighbour's place: the newest epoch's, or any, if it has
 * none. */
void sl_folding_find_heirs(struct sl_agent *agent);
/* It said something: is it through with this epoch? Then what the node waits for does not come.
 * True: it is reached, in the same epoch, and does without this agent, which a view mends. */
bool sl_folding_watch(struct sl_agent *agent, sl_neighbour *n);

#endif
