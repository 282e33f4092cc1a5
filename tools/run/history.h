/* history.h - what the agents' logs of events say about losses: where each node was cut, and
 * which views it began.
 *
 * Logs say what happened to a process, not in which stretch of the run: who joins does not know
 * from which checkpoint the others have gone on, and what they computed anew is in the logs twice.
 * A view tells: whoever joined these members has begun a view of theirs.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include "cli/tool.h"

/* (nodes) of the stretch that these began after round `from` of the run in `folder`. SL_EFILE:
 * names file, line and field. */
int history_open(sl_history **out, const char *folder, uint32_t nodes,
                 const sl_checkpoint_view *founders, uint64_t from, sl_error *error);
/* NULL: nothing. */
void history_close(sl_history *all, uint32_t nodes);

#endif
