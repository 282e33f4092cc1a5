/* node_table.h - a run's final table. */
#ifndef NODE_TABLE_H
#define NODE_TABLE_H

#include "starling/folder.h"

/* As wide as the terminal; `wide`: with all columns. */
void node_table_print(const sl_summary *summary, bool wide);
/* The same of a run that has come to its end, and whether too few were left. The exit code. */
int node_table_end(const sl_summary *summary, bool wide);

#endif
