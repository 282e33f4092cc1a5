/* phases.h - compressors that are others in the first exchanges: those of a warm-up
 * (algorithm.warmup, algorithm.warmup_k), or of algorithm.compressor.schedule. */
#ifndef SL_PHASES_H
#define SL_PHASES_H

#include "starling/algorithm.h"

/* Sets the plan's phases, of an algorithm that reads these keys. Where all entries are sent, the
 * compressor is identity. SL_EINVAL: k is above the dimension, or a later phase sends all entries
 * and an earlier one does not. */
int sl_phases_plan(sl_plan *plan, size_t dimension, sl_error *error);

/* Does a compressor have a schedule that suits it and the algorithm? SL_EINVAL. */
int sl_schedule_check(const sl_algorithm *algorithm, const sl_algorithm_config *config,
                      sl_error *error);
/* The compressor between row `row` - 1, or the start, and row `row` of the schedule, as it is
 * configured. */
sl_compressor_config sl_schedule_compressor(const sl_algorithm_config *config, size_t row);

#endif
