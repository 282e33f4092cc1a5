/* table.h - codes of one or two bits, decoded by a table of what each of them adds. */
#ifndef SL_TABLE_H
#define SL_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum { TABLE_WIDTH_MAX = 2, TABLE_CODES = 1 << TABLE_WIDTH_MAX };

/* acc[i] += table[code first + i] for n codes of `width` bits, 1 or 2, which are packed as pack.h
 * says. */
void sl_table_add(const float table[TABLE_CODES], unsigned width, const uint8_t *packed,
                  size_t first, size_t n, float *acc);

#endif
