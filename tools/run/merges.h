/* merges.h - when parts of the network became one again, for the final table. */
#ifndef MERGES_H
#define MERGES_H

#include <stddef.h>

#include "starling/observer.h"

typedef struct merges {
    sl_merge *items; /* (count) by when they were heard of, one for each round */
    size_t count;
} merges;

/* Of several parts, the one that was furthest behind is kept. SL_ENOMEM. */
int merges_add(merges *all, const sl_merge *merge, sl_error *error);
void merges_close(merges *all);

#endif
