/* symbols.c - see symbols.h. */
#include "compress/symbols.h"

#include <math.h>

#include "compress/huffman.h"
#include "compress/pack.h"

enum { GROUP_MAX = 16, LENGTH_BITS = 4, OMEGA_MAX = 31 };

/* ---- codes, levels and signs ---- */

static unsigned level_mask(const part_numbers *n) {
    return n->codes == CODES_TERNARY ? 1 : (1u << (n->width - 1)) - 1;
}

static unsigned level_in(const part_numbers *n, unsigned code) {
    return n->codes == CODES_TERNARY ? code != 0 : code & level_mask(n);
}

static unsigned sign_in(const part_numbers *n, unsigned code) {
    return code >> (n->width - 1);
}

static uint16_t code_with(const part_numbers *n, unsigned level, unsigned sign) {
    if (n->codes == CODES_TERNARY)
        return (uint16_t)(level != 0 ? 1 + sign : 0);
    return (uint16_t)(level != 0 ? level | sign << (n->width - 1) : 0);
}

static const uint8_t *place_of(const part_numbers *n, const uint8_t *packed, size_t at) {
    return packed + at / 8 * n->width;
}

/* ---- huffman ---- */

/* Elements of whole groups that are worked on at a time. */
static size_t step_of(unsigned group) {
    return (size_t)SL_BLOCK / (8 * group) * (8 * group);
}

/* The symbols of the elements [at, at + step); returns how many. */
static size_t symbols_at(const part_numbers *n, const uint8_t *packed, unsigned group, size_t at,
                         uint16_t *symbols) {
    uint16_t room[SL_BLOCK], codes[SL_BLOCK] = {0};
    const size_t left = n->count - at, some = left < step_of(group) ? left : step_of(group);
    const uint16_t *from = sl_unpack(place_of(n, packed, at), some, n->width, room);
    const unsigned mask = n->codes == CODES_LEVELS ? level_mask(n) : UINT16_MAX;
    for (size_t i = 0; i < some; i++)
        codes[i] = (from[i] & mask) != 0 ? from[i] : 0;
    const size_t count = (some + group - 1) / group;
    for (size_t i = 0; i < count; i++) {
        unsigned symbol = 0;
        for (unsigned k = 0; k < group; k++)
            symbol |= (unsigned)codes[i * group + k] << (k * n->width);
        symbols[i] = (uint16_t)symbol;
    }
    return count;
}

size_t sl_symbols_alphabet(const part_numbers *n, unsigned group) {
    const bool is_one = group <= GROUP_MAX && group * n->width <= HUFFMAN_SYMBOL_BITS;
    return is_one ? (size_t)1 << (group * n->width) : 0;
}

double sl_symbols_head_bits(const part_numbers *n, unsigned group) {
    return LENGTH_BITS * (double)(1 + sl_symbols_alphabet(n, group));
}

/* Bits of a part whose symbols occur so often; the counts may be changed. */
static double part_bits(const part_numbers *n, unsigned group, uint32_t *counts, uint8_t *lengths) {
    uint32_t before[HUFFMAN_SYMBOLS];
    double bits = sl_symbols_head_bits(n, group);
    memcpy(before, counts, sl_symbols_alphabet(n, group) * sizeof *counts);
    sl_huffman_lengths(counts, sl_symbols_alphabet(n, group), lengths);
    for (size_t s = 0; s < sl_symbols_alphabet(n, group); s++)
        bits += (double)before[s] * lengths[s];
    return bits;
}

/* The group that makes the part shortest, and the lengths of its words. */
static unsigned best_group(const part_numbers *n, const uint8_t *packed, uint8_t *lengths) {
    double least = INFINITY;
    unsigned best = 1;
    for (unsigned group = 1; sl_symbols_alphabet(n, group) > 0; group++) {
        uint32_t counts[HUFFMAN_SYMBOLS] = {0};
        uint8_t these[HUFFMAN_SYMBOLS];
        uint16_t symbols[SL_BLOCK];
        for (size_t at = 0; at < n->count; at += step_of(group))
            for (size_t i = symbols_at(n, packed, group, at, symbols); i-- > 0;)
                counts[symbols[i]]++;
        const double bits = part_bits(n, group, counts, these);
        if (bits >= least)
            continue;
        least = bits;
        best = group;
        memcpy(lengths, these, sl_symbols_alphabet(n, group));
    }
    return best;
}

static void put_huffman(bit_writer *w, const part_numbers *n, const uint8_t *packed) {
    uint8_t lengths[HUFFMAN_SYMBOLS];
    uint16_t words[HUFFMAN_SYMBOLS], symbols[SL_BLOCK];
    const unsigned group = best_group(n, packed, lengths);
    put(w, group - 1, LENGTH_BITS);
    for (size_t s = 0; s < sl_symbols_alphabet(n, group); s++)
        put(w, lengths[s], LENGTH_BITS);
    sl_huffman_words(lengths, sl_symbols_alphabet(n, group), words);
    for (size_t at = 0; at < n->count && !w->full; at += step_of(group)) {
        const size_t count = symbols_at(n, packed, group, at, symbols);
        for (size_t i = 0; i < count; i++)
            put(w, words[symbols[i]], lengths[symbols[i]]);
    }
}

static bool take_huffman(bit_reader *r, const part_numbers *n, uint8_t *packed) {
    uint8_t lengths[HUFFMAN_SYMBOLS];
    huffman_table table;
    const unsigned group = (unsigned)take(r, LENGTH_BITS) + 1;
    if (sl_symbols_alphabet(n, group) == 0)
        return false;
    for (size_t s = 0; s < sl_symbols_alphabet(n, group); s++)
        lengths[s] = (uint8_t)take(r, LENGTH_BITS);
    if (!sl_huffman_open(&table, lengths, sl_symbols_alphabet(n, group)))
        return false;
    const unsigned mask = (1u << n->width) - 1;
    for (size_t at = 0, some; at < n->count; at += some) {
        uint16_t codes[SL_BLOCK];
        some = n->count - at < step_of(group) ? n->count - at : step_of(group);
        for (size_t i = 0; i < some; i += group) {
            unsigned length;
            const unsigned symbol =
                sl_huffman_symbol(&table, (uint32_t)(look(r) >> (64 - HUFFMAN_BITS)), &length);
            if (length == 0)
                return false;
            r->at += length;
            for (unsigned k = 0; k < group; k++)
                codes[i + k] = (uint16_t)(symbol >> (k * n->width) & mask);
        }
        sl_pack(codes, some, n->width, packed + at / 8 * n->width);
    }
    return true;
}

/* ---- elias ---- */

/* The word, and its length, at most 45. */
static uint64_t omega(uint64_t number, unsigned *bits) {
    uint64_t word = 0;
    *bits = 1;
    while (number > 1) {
        const unsigned length = 64 - (unsigned)__builtin_clzll(number);
        word |= number << *bits;
        *bits += length;
        number = length - 1;
    }
    return word;
}

static void put_omega(bit_writer *w, uint64_t number) {
    unsigned bits;
    const uint64_t word = omega(number, &bits);
    if (bits > WORD)
        put(w, word >> WORD, bits - WORD);
    put(w, word & UINT32_MAX, bits > WORD ? WORD : bits);
}

/* Below 2^32; 0: no such number. */
static uint64_t take_omega(bit_reader *r) {
    uint64_t number = 1;
    while (take(r, 1) == 1) {
        if (number > OMEGA_MAX)
            return 0;
        r->at--;
        number = take(r, (unsigned)number + 1);
    }
    return number;
}

static void put_elias(bit_writer *w, const part_numbers *n, const uint8_t *packed) {
    uint16_t room[SL_BLOCK];
    size_t zeros = 0;
    for (size_t at = 0; at < n->count && !w->full; at += SL_BLOCK) {
        const size_t some = n->count - at < SL_BLOCK ? n->count - at : SL_BLOCK;
        const uint16_t *codes = sl_unpack(place_of(n, packed, at), some, n->width, room);
        for (size_t i = 0; i < some; i++) {
            const unsigned level = level_in(n, codes[i]);
            if (!n->is_sparse)
                put_omega(w, level + 1);
            if (level > 0 && n->is_sparse)
                put_omega(w, zeros + 1);
            if (level > 0)
                put(w, sign_in(n, codes[i]), 1);
            if (level > 0 && n->is_sparse)
                put_omega(w, level);
            zeros = level > 0 || !n->is_sparse ? 0 : zeros + 1;
        }
    }
    if (zeros > 0)
        put_omega(w, zeros + 1);
}

/* Codes on their way to a part, packed a block at a time. */
typedef struct code_sink {
    uint16_t codes[SL_BLOCK];
    size_t filled;
    unsigned width;
    uint8_t *out;
} code_sink;

static void flush(code_sink *sink) {
    sl_pack(sink->codes, sink->filled, sink->width, sink->out);
    sink->out += sink->filled * sink->width / 8;
    sink->filled = 0;
}

static void add_code(code_sink *sink, uint16_t code) {
    sink->codes[sink->filled++] = code;
    if (sink->filled == SL_BLOCK)
        flush(sink);
}

/* One element that is not 0; its level is known, or comes behind the sign. */
static bool take_level(bit_reader *r, const part_numbers *n, uint64_t level, code_sink *sink) {
    const unsigned sign = (unsigned)take(r, 1);
    if (level == 0)
        level = take_omega(r);
    if (level == 0 || level > level_mask(n))
        return false;
    add_code(sink, code_with(n, (unsigned)level, sign));
    return true;
}

static bool take_dense(bit_reader *r, const part_numbers *n, code_sink *sink) {
    for (size_t at = 0; at < n->count; at++) {
        const uint64_t next = take_omega(r);
        if (next == 0 || (next > 1 && !take_level(r, n, next - 1, sink)))
            return false;
        if (next == 1)
            add_code(sink, 0);
    }
    return true;
}

static bool take_sparse(bit_reader *r, const part_numbers *n, code_sink *sink) {
    for (size_t at = 0; at < n->count; at++) {
        const uint64_t next = take_omega(r);
        if (next == 0 || next - 1 > n->count - at)
            return false;
        for (uint64_t zero = 1; zero < next; zero++, at++)
            add_code(sink, 0);
        if (at < n->count && !take_level(r, n, 0, sink))
            return false;
    }
    return true;
}

static bool take_elias(bit_reader *r, const part_numbers *n, uint8_t *packed) {
    code_sink sink = {.filled = 0, .width = n->width, .out = packed};
    const bool good = n->is_sparse ? take_sparse(r, n, &sink) : take_dense(r, n, &sink);
    if (good && sink.filled > 0)
        flush(&sink);
    return good;
}

/* ---- either ---- */

void sl_symbols_put(bit_writer *w, sl_entropy entropy, const part_numbers *n,
                    const uint8_t *packed) {
    if (entropy == SL_ENTROPY_HUFFMAN)
        put_huffman(w, n, packed);
    else
        put_elias(w, n, packed);
}

bool sl_symbols_take(bit_reader *r, sl_entropy entropy, const part_numbers *n, uint8_t *packed) {
    return entropy == SL_ENTROPY_HUFFMAN ? take_huffman(r, n, packed) : take_elias(r, n, packed);
}
