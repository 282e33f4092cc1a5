/* entropy.h - lossless codes behind a compressor: what a part's payload says of indices, or of
 * levels (symbols.h), in numbers of a fixed width is said in codes whose length varies.
 *
 * A part is encoded as without a code, and what stands ahead of its numbers stays as it is. Of
 * indices then follow, from the highest bit of a byte on, as the papers write code words: the first
 * index, in as many bits as it has without a code, and for each further one the gap to it, the
 * indices between two; behind each index its sign, where it has one. A part that would not be
 * shorter so is sent without the code: the length tells which of the two it is. Where the number of
 * entries is not known to both sides, it stands in between, 32 bits.
 *
 *   golomb  Rice's code of the gap: of its bits from b on, as a number, as many ones, and a zero;
 *           then its b lowest bits. b = max(0, 1 + floor(log2(ln(phi - 1) / ln(1 - p)))), phi the
 *           golden ratio, is the best where an element is chosen with probability p (Golomb 1966,
 *           Kiely 2004; Sattler et al. 2019). p is the share of the entries, k / d.
 *   elias   Elias's gamma code of the gap and one more (Elias 1975): as many zeros as it has bits
 *           after its highest one, then these bits. It knows nothing of p.
 */
#ifndef SL_ENTROPY_H
#define SL_ENTROPY_H

#include "compress/codec.h"

typedef enum part_codes {
    CODES_NONE,    /* the numbers are indices (indices.h) */
    CODES_LEVELS,  /* a level, and above it a sign (pack.h) */
    CODES_TERNARY, /* 0, 1 and 2, which is minus 1 */
    CODES_POWERS   /* an exponent, and above it a sign */
} part_codes;

/* The numbers of a part, which end its payload. */
struct part_numbers {
    part_codes codes;
    bool is_sparse;         /* codes: are most of them 0? */
    size_t ahead;           /* bytes before them */
    size_t count;           /* counted: unless the payload is given, the most there may be */
    bool counted;           /* is the count sent? */
    unsigned width, beside; /* bits of a number; below its index: 0 or 1 */
    size_t elements;        /* indices are below */
    double share;           /* of the elements that are entries; counted: the part's own is taken */
};

/* b of Rice's code where elements are chosen with probability `share`: 0 to 31. */
unsigned sl_golomb_bits(double share);
/* Expected bits of k numbers of `width` bits, of d elements chosen at random: no more than without
 * a code. */
double sl_entropy_bits(sl_entropy entropy, size_t k, size_t d, unsigned width, unsigned beside);

/* From the payload without a code to that with it, which is at most as long, but for the count.
 * Returns its length. */
size_t sl_entropy_encode(sl_entropy entropy, const part_numbers *numbers, sl_payload plain,
                         uint8_t *out);
/* Back; `out` has room for the longest part. False: no such part is sent. What was restored is yet
 * to be checked as any payload. */
bool sl_entropy_decode(sl_entropy entropy, part_numbers numbers, sl_payload coded, uint8_t *out,
                       sl_payload *plain);

#endif
