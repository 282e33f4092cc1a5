/* factors.h - matrices of few columns in place of large ones: M (rows, columns) as P Q^T, with P
 * (rows, rank) and Q (columns, rank).
 *
 * M stands row by row, as a tensor in a vector does; P and Q column by column, so that all loops
 * run along memory. Plain C, with sums in lanes: the same bits on every processor.
 */
#ifndef SL_FACTORS_H
#define SL_FACTORS_H

#include "starling/algorithm.h"

/* A tensor in a vector, and its factors in a vector of all P and one of all Q. One that is
 * shorter than its factors is P itself, and has no Q. */
typedef struct sl_matrix {
    size_t from, rows, columns, rank; /* from: its first element */
    size_t p, p_length, q, q_length;
} sl_matrix;

/* From tensor `index` 0 on, in a matrix that was all 0 before. false: there are no more. */
bool sl_matrix_next(sl_matrix *m, const sl_shapes *shapes, size_t rank, size_t index);

/* How long the vectors of all P and all Q are: together at most the dimension. */
typedef struct sl_factor_length {
    size_t p, q;
} sl_factor_length;
sl_factor_length sl_factor_lengths(const sl_shapes *shapes, size_t rank);

/* Has a tensor such a rank? SL_EINVAL, with algorithm.rank. */
int sl_factor_check_rank(const sl_algorithm_config *config, const sl_shapes *shapes,
                         sl_error *error);

/* P = M Q */
void sl_factor_left(float *p, const sl_matrix *m, const float *matrix, const float *q);
/* Q = M^T P */
void sl_factor_right(float *q, const sl_matrix *m, const float *matrix, const float *p);
/* matrix = P Q^T */
void sl_factor_expand(float *matrix, const sl_matrix *m, const float *p, const float *q);
/* matrix -= P Q^T */
void sl_factor_remove(float *matrix, const sl_matrix *m, const float *p, const float *q);
/* Gram-Schmidt: P's columns become orthonormal. One that depends on those before it becomes 0. */
void sl_factor_orthogonalize(float *p, const sl_matrix *m);

#endif
