/* bit_stream.h - bits that are written and read from the highest one of a byte on. */
#ifndef SL_BIT_STREAM_H
#define SL_BIT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WORD = 32 };

typedef struct bit_writer {
    uint8_t *at, *end;
    uint64_t waiting;
    unsigned filled; /* lowest bits of `waiting`, fewer than a word */
    bool full;
} bit_writer;

/* bits <= 32, and value has no more of them. */
static inline __attribute__((always_inline)) void put(bit_writer *w, uint64_t value,
                                                      unsigned bits) {
    w->waiting = w->waiting << bits | value;
    w->filled += bits;
    if (w->filled < WORD)
        return;
    w->filled -= WORD;
    const uint32_t word = __builtin_bswap32((uint32_t)(w->waiting >> w->filled));
    w->full |= w->end - w->at < (ptrdiff_t)sizeof word;
    if (w->full)
        return;
    memcpy(w->at, &word, sizeof word);
    w->at += sizeof word;
}

/* What waits, with zeros behind it; then `at` is the end. */
static inline void finish(bit_writer *w) {
    for (; w->filled > 0 && !w->full; w->filled -= w->filled < 8 ? w->filled : 8) {
        w->full = w->at == w->end;
        if (!w->full)
            *w->at++ = (uint8_t)(w->filled >= 8 ? w->waiting >> (w->filled - 8)
                                                : w->waiting << (8 - w->filled));
    }
}

typedef struct bit_reader {
    const uint8_t *bytes;
    size_t count, at; /* bytes; bits that were read, perhaps more than there are */
} bit_reader;

/* What comes next from the highest bit on, 57 bits of it at least; zeros behind the end. */
static inline __attribute__((always_inline)) uint64_t look(const bit_reader *r) {
    const size_t byte = r->at / 8;
    uint64_t word = 0;
    if (byte + sizeof word <= r->count)
        memcpy(&word, r->bytes + byte, sizeof word);
    else if (byte < r->count)
        memcpy(&word, r->bytes + byte, r->count - byte);
    return __builtin_bswap64(word) << r->at % 8;
}

/* bits <= 32 */
static inline __attribute__((always_inline)) uint64_t take(bit_reader *r, unsigned bits) {
    const uint64_t value = bits > 0 ? look(r) >> (64 - bits) : 0;
    r->at += bits;
    return value;
}

/* Are there just so many bytes, and zeros in what is left of the last one? */
static inline bool is_all(const bit_reader *r) {
    return (r->at + 7) / 8 == r->count &&
           (r->at % 8 == 0 || (uint8_t)(r->bytes[r->count - 1] << r->at % 8) == 0);
}

#endif
