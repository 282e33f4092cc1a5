/* asked.h - what is asked of vectors, wherever they are. */
#ifndef SL_ASKED_H
#define SL_ASKED_H

#include <stdint.h>

#include "starling/vec.h"

/* Is no element infinite or NaN? Blocks where they are on a device. */
bool sl_vec_are_finite(const sl_vec_ops *vec, const float *v, size_t count);
/* Has an operation failed? Then SL_EDEVICE, said of this node and round. waits: until all of the
 * calling thread's are complete. */
int sl_vec_ask(const sl_vec_ops *vec, bool waits, uint32_t rank, uint64_t round, sl_error *error);

#endif
