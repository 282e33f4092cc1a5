/* philox.h - one block of Philox4x32 (Salmon, Moraes, Dror, Shaw, SC 2011), for the C compiler and
 * nvcc; see starling/rng.h. */
#ifndef SL_PHILOX_H
#define SL_PHILOX_H

#include "element/shared.h"
#include "starling/rng.h"

#define PHILOX_MULTIPLIER_0 0xD2511F53u
#define PHILOX_MULTIPLIER_1 0xCD9E8D57u
#define PHILOX_BUMP_0 0x9E3779B9u
#define PHILOX_BUMP_1 0xBB67AE85u

enum { PHILOX_ROUNDS = 10, PHILOX_ROUNDS_QUICK = 7 };

/* index | rank | low round | high round (16) and purpose (16) */
SL_SHARED void philox_counter(const sl_rng_key *key, uint32_t index, uint32_t c[4]) {
    c[0] = index;
    c[1] = key->rank;
    c[2] = (uint32_t)key->round;
    c[3] = ((uint32_t)(key->round >> 32) & 0xFFFFu) << 16 | (key->purpose & 0xFFFFu);
}

/* Four uniform words: block `index` of the stream that so many rounds make. */
SL_SHARED void philox_block(const sl_rng_key *key, uint32_t index, int rounds, uint32_t c[4]) {
    uint32_t k0 = (uint32_t)key->seed, k1 = (uint32_t)(key->seed >> 32);
    philox_counter(key, index, c);
    for (int i = 0; i < rounds; i++, k0 += PHILOX_BUMP_0, k1 += PHILOX_BUMP_1) {
        const uint64_t p0 = (uint64_t)PHILOX_MULTIPLIER_0 * c[0],
                       p1 = (uint64_t)PHILOX_MULTIPLIER_1 * c[2];
        const uint32_t c1 = c[1], c3 = c[3];
        c[0] = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c[1] = (uint32_t)p1;
        c[2] = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c[3] = (uint32_t)p0;
    }
}

/* Half-word i, 0 to 7, of a block: the low half of a word first. */
SL_SHARED uint32_t philox_half(const uint32_t block[4], unsigned i) {
    return block[i / 2] >> 16 * (i % 2) & 0xFFFFu;
}

enum { PHILOX_WINDOWS = 16 };

/* Window i, 0 to 15, of a block: the 16 bits from its byte i on, the last one's upper half being
 * byte 0. Each is uniform; two that are neighbours share a byte. */
SL_SHARED uint32_t philox_window(const uint32_t block[4], unsigned i) {
    const uint64_t two = block[i / 4] | (uint64_t)block[(i / 4 + 1) % 4] << 32;
    return (uint32_t)(two >> 8 * (i % 4)) & 0xFFFFu;
}

/* Window i then is what window i + 8 was. */
SL_SHARED void philox_half_turn(uint32_t block[4]) {
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t word = block[i];
        block[i] = block[i + 2];
        block[i + 2] = word;
    }
}

/* The word's number below n (Lemire 2019); false: rejected, the next word is asked. */
SL_SHARED int philox_below(uint32_t word, uint32_t n, uint32_t *out) {
    const uint64_t product = (uint64_t)word * n;
    *out = (uint32_t)(product >> 32);
    return (uint32_t)product >= n || (uint32_t)product >= (uint32_t)(0u - n) % n;
}

#endif
