/* finite.c - see finite.h. A float is finite if its magnitude, as an integer, is below that of
 * infinity; the largest magnitude of a block is found without a branch. */
#include "vec/finite.h"

#include <stdint.h>
#include <string.h>

#include "base/kernels.h"

enum { BLOCK = 4096 };

FOR_EACH_CPU(uint32_t, largest_magnitude, (const float *v, size_t count), (v, count)) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        bits &= 0x7FFFFFFFu;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

bool sl_vec_is_finite(const float *v, size_t count) {
    bool finite = true;
    for (size_t at = 0; at < count && finite; at += BLOCK)
        finite = largest_magnitude(v + at, count - at < BLOCK ? count - at : BLOCK) < 0x7F800000u;
    return finite;
}
