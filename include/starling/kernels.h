/* kernels.h - the instruction set of the library's kernels.
 *
 * The default is the best that the processor has of plain C, x86-64-v3 (AVX2) and x86-64-v4
 * (AVX-512). The environment variable STARLING_KERNELS=plain, x86-64-v3 or x86-64-v4 chooses
 * another one at start. Vectors, compressors, checksums and random numbers have the same bits with
 * each; the gradients of a network differ by rounding between plain C and the others. */
#ifndef STARLING_KERNELS_H
#define STARLING_KERNELS_H

#include "starling/api.h"
#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The one in use: "plain", "x86-64-v3" or "x86-64-v4". */
SL_API const char *sl_kernels_name(void);

/* SL_EINVAL if STARLING_KERNELS names an unknown instruction set, or one that this processor
 * lacks. */
SL_API int sl_kernels_check(sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
