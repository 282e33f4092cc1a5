/* table.h - the final table. */
#ifndef TABLE_H
#define TABLE_H

#include "starling/record.h"

void table_print(const sl_summary *summary);

#endif
