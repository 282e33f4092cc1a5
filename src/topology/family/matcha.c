/* matcha.c - MATCHA: Wang, Sahu, Yang, Joshi, Kar, "MATCHA: speeding up decentralized SGD via
 * matching decomposition sampling", 2019.
 *
 * A base graph is split into matchings with Laplacians L_j. In each round every matching is active
 * with its own probability p_j, independently, and W = I - a sum of the active L_j. The
 * probabilities maximize lambda_2(sum p_j L_j), which is concave in p, under a budget: on average
 * the given fraction of the matchings is active. The weight a minimizes the largest eigenvalue of
 *
 *   E[W'W] - J = I - 2 a Lp + a^2 (Lp^2 + 2 Lv) - J,   Lp = sum p_j L_j,  Lv = sum p_j (1 - p_j)
 *     L_j,
 *
 * the factor by which the squared distance to agreement shrinks. Only +, -, *, / and square roots
 * in a fixed order are used, and p and a are rounded to 16 and 12 bits, so that a seed gives the
 * same schedule everywhere.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "starling/rng.h"
#include "topology/family/family.h"
#include "topology/family/matchings.h"

enum {
    NODES_MAX = 4096,
    ASCENT_STEPS = 400,
    PATIENCE = 80,
    SOLVE_STEPS = 400,
    INVERSE_STEPS = 8,
    POWER_STEPS = 200,
    SEARCH_STEPS = 24
};
static const uint64_t work_max =
    500000000; /* edges visited while probabilities are sought: a few seconds */
static const double probability_min = 0x1p-8; /* so that no matching is lost altogether */

typedef struct design {
    matchings m;
    double *p, *best;          /* (m.count) probabilities */
    double *edge;              /* (m.count) weight of a matching's edges in apply() */
    double *v, *z, *r, *d, *y; /* (nodes) */
    double alpha;
    uint32_t stirred; /* how often */
    uint64_t work;    /* edges visited */
} design;

/* y = (sum of weight_j L_j) x */
static void apply(design *g, const double *weight, const double *x, double *y) {
    memset(y, 0, g->m.nodes * sizeof *y);
    g->work += g->m.edges;
    for (uint32_t e = 0; e < g->m.edges; e++) {
        uint32_t a = g->m.ends[e][0], b = g->m.ends[e][1];
        double flow = weight[g->m.of[e]] * (x[a] - x[b]);
        y[a] += flow;
        y[b] -= flow;
    }
}

static double dot(const double *x, const double *y, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Without its mean, and of length 1. */
static void normalize(double *x, uint32_t n) {
    double mean = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += x[i];
    mean /= n;
    for (uint32_t i = 0; i < n; i++)
        x[i] -= mean;
    double length = sqrt(dot(x, x, n));
    for (uint32_t i = 0; i < n && length > 0; i++)
        x[i] /= length;
}

/* Something of every eigenvector, another mixture each time: an iteration that has converged to one
 * never leaves it for another that has become the right one, and where an eigenvalue is multiple
 * the directions in which it can be raised are the mean of many. */
static void stir(design *g) {
    sl_rng rng = sl_rng_open(1, g->stirred++, 0, SL_PURPOSE_TOPOLOGY);
    for (uint32_t i = 0; i < g->m.nodes; i++)
        g->v[i] = (double)sl_rng_u32(&rng) * 0x1p-31 - 1;
    normalize(g->v, g->m.nodes);
}

/* v becomes L^-1 v, normalized, by conjugate gradients. */
static void invert(design *g) {
    uint32_t n = g->m.nodes;
    memset(g->z, 0, n * sizeof *g->z);
    memcpy(g->r, g->v, n * sizeof *g->r);
    memcpy(g->d, g->v, n * sizeof *g->d);
    double residual = dot(g->r, g->r, n);
    for (int step = 0; step < SOLVE_STEPS && residual > 1e-20; step++) {
        apply(g, g->p, g->d, g->y);
        double length = residual / dot(g->d, g->y, n), before = residual;
        for (uint32_t i = 0; i < n; i++) {
            g->z[i] += length * g->d[i];
            g->r[i] -= length * g->y[i];
        }
        residual = dot(g->r, g->r, n);
        for (uint32_t i = 0; i < n; i++)
            g->d[i] = g->r[i] + residual / before * g->d[i];
    }
    memcpy(g->v, g->z, n * sizeof *g->v);
    normalize(g->v, n);
}

/* lambda_2 of sum p_j L_j, and its eigenvector in v, by inverse iterations. */
static double find_lambda_2(design *g) {
    stir(g);
    for (int step = 0; step < INVERSE_STEPS; step++)
        invert(g);
    apply(g, g->p, g->v, g->y);
    return dot(g->v, g->y, g->m.nodes);
}

static double clamp(double p) {
    return p < probability_min ? probability_min : p > 1 ? 1 : p;
}

/* The nearest probabilities of that sum: all are shifted alike, and kept within their limits. */
static void project(double *p, uint32_t count, double sum) {
    double low = -2, high = 2;
    for (int step = 0; step < 60; step++) {
        double shift = (low + high) / 2, total = 0;
        for (uint32_t j = 0; j < count; j++)
            total += clamp(p[j] - shift);
        if (total > sum)
            low = shift;
        else
            high = shift;
    }
    for (uint32_t j = 0; j < count; j++)
        p[j] = clamp(p[j] - high);
}

/* The gradient of lambda_2 with respect to p_j is v'L_j v. */
static void climb(design *g, double length) {
    memset(g->edge, 0, g->m.count * sizeof *g->edge);
    for (uint32_t e = 0; e < g->m.edges; e++) {
        double slope = g->v[g->m.ends[e][0]] - g->v[g->m.ends[e][1]];
        g->edge[g->m.of[e]] += slope * slope;
    }
    double norm = sqrt(dot(g->edge, g->edge, g->m.count));
    for (uint32_t j = 0; j < g->m.count && norm > 0; j++)
        g->p[j] += length / norm * g->edge[j];
}

/* Projected supergradient ascent; of the probabilities that it passes, the best. */
static void find_probabilities(design *g, double budget) {
    uint32_t count = g->m.count;
    for (uint32_t j = 0; j < count; j++)
        g->p[j] = g->best[j] = budget;
    double best = find_lambda_2(g);
    for (int step = 1, since = 0; step <= ASCENT_STEPS && since < PATIENCE && g->work < work_max;
         step++, since++) {
        climb(g, 0.5 * budget / sqrt((double)step));
        project(g->p, count, budget * count);
        double lambda_2 = find_lambda_2(g);
        if (lambda_2 <= best)
            continue;
        since = lambda_2 > best * 1.001 ? 0 : since;
        best = lambda_2;
        memcpy(g->best, g->p, count * sizeof *g->p);
    }
    for (uint32_t j = 0; j < count; j++)
        g->p[j] = (double)(uint32_t)(g->best[j] * 0x1p16 + 0.5) * 0x1p-16;
}

/* The largest eigenvalue of E[W'W] - J, by power iterations: the matrix is positive semidefinite.
 */
static double squared_factor(design *g, double alpha) {
    uint32_t n = g->m.nodes;
    double largest = 0;
    for (uint32_t j = 0; j < g->m.count; j++)
        g->edge[j] = g->p[j] * (1 - g->p[j]);
    stir(g);
    for (int step = 0; step < POWER_STEPS; step++) {
        apply(g, g->p, g->v, g->y);
        apply(g, g->p, g->y, g->z);
        apply(g, g->edge, g->v, g->r);
        for (uint32_t i = 0; i < n; i++)
            g->d[i] = g->v[i] - 2 * alpha * g->y[i] + alpha * alpha * (g->z[i] + 2 * g->r[i]);
        largest = dot(g->v, g->d, n);
        memcpy(g->v, g->d, n * sizeof *g->v);
        normalize(g->v, n);
    }
    return largest;
}

/* By golden section: the largest eigenvalue of a family of matrices that are convex in alpha is
 * convex. */
static void find_alpha(design *g) {
    const double golden = 0.6180339887498949;
    double low = 0, high = 1, left = high - golden, right = golden;
    double at_left = squared_factor(g, left), at_right = squared_factor(g, right);
    for (int step = 0; step < SEARCH_STEPS; step++) {
        if (at_left <= at_right) {
            high = right;
            right = left;
            at_right = at_left;
            left = high - golden * (high - low);
            at_left = squared_factor(g, left);
        } else {
            low = left;
            left = right;
            at_left = at_right;
            right = low + golden * (high - low);
            at_right = squared_factor(g, right);
        }
    }
    g->alpha = (double)(uint32_t)((low + high) / 2 * 4096 + 0.5) / 4096;
}

/* ---- the family ---- */

static int describe_base(sl_topology_spec *base, const sl_topology_spec *spec, const family *f,
                         sl_error *error) {
    if (f == NULL || f->info.directed || f->info.schedule ||
        f->info.weighting != SL_WEIGHTING_METROPOLIS)
        return sl_fail(error, SL_EINVAL,
                       "\"%s\" is not allowed; it must be the family of one undirected graph",
                       f != NULL ? f->info.name : "edges");
    for (int i = 0; i < PARAMETERS; i++)
        if (sl_parameter_is_given(spec, &sl_parameters[i]) &&
            (sl_matcha_family.takes & ~(f->takes | MATCHA_OWN) & 1u << i))
            return sl_fail(error, SL_EINVAL, "%s: has no meaning for family \"%s\"",
                           sl_parameters[i].name, f->info.name);
    if (spec->bridge_every > 1)
        return sl_fail(error, SL_EINVAL, "bridge_every: must be 1 here");
    *base = *spec;
    base->family = spec->base;
    base->weighting = SL_WEIGHTING_METROPOLIS;
    return 0;
}

static int settle_matcha(sl_topology_spec *spec, sl_error *error) {
    if (spec->budget == 0)
        spec->budget = 0.5;
    if (spec->nodes > NODES_MAX)
        return sl_fail(error, SL_EINVAL, "nodes: %u is too many for family \"matcha\"; at most %d",
                       spec->nodes, NODES_MAX);
    return sl_family_settle_period(spec, error);
}

static int design_open(design *g, const sl_topology_spec *spec, const edge_list *base,
                       sl_error *error) {
    int result = sl_matchings_open(&g->m, base, spec->nodes, error);
    if (result != 0)
        return result;
    double **vectors[] = {&g->v, &g->z, &g->r, &g->d, &g->y},
           **weights[] = {&g->p, &g->best, &g->edge};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if ((*vectors[i] = calloc(spec->nodes, sizeof(double))) == NULL)
            result = SL_ENOMEM;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if ((*weights[i] = calloc(g->m.count + 1, sizeof(double))) == NULL)
            result = SL_ENOMEM;
    return result == 0
               ? 0
               : sl_fail(error, result, "out of memory for the matchings of %u nodes", spec->nodes);
}

static void design_close(design *g) {
    double *all[] = {g->v, g->z, g->r, g->d, g->y, g->p, g->best, g->edge};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    sl_matchings_close(&g->m);
}

/* Own weights are listed because they may be below 0, where many matchings meet. */
static void draw_round(design *g, sl_rng *rng, bool *active, edge_list *list) {
    double *own = g->y;
    for (uint32_t i = 0; i < g->m.nodes; i++)
        own[i] = 1;
    for (uint32_t j = 0; j < g->m.count; j++)
        active[j] = sl_rng_u32(rng) < (uint64_t)(g->p[j] * 0x1p32);
    for (uint32_t e = 0; e < g->m.edges; e++) {
        uint32_t a = g->m.ends[e][0], b = g->m.ends[e][1];
        if (!active[g->m.of[e]])
            continue;
        sl_edge_list_push_weighted(list, a, b, g->alpha);
        sl_edge_list_push_weighted(list, b, a, g->alpha);
        own[a] -= g->alpha;
        own[b] -= g->alpha;
    }
    for (uint32_t i = 0; i < g->m.nodes; i++)
        sl_edge_list_push_weighted(list, i, i, own[i]);
}

static int generate_matcha(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                           sl_error *error) {
    design g = {0};
    bool *active = NULL;
    int result = design_open(&g, spec, &out->inner, error);
    if (result == 0)
        result = sl_family_check_edges(&sl_matcha_family, spec,
                                       2 * (uint64_t)g.m.edges * spec->period, error);
    if (result == 0 && (active = malloc((g.m.count + 1) * sizeof *active)) == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for %u matchings", g.m.count);
    if (result == 0) {
        find_probabilities(&g, spec->budget);
        find_alpha(&g);
    }
    for (uint32_t k = 0; result == 0 && k < spec->period; k++) {
        sl_rng rng = sl_rng_open(
            spec->seed, k + 1, attempt,
            SL_PURPOSE_TOPOLOGY); /* rank 0 and following are the base graph's, if that is random */
        draw_round(&g, &rng, active, sl_edge_lists_add(out));
    }
    free(active);
    design_close(&g);
    return result;
}

const family sl_matcha_family = {
    .info = {.name = "matcha",
             .meaning = "each round a random part of the matchings of a base graph, under a budget",
             .random = true,
             .schedule = true,
             .weighting = SL_WEIGHTING_EXPLICIT},
    .takes = MATCHA_OWN | TAKES(SIDES) | TAKES(OFFSETS) | TAKES(DEGREE) | TAKES(ARITY) |
             TAKES(PART) | TAKES(CLIQUE) | TAKES(CLUSTERS) | TAKES(JOINED) | TAKES(BRIDGES) |
             TAKES(BRIDGE_EVERY) | TAKES(PROBABILITY) | TAKES(RADIUS),
    .needs = TAKES(BASE),
    .nodes_min = 2,
    .raise = "budget or the period",
    .attempts_max = 5,
    .inner_at = offsetof(sl_topology_spec, base),
    .describe_inner = describe_base,
    .shares = true,
    .settle = settle_matcha,
    .generate = generate_matcha,
    .info.examples =
        EXAMPLES("{\"nodes\": 8, \"base\": \"ring\"}",
                 "{\"nodes\": 12, \"base\": \"torus\", \"sides\": [3, 4], \"budget\": 0.4}"),
};
