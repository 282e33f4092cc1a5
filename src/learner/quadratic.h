/* quadratic.h - f_i(x) = 1/2 |A_i x - b_i|^2, one per node, with the full gradient A_i^T (A_i x -
 * b_i).
 *
 * For research and exact checks: convex, its optimum known in closed form. The file is JSON with A
 * [n][m][d], b [n][m] and x0 [n][d]; sums run in double and the gradient is rounded once.
 */
#ifndef SL_LEARNER_QUADRATIC_H
#define SL_LEARNER_QUADRATIC_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "starling/error.h"
#include "starling/types.h"

#define SL_QUADRATIC_ROWS_MAX 1000000u
#define SL_QUADRATIC_DIMENSION_MAX 100000000u

typedef struct sl_quadratic {
    uint32_t nodes, rows, dimension; /* n, m, d */
    double *a;                       /* (n, m, d) */
    double *b;                       /* (n, m) */
    float *x0;                       /* (n, d) */
    double *sum;                     /* (d) working memory */
} sl_quadratic;

int sl_quadratic_load(sl_quadratic *out, const char *path, uint32_t nodes, sl_error *error);
/* The same from bytes in memory. */
int sl_quadratic_parse(sl_quadratic *out, const sl_bytes *file, uint32_t nodes, sl_error *error);
void sl_quadratic_close(sl_quadratic *quadratic);

/* f_rank(x), its gradient into g (d). */
double sl_quadratic_gradient(sl_quadratic *quadratic, uint32_t rank, const float *x, float *g);
/* (1/n) sum of f_i(x). */
double sl_quadratic_mean(const sl_quadratic *quadratic, const float *x);

#endif
