/* spectrum.c - what `starling check` says of W: degrees, and eigenvalues by LAPACK on the dense matrix.
 *
 * For a schedule the matrix is the product W(period) ... W(1), and rho is its second largest modulus over a whole period.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph.h"

void dsyev_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w, double *work,
            const int *lwork, int *info);
void dgeev_(const char *jobvl, const char *jobvr, const int *n, double *a, const int *lda, double *wr, double *wi, double *vl,
            const int *ldvl, double *vr, const int *ldvr, double *work, const int *lwork, int *info);

static void count_degrees(const sl_topology *t, sl_topology_report *r) {
    uint64_t total = 0;
    bool undirected = true;
    r->degree_min = UINT32_MAX;
    for (uint32_t k = 0; k < t->period; k++)
        undirected = undirected && t->phases[k].undirected;
    for (uint32_t k = 0; k < t->period; k++) {
        const phase *p = &t->phases[k];
        r->edges += undirected ? p->edges / 2 : p->edges;
        total += p->edges;
        for (uint32_t i = 0; i < t->nodes; i++) {
            uint32_t degree = (uint32_t)(p->out.start[i + 1] - p->out.start[i]);
            r->degree_min = degree < r->degree_min ? degree : r->degree_min;
            r->degree_max = degree > r->degree_max ? degree : r->degree_max;
        }
    }
    r->degree_mean = (double)total / t->nodes / t->period;
}

/* next = W_k product, column by column (both column-major, n x n). */
static void multiply_phase(const sl_topology *t, uint32_t k, const double *product, double *next) {
    size_t n = t->nodes;
    const phase *p = &t->phases[k];
    for (size_t c = 0; c < n; c++)
        for (uint32_t i = 0; i < n; i++) {
            double sum = p->self[i] * product[c * n + i];
            for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
                sum += p->in.weights[e] * product[c * n + p->in.peers[e]];
            next[c * n + i] = sum;
        }
}

/* The dense matrix of a whole period, in *matrix (n x n); *spare is as large. */
static void densify(const sl_topology *t, double **matrix, double **spare) {
    size_t n = t->nodes;
    memset(*matrix, 0, n * n * sizeof **matrix);
    for (size_t i = 0; i < n; i++)
        (*matrix)[i * n + i] = 1;
    for (uint32_t k = 0; k < t->period; k++) {
        multiply_phase(t, k, *matrix, *spare);
        double *swap = *matrix;
        *matrix = *spare;
        *spare = swap;
    }
}

static int symmetric_spectrum(double *matrix, double *values, int n, sl_topology_report *r) {
    double size;
    int query = -1, info;
    dsyev_("N", "U", &n, matrix, &n, values, &size, &query, &info);
    int lwork = (int)size;
    double *work = malloc((size_t)lwork * sizeof *work);
    if (work == NULL)
        return -1;
    dsyev_("N", "U", &n, matrix, &n, values, work, &lwork, &info);
    free(work);
    r->lambda_2 = values[n - 2];
    r->lambda_n = values[0];
    r->rho = fmax(fabs(r->lambda_2), fabs(r->lambda_n));
    return info;
}

static int descending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return a > b ? -1 : a < b;
}

static int general_spectrum(double *matrix, double *values, int n, sl_topology_report *r) {
    double size, *imaginary = malloc((size_t)n * sizeof *imaginary);
    int query = -1, one = 1, info;
    dgeev_("N", "N", &n, matrix, &n, values, imaginary, NULL, &one, NULL, &one, &size, &query, &info);
    int lwork = (int)size;
    double *work = malloc((size_t)lwork * sizeof *work);
    if (work != NULL && imaginary != NULL) {
        dgeev_("N", "N", &n, matrix, &n, values, imaginary, NULL, &one, NULL, &one, work, &lwork, &info);
        for (int i = 0; i < n; i++)
            values[i] = hypot(values[i], imaginary[i]);
        qsort(values, (size_t)n, sizeof *values, descending);
        r->rho = values[1];
    } else {
        info = -1;
    }
    free(work);
    free(imaginary);
    return info;
}

static int find_spectrum(const sl_topology *t, sl_topology_report *r, sl_error *error) {
    size_t n = t->nodes;
    double *matrix = malloc(n * n * sizeof *matrix), *spare = malloc(n * n * sizeof *spare), *values = malloc(n * sizeof *values);
    int info = -1;
    if (matrix != NULL && spare != NULL && values != NULL) {
        densify(t, &matrix, &spare);
        info = r->stochastic.symmetric && t->period == 1 ? symmetric_spectrum(matrix, values, (int)n, r)
                                                         : general_spectrum(matrix, values, (int)n, r);
    }
    free(matrix);
    free(spare);
    free(values);
    if (info != 0)
        return sl_fail(error, SL_ENOMEM, "spectrum: the eigenvalues of a %u x %u matrix could not be computed", t->nodes, t->nodes);
    r->spectrum_known = true;
    r->gap = 1 - r->rho;
    return 0;
}

int sl_topology_analyse(const sl_topology *topology, sl_topology_report *out, sl_error *error) {
    sl_topology_report r = {
        .nodes = topology->nodes,
        .period = topology->period,
        .connected = topology_is_connected(topology),
        .stochastic = topology->stochastic,
        .lambda_2 = NAN,
        .lambda_n = NAN,
        .rho = NAN,
        .gap = NAN,
    };
    count_degrees(topology, &r);
    int result = 0;
    if (r.nodes == 1) { /* one node agrees with itself at once */
        r.spectrum_known = true;
        r.lambda_2 = r.lambda_n = r.rho = 0;
        r.gap = 1;
    } else if (r.nodes <= SL_SPECTRUM_NODES_MAX) {
        result = find_spectrum(topology, &r, error);
    }
    if (result == 0)
        *out = r;
    return result;
}
