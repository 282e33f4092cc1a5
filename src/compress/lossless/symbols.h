/* symbols.h - lossless codes of what dense-coded compressors send for every element.
 *
 *   huffman  First a form, 4 bits; then the length of each symbol's word, 0 where it does not
 *            occur; then the words (huffman.h). Forms 0 to 7: one symbol is the codes of
 *            form + 1 elements, the first in its lowest bits; behind the last element there are
 *            zeros. From 8 on: one symbol is a run of zeros and what ends it (runs.h). Of those
 *            with at most HUFFMAN_SYMBOLS symbols the form that makes the part shortest is taken:
 *            where one element's code has far less than a bit, only runs come near the entropy.
 *   elias    QSGD's own codes (Alistarh et al. 2017), of levels and signs, with Elias's omega code
 *            (1975). Sparse: of each element that is not 0, the gap to it and one more, its sign,
 *            its level; at the end, unless the last element is such a one, the gap to where one
 * more would be. Dense: of each element its level and one more, then its sign unless that is 0.
 * Dense pays where the levels are at least the square root of the bucket.
 *
 * Levels of zero lose their sign.
 */
#ifndef SL_SYMBOLS_H
#define SL_SYMBOLS_H

#include "compress/lossless/bit_stream.h"
#include "compress/lossless/entropy.h"

/* The codes of a part, which are the packed ones (pack.h). */
void sl_symbols_put(bit_writer *w, sl_entropy entropy, const part_numbers *numbers,
                    const uint8_t *packed);
/* False: no codes are sent so. */
bool sl_symbols_take(bit_reader *r, sl_entropy entropy, const part_numbers *numbers,
                     uint8_t *packed);

/* How many symbols so many elements make; 0: too many. */
size_t sl_symbols_alphabet(const part_numbers *numbers, unsigned group);

/* Expected bits of an element of a normal vector whose deviation is `unit` levels (CODES_POWERS: 1,
 * and unit is not looked at). */
double sl_symbols_bits(sl_entropy entropy, const part_numbers *numbers, double unit,
                       uint32_t levels);

#endif
