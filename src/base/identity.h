/* identity.h - what tells a process from all others. No clock makes it: clocks jump. */
#ifndef SL_IDENTITY_H
#define SL_IDENTITY_H

#include <stdint.h>

#include "starling/error.h"

/* Random, from 2 to 2^53 - 1, so that doubles of a file's reader hold it. It has no order. */
int sl_identity_draw(uint64_t *out, sl_error *error);

#endif
