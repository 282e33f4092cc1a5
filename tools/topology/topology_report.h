/* topology_report.h - what `starling check` and `starling topology analyse` both say of a topology.
 */
#ifndef TOPOLOGY_REPORT_H
#define TOPOLOGY_REPORT_H

#include "cli/tool.h"

/* The short report, under the heading "topology". */
void topology_report_print(const sl_topology_report *report);

#endif
