/* interior.c - the optimal weights of small graphs: a primal-dual interior-point method.
 *
 * minimise rho over w and rho, subject to
 *     S1 = rho I - (I - J) + L >= 0,   S2 = rho I + (I - J) - L >= 0,   L = sum_l w_l u_l u_l'
 * and where weights must not be negative w_l >= 0 and own weights c_i = 1 - sum_{l at i} w_l >= 0
 * (Boyd, Diaconis, Xiao 2004; Xiao, Boyd 2004, both as semidefinite programs). Its dual has a
 * matrix P >= 0 for each S, and nu_l, z_i >= 0 for w_l and c_i, with
 *     tr P1 + tr P2 = 1,   u_l' (P1 - P2) u_l = z_i + z_j - nu_l on every edge,
 * and at the optimum P S = 0, nu w = 0, z c = 0. A step solves these with mu in place of the zeros,
 * linearised (the direction of Helmberg, Rendl, Vanderbei, Wolkowicz 1996 and Kojima, Shindoh, Hara
 * 1997), once for mu = 0 and once for a mu that follows from how far that came, with its
 * second-order term (Mehrotra 1992). With X = S^-1 the linear system's matrix is
 *     M_lk = (u_l' P1 u_k)(u_l' X1 u_k) + (u_l' P2 u_k)(u_l' X2 u_k) + what nu and z add:
 * (edges, edges) and cheap to fill, as u_l has two entries. w and rho satisfy their inequalities
 * throughout, so that there always is a W to return.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/watch.h"
#include "topology/weights/matrix.h"
#include "topology/weights/optimal.h"

enum {
    STEPS_MAX = 100,
    FIRST_BISECTIONS = 3,
    BISECTIONS = 6
}; /* of the length of the first direction, which only says how far mu may fall, and of the step */
static const double kept_share = 0.95; /* of the way to the boundary that a step goes */

/* S = rho I + sign (L - (I - J)), not kept, and its multiplier; all (n, n). */
typedef struct cone {
    double sign;
    double *x; /* S^-1 */
    double *p, *dp;
    double *second; /* (dP dS X + X dS dP)/2 of the first direction */
} cone;

/* Variables that must not be negative, and their multipliers; (count), 0 where weights may have any
 * sign. */
typedef struct orthant {
    size_t count;
    double *value, *dvalue, *multiplier, *dmultiplier;
    double *target; /* (mu - second-order term)/value */
} orthant;

typedef struct interior {
    const graph_problem *g;
    size_t n, m;
    double *w, rho, *step; /* step: (m + 1), rho's last */
    cone cones[2];
    orthant edges, nodes;  /* w and nu, c and z */
    double *system;        /* (m + 1, m + 1) */
    double *factor, *work; /* (n, n) */
    double *trial;         /* (m) */
    double *rows;          /* (4, n) */
    double *memory;
} interior;

/* ---- memory ---- */

static double *cut(double **memory, size_t count) {
    double *start = *memory;
    *memory += count;
    return start;
}

static bool interior_open(interior *s, const graph_problem *g) {
    size_t n = g->nodes, m = g->edge_count, bounded = g->sign == SL_SIGN_NONNEGATIVE;
    *s = (interior){.g = g, .n = n, .m = m, .rho = 1.5};
    s->memory = calloc(10 * n * n + 9 * n + (m + 1) * (m + 1) + 6 * (m + 1), sizeof *s->memory);
    if (s->memory == NULL)
        return false;
    double *rest = s->memory;
    for (int k = 0; k < 2; k++)
        s->cones[k] = (cone){k == 0 ? 1 : -1, cut(&rest, n * n), cut(&rest, n * n),
                             cut(&rest, n * n), cut(&rest, n * n)};
    s->factor = cut(&rest, n * n);
    s->work = cut(&rest, n * n);
    s->rows = cut(&rest, 4 * n);
    s->w = cut(&rest, m);
    s->trial = cut(&rest, m);
    s->step = cut(&rest, m + 1);
    s->system = cut(&rest, (m + 1) * (m + 1));
    s->edges = (orthant){bounded * m, s->w, s->step, cut(&rest, m), cut(&rest, m), cut(&rest, m)};
    s->nodes = (orthant){bounded * n,   cut(&rest, n), cut(&rest, n),
                         cut(&rest, n), cut(&rest, n), cut(&rest, n)};
    return true;
}

/* ---- pieces ---- */

/* u_l' A u_l */
static double across(const double *a, size_t n, const sl_edge *e) {
    size_t i = e->from, j = e->to;
    return a[i * n + i] + a[j * n + j] - a[i * n + j] - a[j * n + i];
}

static double trace(const double *a, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i * n + i];
    return sum;
}

static double inner(const double *a, const double *b, size_t count) {
    double sum = 0;
    for (size_t e = 0; e < count; e++)
        sum += a[e] * b[e];
    return sum;
}

/* tr A less what A holds along 1: 1'A1/n. */
static double trace_off_mean(const double *a, size_t n) {
    double sum = 0;
    for (size_t e = 0; e < n * n; e++)
        sum += a[e];
    return trace(a, n) - sum / (double)n;
}

/* factor = the Cholesky factor of S at (w, rho); false outside the cone. */
static bool factor_slack(interior *s, double sign, const double *w, double rho) {
    size_t n = s->n;
    double *a = s->factor;
    for (size_t e = 0; e < n * n; e++)
        a[e] = sign / (double)n;
    for (size_t i = 0; i < n; i++)
        a[i * n + i] += rho - sign;
    for (size_t l = 0; l < s->m; l++) {
        size_t i = s->g->edges[l].from, j = s->g->edges[l].to;
        a[i * n + i] += sign * w[l];
        a[j * n + j] += sign * w[l];
        a[i * n + j] -= sign * w[l];
        a[j * n + i] -= sign * w[l];
    }
    return sl_matrix_cholesky(a, n);
}

static bool invert_slacks(interior *s) {
    for (int k = 0; k < 2; k++) {
        if (!factor_slack(s, s->cones[k].sign, s->w, s->rho))
            return false;
        sl_matrix_invert(s->cones[k].x, s->factor, s->work, s->n);
    }
    return true;
}

static void sum_at_nodes(const interior *s, double *sums, const double *w, double start) {
    for (size_t i = 0; i < s->n; i++)
        sums[i] = start;
    for (size_t l = 0; l < s->m; l++) {
        sums[s->g->edges[l].from] -= w[l];
        sums[s->g->edges[l].to] -= w[l];
    }
}

/* All multipliers in proportion to the inverses, and tr P1 + tr P2 = 1: everything has the same mu.
 */
static bool start(interior *s) {
    sum_at_nodes(s, s->nodes.value, s->w, 1);
    if (!invert_slacks(s))
        return false;
    size_t n = s->n;
    double mu = 1 / (trace(s->cones[0].x, n) + trace(s->cones[1].x, n));
    for (int k = 0; k < 2; k++)
        for (size_t e = 0; e < n * n; e++)
            s->cones[k].p[e] = mu * s->cones[k].x[e];
    for (size_t l = 0; l < s->edges.count; l++)
        s->edges.multiplier[l] = mu / s->w[l];
    for (size_t i = 0; i < s->nodes.count; i++)
        s->nodes.multiplier[i] = mu / s->nodes.value[i];
    return true;
}

/* ---- the linear system ---- */

static void difference(double *out, const double *a, size_t n, const sl_edge *e) {
    for (size_t c = 0; c < n; c++)
        out[c] = a[e->from * n + c] - a[e->to * n + c];
}

/* Row l of M, from the diagonal on. */
static void fill_row(interior *s, size_t l) {
    size_t n = s->n, m = s->m;
    const sl_edge *e = &s->g->edges[l];
    double *row = s->system + l * (m + 1), *p1 = s->rows, *x1 = p1 + n, *p2 = x1 + n, *x2 = p2 + n;
    difference(p1, s->cones[0].p, n, e);
    difference(x1, s->cones[0].x, n, e);
    difference(p2, s->cones[1].p, n, e);
    difference(x2, s->cones[1].x, n, e);
    for (size_t k = l; k < m; k++) {
        size_t i = s->g->edges[k].from, j = s->g->edges[k].to;
        row[k] = (p1[i] - p1[j]) * (x1[i] - x1[j]) + (p2[i] - p2[j]) * (x2[i] - x2[j]);
    }
    row[m] = inner(p1, x1, n) - inner(p2, x2, n);
    if (s->edges.count == 0)
        return;
    row[l] += s->edges.multiplier[l] / s->w[l];
    double at_from = s->nodes.multiplier[e->from] / s->nodes.value[e->from],
           at_to = s->nodes.multiplier[e->to] / s->nodes.value[e->to];
    for (size_t k = l; k < m; k++) {
        const sl_edge *other = &s->g->edges[k];
        if (other->from == e->from || other->to == e->from)
            row[k] += at_from;
        if (other->from == e->to || other->to == e->to)
            row[k] += at_to;
    }
}

/* Where the best weights are not unique, M is singular at the end but for rounding: then with a
 * little more on its diagonal. */
static bool factor_system(interior *s) {
    size_t size = s->m + 1, n = s->n;
    for (double ridge = 0; ridge < 1e-8; ridge = ridge == 0 ? 1e-14 : 10 * ridge) {
        for (size_t l = 0; l < s->m; l++)
            fill_row(s, l);
        s->system[size * size - 1] =
            inner(s->cones[0].p, s->cones[0].x, n * n) + inner(s->cones[1].p, s->cones[1].x, n * n);
        for (size_t l = 0; l < size; l++)
            s->system[l * size + l] *= 1 + ridge;
        if (sl_matrix_cholesky(s->system, size))
            return true;
    }
    return false;
}

static void set_target(orthant *o, double mu, bool second) {
    for (size_t i = 0; i < o->count; i++)
        o->target[i] = (mu - (second ? o->dvalue[i] * o->dmultiplier[i] : 0)) / o->value[i];
}

static void solve_for_step(interior *s, double mu) {
    const cone *one = &s->cones[0], *two = &s->cones[1];
    size_t n = s->n, m = s->m;
    for (size_t l = 0; l < m; l++) {
        const sl_edge *e = &s->g->edges[l];
        s->step[l] = mu * (across(one->x, n, e) - across(two->x, n, e)) -
                     (across(one->second, n, e) - across(two->second, n, e));
        if (s->edges.count > 0)
            s->step[l] += s->edges.target[l] - s->nodes.target[e->from] - s->nodes.target[e->to];
    }
    s->step[m] = mu * (trace(one->x, n) + trace(two->x, n)) -
                 (trace(one->second, n) + trace(two->second, n)) - 1;
    sl_matrix_solve(s->system, s->step, m + 1);
}

/* work = (A dS X + X dS A)/2 */
static void symmetric_product(interior *s, const cone *k, const double *a) {
    size_t n = s->n;
    for (size_t i = 0; i < n; i++) {
        const double *from = a + i * n;
        double *to = s->factor + i * n;
        for (size_t c = 0; c < n; c++)
            to[c] = s->step[s->m] * from[c];
        for (size_t l = 0; l < s->m; l++) {
            const sl_edge *e = &s->g->edges[l];
            double change = k->sign * s->step[l] * (from[e->from] - from[e->to]);
            to[e->from] += change;
            to[e->to] -= change;
        }
    }
    sl_matrix_multiply(s->work, s->factor, k->x, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            s->work[i * n + j] = s->work[j * n + i] = (s->work[i * n + j] + s->work[j * n + i]) / 2;
}

static void find_multipliers(orthant *o) {
    for (size_t i = 0; i < o->count; i++)
        o->dmultiplier[i] =
            o->target[i] - o->multiplier[i] - o->multiplier[i] * o->dvalue[i] / o->value[i];
}

/* The step towards mu; `second`: less the second-order term of the direction that is there. */
static void find_direction(interior *s, double mu, bool second) {
    size_t n = s->n;
    for (int k = 0; k < 2; k++) {
        if (second)
            symmetric_product(s, &s->cones[k], s->cones[k].dp);
        for (size_t e = 0; e < n * n; e++)
            s->cones[k].second[e] = second ? s->work[e] : 0;
    }
    set_target(&s->edges, mu, second);
    set_target(&s->nodes, mu, second);
    solve_for_step(s, mu);
    for (int k = 0; k < 2; k++) {
        cone *c = &s->cones[k];
        symmetric_product(s, c, c->p);
        for (size_t e = 0; e < n * n; e++)
            c->dp[e] = mu * c->x[e] - c->second[e] - s->work[e] - c->p[e];
    }
    sum_at_nodes(s, s->nodes.dvalue, s->step, 0);
    find_multipliers(&s->edges);
    find_multipliers(&s->nodes);
}

/* ---- how far ---- */

static bool weights_inside(interior *s, double length) {
    for (size_t l = 0; l < s->m; l++)
        s->trial[l] = s->w[l] + length * s->step[l];
    double rho = s->rho + length * s->step[s->m];
    return factor_slack(s, 1, s->trial, rho) && factor_slack(s, -1, s->trial, rho);
}

static bool multipliers_inside(interior *s, double length) {
    for (int k = 0; k < 2; k++) {
        for (size_t e = 0; e < s->n * s->n; e++)
            s->factor[e] = s->cones[k].p[e] + length * s->cones[k].dp[e];
        if (!sl_matrix_cholesky(s->factor, s->n))
            return false;
    }
    return true;
}

/* The largest t <= most with value + t change >= 0. */
static double ratio(const double *value, const double *change, size_t count, double most) {
    for (size_t i = 0; i < count; i++)
        if (value[i] + most * change[i] < 0)
            most = -value[i] / change[i];
    return most;
}

/* A length in (0, 1] such that there is still some way to the boundary. */
static double longest(interior *s, bool (*inside)(interior *, double), double most,
                      int bisections) {
    double low = 0, high = most;
    if (inside(s, most))
        return most * kept_share;
    for (int k = 0; k < bisections; k++) {
        double middle = (low + high) / 2;
        if (inside(s, middle))
            low = middle;
        else
            high = middle;
    }
    return low * kept_share;
}

static double weights_length(interior *s, int bisections) {
    double most = ratio(s->w, s->step, s->edges.count, 1 / kept_share);
    return longest(s, weights_inside, ratio(s->nodes.value, s->nodes.dvalue, s->nodes.count, most),
                   bisections);
}

static double multipliers_length(interior *s, int bisections) {
    double most = ratio(s->edges.multiplier, s->edges.dmultiplier, s->edges.count, 1 / kept_share);
    return longest(s, multipliers_inside,
                   ratio(s->nodes.multiplier, s->nodes.dmultiplier, s->nodes.count, most),
                   bisections);
}

static double orthant_gap(const orthant *o, double length, double dual_length) {
    double sum = 0;
    for (size_t i = 0; i < o->count; i++)
        sum += (o->value[i] + length * o->dvalue[i]) *
               (o->multiplier[i] + dual_length * o->dmultiplier[i]);
    return sum;
}

/* mu after steps of these lengths: the mean of all products that are to vanish. */
static double mean_product(const interior *s, double length, double dual_length) {
    double sum =
        orthant_gap(&s->edges, length, dual_length) + orthant_gap(&s->nodes, length, dual_length);
    for (int k = 0; k < 2; k++) {
        const cone *c = &s->cones[k];
        double whole = trace(c->p, s->n) + dual_length * trace(c->dp, s->n);
        double off_mean = trace_off_mean(c->p, s->n) + dual_length * trace_off_mean(c->dp, s->n);
        sum += (s->rho + length * s->step[s->m]) * whole - c->sign * off_mean;
        for (size_t l = 0; l < s->m; l++) {
            const sl_edge *e = &s->g->edges[l];
            sum += c->sign * (s->w[l] + length * s->step[l]) *
                   (across(c->p, s->n, e) + dual_length * across(c->dp, s->n, e));
        }
    }
    return sum / (double)(2 * s->n + s->edges.count + s->nodes.count);
}

static void add(double *value, const double *change, size_t count, double length) {
    for (size_t i = 0; i < count; i++)
        value[i] += length * change[i];
}

static void move(interior *s, double length, double dual_length) {
    add(s->w, s->step, s->m, length);
    s->rho += length * s->step[s->m];
    sum_at_nodes(s, s->nodes.value, s->w, 1);
    for (int k = 0; k < 2; k++)
        add(s->cones[k].p, s->cones[k].dp, s->n * s->n, dual_length);
    add(s->edges.multiplier, s->edges.dmultiplier, s->edges.count, dual_length);
    add(s->nodes.multiplier, s->nodes.dmultiplier, s->nodes.count, dual_length);
}

/* ---- the method ---- */

/* From Y = P1 - P2, both without what they hold along 1, scaled to tr P1 + tr P2 = 1. */
static double bound_here(interior *s) {
    size_t n = s->n;
    double *prices = s->rows, *slopes = s->trial, one = trace_off_mean(s->cones[0].p, n),
           two = trace_off_mean(s->cones[1].p, n);
    for (size_t l = 0; l < s->m; l++)
        slopes[l] = (across(s->cones[0].p, n, &s->g->edges[l]) -
                     across(s->cones[1].p, n, &s->g->edges[l])) /
                    (one + two);
    for (size_t i = 0; i < n; i++)
        prices[i] = s->nodes.multiplier[i] / (one + two);
    return sl_optimum_dual_bound(s->g, (one - two) / (one + two), slopes, prices, s->rho);
}

static double work_of_step(const interior *s) {
    double n = (double)s->n, m = (double)s->m;
    return m * m * m / 6 + 2 * m * m + 2 * (8 + BISECTIONS) * n * n * n;
}

/* One step; false when rounding leaves no way on. */
static bool advance(interior *s) {
    if (!factor_system(s))
        return false;
    double mu = mean_product(s, 0, 0);
    find_direction(s, 0, false);
    double reached = mean_product(s, weights_length(s, FIRST_BISECTIONS),
                                  multipliers_length(s, FIRST_BISECTIONS)) /
                     mu;
    find_direction(s, mu * fmin(reached * reached * reached, 1), true);
    double length = weights_length(s, BISECTIONS), dual_length = multipliers_length(s, BISECTIONS);
    if (!(fmax(length, dual_length) > 1e-6))
        return false;
    move(s, length, dual_length);
    return invert_slacks(s);
}

int sl_optimum_interior(sl_optimum *out, double *weights, const graph_problem *g, sl_error *error) {
    interior s;
    if (!interior_open(&s, g))
        return sl_fail(error, SL_ENOMEM, "weights: out of memory for the optimum of %zu edges",
                       g->edge_count);
    memcpy(s.w, weights, s.m * sizeof *weights);
    *out = (sl_optimum){.rho = 1};
    double work = 0;
    for (bool on = start(&s); on && work <= g->work_max && out->iterations < STEPS_MAX;
         on = advance(&s)) {
        memcpy(weights, s.w, s.m * sizeof *weights);
        out->rho = s.rho;
        out->lower_bound = fmax(out->lower_bound, bound_here(&s));
        if (out->rho - out->lower_bound <= g->tolerance / 2)
            break;
        sl_watch_tell(g->watch, sl_watch_fallen(out->rho - out->lower_bound, g->tolerance / 2));
        out->iterations++;
        work += work_of_step(&s);
    }
    free(s.memory);
    return 0;
}
