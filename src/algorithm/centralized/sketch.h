/* sketch.h - count-sketches: Charikar, Chen, Farach-Colton, "Finding Frequent Items in Data
 * Streams", ICALP 2002.
 *
 * A vector v becomes a table S (rows, columns): S[a][h_a(j)] += s_a(j) v_j. An element's estimate
 * is the median over the rows of s_a(j) S[a][h_a(j)]. Tables add up: sums of sketches are sketches
 * of sums. Places h_a(j) and signs s_a(j) follow from the seed: word j of row a's stream, its
 * lowest bit the sign, 1 for -1, and the others times `columns` / 2^31 the place.
 */
#ifndef SL_SKETCH_H
#define SL_SKETCH_H

#include <stddef.h>
#include <stdint.h>

enum { SL_SKETCH_ROWS_MAX = 15 };

typedef struct sl_sketch {
    size_t rows, columns, dimension;
    uint64_t seed;
} sl_sketch;

/* table (rows, columns) += the sketch of v (dimension) */
void sl_sketch_add(const sl_sketch *s, float *table, const float *v);
/* v = the estimates */
void sl_sketch_estimate(const sl_sketch *s, float *v, const float *table);
/* What the elements of v that are not 0 fall into becomes 0. */
void sl_sketch_forget(const sl_sketch *s, float *table, const float *v);

/* All but the k <= count largest magnitudes become 0; of equal ones those of lower index stay. */
void sl_keep_largest(float *v, size_t count, size_t k);

#endif
