/* matrix.c - Cholesky factors, inverses and solutions; see matrix.h. */
#include "topology/matrix.h"

#include <math.h>
#include <string.h>

enum { AT_ONCE = 8 }; /* rows subtracted in one pass over the row that they are subtracted from */

/* row[from .. to) -= sum_k factors[k stride] rows[k n + ...], k = 0 .. count - 1 in that order for each element. */
static void subtract_rows(double *restrict row, const double *restrict rows, size_t n, const double *factors, size_t stride, size_t count,
                          size_t from, size_t to) {
    size_t k = 0;
    for (; k + AT_ONCE <= count; k += AT_ONCE) {
        double f[AT_ONCE];
        for (size_t p = 0; p < AT_ONCE; p++)
            f[p] = factors[(k + p) * stride];
        const double *r = rows + k * n;
        for (size_t c = from; c < to; c++)
            row[c] = row[c] - f[0] * r[c] - f[1] * r[n + c] - f[2] * r[2 * n + c] - f[3] * r[3 * n + c] - f[4] * r[4 * n + c] -
                     f[5] * r[5 * n + c] - f[6] * r[6 * n + c] - f[7] * r[7 * n + c];
    }
    for (; k < count; k++)
        for (size_t c = from; c < to; c++)
            row[c] -= factors[k * stride] * rows[k * n + c];
}

static bool finish_row(double *row, size_t i, size_t n) {
    if (!(row[i] > 0))
        return false;
    double root = sqrt(row[i]);
    for (size_t c = i; c < n; c++)
        row[c] /= root;
    return true;
}

/* AT_ONCE rows are finished, then subtracted from all that are below. */
bool matrix_cholesky(double *a, size_t n) {
    for (size_t block = 0; block < n; block += AT_ONCE) {
        size_t end = block + AT_ONCE < n ? block + AT_ONCE : n;
        for (size_t i = block; i < end; i++) {
            subtract_rows(a + i * n, a + block * n, n, a + block * n + i, n, i - block, i, n);
            if (!finish_row(a + i * n, i, n))
                return false;
        }
        for (size_t i = end; i < n; i++)
            subtract_rows(a + i * n, a + block * n, n, a + block * n + i, n, end - block, i, n);
    }
    return true;
}

/* work = U'^-1, lower; then U inverse = work, from the last row up. */
void matrix_invert(double *inverse, const double *u, double *work, size_t n) {
    memset(work, 0, n * n * sizeof *work);
    for (size_t i = 0; i < n; i++) {
        work[i * n + i] = 1;
        subtract_rows(work + i * n, work, n, u + i, n, i, 0, i);
        for (size_t c = 0; c <= i; c++)
            work[i * n + c] /= u[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        memcpy(inverse + i * n, work + i * n, n * sizeof *inverse);
        subtract_rows(inverse + i * n, inverse + (i + 1) * n, n, u + i * n + i + 1, 1, n - i - 1, 0, n);
        for (size_t c = 0; c < n; c++)
            inverse[i * n + c] /= u[i * n + i];
    }
}

void matrix_solve(const double *u, double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] /= u[i * n + i];
        for (size_t c = i + 1; c < n; c++)
            x[c] -= u[i * n + c] * x[i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t c = i + 1; c < n; c++)
            x[i] -= u[i * n + c] * x[c];
        x[i] /= u[i * n + i];
    }
}
