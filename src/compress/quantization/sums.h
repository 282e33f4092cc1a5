/* sums.h - what the dense-coded compressors gather of a bucket for its scales, in one pass and the
 * same bits from every instruction set. */
#ifndef SL_SUMS_H
#define SL_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "element/sum.h"

/* One or two sums of one bucket, in the order of element/sum.h. */
typedef struct bucket_sums {
    double lanes[2][SUM_LANES]; /* of the tile under way */
    double folds[2][SUM_FOLDS]; /* of the tiles before it */
    size_t seen, tiles;         /* elements of the tile under way; tiles before it */
    uint64_t negatives;
    uint32_t largest; /* magnitude, as bits */
    double clip;      /* of a scale that is clipped: at so many deviations */
    size_t ahead;     /* the elements this far behind those looked at are asked for; 0: none */
} bucket_sums;

/* Nothing seen yet. */
void sl_sum_begin(bucket_sums *sums, size_t ahead);

/* Elements [at, at + n) of the vector, which are at v; one of these sums per bucket. */
void sl_sum_squares(bucket_sums *sums, const float *v, size_t at, size_t n);
void sl_sum_magnitudes(bucket_sums *sums, const float *v, size_t at, size_t n);
/* The first sum is of all elements that are not < 0, the second of those that are; negatives: how
 * many these are */
void sl_sum_sides(bucket_sums *sums, const float *v, size_t at, size_t n);
void sl_sum_largest(bucket_sums *sums, const float *v, size_t at, size_t n); /* largest */

/* The first `count` sums of the bucket, those that were gathered; then nothing is seen. */
void sl_sum_take(bucket_sums *sums, double *out, int count);
static inline uint32_t sl_sum_take_largest(bucket_sums *sums) {
    const uint32_t largest = sums->largest;
    sums->largest = 0;
    return largest;
}

#endif
