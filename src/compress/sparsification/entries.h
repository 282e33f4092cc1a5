/* entries.h - what top-k and random-k share: how many entries a message has, and what may be sent
 * as a value. */
#ifndef SL_ENTRIES_H
#define SL_ENTRIES_H

#include "compress/sparsification/bitmap.h"
#include "element/shared.h"

/* k, or max(1, round(fraction d)). */
size_t sl_entries_kept(const sl_compressor_config *config, size_t dimension);
/* 1 <= k <= d, or 0 < fraction <= 1. */
int sl_entries_check(const sl_compressor_config *config, size_t dimension, sl_error *error);
/* May the bytes at `values` be sent, or taken from a peer? */
bool sl_entries_finite(const void *values, size_t count);

#endif
