/* cutting.c - see cutting.h. */
#include "agent/cutting.h"

#include "agent/state.h"

void sl_cutting_begin(sl_agent *a) {
    if (a->cohort.cutting == SL_CUTTING_NOTHING)
        a->cohort.cutting = SL_CUTTING_WAITS;
    sl_cutting_go_on(a);
}

/* From where on a replay cuts it, too. */
static void log_cut(sl_agent *a) {
    sl_reach at;
    sl_node_reach(a->node, &at);
    sl_agent_log(a, &(sl_log_entry){.kind = SL_LOG_CUT,
                                    .round = a->side.now.round,
                                    .exchange = at.exchange,
                                    .step = at.step,
                                    .part = at.part});
}

void sl_cutting_go_on(sl_agent *a) {
    if (a->cohort.cutting != SL_CUTTING_WAITS || !sl_agent_recall(a))
        return;
    a->cohort.cutting = SL_CUTTING_DONE;
    a->outbox.recalled = false;
    log_cut(a);
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_CUT});
}
