/* dense.c - all eigenvalues of small matrices, by LAPACK.
 *
 * The matrix is W - J, J = 11'/n, of the product over the period: what is left of W when the
 * eigenvalue 1 of the constant vector (right or left, as rows or columns sum to 1) has been moved
 * to 0, and nothing else (Wielandt's deflation).
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/spectrum/spectral.h"

void dsyev_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w,
            double *work, const int *lwork, int *info);
void dgeev_(const char *jobvl, const char *jobvr, const int *n, double *a, const int *lda,
            double *wr, double *wi, double *vl, const int *ldvl, double *vr, const int *ldvr,
            double *work, const int *lwork, int *info);
/* next = W_k product, column by column (both column-major, n x n). */
static void multiply_slot(const graph *g, uint32_t k, const double *product, double *next) {
    size_t n = g->nodes;
    const slot *p = &g->slots[k];
    for (size_t c = 0; c < n; c++)
        for (uint32_t i = 0; i < n; i++) {
            double sum = p->self[i] * product[c * n + i];
            for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
                sum += p->in.weights[e] * product[c * n + p->in.peers[e]];
            next[c * n + i] = sum;
        }
}

/* W - J of a whole period, (n, n) column-major, malloc'ed; NULL without memory. */
static double *densify(const graph *g) {
    size_t n = g->nodes;
    double *matrix = calloc(n * n, sizeof *matrix), *spare = malloc(n * n * sizeof *spare);
    for (size_t i = 0; matrix != NULL && i < n; i++)
        matrix[i * n + i] = 1;
    for (uint32_t k = 0; matrix != NULL && spare != NULL && k < g->period; k++) {
        multiply_slot(g, k, matrix, spare);
        double *swap = matrix;
        matrix = spare;
        spare = swap;
    }
    for (size_t e = 0; matrix != NULL && e < n * n; e++)
        matrix[e] -= 1.0 / (double)n;
    bool complete = spare != NULL;
    free(spare);
    if (complete)
        return matrix;
    free(matrix);
    return NULL;
}

static bool allocate_work(double **work, int *lwork, int n) {
    *lwork = 70 * n; /* LAPACK's blocks are of 64 columns at most */
    *work = malloc((size_t)*lwork * sizeof **work);
    return *work != NULL;
}

static int symmetric_eigenvalues(double *matrix, double *values, int n) {
    double *work;
    int lwork, info = -1;
    if (allocate_work(&work, &lwork, n))
        dsyev_("N", "L", &n, matrix, &n, values, work, &lwork, &info);
    free(work);
    return info;
}

static int general_eigenvalues(double *matrix, double *real, double *imaginary, int n) {
    double *work;
    int lwork, one = 1, info = -1;
    if (allocate_work(&work, &lwork, n))
        dgeev_("N", "N", &n, matrix, &n, real, imaginary, NULL, &one, NULL, &one, work, &lwork,
               &info);
    free(work);
    return info;
}

typedef struct eigenvalue {
    double real, imaginary, modulus;
} eigenvalue;

static int by_falling_modulus(const void *x, const void *y) {
    const eigenvalue *a = x, *b = y;
    if (a->modulus != b->modulus)
        return a->modulus > b->modulus ? -1 : 1;
    return a->imaginary > b->imaginary
               ? -1
               : a->imaginary < b->imaginary; /* a pair: the positive one first */
}

static int sort_by_modulus(double *real, double *imaginary, size_t n) {
    eigenvalue *all = malloc(n * sizeof *all);
    if (all == NULL)
        return -1;
    for (size_t i = 0; i < n; i++)
        all[i] = (eigenvalue){real[i], imaginary[i], hypot(real[i], imaginary[i])};
    qsort(all, n, sizeof *all, by_falling_modulus);
    for (size_t i = 0; i < n; i++) {
        real[i] = all[i].real;
        imaginary[i] = all[i].imaginary;
    }
    free(all);
    return 0;
}

/* Ascending values without the one nearest to 0, which is the constant vector's. */
static void drop_zero(double *values, size_t n) {
    size_t zero = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(values[i]) < fabs(values[zero]))
            zero = i;
    memmove(values + zero, values + zero + 1, (n - zero - 1) * sizeof *values);
}

int sl_spectrum_dense_eigenvalues(const graph *g, double *real, double *imaginary,
                                  sl_error *error) {
    int n = (int)g->nodes, info = -1;
    double *matrix = densify(g);
    if (matrix != NULL && sl_graph_is_symmetric(g)) {
        info = symmetric_eigenvalues(matrix, real, n);
        drop_zero(real, g->nodes);
    } else if (matrix != NULL && sl_spectrum_averages_exactly(g)) {
        memset(real, 0, g->nodes * sizeof *real);
        memset(imaginary, 0, g->nodes * sizeof *imaginary);
        info = 0;
    } else if (matrix != NULL) {
        info = general_eigenvalues(matrix, real, imaginary, n);
        info = info == 0 ? sort_by_modulus(real, imaginary, g->nodes)
                         : info; /* the last is the constant vector's 0 */
    }
    free(matrix);
    if (info == 0)
        return 0;
    return sl_fail(
        error, SL_ENOMEM,
        "spectrum: the eigenvalues of a %u x %u matrix could not be computed (LAPACK says %d)",
        g->nodes, g->nodes, info);
}

/* Of `count` values as sl_spectrum_dense_eigenvalues orders them, those that are the first one but
 * for rounding. */
static uint32_t count_equal(const double *values, uint32_t count, int step, double tolerance) {
    uint32_t equal = 1;
    while (equal < count && fabs(values[0] - values[(ptrdiff_t)equal * step]) <= tolerance)
        equal++;
    return equal;
}

static void report_symmetric(sl_spectrum *out, const double *values, uint32_t nodes) {
    const double *last = values + nodes - 2;
    *out = sl_spectrum_from_gaps(nodes, 1 - *last, 1 + values[0]);
    out->residual = 4 * DBL_EPSILON * sqrt(nodes) * fmax(1, out->rho); /* ||W|| is 1 */
    out->multiplicity = count_equal(last, nodes - 1, -1, 64 * out->residual);
    out->gap_error = out->residual / fabs(out->gap);
}

static void report_general(sl_spectrum *out, double *real, const double *imaginary,
                           double singular_2, uint32_t nodes) {
    for (uint32_t i = 0; i + 1 < nodes; i++)
        real[i] = hypot(real[i], imaginary[i]);
    *out = sl_spectrum_of_modulus(nodes, real[0], singular_2);
    out->residual = 4 * DBL_EPSILON * sqrt(nodes) * fmax(1, singular_2);
    out->multiplicity = count_equal(real, nodes - 1, 1, 1e-10);
    out->gap_error = out->residual / fabs(out->gap);
}

int sl_spectrum_dense(sl_spectrum *out, const graph *g, sl_error *error) {
    double *real = malloc(g->nodes * sizeof *real),
           *imaginary = malloc(g->nodes * sizeof *imaginary), singular_2 = 0;
    int result = real == NULL || imaginary == NULL
                     ? sl_fail(error, SL_ENOMEM, "out of memory for %u eigenvalues", g->nodes)
                     : sl_spectrum_dense_eigenvalues(g, real, imaginary, error);
    if (result == 0 && sl_graph_is_symmetric(g))
        report_symmetric(out, real, g->nodes);
    else if (result == 0 && sl_spectrum_singular_2(&singular_2, g, INFINITY) == 0)
        report_general(out, real, imaginary, singular_2, g->nodes);
    else if (result == 0)
        result = sl_fail(error, SL_ENOMEM, "spectrum: ARPACK could not work on vectors of %u nodes",
                         g->nodes);
    if (result == 0) {
        out->method = SL_SPECTRUM_DENSE;
        sl_spectrum_round(out, out->residual);
    }
    free(real);
    free(imaginary);
    return result;
}
