/* descent.c - good weights of graphs that are too large for interior.c, and a bound: a subgradient
 * method.
 *
 * rho = ||B||_2, B = W - J, is convex in the weights; for any Y of trace norm 1, tr(YB) is a linear
 * function below it, -u_l' Y u_l its slopes. Y is made of the eigenvectors of the largest
 * |eigenvalues|, those nearest to rho weighing most, because a step that follows only one of
 * several that are close undoes itself at the next. Steps are Polyak's, towards a level between the
 * bound and the best so far that rises when nothing gets better (Boyd, Xiao, Mutapcic, "Subgradient
 * methods", 2003; Boyd, Diaconis, Xiao 2004, section 5, for the projection).
 *
 * The eigenvectors are those of the last weights, improved by a Chebyshev polynomial in B and
 * Rayleigh-Ritz. They need not be exact: too small an estimate of rho costs a poor step, while the
 * bound holds for any unit vectors.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/watch.h"
#include "starling/rng.h"
#include "topology/weights/matrix.h"
#include "topology/weights/optimal.h"

enum {
    VECTORS = 16,
    DEGREE = 10, /* of the polynomial */
    ITERATIONS_MAX = 600,
    BOUND_EVERY = 10, /* iterations */
    PATIENCE = 15,    /* iterations without a better rho before the level rises */
    WARM_UP = 20,     /* polynomials before the first step */
    OLD_VECTORS = 12, /* that are kept when a better rho is to be confirmed, */
    CONFIRM = 3       /* and polynomials for it */
};
static const double memory_power =
    3; /* the mean from which bounds are made weighs iteration k by k^this, and by its step */

typedef struct descent {
    const graph_problem *g;
    size_t n, m;
    double *w, *best; /* (m) */
    double rho, best_rho, bound;
    double *v, *v1, *v2;    /* (n, VECTORS) */
    double values[VECTORS]; /* of B, by falling modulus */
    double gram[VECTORS * VECTORS], turn[VECTORS * VECTORS];
    double *slopes, trace, *mean_slopes, mean_trace, mean_share;
    double *prices;     /* (n) */
    double *scaled;     /* (m) */
    uint64_t *start;    /* (n + 1) the edges at node i: incident[start[i] ..] */
    uint32_t *incident; /* (2 m) */
    sl_rng random;
    void *memory[11];
} descent;

static bool descent_open(descent *d, const graph_problem *g) {
    size_t n = g->nodes, m = g->edge_count;
    *d = (descent){.g = g,
                   .n = n,
                   .m = m,
                   .best_rho = INFINITY,
                   .random = sl_rng_open(0, 0, 0, SL_PURPOSE_TOPOLOGY)};
    size_t sizes[] = {m, m, m, m, n * VECTORS, n * VECTORS, n * VECTORS, n, n + 1, m, m};
    bool complete = true;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        d->memory[k] = calloc(sizes[k], sizeof(double));
        complete = complete && d->memory[k] != NULL;
    }
    d->w = d->memory[0];
    d->best = d->memory[1];
    d->slopes = d->memory[2];
    d->mean_slopes = d->memory[3];
    d->v = d->memory[4];
    d->v1 = d->memory[5];
    d->v2 = d->memory[6];
    d->prices = d->memory[7];
    d->start = d->memory[8];
    d->incident = d->memory[9];
    d->scaled = d->memory[10];
    return complete;
}

static void descent_close(descent *d) {
    for (size_t k = 0; k < sizeof d->memory / sizeof *d->memory; k++)
        free(d->memory[k]);
}

static void list_incident(descent *d) {
    uint64_t *next = d->start;
    for (size_t l = 0; l < d->m; l++) {
        next[d->g->edges[l].from]++;
        next[d->g->edges[l].to]++;
    }
    uint64_t sum = 0;
    for (size_t i = 0; i <= d->n; i++) {
        uint64_t count = next[i];
        next[i] = sum;
        sum += count;
    }
    for (size_t l = 0; l < d->m; l++) {
        d->incident[next[d->g->edges[l].from]++] = (uint32_t)l;
        d->incident[next[d->g->edges[l].to]++] = (uint32_t)l;
    }
    memmove(next + 1, next, d->n * sizeof *next);
    next[0] = 0;
}

/* ---- eigenvectors ---- */

/* out = B v, column by column: v less its mean, less L v. */
static void multiply(const descent *d, double *out, const double *v) {
    double mean[VECTORS] = {0};
    for (size_t i = 0; i < d->n; i++)
        for (size_t c = 0; c < VECTORS; c++)
            mean[c] += v[i * VECTORS + c];
    for (size_t i = 0; i < d->n; i++)
        for (size_t c = 0; c < VECTORS; c++)
            out[i * VECTORS + c] = v[i * VECTORS + c] - mean[c] / (double)d->n;
    for (size_t l = 0; l < d->m; l++) {
        size_t i = (size_t)d->g->edges[l].from * VECTORS, j = (size_t)d->g->edges[l].to * VECTORS;
        for (size_t c = 0; c < VECTORS; c++) {
            double flow = d->w[l] * (v[i + c] - v[j + c]);
            out[i + c] -= flow;
            out[j + c] += flow;
        }
    }
}

/* gram = a' b */
static void products(descent *d, const double *a, const double *b) {
    memset(d->gram, 0, sizeof d->gram);
    for (size_t i = 0; i < d->n; i++)
        for (size_t r = 0; r < VECTORS; r++)
            for (size_t c = 0; c < VECTORS; c++)
                d->gram[r * VECTORS + c] += a[i * VECTORS + r] * b[i * VECTORS + c];
}

/* Columns become orthonormal: v U^-1 with v'v = U'U, twice, as the first time leaves what rounding
 * does. False if they are dependent. */
static bool orthonormalise(descent *d) {
    for (int pass = 0; pass < 2; pass++) {
        products(d, d->v, d->v);
        if (!sl_matrix_cholesky(d->gram, VECTORS))
            return false;
        for (size_t i = 0; i < d->n; i++)
            for (size_t c = 0; c < VECTORS; c++) {
                double *row = d->v + i * VECTORS;
                for (size_t r = 0; r < c; r++)
                    row[c] -= d->gram[r * VECTORS + c] * row[r];
                row[c] /= d->gram[c * VECTORS + c];
            }
    }
    return true;
}

/* v = T_DEGREE(B/cut) v: grows what lies beyond cut on either side. */
static void filter(descent *d, double cut) {
    memcpy(d->v1, d->v, d->n * VECTORS * sizeof *d->v);
    multiply(d, d->v2, d->v1);
    for (size_t e = 0; e < d->n * VECTORS; e++)
        d->v2[e] /= cut;
    for (int k = 1; k < DEGREE; k++) {
        multiply(d, d->v, d->v2);
        for (size_t e = 0; e < d->n * VECTORS; e++) {
            double next = 2 / cut * d->v[e] - d->v1[e];
            d->v1[e] = d->v2[e];
            d->v2[e] = next;
        }
    }
    memcpy(d->v, d->v2, d->n * VECTORS * sizeof *d->v);
}

/* turn = v, v' gram v = diag(values): Ritz values and vectors by falling modulus. */
static bool rayleigh_ritz(descent *d) {
    if (!orthonormalise(d))
        return false;
    multiply(d, d->v1, d->v);
    products(d, d->v, d->v1);
    sl_matrix_eigen(d->values, d->turn, d->gram, VECTORS);
    for (size_t i = 0; i < d->n; i++) {
        double turned[VECTORS] = {0};
        for (size_t r = 0; r < VECTORS; r++)
            for (size_t c = 0; c < VECTORS; c++)
                turned[c] += d->v[i * VECTORS + r] * d->turn[r * VECTORS + c];
        memcpy(d->v + i * VECTORS, turned, sizeof turned);
    }
    d->rho = fabs(d->values[0]);
    return true;
}

/* A cut far below the largest value would leave all columns alike. */
static bool improve_vectors(descent *d) {
    double top = fabs(d->values[0]);
    if (!(top > 1e-9))
        return false;
    filter(d, fmax(fabs(d->values[VECTORS - 1]), top / 2));
    return rayleigh_ritz(d);
}

/* Random columns in place of those from `first` on, and some polynomials: finds an eigenvalue that
 * has grown unseen. */
static bool look_afresh(descent *d, size_t first, int polynomials) {
    double size = 1 / sqrt((double)d->n);
    for (size_t i = 0; i < d->n; i++)
        for (size_t c = first; c < VECTORS; c++)
            d->v[i * VECTORS + c] = size * (2 * sl_rng_uniform(&d->random) - 1);
    memcpy(d->v1, d->v, d->n * VECTORS * sizeof *d->v);
    multiply(d, d->v, d->v1);
    bool good = rayleigh_ritz(d);
    for (int k = 0; k < polynomials && good; k++)
        good = improve_vectors(d);
    return good;
}

/* ---- slopes and bounds ---- */

/* Y = sum_c share_c v_c v_c', shares of falling size and of the eigenvalues' signs; their moduli
 * sum to 1. */
static void find_slopes(descent *d) {
    double shares[VECTORS], sum = 0, top = fabs(d->values[0]),
                            width = fmax(top - fabs(d->values[VECTORS - 1]), 1e-12);
    for (int c = 0; c < VECTORS; c++) {
        double nearness = fmax(1 - (top - fabs(d->values[c])) / width, 0);
        double third = nearness * nearness * nearness, sixth = third * third;
        shares[c] = sixth * sixth;
        sum += shares[c];
    }
    d->trace = 0;
    for (int c = 0; c < VECTORS; c++) {
        shares[c] *= (d->values[c] < 0 ? -1 : 1) / sum;
        d->trace += shares[c];
    }
    for (size_t l = 0; l < d->m; l++) {
        const double *i = d->v + (size_t)d->g->edges[l].from * VECTORS,
                     *j = d->v + (size_t)d->g->edges[l].to * VECTORS;
        d->slopes[l] = 0;
        for (int c = 0; c < VECTORS; c++)
            d->slopes[l] += shares[c] * (i[c] - j[c]) * (i[c] - j[c]);
    }
}

/* A mean of Y by the size of the steps: the sum of steps times slopes is how far w has moved, so
 * that the mean's slopes fade as the steps add up, and with them what the bound loses. */
static void remember(descent *d, uint32_t k, double step) {
    double fading = k / (k + memory_power);
    d->mean_share = fading * d->mean_share + step;
    d->mean_trace = fading * d->mean_trace + step * d->trace;
    for (size_t l = 0; l < d->m; l++)
        d->mean_slopes[l] = fading * d->mean_slopes[l] + step * d->slopes[l];
}

/* Prices that each edge's ends share evenly, and then as low as the neighbours' allow. */
static void find_prices(descent *d, const double *slopes, double scale) {
    const sl_edge *edges = d->g->edges;
    for (size_t i = 0; i < d->n; i++) {
        d->prices[i] = 0;
        for (uint64_t k = d->start[i]; k < d->start[i + 1]; k++)
            d->prices[i] = fmax(d->prices[i], scale * slopes[d->incident[k]] / 2);
    }
    for (size_t i = 0; i < d->n; i++) {
        double needed = 0;
        for (uint64_t k = d->start[i]; k < d->start[i + 1]; k++) {
            const sl_edge *e = &edges[d->incident[k]];
            needed = fmax(needed, scale * slopes[d->incident[k]] -
                                      d->prices[e->from == i ? e->to : e->from]);
        }
        d->prices[i] = needed;
    }
}

static void bound_from(descent *d, double trace, const double *slopes, double scale) {
    for (size_t l = 0; l < d->m; l++)
        d->scaled[l] = scale * slopes[l];
    find_prices(d, slopes, scale);
    d->bound = fmax(d->bound,
                    sl_optimum_dual_bound(d->g, scale * trace, d->scaled, d->prices, d->best_rho));
}

/* ---- steps ---- */

/* Onto weights that are not negative and leave none of a node's own below 0: those at a node that
 * has spent too much shrink. None becomes 0, which would be no edge. */
static void project(descent *d) {
    for (size_t l = 0; l < d->m; l++)
        d->w[l] = fmax(d->w[l], 0x1p-40);
    for (size_t i = 0; i < d->n; i++) {
        double spent = 0;
        for (uint64_t k = d->start[i]; k < d->start[i + 1]; k++)
            spent += d->w[d->incident[k]];
        for (uint64_t k = d->start[i]; spent > 1 && k < d->start[i + 1]; k++)
            d->w[d->incident[k]] /= spent;
    }
}

/* Where the linear function below rho reaches the level. */
static void step_to(descent *d, uint32_t k, double level) {
    double norm = 0;
    for (size_t l = 0; l < d->m; l++)
        norm += d->slopes[l] * d->slopes[l];
    double step = (d->rho - level) / norm;
    remember(d, k, step);
    for (size_t l = 0; l < d->m; l++)
        d->w[l] += step * d->slopes[l];
    if (d->g->sign == SL_SIGN_NONNEGATIVE)
        project(d);
}

/* Is this the best so far, looked at twice? */
static bool is_better(descent *d) {
    double enough = d->best_rho - 1e-9;
    return d->rho < enough && look_afresh(d, OLD_VECTORS, CONFIRM) && d->rho < enough;
}

static void descend(descent *d, sl_optimum *out) {
    double hope = 0.3, work = 0; /* hope: the part of 1 - rho that the level is below the best */
    uint32_t idle = 0;
    for (uint32_t k = 0; k < ITERATIONS_MAX && work <= d->g->work_max;
         k++, work += 4.0 * VECTORS * (DEGREE * (double)d->m + 3.0 * VECTORS * (double)d->n)) {
        sl_watch_tell(d->g->watch, fmax((double)k / ITERATIONS_MAX, work / d->g->work_max));
        out->iterations = k + 1;
        idle++;
        if (is_better(d)) {
            idle = 0;
            d->best_rho = d->rho;
            memcpy(d->best, d->w, d->m * sizeof *d->w);
        }
        find_slopes(d);
        if (k % BOUND_EVERY == 0) {
            bound_from(d, d->trace, d->slopes, 1);
            if (d->mean_share > 0)
                bound_from(d, d->mean_trace, d->mean_slopes, 1 / d->mean_share);
        }
        if (d->best_rho - d->bound <= d->g->tolerance || hope < 1e-6)
            break;
        if (idle > PATIENCE) { /* from the best on, with its slopes */
            hope /= 2;
            idle = 0;
            memcpy(d->w, d->best, d->m * sizeof *d->w);
        } else {
            step_to(d, k, fmax(d->bound, d->best_rho - hope * (1 - d->best_rho)));
        }
        if (!improve_vectors(d))
            break;
    }
}

int sl_optimum_descend(sl_optimum *out, double *weights, const graph_problem *g, sl_error *error) {
    descent d;
    int result =
        descent_open(&d, g)
            ? 0
            : sl_fail(error, SL_ENOMEM, "weights: out of memory for the optimum of %zu edges",
                      g->edge_count);
    *out = (sl_optimum){.rho = 1};
    if (result == 0) {
        list_incident(&d);
        memcpy(d.w, weights, d.m * sizeof *weights);
        memcpy(d.best, weights, d.m * sizeof *weights);
        if (look_afresh(&d, 0, WARM_UP))
            descend(&d, out);
        memcpy(weights, d.best, d.m * sizeof *weights);
        out->lower_bound = d.bound;
    }
    descent_close(&d);
    return result;
}
