/* grow.c - arrays that grow by doubling. */
#include <stdlib.h>

#include "board/state.h"

bool sl_board_grow(void **items, size_t *room, size_t count, size_t bytes) {
    if (count < *room)
        return true;
    const size_t more = *room == 0 ? 16 : 2 * *room;
    void *grown = realloc(*items, more * bytes);
    if (grown == NULL)
        return false;
    *items = grown;
    *room = more;
    return true;
}
