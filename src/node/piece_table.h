/* piece_table.h - numbers of a struct as pieces of its state (starling/node.h), from one table.
 */
#ifndef SL_PIECE_TABLE_H
#define SL_PIECE_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "starling/node.h"

typedef struct sl_piece_number {
    const char *name;
    size_t offset; /* of a uint64_t, or a double */
    bool is_real;
} sl_piece_number;

#define SL_PIECE_WHOLE(type, text, field)                                                          \
    { .name = text, .offset = offsetof(type, field) }
#define SL_PIECE_REAL(type, text, field)                                                           \
    { .name = text, .offset = offsetof(type, field), .is_real = true }

static inline sl_piece sl_piece_of_number(const sl_piece_number *number, void *of) {
    void *at = (char *)of + number->offset;
    sl_piece piece = {.whole = number->is_real ? NULL : at, .real = number->is_real ? at : NULL};
    snprintf(piece.name, sizeof piece.name, "%s", number->name);
    return piece;
}

#endif
