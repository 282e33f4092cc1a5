/* symbols.c - see symbols.h. */
#include "compress/lossless/symbols.h"

#include <math.h>

#include "compress/lossless/huffman.h"
#include "compress/lossless/levels.h"
#include "compress/lossless/runs.h"

enum { FORM_BITS = 4, FIRST_RUNS = 8, GROUP_MAX = FIRST_RUNS, OMEGA_MAX = 31 };

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
    const uint16_t *from = sl_unpack(sl_codes_at(n, packed, at), some, n->width, room);
    const unsigned mask = n->codes == CODES_LEVELS ? sl_level_mask(n) : UINT16_MAX;
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

/* The group that makes the part shortest, and the lengths of its words. */
static unsigned best_group(const part_numbers *n, const uint8_t *packed, uint8_t *lengths,
                           double *least) {
    unsigned best = 1;
    *least = INFINITY;
    for (unsigned group = 1; sl_symbols_alphabet(n, group) > 0; group++) {
        uint32_t counts[HUFFMAN_SYMBOLS] = {0};
        uint8_t these[HUFFMAN_SYMBOLS];
        uint16_t symbols[SL_BLOCK];
        for (size_t at = 0; at < n->count; at += step_of(group))
            for (size_t i = symbols_at(n, packed, group, at, symbols); i-- > 0;)
                counts[symbols[i]]++;
        const size_t alphabet = sl_symbols_alphabet(n, group);
        const double words = sl_huffman_best(counts, alphabet, these),
                     bits = FORM_BITS + sl_huffman_head_bits(these, alphabet, 1) + words;
        if (bits >= *least)
            continue;
        *least = bits;
        best = group;
        memcpy(lengths, these, alphabet);
    }
    return best;
}

static void put_groups(bit_writer *w, const part_numbers *n, const uint8_t *packed, unsigned group,
                       const uint8_t *lengths) {
    uint16_t words[HUFFMAN_SYMBOLS], symbols[SL_BLOCK];
    put(w, group - 1, FORM_BITS);
    sl_huffman_put_lengths(w, lengths, sl_symbols_alphabet(n, group), 1);
    sl_huffman_words(lengths, sl_symbols_alphabet(n, group), words);
    for (size_t at = 0; at < n->count && !w->full; at += step_of(group)) {
        const size_t count = symbols_at(n, packed, group, at, symbols);
        for (size_t i = 0; i < count; i++)
            put(w, words[symbols[i]], lengths[symbols[i]]);
    }
}

static bool take_groups(bit_reader *r, const part_numbers *n, uint8_t *packed, unsigned group) {
    huffman_table table;
    if (sl_symbols_alphabet(n, group) == 0 ||
        !sl_huffman_take(r, &table, sl_symbols_alphabet(n, group), 1))
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

static void put_huffman(bit_writer *w, const part_numbers *n, const uint8_t *packed) {
    uint8_t lengths[HUFFMAN_SYMBOLS], run_lengths[HUFFMAN_SYMBOLS];
    double bits, run_bits;
    const unsigned group = best_group(n, packed, lengths, &bits),
                   reach = sl_runs_best(n, packed, run_lengths, &run_bits);
    if (bits <= run_bits) {
        put_groups(w, n, packed, group, lengths);
        return;
    }
    put(w, FIRST_RUNS + reach, FORM_BITS);
    sl_runs_put(w, n, packed, reach, run_lengths);
}

static bool take_huffman(bit_reader *r, const part_numbers *n, uint8_t *packed) {
    const unsigned form = (unsigned)take(r, FORM_BITS);
    return form < FIRST_RUNS ? take_groups(r, n, packed, form + 1)
                             : sl_runs_take(r, n, packed, form - FIRST_RUNS);
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
        const uint16_t *codes = sl_unpack(sl_codes_at(n, packed, at), some, n->width, room);
        for (size_t i = 0; i < some; i++) {
            const unsigned level = sl_level_in(n, codes[i]);
            if (!n->is_sparse)
                put_omega(w, level + 1);
            if (level > 0 && n->is_sparse)
                put_omega(w, zeros + 1);
            if (level > 0)
                put(w, sl_sign_in(n, codes[i]), 1);
            if (level > 0 && n->is_sparse)
                put_omega(w, level);
            zeros = level > 0 || !n->is_sparse ? 0 : zeros + 1;
        }
    }
    if (zeros > 0)
        put_omega(w, zeros + 1);
}

/* One element that is not 0; its level is known, or comes behind the sign. */
static bool take_level(bit_reader *r, const part_numbers *n, uint64_t level, sl_code_sink *sink) {
    const unsigned sign = (unsigned)take(r, 1);
    if (level == 0)
        level = take_omega(r);
    if (level == 0 || level > sl_level_mask(n))
        return false;
    sl_add_code(sink, sl_code_with(n, (unsigned)level, sign));
    return true;
}

static bool take_dense(bit_reader *r, const part_numbers *n, sl_code_sink *sink) {
    for (size_t at = 0; at < n->count; at++) {
        const uint64_t next = take_omega(r);
        if (next == 0 || (next > 1 && !take_level(r, n, next - 1, sink)))
            return false;
        if (next == 1)
            sl_add_code(sink, 0);
    }
    return true;
}

static bool take_sparse(bit_reader *r, const part_numbers *n, sl_code_sink *sink) {
    for (size_t at = 0; at < n->count; at++) {
        const uint64_t next = take_omega(r);
        if (next == 0 || next - 1 > n->count - at)
            return false;
        for (uint64_t zero = 1; zero < next; zero++, at++)
            sl_add_code(sink, 0);
        if (at < n->count && !take_level(r, n, 0, sink))
            return false;
    }
    return true;
}

static bool take_elias(bit_reader *r, const part_numbers *n, uint8_t *packed) {
    sl_code_sink sink = {.filled = 0, .width = n->width, .out = packed};
    const bool good = n->is_sparse ? take_sparse(r, n, &sink) : take_dense(r, n, &sink);
    if (good && sink.filled > 0)
        sl_flush_codes(&sink);
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
