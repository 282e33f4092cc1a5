/* forecast.h - predicted time: what an experiment's network and a run's measured seconds say about
 * a node's computing. */
#ifndef FORECAST_H
#define FORECAST_H

#include "cli/tool.h"

/* Of one node in one round, mean over nodes and rounds. */
typedef struct node_cost {
    double gradient_ms;
    double coding_ms; /* encoding and combining */
} node_cost;

/* From the last record of each node. */
node_cost forecast_measured(const sl_record *records, size_t count);
/* Does the experiment ask for a prediction? */
bool forecast_is_wanted(const sl_network_config *network);
/* The experiment's nodes, `measured` where it gives no time, on the experiment's links. */
sl_platform forecast_platform(const sl_network_config *network, const node_cost *measured);

#endif
