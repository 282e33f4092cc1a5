/* runs.h - codes of which most are 0, as symbols for a Huffman code: a run of zeros and the level
 * that ends it.
 *
 * With a reach of R = 2^reach zeros, symbol 0 is R of them; symbol 1 + r levels + l - 1 is r < R
 * zeros and then the level l, whose sign follows its word as it is, one bit. Behind the last
 * element there are zeros. Such a symbol has several bits even where an element has a tenth of one,
 * so that whole bits lose little (Golomb 1966 has the same with a fixed code). For levels, and
 * ternary codes.
 */
#ifndef SL_RUNS_H
#define SL_RUNS_H

#include "compress/lossless/bit_stream.h"
#include "compress/lossless/entropy.h"

enum { RUNS_REACH_MAX = 6 };

/* How many symbols there are; 0: too many, or not for these codes. */
size_t sl_runs_alphabet(const part_numbers *numbers, unsigned reach);
/* The reach that makes the part shortest, the lengths of its words, and the part's bits: infinite
 * where none is possible. */
unsigned sl_runs_best(const part_numbers *numbers, const uint8_t *packed, uint8_t *lengths,
                      double *bits);
void sl_runs_put(bit_writer *w, const part_numbers *numbers, const uint8_t *packed, unsigned reach,
                 const uint8_t *lengths);
/* False: no codes are sent so. */
bool sl_runs_take(bit_reader *r, const part_numbers *numbers, uint8_t *packed, unsigned reach);

/* Expected bits of an element, where zeros have a share of the elements, and each level one. */
double sl_runs_bits(const part_numbers *numbers, const double *shares, uint32_t levels);

#endif
