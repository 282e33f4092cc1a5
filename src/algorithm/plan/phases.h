/* phases.h - the compressors of the first exchanges (algorithm.warmup, algorithm.warmup_k). */
#ifndef SL_PHASES_H
#define SL_PHASES_H

#include "starling/algorithm.h"

/* Sets the plan's phases, of an algorithm that reads these keys. Where all entries are sent, the
 * compressor is identity. SL_EINVAL: k is above the dimension, or a later phase sends all entries
 * and an earlier one does not. */
int sl_phases_plan(sl_plan *plan, size_t dimension, sl_error *error);

#endif
