/* metrics.h - what an agent knows in numbers, for Prometheus: text format 0.0.4. */
#ifndef SL_METRICS_H
#define SL_METRICS_H

#include "starling/monitor.h"

/* Above so many neighbours there is one row for all: their sum, and the worst lag and trip. */
enum { SL_METRICS_EDGES_MAX = 64 };

/* By which factor a round of averaging (a period of a schedule) brings all models of the topology
 * together, in the long run; NaN: that takes more than some milliseconds to find out. */
double sl_metrics_contraction(const sl_topology *topology);
/* malloc'ed; NULL: out of memory. What the agent does not know is left out. contraction: of the
 * experiment's topology. */
char *sl_metrics_write(const sl_monitor_subject *of, double contraction);

#endif
