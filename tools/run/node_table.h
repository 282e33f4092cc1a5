/* node_table.h - the final table. */
#ifndef NODE_TABLE_H
#define NODE_TABLE_H

#include "starling/folder.h"

void node_table_print(const sl_summary *summary);

#endif
