/* barrier.c - the optimal weights of small graphs: an interior-point method.
 *
 * minimise rho  subject to  S1 = rho I - (W - J) >= 0,  S2 = rho I + (W - J) >= 0,  and where weights must not be negative w >= 0 and own weights
 * c_i = 1 - sum_{l at i} w_l >= 0 (Boyd, Diaconis, Xiao 2004; Xiao, Boyd 2004, both as semidefinite programs). For a rising t, Newton's method
 * minimises
 *
 *     f(w, rho) = t rho - log det S1 - log det S2 - sum_l log w_l - sum_i log c_i
 *
 * With X = S^-1 (Boyd, Vandenberghe, "Convex optimization", 11.6), the Hessian in w is (u_l' X1 u_k)^2 + (u_l' X2 u_k)^2, and what the rest adds;
 * it is (edges, edges) and cheap to fill, as u_l has two entries. At the minimum Y = (X1 - X2)/t and prices 1/(t c_i) are feasible for the dual
 * problem, with a gap of (2 n + m + n)/t. No logarithm is ever taken: a step is accepted by the slope of f at its end, so that the bits of the
 * result depend on no mathematical library.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/matrix.h"
#include "topology/optimal.h"

enum { STEPS_MAX = 400, HALVINGS_MAX = 50 };
static const double t_growth = 12;
static const double centred = 0.3; /* Newton's decrement that is near enough to the minimum */

/* A point and what follows from it. */
typedef struct point {
    double *w, rho;   /* (m) */
    double *own;      /* (n) c_i */
    double *x1, *x2;  /* (n, n) */
    double *gradient; /* (m + 1) rho's last; without t */
} point;

typedef struct barrier {
    const graph_problem *g;
    size_t n, m;
    double t;
    point at, next;
    double *factor, *work; /* (n, n) */
    double *hessian;       /* (m + 1, m + 1) */
    double *step;          /* (m + 1) */
    double *row1, *row2;   /* (n) */
    double *memory;
} barrier;

static double *cut(double **memory, size_t count) {
    double *start = *memory;
    *memory += count;
    return start;
}

static void cut_point(point *p, double **memory, size_t n, size_t m) {
    p->w = cut(memory, m);
    p->own = cut(memory, n);
    p->x1 = cut(memory, n * n);
    p->x2 = cut(memory, n * n);
    p->gradient = cut(memory, m + 1);
}

static bool barrier_open(barrier *b, const graph_problem *g) {
    size_t n = g->nodes, m = g->edge_count;
    *b = (barrier){.g = g, .n = n, .m = m};
    b->memory = calloc(6 * n * n + 4 * n + (m + 1) * (m + 1) + 5 * (m + 1), sizeof *b->memory);
    if (b->memory == NULL)
        return false;
    double *rest = b->memory;
    cut_point(&b->at, &rest, n, m);
    cut_point(&b->next, &rest, n, m);
    b->factor = cut(&rest, n * n);
    b->work = cut(&rest, n * n);
    b->row1 = cut(&rest, n);
    b->row2 = cut(&rest, n);
    b->step = cut(&rest, m + 1);
    b->hessian = cut(&rest, (m + 1) * (m + 1));
    return true;
}

/* ---- a point ---- */

/* X = (rho I + sign (I - J - L))^-1; false outside the cone. */
static bool invert_slack(barrier *b, double *x, const point *p, double sign) {
    size_t n = b->n;
    for (size_t e = 0; e < n * n; e++)
        b->factor[e] = -sign / (double)n;
    for (size_t i = 0; i < n; i++)
        b->factor[i * n + i] += p->rho + sign;
    for (size_t l = 0; l < b->m; l++) {
        size_t i = b->g->edges[l].from, j = b->g->edges[l].to;
        b->factor[i * n + i] -= sign * p->w[l];
        b->factor[j * n + j] -= sign * p->w[l];
        b->factor[i * n + j] += sign * p->w[l];
        b->factor[j * n + i] += sign * p->w[l];
    }
    if (!matrix_cholesky(b->factor, n))
        return false;
    matrix_invert(x, b->factor, b->work, n);
    return true;
}

/* Is the point strictly inside? Finds the nodes' own weights on the way. */
static bool is_inside(const barrier *b, point *p) {
    bool inside = true;
    for (size_t i = 0; i < b->n; i++)
        p->own[i] = 1;
    for (size_t l = 0; l < b->m; l++) {
        p->own[b->g->edges[l].from] -= p->w[l];
        p->own[b->g->edges[l].to] -= p->w[l];
        inside = inside && p->w[l] > 0;
    }
    for (size_t i = 0; i < b->n; i++)
        inside = inside && p->own[i] > 0;
    return inside || b->g->sign == SL_SIGN_ANY;
}

static double across(const double *x, size_t n, const sl_edge *e) {
    size_t i = e->from, j = e->to;
    return x[i * n + i] + x[j * n + j] - x[i * n + j] - x[j * n + i];
}

static void find_gradient(const barrier *b, point *p) {
    bool bounded = b->g->sign == SL_SIGN_NONNEGATIVE;
    for (size_t l = 0; l < b->m; l++) {
        const sl_edge *e = &b->g->edges[l];
        p->gradient[l] = across(p->x2, b->n, e) - across(p->x1, b->n, e);
        if (bounded)
            p->gradient[l] += 1 / p->own[e->from] + 1 / p->own[e->to] - 1 / p->w[l];
    }
    p->gradient[b->m] = 0;
    for (size_t i = 0; i < b->n; i++)
        p->gradient[b->m] -= p->x1[i * b->n + i] + p->x2[i * b->n + i];
}

static bool evaluate(barrier *b, point *p) {
    if (!is_inside(b, p) || !invert_slack(b, p->x1, p, -1) || !invert_slack(b, p->x2, p, 1))
        return false;
    find_gradient(b, p);
    return true;
}

/* ---- Newton's step ---- */

static double squared(double x) {
    return x * x;
}

static double norm_squared(const double *x, size_t count) {
    double sum = 0;
    for (size_t e = 0; e < count; e++)
        sum += x[e] * x[e];
    return sum;
}

/* Row l of the Hessian, from the diagonal on. */
static void fill_row(barrier *b, size_t l) {
    size_t n = b->n, m = b->m, i = b->g->edges[l].from, j = b->g->edges[l].to;
    double *row = b->hessian + l * (m + 1);
    for (size_t c = 0; c < n; c++) {
        b->row1[c] = b->at.x1[i * n + c] - b->at.x1[j * n + c];
        b->row2[c] = b->at.x2[i * n + c] - b->at.x2[j * n + c];
    }
    for (size_t k = l; k < m; k++) {
        size_t from = b->g->edges[k].from, to = b->g->edges[k].to;
        row[k] = squared(b->row1[from] - b->row1[to]) + squared(b->row2[from] - b->row2[to]);
    }
    row[m] = norm_squared(b->row1, n) - norm_squared(b->row2, n);
    if (b->g->sign == SL_SIGN_ANY)
        return;
    row[l] += 1 / squared(b->at.w[l]);
    for (size_t k = l; k < m; k++) {
        size_t from = b->g->edges[k].from, to = b->g->edges[k].to;
        if (from == i || to == i)
            row[k] += 1 / squared(b->at.own[i]);
        if (from == j || to == j)
            row[k] += 1 / squared(b->at.own[j]);
    }
}

/* step = -H^-1 (gradient + t e_rho); gives Newton's decrement, or a negative number when rounding has eaten H. */
static double find_step(barrier *b) {
    size_t m = b->m;
    for (size_t l = 0; l < m; l++)
        fill_row(b, l);
    b->hessian[(m + 1) * (m + 1) - 1] = norm_squared(b->at.x1, b->n * b->n) + norm_squared(b->at.x2, b->n * b->n);
    if (!matrix_cholesky(b->hessian, m + 1))
        return -1;
    for (size_t l = 0; l <= m; l++)
        b->step[l] = -b->at.gradient[l];
    b->step[m] -= b->t;
    matrix_solve(b->hessian, b->step, m + 1);
    double slope = b->step[m] * b->t;
    for (size_t l = 0; l <= m; l++)
        slope += b->step[l] * b->at.gradient[l];
    return slope <= 0 ? sqrt(-slope) : -1;
}

static double slope_at(const barrier *b, const point *p) {
    double slope = b->step[b->m] * b->t;
    for (size_t l = 0; l <= b->m; l++)
        slope += b->step[l] * p->gradient[l];
    return slope;
}

/* Goes along the step as far as f certainly falls: it is convex, and falls as long as its slope is not above 0. */
static bool take_step(barrier *b, double decrement) {
    double length = 1, slope = -decrement * decrement;
    for (int k = 0; k < HALVINGS_MAX; k++, length *= 0.5) {
        for (size_t l = 0; l < b->m; l++)
            b->next.w[l] = b->at.w[l] + length * b->step[l];
        b->next.rho = b->at.rho + length * b->step[b->m];
        if (!evaluate(b, &b->next) || slope_at(b, &b->next) > -0.1 * slope)
            continue;
        point swap = b->at;
        b->at = b->next;
        b->next = swap;
        return true;
    }
    return false;
}

/* ---- the bound ---- */

/* What Newton's step makes of X: X' = X - X dS X, dS = drho I + sign dL, is positive semidefinite as long as the decrement is below 1; u_l' X' u_l. */
static double stepped_across(const barrier *b, const double *x, size_t l, double sign, double *row) {
    size_t n = b->n, i = b->g->edges[l].from, j = b->g->edges[l].to;
    for (size_t c = 0; c < n; c++)
        row[c] = x[i * n + c] - x[j * n + c];
    double change = b->step[b->m] * norm_squared(row, n);
    for (size_t k = 0; k < b->m; k++)
        change += sign * b->step[k] * squared(row[b->g->edges[k].from] - row[b->g->edges[k].to]);
    return row[i] - row[j] - change;
}

/* tr X' without what it holds along 1, of which X 1 = 1/rho. */
static double stepped_trace(const barrier *b, const double *x, double sign, double *row) {
    size_t n = b->n;
    double rho = b->at.rho, drho = b->step[b->m], trace = -(1 / rho - drho / (rho * rho)) - drho * norm_squared(x, n * n);
    for (size_t i = 0; i < n; i++)
        trace += x[i * n + i];
    for (size_t k = 0; k < b->m; k++) {
        const double *from = x + b->g->edges[k].from * n, *to = x + b->g->edges[k].to * n;
        for (size_t c = 0; c < n; c++)
            row[c] = from[c] - to[c];
        trace -= sign * b->step[k] * norm_squared(row, n);
    }
    return trace;
}

/* From P = X1' and Q = X2', scaled to tr P + tr Q = 1: after the step they meet the dual's equations but for rounding, however little X does. */
static double bound_here(barrier *b, double *slopes) {
    double *prices = b->row2, trace1 = stepped_trace(b, b->at.x1, 1, b->row1), trace2 = stepped_trace(b, b->at.x2, -1, b->row1);
    double scale = 1 / (trace1 + trace2);
    for (size_t l = 0; l < b->m; l++)
        slopes[l] = scale * (stepped_across(b, b->at.x1, l, 1, b->row1) - stepped_across(b, b->at.x2, l, -1, b->row1));
    for (size_t i = 0; i < b->n; i++)
        prices[i] = 1;
    for (size_t l = 0; l < b->m; l++) {
        const sl_edge *e = &b->g->edges[l];
        prices[e->from] += b->step[l] / b->at.own[e->from];
        prices[e->to] += b->step[l] / b->at.own[e->to];
    }
    for (size_t i = 0; i < b->n; i++)
        prices[i] = fmax(prices[i] * scale / b->at.own[i], 0);
    return dual_bound(b->g, scale * (trace1 - trace2), slopes, prices, b->at.rho);
}

/* ---- the path ---- */

static double work_of_step(const barrier *b) {
    double n = (double)b->n, m = (double)b->m;
    return m * m * m / 3 + 4 * m * m + 6 * n * n * n;
}

/* Ends near the minimum of the last t, with the step from there not taken: the bound needs it. */
static void follow_path(sl_optimum *out, barrier *b) {
    double terms = 2 * (double)b->n + (b->g->sign == SL_SIGN_NONNEGATIVE ? (double)(b->n + b->m) : 0);
    double t_last = 2 * terms / b->g->tolerance, work = 0, decrement;
    b->t = terms;
    while (true) {
        decrement = find_step(b);
        out->iterations++;
        work += work_of_step(b);
        bool ended = out->iterations == STEPS_MAX || work > b->g->work_max || decrement < 0;
        if (ended || (b->t >= t_last && decrement < centred) || !take_step(b, decrement))
            break;
        if (decrement < centred)
            b->t = fmin(b->t * t_growth, t_last);
    }
    if (!(decrement >= 0 && decrement < 1))
        memset(b->step, 0, (b->m + 1) * sizeof *b->step);
}

int barrier_optimum(sl_optimum *out, double *weights, const graph_problem *g, sl_error *error) {
    barrier b;
    if (!barrier_open(&b, g))
        return sl_fail(error, SL_ENOMEM, "weights: out of memory for the optimum of %zu edges", g->edge_count);
    *out = (sl_optimum){0};
    memcpy(b.at.w, weights, b.m * sizeof *weights);
    b.at.rho = 1.5;
    if (evaluate(&b, &b.at))
        follow_path(out, &b);
    memcpy(weights, b.at.w, b.m * sizeof *weights);
    out->rho = b.at.rho;
    out->lower_bound = bound_here(&b, b.at.gradient);
    free(b.memory);
    return 0;
}
