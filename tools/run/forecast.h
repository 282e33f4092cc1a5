/* forecast.h - predicted time: combines an experiment's network with the seconds that a run
 * measured. */
#ifndef FORECAST_H
#define FORECAST_H

#include "cli/tool.h"

/* The cost of one node in one round, mean over nodes and rounds. */
typedef struct node_cost {
    double gradient_ms;
    double coding_ms; /* encoding and combining */
} node_cost;

/* From the last record of each node; a gradient takes what the task says, if it does. */
node_cost forecast_measured(const sl_record *records, size_t count, const sl_task *task);
/* Does the experiment ask for a prediction? */
bool forecast_is_wanted(const sl_network_config *network);
/* The experiment's links and nodes. `measured` fills in the times that the experiment does not
 * give. */
sl_platform forecast_platform(const sl_experiment *experiment, const node_cost *measured);

/* The file of a run folder that holds its messages (starling/timeline.h). */
enum { TIMELINE_PATH_MAX = SL_PATH_MAX + 16 };
void timeline_path(char out[TIMELINE_PATH_MAX], const char *folder);

#endif
