/* entropy.c - see entropy.h. */
#include "compress/lossless/entropy.h"

#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "compress/lossless/bit_stream.h"
#include "compress/lossless/indices.h"
#include "compress/lossless/symbols.h"

enum { RICE_BITS_MAX = 31, BATCH = 256 }; /* BATCH: indices that are unpacked at once */

/* ---- how long the codes are ---- */

/* b is at least j + 1 where (1 - p)^(2^j) >= phi - 1: roots, which are the same on every machine,
 * in place of logarithms. */
unsigned sl_golomb_bits(double share) {
    unsigned b = 0;
    for (double root = (sqrt(5) - 1) / 2; b < RICE_BITS_MAX && 1 - share >= root; b++)
        root = sqrt(root);
    return b;
}

/* Of a gap, each element of which ends it with probability p. */
static double rice_bits(double p) {
    const unsigned b = sl_golomb_bits(p);
    return b + 1 / -expm1(ldexp(log1p(-p), (int)b));
}

/* One, and two more for each power of two that the gap and one more reach. */
static double gamma_bits(double p) {
    double bits = 1;
    for (int j = 1; j < WORD; j++)
        bits += 2 * exp((ldexp(1, j) - 1) * log1p(-p));
    return bits;
}

double sl_entropy_bits(sl_entropy entropy, size_t k, size_t d, unsigned width, unsigned beside) {
    const double p = (double)k / (double)d, plain = (double)k * width;
    if (entropy == SL_ENTROPY_NONE)
        return plain;
    const double gap = entropy == SL_ENTROPY_GOLOMB ? rice_bits(p) : gamma_bits(p);
    return fmin(plain, width + (double)(k - 1) * (gap + beside));
}

/* ---- bits out ---- */

static inline __attribute__((always_inline)) void put_rice(bit_writer *w, uint64_t gap,
                                                           unsigned b) {
    uint64_t ones = gap >> b;
    for (; ones >= WORD && !w->full; ones -= WORD)
        put(w, UINT32_MAX, WORD);
    if (w->full)
        return;
    put(w, (UINT64_C(2) << ones) - 2, (unsigned)ones + 1);
    put(w, gap & ((UINT64_C(1) << b) - 1), b);
}

static inline __attribute__((always_inline)) void put_gamma(bit_writer *w, uint64_t number) {
    const unsigned behind = 63 - (unsigned)__builtin_clzll(number);
    put(w, 0, behind);
    put(w, number, behind + 1);
}

FOR_EACH_CPU(void, put_all,
             (bit_writer * w, sl_entropy entropy, const part_numbers *n, sl_indices all),
             (w, entropy, n, all)) {
    const unsigned b = sl_golomb_bits(n->share);
    uint64_t numbers[BATCH], last = 0;
    for (size_t at = 0; at < all.count && !w->full; at += BATCH) {
        const size_t some = all.count - at < BATCH ? all.count - at : BATCH;
        sl_indices_get(all, at, some, numbers);
        for (size_t i = 0; i < some; i++) {
            const uint64_t index = numbers[i] >> n->beside, gap = index - last - 1;
            if (at + i == 0)
                put(w, index, n->width - n->beside);
            else if (entropy == SL_ENTROPY_GOLOMB)
                put_rice(w, gap, b);
            else
                put_gamma(w, gap + 1);
            put(w, numbers[i] & n->beside, n->beside);
            last = index;
        }
    }
}

static size_t count_bytes(const part_numbers *n) {
    return n->counted ? sizeof(uint32_t) : 0;
}

static void put_ahead(const part_numbers *n, const uint8_t *plain, uint8_t *out) {
    const uint32_t count = (uint32_t)n->count;
    memcpy(out, plain, n->ahead);
    memcpy(out + n->ahead, &count, count_bytes(n));
}

/* A counted part's share is its own. */
static part_numbers settled(part_numbers n) {
    if (n.counted)
        n.share = (double)n.count / (double)n.elements;
    return n;
}

size_t sl_entropy_encode(sl_entropy entropy, const part_numbers *numbers, sl_payload plain,
                         uint8_t *out) {
    const part_numbers n = settled(*numbers);
    const uint8_t *bytes = plain.data;
    const size_t packed = plain.bytes - n.ahead, begin = n.ahead + count_bytes(&n);
    put_ahead(&n, bytes, out);
    bit_writer w = {.at = out + begin, .end = out + begin + packed};
    if (n.codes != CODES_NONE)
        sl_symbols_put(&w, entropy, &n, bytes + n.ahead);
    else
        put_all(&w, entropy, &n, (sl_indices){bytes + n.ahead, packed, n.count, n.width, n.beside});
    finish(&w);
    if (!w.full && w.at < w.end)
        return (size_t)(w.at - out);
    memcpy(out + begin, bytes + n.ahead, packed);
    return begin + packed;
}

/* ---- bits in ---- */

static inline __attribute__((always_inline)) uint64_t take_rice(bit_reader *r, unsigned b) {
    uint64_t ones = 0, word = look(r);
    for (; word >> WORD == UINT32_MAX; ones += WORD, word = look(r))
        r->at += WORD;
    const unsigned more = (unsigned)__builtin_clzll(~word);
    r->at += more + 1;
    return (ones + more) << b | take(r, b);
}

/* 0: no such number. */
static inline __attribute__((always_inline)) uint64_t take_gamma(bit_reader *r) {
    const uint64_t word = look(r);
    if (word >> WORD == 0)
        return 0;
    const unsigned behind = (unsigned)__builtin_clzll(word);
    r->at += behind;
    return take(r, behind + 1);
}

/* The numbers, packed; false: an index is beyond the elements, or a code is none. */
FOR_EACH_CPU(bool, take_all,
             (bit_reader * r, sl_entropy entropy, const part_numbers *n, uint8_t *out),
             (r, entropy, n, out)) {
    const unsigned b = sl_golomb_bits(n->share);
    uint64_t numbers[BATCH], next = 0;
    for (size_t at = 0; at < n->count; at += BATCH) {
        const size_t some = n->count - at < BATCH ? n->count - at : BATCH;
        for (size_t i = 0; i < some; i++) {
            uint64_t index = next;
            if (at + i == 0)
                index = take(r, n->width - n->beside);
            else if (entropy == SL_ENTROPY_GOLOMB)
                index += take_rice(r, b);
            else
                index += take_gamma(r) - 1;
            if (index < next || index >= n->elements)
                return false;
            next = index + 1;
            numbers[i] = index << n->beside | take(r, n->beside);
        }
        out += sl_indices_put(numbers, some, n->width, out);
    }
    return true;
}

bool sl_entropy_decode(sl_entropy entropy, part_numbers n, sl_payload coded, uint8_t *out,
                       sl_payload *plain) {
    const uint8_t *bytes = coded.data;
    const size_t begin = n.ahead + count_bytes(&n);
    uint32_t count;
    if (coded.bytes < begin)
        return false;
    if (n.counted) {
        memcpy(&count, bytes + n.ahead, sizeof count);
        if (count > n.count)
            return false;
        n.count = count;
    }
    n = settled(n);
    const size_t packed = (n.count * n.width + 7) / 8;
    bit_reader r = {.bytes = bytes + begin, .count = coded.bytes - begin};
    memcpy(out, bytes, n.ahead);
    *plain = (sl_payload){out, n.ahead + packed};
    if (r.count < packed)
        return (n.codes != CODES_NONE ? sl_symbols_take(&r, entropy, &n, out + n.ahead)
                                      : take_all(&r, entropy, &n, out + n.ahead)) &&
               is_all(&r);
    memcpy(out + n.ahead, r.bytes, packed);
    return r.count == packed;
}
