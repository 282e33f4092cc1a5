/* runs.c - see runs.h. */
#include "compress/lossless/runs.h"

#include <math.h>
#include <string.h>

#include "compress/lossless/huffman.h"
#include "compress/lossless/levels.h"

enum { FORM_BITS = 4, COUNTED = 1 << 30 };

size_t sl_runs_alphabet(const part_numbers *n, unsigned reach) {
    const bool suits = n->codes == CODES_LEVELS || n->codes == CODES_TERNARY;
    const size_t symbols = 1 + ((size_t)sl_level_mask(n) << reach);
    return suits && reach <= RUNS_REACH_MAX && symbols <= HUFFMAN_SYMBOLS ? symbols : 0;
}

/* A level is about as frequent after one more zero. */
static double head_bits(const part_numbers *n, unsigned reach, const uint8_t *lengths) {
    return FORM_BITS + sl_huffman_head_bits(lengths, sl_runs_alphabet(n, reach), sl_level_mask(n));
}

/* The reach with most symbols; there is one. */
static unsigned longest(const part_numbers *n) {
    unsigned reach = 0;
    while (sl_runs_alphabet(n, reach + 1) > 0)
        reach++;
    return reach;
}

/* ---- from codes to symbols ---- */

/* What is done with a symbol, and with the sign of its level; symbol 0 has none. */
typedef struct symbol_user {
    uint32_t *counts; /* NULL: it is written */
    bit_writer *w;
    const uint16_t *words;
    const uint8_t *lengths;
} symbol_user;

static inline void use(const symbol_user *u, size_t symbol, unsigned sign) {
    if (u->counts != NULL) {
        u->counts[symbol]++;
        return;
    }
    put(u->w, u->words[symbol], u->lengths[symbol]);
    if (symbol > 0)
        put(u->w, sign, 1);
}

static void go_through(const part_numbers *n, const uint8_t *packed, unsigned reach,
                       const symbol_user *u) {
    const size_t levels = sl_level_mask(n), whole = (size_t)1 << reach;
    uint16_t room[SL_BLOCK];
    size_t zeros = 0;
    for (size_t at = 0; at < n->count; at += SL_BLOCK) {
        const size_t some = n->count - at < SL_BLOCK ? n->count - at : SL_BLOCK;
        const uint16_t *codes = sl_unpack(sl_codes_at(n, packed, at), some, n->width, room);
        for (size_t i = 0; i < some; i++) {
            const unsigned level = sl_level_in(n, codes[i]);
            if (level > 0)
                use(u, 1 + zeros * levels + level - 1, sl_sign_in(n, codes[i]));
            else if (zeros + 1 == whole)
                use(u, 0, 0);
            zeros = level > 0 || zeros + 1 == whole ? 0 : zeros + 1;
        }
    }
    if (zeros > 0)
        use(u, 0, 0);
}

/* Counts of a shorter reach follow: of a run what is left of it, and its whole parts. */
static void shorten(const part_numbers *n, unsigned from, unsigned to, const uint32_t *counts,
                    uint32_t *out) {
    const size_t levels = sl_level_mask(n), mask = ((size_t)1 << to) - 1;
    memset(out, 0, sl_runs_alphabet(n, to) * sizeof *out);
    out[0] = counts[0] << (from - to);
    for (size_t zeros = 0; zeros < (size_t)1 << from; zeros++)
        for (size_t l = 0; l < levels; l++) {
            const uint32_t count = counts[1 + zeros * levels + l];
            out[1 + (zeros & mask) * levels + l] += count;
            out[0] += count * (uint32_t)(zeros >> to);
        }
}

/* Counts as they would be if elements were independent: smooth ones make lengths that are soon
 * said. zeros: the share of elements that are 0, which is not 1. */
static void smooth(const part_numbers *n, unsigned reach, double zeros, const uint32_t *counts,
                   uint32_t *out) {
    const size_t levels = sl_level_mask(n), whole = (size_t)1 << reach;
    double none = 1;
    for (size_t run = 0; run < whole; run++)
        none *= zeros;
    out[0] = counts[0];
    for (size_t l = 0; l < levels; l++) {
        double all = 0;
        for (size_t run = 0; run < whole; run++)
            all += counts[1 + run * levels + l];
        for (size_t run = 0; run < whole; run++, all *= zeros)
            out[1 + run * levels + l] = (uint32_t)ceil(all * (1 - zeros) / (1 - none));
    }
}

/* Of the words that suit `model`, and of the signs; the lengths too. */
static double bits_by(const part_numbers *n, unsigned reach, uint32_t *model,
                      const uint32_t *counts, uint8_t *lengths) {
    const size_t symbols = sl_runs_alphabet(n, reach);
    sl_huffman_lengths(model, symbols, lengths);
    double bits = head_bits(n, reach, lengths) - counts[0];
    for (size_t s = 0; s < symbols; s++)
        bits += counts[s] > 0 && lengths[s] == 0 ? INFINITY : (double)counts[s] * (lengths[s] + 1);
    return bits;
}

unsigned sl_runs_best(const part_numbers *n, const uint8_t *packed, uint8_t *lengths,
                      double *bits) {
    uint32_t all[HUFFMAN_SYMBOLS] = {0}, counts[HUFFMAN_SYMBOLS], model[2][HUFFMAN_SYMBOLS];
    uint8_t these[HUFFMAN_SYMBOLS];
    unsigned best = 0;
    *bits = INFINITY;
    if (sl_runs_alphabet(n, 0) == 0)
        return best;
    const unsigned from = longest(n);
    double filled = 0;
    go_through(n, packed, from, &(symbol_user){.counts = all});
    for (size_t s = 1; s < sl_runs_alphabet(n, from); s++)
        filled += all[s];
    for (unsigned reach = 0; reach <= from; reach++) {
        const size_t symbols = sl_runs_alphabet(n, reach);
        shorten(n, from, reach, all, counts);
        memcpy(model[0], counts, symbols * sizeof *counts);
        if (filled > 0)
            smooth(n, reach, 1 - filled / (double)n->count, counts, model[1]);
        for (int m = 0; m < (filled > 0 ? 2 : 1); m++) {
            const double here = bits_by(n, reach, model[m], counts, these);
            if (here >= *bits)
                continue;
            *bits = here;
            best = reach;
            memcpy(lengths, these, symbols);
        }
    }
    return best;
}

void sl_runs_put(bit_writer *w, const part_numbers *n, const uint8_t *packed, unsigned reach,
                 const uint8_t *lengths) {
    uint16_t words[HUFFMAN_SYMBOLS];
    sl_huffman_put_lengths(w, lengths, sl_runs_alphabet(n, reach), sl_level_mask(n));
    sl_huffman_words(lengths, sl_runs_alphabet(n, reach), words);
    go_through(n, packed, reach, &(symbol_user){.w = w, .words = words, .lengths = lengths});
}

/* ---- and back ---- */

static bool take_symbol(bit_reader *r, const huffman_table *table, size_t *symbol) {
    unsigned length;
    *symbol = sl_huffman_symbol(table, (uint32_t)(look(r) >> (64 - HUFFMAN_BITS)), &length);
    r->at += length;
    return length > 0;
}

bool sl_runs_take(bit_reader *r, const part_numbers *n, uint8_t *packed, unsigned reach) {
    huffman_table table;
    if (sl_runs_alphabet(n, reach) == 0 ||
        !sl_huffman_take(r, &table, sl_runs_alphabet(n, reach), sl_level_mask(n)))
        return false;
    sl_code_sink sink = {.width = n->width, .out = packed};
    const size_t levels = sl_level_mask(n), whole = (size_t)1 << reach;
    for (size_t at = 0; at < n->count;) {
        size_t symbol;
        if (!take_symbol(r, &table, &symbol))
            return false;
        const size_t left = n->count - at, run = symbol == 0 ? whole : (symbol - 1) / levels,
                     zeros = run < left ? run : left;
        for (size_t i = 0; i < zeros; i++)
            sl_add_code(&sink, 0);
        at += zeros;
        if (symbol == 0)
            continue;
        if (at++ == n->count)
            return false;
        sl_add_code(&sink,
                    sl_code_with(n, (unsigned)((symbol - 1) % levels) + 1, (unsigned)take(r, 1)));
    }
    if (sink.filled > 0)
        sl_flush_codes(&sink);
    return true;
}

/* ---- how long they are ---- */

/* Bits of an element, with its share of the head. */
static double reach_bits(const part_numbers *n, unsigned reach, const double *shares,
                         uint32_t levels) {
    double of[HUFFMAN_SYMBOLS] = {0}, zeros = 1, bits = 0, elements = 0;
    uint32_t counts[HUFFMAN_SYMBOLS];
    uint8_t lengths[HUFFMAN_SYMBOLS];
    for (size_t run = 0; run < (size_t)1 << reach; run++) {
        for (uint32_t l = 1; l <= levels; l++)
            of[1 + run * sl_level_mask(n) + l - 1] = zeros * shares[l];
        elements += zeros; /* that the symbol goes on to this one */
        zeros *= shares[0];
    }
    of[0] = zeros;
    for (size_t s = 0; s < sl_runs_alphabet(n, reach); s++)
        counts[s] = (uint32_t)(of[s] * COUNTED);
    sl_huffman_lengths(counts, sl_runs_alphabet(n, reach), lengths);
    for (size_t s = 0; s < sl_runs_alphabet(n, reach); s++)
        bits += of[s] * (lengths[s] + (s > 0));
    return bits / elements + head_bits(n, reach, lengths) / (double)n->count;
}

double sl_runs_bits(const part_numbers *n, const double *shares, uint32_t levels) {
    double least = INFINITY;
    for (unsigned reach = 0; sl_runs_alphabet(n, reach) > 0; reach++)
        least = fmin(least, reach_bits(n, reach, shares, levels));
    return least;
}
