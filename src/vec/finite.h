/* finite.h - a look for infinities and NaN in host memory. */
#ifndef SL_FINITE_H
#define SL_FINITE_H

#include <stdbool.h>
#include <stddef.h>

/* Is no element infinite or NaN? */
bool sl_vec_is_finite(const float *v, size_t count);

#endif
