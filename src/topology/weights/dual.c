/* dual.c - bounds from below on rho, by duality.
 *
 * For Y as in optimal.h and B = W - J: ||B||_2 >= tr(YB) = tr Y - sum_l w_l slopes_l (the trace
 * norm of Y is at most 1). So the least rho is at least tr Y less the most that sum_l w_l slopes_l
 * can be.
 *
 * Not negative: w >= 0 and the edges of each node sum to 1 at most, so that it is at most sum_i
 * prices_i for any prices >= 0 with prices_i + prices_j >= slopes_l on every edge: linear duality,
 * Boyd, Diaconis, Xiao 2004, section 4. Any sign: row i of the best W has sum_j W_ij^2 = (B^2)_ii +
 * 1/n <= rho^2 + 1/n for the rho of any other weights. Each edge stands in two rows, so that by
 * Cauchy and Schwarz the sum is at most half of that bound's root times sum_i |slopes of the edges
 * at i|_2.
 */
#include <math.h>
#include <string.h>

#include "topology/weights/optimal.h"

static double most_by_prices(const graph_problem *g, const double *slopes, double *prices) {
    double sum = 0;
    for (size_t l = 0; l < g->edge_count; l++) {
        double lack = slopes[l] - prices[g->edges[l].from] - prices[g->edges[l].to];
        if (lack > 0) {
            prices[g->edges[l].from] += lack / 2;
            prices[g->edges[l].to] += lack / 2;
        }
    }
    for (uint32_t i = 0; i < g->nodes; i++)
        sum += prices[i];
    return sum;
}

/* squares: (nodes) for the use of this function. */
static double most_by_rows(const graph_problem *g, const double *slopes, double *squares,
                           double rho) {
    double sum = 0;
    memset(squares, 0, g->nodes * sizeof *squares);
    for (size_t l = 0; l < g->edge_count; l++) {
        squares[g->edges[l].from] += slopes[l] * slopes[l];
        squares[g->edges[l].to] += slopes[l] * slopes[l];
    }
    for (uint32_t i = 0; i < g->nodes; i++)
        sum += sqrt(squares[i]);
    return sum / 2 * sqrt(rho * rho + 1.0 / g->nodes);
}

double sl_optimum_dual_bound(const graph_problem *g, double trace, const double *slopes,
                             double *prices, double rho) {
    double most = g->sign == SL_SIGN_NONNEGATIVE ? most_by_prices(g, slopes, prices)
                                                 : most_by_rows(g, slopes, prices, rho);
    double rounding = 0x1p-50 * g->nodes;
    return fmax(trace - most - rounding, 0);
}
