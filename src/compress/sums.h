/* sums.h - what the dense-coded compressors gather of a bucket for its scales, in one pass and the same bits from every instruction set. */
#ifndef SL_SUMS_H
#define SL_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "element/shared.h"

enum { SUM_LANES = 16 };

typedef struct bucket_sums {
    double lanes[2][SUM_LANES]; /* element i of the vector goes to lane i % SUM_LANES */
    uint64_t negatives;
    uint32_t largest; /* magnitude, as bits */
    size_t ahead;     /* the elements this far behind those looked at are asked for; 0: none */
} bucket_sums;

/* Elements [at, at + n) of the vector, which are at v; one of these sums per bucket. */
void sl_sum_squares(bucket_sums *sums, const float *v, size_t at, size_t n);    /* lanes[0] */
void sl_sum_magnitudes(bucket_sums *sums, const float *v, size_t at, size_t n); /* lanes[0] */
/* lanes[0]: of all elements that are not < 0; lanes[1]: of those that are; negatives: how many these are */
void sl_sum_sides(bucket_sums *sums, const float *v, size_t at, size_t n);
void sl_sum_largest(bucket_sums *sums, const float *v, size_t at, size_t n); /* largest */

double sl_sum_take(double lanes[SUM_LANES]); /* their sum, in order; leaves zeros for the next bucket */
static inline uint32_t sl_sum_take_largest(bucket_sums *sums) {
    const uint32_t largest = sums->largest;
    sums->largest = 0;
    return largest;
}

#endif
