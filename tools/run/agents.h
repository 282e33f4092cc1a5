/* agents.h - a run with one agent process per node on this machine, for `starling run` and
 * `starling compare`. */
#ifndef AGENTS_H
#define AGENTS_H

#include "run/collector.h"

/* Runs to the end and finishes the collector, whose folder is at `path`. Complains of each agent
 * that fails; quiet: returns the first cause as the error instead. */
int agents_run(collector *c, const char *path, bool quiet, sl_summary *summary, sl_error *error);

#endif
