/* forecast.c - the time that a node computes, for predictions; see forecast.h. */
#include "run/forecast.h"

#include <stdio.h>

node_cost forecast_measured(const sl_record *records, size_t count, const sl_task *task) {
    node_cost cost = {0};
    for (size_t i = 0; i < count; i++) {
        if (records[i].round.round == 0)
            continue; /* it was lost before its first record */
        const sl_times *t = &records[i].times;
        double shares = (double)records[i].round.round * (double)count;
        cost.gradient_ms += 1e3 * t->gradient / shares;
        cost.coding_ms += 1e3 * (t->encode + t->combine) / shares;
    }
    if (task->gradient_seconds > 0)
        cost.gradient_ms = 1e3 * task->gradient_seconds;
    return cost;
}

bool forecast_is_wanted(const sl_network_config *n) {
    return n->bandwidth_mbit > 0 || n->latency_ms > 0 || n->gradient_ms > 0 || n->speed_count > 0 ||
           n->links.rows > 0 || n->compute_ms.rows > 0;
}

sl_platform forecast_platform(const sl_experiment *e, const node_cost *measured) {
    const sl_network_config *n = &e->network;
    bool gradient_given = n->gradient_ms > 0;
    bool coding = n->coding == SL_SWITCH_AUTO ? !gradient_given : n->coding == SL_SWITCH_ON;
    return (sl_platform){
        .bandwidth_mbit = n->bandwidth_mbit,
        .latency_ms = n->latency_ms,
        .compute_ms = (gradient_given ? n->gradient_ms : measured->gradient_ms) +
                      (coding ? measured->coding_ms : 0),
        .speeds = n->speed_count > 0 ? n->speeds : NULL,
        .drawn = sl_network_draws(n) ? n : NULL,
        .seed = e->seed,
        .links = n->links.rows > 0 ? &n->links : NULL,
    };
}

void timeline_path(char out[TIMELINE_PATH_MAX], const char *folder) {
    snprintf(out, TIMELINE_PATH_MAX, "%.*s/timeline.gz", SL_PATH_MAX, folder);
}
