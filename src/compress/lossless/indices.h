/* indices.h - rising indices of a part, packed one after the other from the lowest bit on; beside
 * each there may be a bit that says which of two things it stands for. */
#ifndef SL_INDICES_H
#define SL_INDICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ceil(log2 elements) */
unsigned sl_index_width(size_t elements);

/* The lowest `width` bits, at most 33, of each number. Returns the bytes written; what is left of
 * the last one is zero. */
size_t sl_indices_put(const uint64_t *numbers, size_t count, unsigned width, uint8_t *out);

typedef struct sl_indices {
    const uint8_t *packed;
    size_t bytes, count;
    unsigned width, beside; /* bits of a number, and of what stands below its index: 0 or 1 */
} sl_indices;

/* Are there just so many bytes, is what is left of the last one zero, do the indices rise from
 * `lowest` on and stay below `end`? */
bool sl_indices_allowed(sl_indices indices, size_t lowest, size_t end);

/* Numbers [at, at + n) to out. */
void sl_indices_get(sl_indices indices, size_t at, size_t n, uint64_t *out);

#endif
