/* largest.h - the k largest elements of a vector, by magnitude or at both ends of its values.
 *
 * The vector is read once, however it is distributed: what exceeds a limit is collected; the limit
 * is guessed from a sample, so that a little more than k elements pass, and whenever the collection
 * is full it is cut to its k largest, the least of which is the limit from then on. (Only where
 * fewer than k passed, the guess having been too high, everything is read again without one.)
 * Elements are compared as integers: the bits of a float without its sign are in the order of its
 * magnitude, and NaN and infinity, above all else, are always among what was collected.
 */
#ifndef SL_LARGEST_H
#define SL_LARGEST_H

#include "compress/codec.h"

/* An entry is the bits of an element's value above its index. */
static inline uint32_t sl_entry_value(uint64_t entry) {
    return (uint32_t)(entry >> 32);
}

static inline uint32_t sl_entry_index(uint64_t entry) {
    return (uint32_t)entry;
}

/* Memory for k entries, and for those that were collected and are cut off. */
size_t sl_largest_room(size_t k, size_t dimension);

/* The k elements of largest magnitude, of equal ones those of lower index; by rising index.
 * entries: (sl_largest_room). 1 <= k <= dimension. SL_EDIVERGED: they are not all finite. */
int sl_largest_magnitudes(sl_encoder *encoder, const sl_source *source, size_t k,
                          uint64_t *entries);

/* The `above` largest values and the `below` least, of equal ones those of lower index; both by
 * rising index; and the sums of both. (sl_largest_room) each; at most dimension. A zero's sign is
 * lost. SL_EDIVERGED: the vector has an element that is not finite. */
int sl_largest_ends(sl_encoder *encoder, const sl_source *source, size_t above, uint64_t *upper,
                    size_t below, uint64_t *lower, double sums[2]);

/* Elements [from, from + count) of magnitude `least` > 0 or more; from is a multiple of SL_BLOCK.
 * entries: (count + 1). SL_EDIVERGED: they are not all finite. */
int sl_largest_from(sl_encoder *encoder, const sl_source *source, size_t from, size_t count,
                    float least, uint64_t *entries, size_t *found);

#endif
