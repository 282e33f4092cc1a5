/* progress.h - how far a study is, told beside the command that runs it. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "compare/study.h"

/* How many runs are not over. */
size_t progress_left(const study *s);
/* A line of how many runs have come to their end, and a line of each that is under way: its round,
 * and how long is left. */
void progress_tell(const study *s);
/* The same every two seconds, until all are over, nothing is under way any more, or a signal asks
 * to stop. */
void progress_watch(const study *s);

#endif
