/* chain.c - W as a dense matrix whose powers are squared: the random walk's mixing time, and the
 * effective number of neighbours; see starling/analysis.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "starling/analysis.h"
#include "topology/graph/apply.h"

enum { DOUBLINGS_MAX = 40 }; /* beyond, rounding would decide */

/* c = a b, or a b^T; row-major n x n. */
static void multiply(const double *a, const double *b, bool transposed, double *c, int n) {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, n, n, n, 1, a,
                n, b, n, 0, c, n);
}

/* ---- mixing time ---- */

/* The walk's transition matrix, rows summing to 1; false: W has negative entries. */
static bool transitions(const sl_topology *t, double *matrix) {
    const slot *p = &t->graph.slots[0];
    const side *s = t->graph.stochastic.row ? &p->in : &p->out;
    bool good = true;
    memset(matrix, 0, (size_t)t->graph.nodes * t->graph.nodes * sizeof *matrix);
    for (uint32_t i = 0; i < t->graph.nodes; i++) {
        double *row = matrix + (size_t)i * t->graph.nodes;
        row[i] = p->self[i];
        for (uint64_t e = s->start[i]; e < s->start[i + 1]; e++)
            row[s->peers[e]] = s->weights[e];
        for (uint32_t j = 0; j < t->graph.nodes; j++)
            good = good && row[j] >= 0;
    }
    return good;
}

static bool is_mixed(const double *power, const double *stationary, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        double distance = 0;
        for (uint32_t j = 0; j < n; j++)
            distance += fabs(power[(size_t)i * n + j] - stationary[j]) / 2;
        if (distance > 0.25 * (1 + 1e-12)) /* 1/4 is often met exactly */
            return false;
    }
    return true;
}

/* powers: (DOUBLINGS_MAX + 3, n, n): P^(2^m), and two to work in. Returns 0 where it does not mix.
 */
static uint64_t first_mixed(double *powers, const double *stationary, uint32_t n) {
    size_t square = (size_t)n * n;
    double *reached = powers + square * (DOUBLINGS_MAX + 1), *tried = reached + square;
    int m = 0;
    while (!is_mixed(powers + square * m, stationary, n)) {
        if (m == DOUBLINGS_MAX)
            return 0;
        multiply(powers + square * m, powers + square * m, false, powers + square * (m + 1),
                 (int)n);
        m++;
    }
    /* Not mixed after `rounds`; the distance never grows, so that bits are added from the top. */
    uint64_t rounds = 0;
    memset(reached, 0, square * sizeof *reached);
    for (uint32_t i = 0; i < n; i++)
        reached[(size_t)i * n + i] = 1;
    for (int bit = m - 1; bit >= 0; bit--) {
        multiply(reached, powers + square * bit, false, tried, (int)n);
        if (is_mixed(tried, stationary, n))
            continue;
        rounds += 1ull << bit;
        double *swap = reached;
        reached = tried;
        tried = swap;
    }
    return rounds + 1;
}

sl_bounds sl_mixing_bounds(uint64_t nodes, double gap) {
    if (!(gap > 0))
        return (sl_bounds){0, SL_UNBOUNDED};
    double low = (1 / gap - 1) * log(2), high = ceil(log(4 * (double)nodes) / gap);
    return (sl_bounds){(uint64_t)fmin(fmax(1, ceil(low)), 9e18),
                       high < 9e18 ? (uint64_t)high : SL_UNBOUNDED};
}

int sl_topology_mixing_time(sl_bounds *out, const sl_topology *t, double gap, sl_error *error) {
    size_t n = t->graph.nodes, square = n * n;
    sl_bounds bounds = t->graph.period == 1 && t->graph.stochastic.symmetric
                           ? sl_mixing_bounds(n, gap)
                           : (sl_bounds){0, SL_UNBOUNDED};
    if (t->graph.period > 1 || n > SL_MIXING_NODES_MAX) {
        *out = bounds;
        return 0;
    }
    double *powers = malloc((DOUBLINGS_MAX + 3) * square * sizeof *powers),
           *stationary = malloc(n * sizeof *stationary), residual;
    int result =
        powers && stationary
            ? sl_topology_perron(stationary, &residual, t, error)
            : sl_fail(error, SL_ENOMEM, "out of memory for powers of a %zu x %zu matrix", n, n);
    if (result == 0) {
        uint64_t rounds = transitions(t, powers) ? first_mixed(powers, stationary, (uint32_t)n) : 0;
        *out = rounds > 0 ? (sl_bounds){rounds, rounds} : (sl_bounds){0, SL_UNBOUNDED};
    }
    free(powers);
    free(stationary);
    return result;
}

/* ---- effective number of neighbours ---- */

/* sum_k decay^(k-1) M(k) M(k)^T over one period that ends with slot `end`, into sum; the whole
 * product into matrix. M is kept transposed while it grows on the right: column j of M^T is a row
 * of M, which the slot's transpose acts on. */
static void sum_period(const sl_topology *t, uint32_t end, double decay, double *sum,
                       double *matrix, double *spare) {
    size_t n = t->graph.nodes, square = n * n;
    memset(matrix, 0, square * sizeof *matrix);
    memset(sum, 0, square * sizeof *sum);
    for (size_t i = 0; i < n; i++)
        matrix[i * n + i] = 1;
    double weight = 1;
    for (uint32_t k = 0; k < t->graph.period; k++, weight *= decay) {
        const slot *p = &t->graph.slots[(end + t->graph.period - k) % t->graph.period];
        for (size_t row = 0; row < n; row++)
            sl_slot_apply_transposed(p, t->graph.nodes, matrix + row * n, spare + row * n);
        memcpy(matrix, spare, square * sizeof *matrix);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)n, (int)n, weight, matrix,
                    (int)n, matrix, (int)n, 1, sum, (int)n);
    }
}

/* S <- S + d Q S Q^T, Q <- Q Q, d <- d^2, until d is nothing: twice as many periods each time.
 * Returns the trace of S. */
static double sum_periods(double *sum, double *matrix, double decay, double *spare, double *other,
                          int n) {
    while (decay > 1e-16) {
        multiply(matrix, sum, false, spare, n);
        multiply(spare, matrix, true, other, n);
        cblas_daxpy(n * n, decay, other, 1, sum, 1);
        multiply(matrix, matrix, false, spare, n);
        memcpy(matrix, spare, (size_t)n * n * sizeof *matrix);
        decay *= decay;
    }
    double trace = 0;
    for (int i = 0; i < n; i++)
        trace += sum[(size_t)i * n + i];
    return trace;
}

int sl_topology_effective_neighbours(double *out, const sl_topology *t, double decay,
                                     sl_error *error) {
    size_t n = t->graph.nodes, square = n * n;
    if (!t->graph.stochastic.row || !t->graph.stochastic.column ||
        (double)n * (double)square * t->graph.period > SL_NEIGHBOURS_WORK) {
        *out = NAN;
        return 0;
    }
    double *sum = malloc(4 * square * sizeof *sum), total = 0;
    if (sum == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for powers of a %zu x %zu matrix", n, n);
    double *matrix = sum + square, *spare = matrix + square, *other = spare + square;
    for (uint32_t end = 0; end < t->graph.period; end++) {
        sum_period(t, end, decay, sum, matrix, spare);
        total += 1 / (1 - decay) /
                 (sum_periods(sum, matrix, pow(decay, t->graph.period), spare, other, (int)n) /
                  (double)n);
    }
    free(sum);
    *out = total / t->graph.period;
    return 0;
}
