/* optimal.c - the fastest symmetric weights of a graph; see starling/optimal.h. */
#include <math.h>
#include <stdlib.h>

#include "starling/spectrum.h"
#include "topology/weights/optimal.h"

void sl_optimum_defaults(sl_optimum_settings *settings) {
    *settings = (sl_optimum_settings){.tolerance = 1e-8, .work_max = 5e11};
}

/* The graph with some weights as a topology: this also refuses what is no connected graph. */
static int open_graph(sl_topology **out, const graph_problem *g, sl_weighting weighting,
                      const double *weights, sl_error *error) {
    bool both = weighting == SL_WEIGHTING_EXPLICIT;
    sl_edge *edges = calloc(2 * g->edge_count + g->nodes + 1, sizeof *edges);
    if (edges == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu edges", g->edge_count);
    size_t count = 0;
    for (size_t l = 0; l < g->edge_count; l++) {
        const sl_edge *e = &g->edges[l];
        edges[count++] = (sl_edge){e->from, e->to, both ? weights[l] : 0};
        if (both)
            edges[count++] = (sl_edge){e->to, e->from, weights[l]};
    }
    for (uint32_t i = 0; both && i < g->nodes; i++)
        edges[count++] = (sl_edge){i, i, 1};
    for (size_t l = 0; both && l < g->edge_count; l++) {
        edges[2 * g->edge_count + g->edges[l].from].weight -= weights[l];
        edges[2 * g->edge_count + g->edges[l].to].weight -= weights[l];
    }
    sl_slot_spec listed = {edges, count};
    sl_topology_spec spec;
    sl_topology_spec_defaults(&spec);
    spec.nodes = g->nodes;
    spec.family = SL_FAMILY_EDGES;
    spec.weighting = weighting;
    spec.slots = &listed;
    spec.slot_count = 1;
    int result = sl_topology_open(out, &spec, error);
    free(edges);
    return result;
}

static int spectrum_of(sl_spectrum *out, const graph_problem *g, sl_weighting weighting,
                       const double *weights, sl_error *error) {
    sl_topology *t;
    int result = open_graph(&t, g, weighting, weights, error);
    if (result != 0)
        return result;
    result = sl_spectrum_compute(out, t, NULL, error);
    sl_topology_close(&t);
    return result;
}

/* ---- best constant ---- */

/* To 32 bits: what LAPACK computes differs in its last ones from machine to machine, and agents
 * compare weights. */
static double rounded(double x) {
    int exponent;
    double mantissa = frexp(x, &exponent);
    return ldexp(rint(ldexp(mantissa, 32)), exponent - 32);
}

/* With W = I - L/q, 1 - lambda_2(W) = lambda_2(L)/q and 1 + lambda_n(W) = 2 - lambda_max(L)/q. */
int sl_weights_best_constant(sl_optimum *out, double *weights, uint32_t nodes, const sl_edge *edges,
                             size_t edge_count, sl_error *error) {
    graph_problem g = {.nodes = nodes, .edges = edges, .edge_count = edge_count};
    sl_spectrum s;
    double q = 1; /* as SL_WEIGHTING_MAX_DEGREE has it */
    int result = spectrum_of(&s, &g, SL_WEIGHTING_MAX_DEGREE, NULL, error);
    if (result != 0)
        return result;
    if (!s.converged)
        return sl_fail(error, SL_EINVAL,
                       "weights: \"best-constant\" needs the extreme eigenvalues of a graph of %u "
                       "nodes, which were not found within "
                       "the limits; take \"max-degree\"",
                       nodes);
    uint32_t *degree = calloc(nodes, sizeof *degree);
    if (degree == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u degrees", nodes);
    for (size_t l = 0; l < edge_count; l++) {
        q = fmax(q, 1 + ++degree[edges[l].from]);
        q = fmax(q, 1 + ++degree[edges[l].to]);
    }
    free(degree);
    double constant = rounded(2 / (q * (s.gap_lambda2 + 2 - s.gap_lambda_n)));
    for (size_t l = 0; l < edge_count; l++)
        weights[l] = constant;
    *out = (sl_optimum){.rho = NAN, .lower_bound = NAN};
    return 0;
}

/* ---- the optimum ---- */

/* Metropolis weights are strictly inside what any sign and no sign allow. */
static int start_weights(double *weights, const graph_problem *g, sl_error *error) {
    uint32_t *degree = calloc(g->nodes, sizeof *degree);
    if (degree == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u degrees", g->nodes);
    for (size_t l = 0; l < g->edge_count; l++) {
        degree[g->edges[l].from]++;
        degree[g->edges[l].to]++;
    }
    for (size_t l = 0; l < g->edge_count; l++)
        weights[l] = 1 / (1 + fmax(degree[g->edges[l].from], degree[g->edges[l].to]));
    free(degree);
    return 0;
}

static int rho_of(double *rho, const graph_problem *g, const double *weights, sl_error *error) {
    sl_spectrum s;
    int result = spectrum_of(&s, g, SL_WEIGHTING_EXPLICIT, weights, error);
    if (result == 0)
        *rho = s.rho + (s.converged ? 0 : s.residual);
    return result;
}

/* On a large graph the descent, which estimates rho, may have gone astray: then the weights are
 * those that it began with. */
static int descend(sl_optimum *out, double *weights, const graph_problem *g, sl_error *error) {
    double start;
    int result = rho_of(&start, g, weights, error);
    if (result == 0)
        result = sl_optimum_descend(out, weights, g, error);
    if (result == 0)
        result = rho_of(&out->rho, g, weights, error);
    if (result != 0 || out->rho <= start)
        return result;
    out->rho = start;
    return start_weights(weights, g, error);
}

static int optimise(sl_optimum *out, double *weights, const graph_problem *g, sl_error *error) {
    int result = start_weights(weights, g, error);
    if (result == 0 && (g->edge_count > INTERIOR_EDGES_MAX || g->nodes > INTERIOR_NODES_MAX)) {
        result = descend(out, weights, g, error);
    } else if (result == 0) {
        result = sl_optimum_interior(out, weights, g, error);
        if (result == 0)
            result = rho_of(&out->rho, g, weights, error);
    }
    out->lower_bound = fmin(out->lower_bound, out->rho);
    out->converged = out->rho - out->lower_bound <= g->tolerance;
    return result;
}

int sl_optimal_weights(sl_optimum *out, double *weights, uint32_t nodes, const sl_edge *edges,
                       size_t edge_count, sl_sign sign, const sl_optimum_settings *settings,
                       sl_error *error) {
    sl_optimum_settings defaults;
    sl_optimum_defaults(&defaults);
    if (settings == NULL)
        settings = &defaults;
    graph_problem g = {.nodes = nodes,
                       .edges = edges,
                       .edge_count = edge_count,
                       .sign = sign,
                       .tolerance = settings->tolerance,
                       .work_max = settings->work_max};
    if (!(settings->tolerance > 0))
        return sl_fail(error, SL_EINVAL, "tolerance: %g is not allowed; it must be above 0",
                       settings->tolerance);
    sl_topology *t;
    int result = open_graph(&t, &g, SL_WEIGHTING_METROPOLIS, NULL, error);
    if (result != 0)
        return result;
    sl_topology_close(&t);
    if (edge_count == 0) {
        *out = (sl_optimum){.converged = true};
        return 0;
    }
    sl_optimum found = {0};
    result = optimise(&found, weights, &g, error);
    if (result == 0)
        *out = found;
    return result;
}

int sl_weights_fastest_mixing(sl_optimum *out, double *weights, uint32_t nodes,
                              const sl_edge *edges, size_t edge_count, sl_error *error) {
    return sl_optimal_weights(out, weights, nodes, edges, edge_count, SL_SIGN_NONNEGATIVE, NULL,
                              error);
}

int sl_weights_fastest_averaging(sl_optimum *out, double *weights, uint32_t nodes,
                                 const sl_edge *edges, size_t edge_count, sl_error *error) {
    return sl_optimal_weights(out, weights, nodes, edges, edge_count, SL_SIGN_ANY, NULL, error);
}
