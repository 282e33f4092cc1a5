/* shared.h - what lets one header be compiled for the CPU and for CUDA; floats looked at as bits.
 *
 * The headers of this folder hold the arithmetic of single elements that every backend must do
 * alike, to the bit: they include nothing but libc, use what C11 and CUDA C++ have in common, and
 * never fuse a multiplication with an addition (-ffp-contract=off, -fmad=false).
 */
#ifndef SL_SHARED_H
#define SL_SHARED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define SL_SHARED __host__ __device__ static __forceinline__
#else
#define SL_SHARED static inline __attribute__((always_inline))
#endif

/* Before a loop: so many rounds of it at a time. A GPU then asks for all their numbers before it
 * uses the first. The C compiler decides on its own. */
#ifdef __CUDA_ARCH__
#define SL_PRAGMA(text) _Pragma(#text)
#define SL_UNROLL(rounds) SL_PRAGMA(unroll rounds)
#else
#define SL_UNROLL(rounds)
#endif

/* Magnitudes as the bits of a float are in the order of the numbers; infinity and NaN are at the
 * end, from FLOAT_INFINITY on. */
#define FLOAT_MAGNITUDE 0x7FFFFFFFu
#define FLOAT_INFINITY 0x7F800000u

SL_SHARED uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

SL_SHARED float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
