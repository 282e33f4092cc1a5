/* history.h - what the agents' logs of events say about losses: where each node was cut, and
 * which views it began. */
#ifndef HISTORY_H
#define HISTORY_H

#include "cli/tool.h"

/* (nodes) of the run in `folder`. SL_EFILE: names file, line and field. */
int history_open(sl_history **out, const char *folder, uint32_t nodes, sl_error *error);
/* NULL: nothing. */
void history_close(sl_history *all, uint32_t nodes);

#endif
