/* indices.c - see indices.h. */
#include "compress/lossless/indices.h"

#include <string.h>

#include "base/kernels.h"

unsigned sl_index_width(size_t elements) {
    unsigned width = 0;
    while (width < 64 && (UINT64_C(1) << width) < elements)
        width++;
    return width;
}

size_t sl_indices_put(const uint64_t *numbers, size_t count, unsigned width, uint8_t *out) {
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    uint64_t waiting = 0;
    unsigned filled = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        waiting |= (numbers[i] & mask) << filled;
        for (filled += width; filled >= 32; filled -= 32, at += 4, waiting >>= 32)
            memcpy(out + at, &waiting, 4);
    }
    memcpy(out + at, &waiting, (filled + 7) / 8);
    return at + (filled + 7) / 8;
}

static inline uint64_t get(const sl_indices *s, size_t i) {
    const size_t bit = i * s->width, byte = bit / 8, left = s->bytes - byte;
    uint64_t word = 0;
    if (left >= sizeof word)
        memcpy(&word, s->packed + byte, sizeof word);
    else
        memcpy(&word, s->packed + byte, left);
    return word >> bit % 8 & ((UINT64_C(1) << s->width) - 1);
}

FOR_EACH_CPU(bool, rise, (sl_indices s, size_t lowest, size_t end), (s, lowest, end)) {
    bool falls = false;
    for (size_t i = 0; i < s.count; i++) {
        const size_t index = get(&s, i) >> s.beside;
        falls |= index < lowest;
        lowest = index + 1;
    }
    return !falls && lowest <= end;
}

bool sl_indices_allowed(sl_indices s, size_t lowest, size_t end) {
    const size_t used = s.count * s.width;
    if (s.bytes != (used + 7) / 8)
        return false;
    const bool unused_set = used % 8 != 0 && s.packed[s.bytes - 1] >> used % 8 != 0;
    return !unused_set && rise(s, lowest, end);
}

FOR_EACH_CPU(void, get_all, (sl_indices s, size_t at, size_t n, uint64_t *out), (s, at, n, out)) {
    for (size_t i = 0; i < n; i++)
        out[i] = get(&s, at + i);
}

void sl_indices_get(sl_indices s, size_t at, size_t n, uint64_t *out) {
    get_all(s, at, n, out);
}
