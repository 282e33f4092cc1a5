/* huffman.h - canonical prefix codes for symbols of which some are more frequent (Huffman 1952):
 * words of one length are successive numbers in the symbols' order, and shorter words come first.
 */
#ifndef SL_HUFFMAN_H
#define SL_HUFFMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compress/lossless/bit_stream.h"

enum {
    HUFFMAN_BITS = 15,
    HUFFMAN_LENGTH_BITS = 4,
    HUFFMAN_SYMBOL_BITS = 11,
    HUFFMAN_SYMBOLS = 1 << HUFFMAN_SYMBOL_BITS
};

/* Lengths of the words, at most HUFFMAN_BITS; 0: the symbol has none, as it does not occur. counts,
 * whose sum is below 2^32, are changed where words would be longer. */
void sl_huffman_lengths(uint32_t *counts, size_t symbols, uint8_t *lengths);
/* The same; returns the bits of all words. */
double sl_huffman_best(uint32_t *counts, size_t symbols, uint8_t *lengths);
void sl_huffman_words(const uint8_t *lengths, size_t symbols, uint16_t *words);

/* What finds a symbol by its word. */
typedef struct huffman_table {
    uint32_t end[HUFFMAN_BITS + 1]; /* of the words of this length, as numbers of HUFFMAN_BITS */
    uint32_t first[HUFFMAN_BITS + 1];
    uint16_t before[HUFFMAN_BITS + 1]; /* symbols with shorter words */
    uint16_t symbols[HUFFMAN_SYMBOLS]; /* by their words */
} huffman_table;

/* False: no prefix code has these lengths, or some bits would begin no word; of a lone symbol the
 * length is 1. */
bool sl_huffman_open(huffman_table *table, const uint8_t *lengths, size_t symbols);

/* The lengths, and back: a 0 for the length of `stride` symbols before, which is 0 for the first
 * ones; else a 1 and HUFFMAN_LENGTH_BITS. */
void sl_huffman_put_lengths(bit_writer *w, const uint8_t *lengths, size_t symbols, size_t stride);
bool sl_huffman_take(bit_reader *r, huffman_table *table, size_t symbols, size_t stride);
double sl_huffman_head_bits(const uint8_t *lengths, size_t symbols, size_t stride);

/* The symbol of the word that `bits`, HUFFMAN_BITS of them, begin with; *length 0: there is none.
 */
static inline unsigned sl_huffman_symbol(const huffman_table *t, uint32_t bits, unsigned *length) {
    for (unsigned l = 1; l <= HUFFMAN_BITS; l++)
        if (bits < t->end[l]) {
            *length = l;
            return t->symbols[t->before[l] + ((bits - t->first[l]) >> (HUFFMAN_BITS - l))];
        }
    *length = 0;
    return 0;
}

#endif
