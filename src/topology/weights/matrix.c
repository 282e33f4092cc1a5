/* matrix.c - Cholesky factors, inverses and solutions; see matrix.h. */
#include "topology/weights/matrix.h"

#include <math.h>
#include <string.h>

#include "base/kernels.h"

enum { AT_ONCE = 8 }; /* rows subtracted in one pass over the row that they are subtracted from */

/* row[from .. to) -= sum_k factors[k stride] rows[k n + ...], k = 0 .. count - 1 in that order for
 * each element. */
FOR_EACH_CPU(void, subtract_rows,
             (double *restrict row, const double *restrict rows, size_t n, const double *factors,
              size_t stride, size_t count, size_t from, size_t to),
             (row, rows, n, factors, stride, count, from, to)) {
    size_t k = 0;
    for (; k + AT_ONCE <= count; k += AT_ONCE) {
        double f[AT_ONCE];
        for (size_t p = 0; p < AT_ONCE; p++)
            f[p] = factors[(k + p) * stride];
        const double *r = rows + k * n;
        for (size_t c = from; c < to; c++)
            row[c] = row[c] - f[0] * r[c] - f[1] * r[n + c] - f[2] * r[2 * n + c] -
                     f[3] * r[3 * n + c] - f[4] * r[4 * n + c] - f[5] * r[5 * n + c] -
                     f[6] * r[6 * n + c] - f[7] * r[7 * n + c];
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
bool sl_matrix_cholesky(double *a, size_t n) {
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
void sl_matrix_invert(double *inverse, const double *u, double *work, size_t n) {
    memset(work, 0, n * n * sizeof *work);
    for (size_t i = 0; i < n; i++) {
        work[i * n + i] = 1;
        subtract_rows(work + i * n, work, n, u + i, n, i, 0, i);
        for (size_t c = 0; c <= i; c++)
            work[i * n + c] /= u[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        memcpy(inverse + i * n, work + i * n, n * sizeof *inverse);
        subtract_rows(inverse + i * n, inverse + (i + 1) * n, n, u + i * n + i + 1, 1, n - i - 1, 0,
                      n);
        for (size_t c = 0; c < n; c++)
            inverse[i * n + c] /= u[i * n + i];
    }
}

/* -(0 - a b): the same sums as a row's subtraction. */
void sl_matrix_multiply(double *out, const double *a, const double *b, size_t n) {
    memset(out, 0, n * n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        subtract_rows(out + i * n, b, n, a + i * n, 1, n, 0, n);
    for (size_t e = 0; e < n * n; e++)
        out[e] = -out[e];
}

void sl_matrix_solve(const double *u, double *x, size_t n) {
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

/* ---- eigenvalues: Jacobi's rotations ---- */

/* Makes a[p][q] zero. */
static void rotate(double *a, double *vectors, size_t n, size_t p, size_t q) {
    double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1)),
           c = 1 / sqrt(t * t + 1), s = t * c;
    for (size_t k = 0; k < n; k++) {
        double x = a[k * n + p], y = a[k * n + q], u = vectors[k * n + p], v = vectors[k * n + q];
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
        vectors[k * n + p] = c * u - s * v;
        vectors[k * n + q] = s * u + c * v;
    }
    for (size_t k = 0; k < n; k++) {
        double x = a[p * n + k], y = a[q * n + k];
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
    }
}

static void sort_by_modulus(double *values, double *vectors, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t largest = i;
        for (size_t j = i + 1; j < n; j++)
            if (fabs(values[j]) > fabs(values[largest]))
                largest = j;
        double value = values[i];
        values[i] = values[largest];
        values[largest] = value;
        for (size_t k = 0; k < n; k++) {
            double entry = vectors[k * n + i];
            vectors[k * n + i] = vectors[k * n + largest];
            vectors[k * n + largest] = entry;
        }
    }
}

void sl_matrix_eigen(double *values, double *vectors, double *a, size_t n) {
    enum { SWEEPS_MAX = 30 };
    memset(vectors, 0, n * n * sizeof *vectors);
    for (size_t i = 0; i < n; i++)
        vectors[i * n + i] = 1;
    for (int sweep = 0, rotations = 1; sweep < SWEEPS_MAX && rotations > 0; sweep++) {
        rotations = 0;
        for (size_t p = 0; p < n; p++)
            for (size_t q = p + 1; q < n; q++)
                if (fabs(a[p * n + q]) > 0x1p-52 * sqrt(fabs(a[p * n + p] * a[q * n + q]))) {
                    rotate(a, vectors, n, p, q);
                    rotations++;
                }
    }
    for (size_t i = 0; i < n; i++)
        values[i] = a[i * n + i];
    sort_by_modulus(values, vectors, n);
}
