/* cutting.h - a loss cuts the exchange under way: nothing more is exchanged until a view begins.
 *
 * What is on its way out of this agent's memory leaves first; then the node hears of the cut.
 */
#ifndef SL_AGENT_CUTTING_H
#define SL_AGENT_CUTTING_H

struct sl_agent;

typedef enum sl_cutting {
    SL_CUTTING_NOTHING, /* the node exchanges under its view */
    SL_CUTTING_WAITS,   /* until what has begun to leave has left */
    SL_CUTTING_DONE     /* the node knows */
} sl_cutting;

void sl_cutting_begin(struct sl_agent *agent);
/* Goes on as far as it can. */
void sl_cutting_go_on(struct sl_agent *agent);

#endif
