/* text_table_parts.h - what a table is made of: for text_table.c, which prints it, and
 * text_table_markup.c. */
#ifndef TEXT_TABLE_PARTS_H
#define TEXT_TABLE_PARTS_H

#include "cli/text_table.h"

enum { COLUMNS_MAX = 64 };

typedef struct column {
    char *above, *head;
    text_align align;
    int rank;
} column;

typedef struct row {
    char *cells[COLUMNS_MAX];
    size_t count;
    bool rest; /* the last cell runs to the end */
} row;

struct text_table {
    column columns[COLUMNS_MAX];
    size_t column_count;
    row *rows;
    size_t row_count, row_room;
    bool failed; /* out of memory */
};

#endif
