/* factors.h - matrices of few columns in place of large ones: M (rows, columns) as P Q^T, with P
 * (rows, rank) and Q (columns, rank).
 *
 * M stands row by row, as a tensor in a vector does; P and Q column by column, so that all loops
 * run along memory. Plain C, with sums in lanes: the same bits on every processor.
 */
#ifndef SL_FACTORS_H
#define SL_FACTORS_H

#include "starling/algorithm.h"
#include "starling/rng.h"

/* A tensor in a vector, and its factors in a vector of all P and one of all Q. What would be
 * shorter than what is sent of it, or is a vector, is P itself, and where they take turns also Q.
 */
typedef struct sl_matrix {
    size_t rank;
    bool takes_turns;           /* P is sent in one exchange and Q in the next; else both are */
    bool factored;              /* else it is sent whole */
    size_t number;              /* of tensors so far */
    size_t from, rows, columns; /* from: its first element */
    size_t p, p_length, q, q_length;
} sl_matrix;

/* The next tensor; before the first one only rank and takes_turns are set. false: there are no
 * more. */
bool sl_matrix_next(sl_matrix *m, const sl_shapes *shapes);

/* How long the vectors of all P and all Q are. Where both are sent: together at most the dimension;
 * where they take turns: each. */
size_t sl_factor_p_length(const sl_algorithm_config *config, const sl_shapes *shapes);
size_t sl_factor_q_length(const sl_algorithm_config *config, const sl_shapes *shapes);
size_t sl_factor_p_turn(const sl_algorithm_config *config, const sl_shapes *shapes);
size_t sl_factor_q_turn(const sl_algorithm_config *config, const sl_shapes *shapes);

/* Has a tensor such a rank, and algorithm.start its rows? SL_EINVAL. */
int sl_factor_check_both(const sl_algorithm_config *config, const sl_shapes *shapes,
                         sl_error *error);
int sl_factor_check_turns(const sl_algorithm_config *config, const sl_shapes *shapes,
                          sl_error *error);

/* P = M Q */
void sl_factor_left(float *p, const sl_matrix *m, const float *matrix, const float *q);
/* Q = M^T P */
void sl_factor_right(float *q, const sl_matrix *m, const float *matrix, const float *p);
/* matrix = P Q^T */
void sl_factor_expand(float *matrix, const sl_matrix *m, const float *p, const float *q);
/* matrix += factor P Q^T */
void sl_factor_add(float *matrix, const sl_matrix *m, const float *p, const float *q, float factor);

/* Of m's columns, of such a length, those that are 0 become normal numbers of the stream, from
 * number `at` on. */
void sl_factor_draw(float *columns, const sl_matrix *m, size_t length, sl_rng_key key, size_t at);
/* All Q from algorithm.start, if it is given. first: as for sl_matrix_next. */
void sl_factor_start(float *q, const sl_state *s, sl_matrix first);

/* Gram-Schmidt: columns of such a length become orthonormal. One that depends on those before it
 * becomes 0. */
void sl_factor_orthogonalize(float *columns, const sl_matrix *m, size_t length);

#endif
