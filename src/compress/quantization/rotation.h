/* rotation.h - random rotations of pieces of a vector: u = H D v, with D random signs and H the
 * Walsh-Hadamard matrix, which is its own inverse times its size.
 *
 * A piece has ROTATION_PIECE elements, which fit into a core's cache, and is one block; the
 * vector's last piece may have fewer, and is cut into blocks of falling powers of two. Padding it
 * would send up to twice as much. Element i of the vector has the sign of bit i % 128 of block i /
 * 128 of the message's quick stream.
 */
#ifndef SL_ROTATION_H
#define SL_ROTATION_H

#include <stddef.h>

#include "starling/rng.h"

enum { ROTATION_PIECE = 1 << 14 };
#define ROTATION_SCALE_LIMIT 0x1p100f /* so that no sum of a block is beyond a float */

/* The length of the block that begins a piece of which n elements are left. */
static inline size_t sl_rotation_block(size_t n) {
    return (size_t)1 << (63 - __builtin_clzll(n));
}

/* The blocks of n elements that begin with a piece. */
static inline size_t sl_rotation_blocks(size_t n) {
    return n / ROTATION_PIECE + (size_t)__builtin_popcountll(n % ROTATION_PIECE);
}

/* Signs of elements [from, from + n) of a piece; from is a multiple of 128. */
void sl_rotation_signs(const sl_rng_key *key, size_t from, float *v, size_t n);
/* H times a block, n a power of two: not divided by anything. */
void sl_rotation_hadamard(float *v, size_t n);

#endif
