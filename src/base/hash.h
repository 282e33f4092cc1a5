/* hash.h - a fast 64-bit hash of data, eight bytes a step. Equal on machines of equal byte order.
 * Not cryptographic. */
#ifndef SL_HASH_H
#define SL_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SL_HASH_START 0x9E3779B97F4A7C15u

static inline uint64_t sl_hash_word(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
    return hash ^ hash >> 32;
}

static inline uint64_t sl_hash(uint64_t hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    for (size_t rest = size; rest > 0;) {
        uint64_t word = 0;
        size_t step = rest < sizeof word ? rest : sizeof word;
        memcpy(&word, bytes, step);
        hash = sl_hash_word(hash, word);
        bytes += step;
        rest -= step;
    }
    return sl_hash_word(hash, size);
}

#endif
