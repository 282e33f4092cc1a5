/* merges.c - see merges.h. */
#include "run/merges.h"

#include <stdlib.h>

int merges_add(merges *all, const sl_merge *merge, sl_error *error) {
    size_t i = 0;
    while (i < all->count && all->items[i].round != merge->round)
        i++;
    if (i < all->count) {
        if (merge->after < all->items[i].after)
            all->items[i].after = merge->after;
        return 0;
    }
    sl_merge *items = realloc(all->items, (all->count + 1) * sizeof *items);
    if (items == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu merges", all->count + 1);
    all->items = items;
    all->items[all->count++] = *merge;
    return 0;
}

void merges_close(merges *all) {
    free(all->items);
    *all = (merges){0};
}
