/* optimal.c - the fastest symmetric weights of a graph; see starling/optimal.h. */
#include <math.h>
#include <stdlib.h>

#include "topology/spectrum/spectral.h"
#include "topology/weights/optimal.h"

void sl_optimum_defaults(sl_optimum_settings *settings) {
    *settings = (sl_optimum_settings){.tolerance = 1e-8, .work_max = 5e11};
}

/* ---- a graph with weights as rows ---- */

static int check_edges(const graph_problem *g, sl_error *error) {
    for (size_t l = 0; l < g->edge_count; l++) {
        const sl_edge *e = &g->edges[l];
        if (e->from >= g->nodes || e->to >= g->nodes || e->from == e->to)
            return sl_fail(error, SL_EINVAL,
                           "edges: edge [%u, %u] is not allowed; it must join two of the nodes "
                           "0..%u",
                           e->from, e->to, g->nodes - 1);
    }
    return 0;
}

/* W = I - sum_l w_l u_l u_l'. Close it also after an error. */
static int build_rows(graph *out, const graph_problem *g, const double *weights, sl_error *error) {
    edge_list list = {0};
    *out = (graph){.nodes = g->nodes, .slots = calloc(1, sizeof *out->slots)};
    double *own = calloc(g->nodes, sizeof *own);
    int result = out->slots != NULL && own != NULL
                     ? 0
                     : sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", g->nodes);
    for (uint32_t i = 0; result == 0 && i < g->nodes; i++)
        own[i] = 1;
    for (size_t l = 0; result == 0 && l < g->edge_count; l++) {
        const sl_edge *e = &g->edges[l];
        sl_edge_list_push_weighted(&list, e->from, e->to, weights[l]);
        sl_edge_list_push_weighted(&list, e->to, e->from, weights[l]);
        own[e->from] -= weights[l];
        own[e->to] -= weights[l];
    }
    for (uint32_t i = 0; result == 0 && i < g->nodes; i++)
        sl_edge_list_push_weighted(&list, i, i, own[i]);
    if (result == 0)
        result = sl_slot_build(&out->slots[0], &list, g->nodes, error);
    sl_edge_list_close(&list);
    free(own);
    if (result != 0)
        return result;
    out->period = 1;
    sl_slot_mirror_weights(&out->slots[0], g->nodes);
    out->stochastic = sl_graph_stochasticity(out);
    return 0;
}

static int spectrum_of(sl_spectrum *out, const graph_problem *g, const double *weights,
                       sl_error *error) {
    graph rows;
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    settings.watch = g->watch;
    int result = build_rows(&rows, g, weights, error);
    if (result == 0)
        result = sl_graph_spectrum(out, &rows, &settings, error);
    sl_graph_close(&rows);
    return result;
}

/* Metropolis weights: strictly inside what any sign and no sign allow. *degree_max may be NULL. */
static int start_weights(double *weights, uint32_t *degree_max, const graph_problem *g,
                         sl_error *error) {
    uint32_t *degree = calloc(g->nodes, sizeof *degree), most = 0;
    if (degree == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u degrees", g->nodes);
    for (size_t l = 0; l < g->edge_count; l++) {
        degree[g->edges[l].from]++;
        degree[g->edges[l].to]++;
    }
    for (size_t l = 0; l < g->edge_count; l++) {
        uint32_t from = degree[g->edges[l].from], to = degree[g->edges[l].to];
        weights[l] = 1 / (1 + fmax(from, to));
        most = from > most ? from : most;
        most = to > most ? to : most;
    }
    free(degree);
    if (degree_max != NULL)
        *degree_max = most;
    return 0;
}

/* ---- best constant ---- */

/* To 32 bits: what LAPACK computes differs in its last ones from machine to machine, and agents
 * compare weights. */
static double rounded(double x) {
    int exponent;
    double mantissa = frexp(x, &exponent);
    return ldexp(rint(ldexp(mantissa, 32)), exponent - 32);
}

/* With W = I - L/q, 1 - lambda_2(W) = lambda_2(L)/q and 1 + lambda_n(W) = 2 - lambda_max(L)/q.
 * q is one more than the largest degree, as SL_WEIGHTING_MAX_DEGREE has it. */
int sl_weights_best_constant(sl_optimum *out, double *weights, uint32_t nodes, const sl_edge *edges,
                             size_t edge_count, const sl_watch *watch, sl_error *error) {
    graph_problem g = {.nodes = nodes, .edges = edges, .edge_count = edge_count, .watch = watch};
    sl_spectrum s;
    uint32_t degree_max;
    int result = start_weights(weights, &degree_max, &g, error);
    double q = 1 + (double)degree_max;
    for (size_t l = 0; l < edge_count; l++)
        weights[l] = 1 / q;
    if (result == 0)
        result = spectrum_of(&s, &g, weights, error);
    if (result != 0)
        return result;
    if (!s.converged)
        return sl_fail(error, SL_EINVAL,
                       "weights: \"best-constant\" needs the extreme eigenvalues of a graph of %u "
                       "nodes, which were not found within the limits; use \"max-degree\"",
                       nodes);
    double constant = rounded(2 / (q * (s.gap_lambda2 + 2 - s.gap_lambda_n)));
    for (size_t l = 0; l < edge_count; l++)
        weights[l] = constant;
    *out = (sl_optimum){.rho = NAN, .lower_bound = NAN};
    return 0;
}

/* ---- the optimum ---- */

static int rho_of(double *rho, const graph_problem *g, const double *weights, sl_error *error) {
    sl_spectrum s;
    int result = spectrum_of(&s, g, weights, error);
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
    return start_weights(weights, NULL, g, error);
}

static int check_connected(const graph_problem *g, const double *weights, sl_error *error) {
    graph rows;
    bool connected = false;
    int result = build_rows(&rows, g, weights, error);
    if (result == 0)
        result = sl_graph_is_connected(&connected, &rows, error);
    if (result == 0 && !connected) {
        char parts[PARTS_TEXT_MAX];
        sl_graph_say_parts(parts, sizeof parts, &rows);
        result = sl_fail(error, SL_EINVAL,
                         "edges: the graph is not connected: %s; the fastest weights are those of "
                         "one connected graph",
                         parts);
    }
    sl_graph_close(&rows);
    return result;
}

/* weights in: Metropolis'. */
static int optimise(sl_optimum *out, double *weights, const graph_problem *g, sl_error *error) {
    int result = 0;
    if (g->edge_count > INTERIOR_EDGES_MAX || g->nodes > INTERIOR_NODES_MAX) {
        result = descend(out, weights, g, error);
    } else {
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
                       .work_max = settings->work_max,
                       .watch = settings->watch};
    if (!(settings->tolerance > 0))
        return sl_fail(error, SL_EINVAL, "tolerance: %g is not allowed; it must be above 0",
                       settings->tolerance);
    int result = check_edges(&g, error);
    if (result == 0)
        result = start_weights(weights, NULL, &g, error);
    if (result == 0)
        result = check_connected(&g, weights, error);
    if (result != 0)
        return result;
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

static int find_fastest(sl_optimum *out, double *weights, uint32_t nodes, const sl_edge *edges,
                        size_t edge_count, sl_sign sign, const sl_watch *watch, sl_error *error) {
    sl_optimum_settings settings;
    sl_optimum_defaults(&settings);
    settings.watch = watch;
    return sl_optimal_weights(out, weights, nodes, edges, edge_count, sign, &settings, error);
}

int sl_weights_fastest_mixing(sl_optimum *out, double *weights, uint32_t nodes,
                              const sl_edge *edges, size_t edge_count, const sl_watch *watch,
                              sl_error *error) {
    return find_fastest(out, weights, nodes, edges, edge_count, SL_SIGN_NONNEGATIVE, watch, error);
}

int sl_weights_fastest_averaging(sl_optimum *out, double *weights, uint32_t nodes,
                                 const sl_edge *edges, size_t edge_count, const sl_watch *watch,
                                 sl_error *error) {
    return find_fastest(out, weights, nodes, edges, edge_count, SL_SIGN_ANY, watch, error);
}
