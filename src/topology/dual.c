/* dual.c - bounds from below on rho, by duality.
 *
 * For Y as in optimal.h and B = W - J: ||B||_2 >= tr(YB) = tr Y - sum_l w_l slopes_l (the trace norm of Y is at most 1). So the least rho is at least
 * tr Y less the most that sum_l w_l slopes_l can be.
 *
 * Not negative: w >= 0 and the edges of each node sum to 1 at most, so that it is at most sum_i prices_i for any prices >= 0 with
 * prices_i + prices_j >= slopes_l on every edge: linear duality, Boyd, Diaconis, Xiao 2004, section 4.
 * Any sign: the best weights have |w_l| = |W_ij| <= 1/n + rho for the rho of any others.
 */
#include <math.h>

#include "topology/optimal.h"

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

static double most_by_size(const graph_problem *g, const double *slopes, double rho) {
    double sum = 0;
    for (size_t l = 0; l < g->edge_count; l++)
        sum += fabs(slopes[l]);
    return sum * (rho + 1.0 / g->nodes);
}

double dual_bound(const graph_problem *g, double trace, const double *slopes, double *prices, double rho) {
    double most = g->sign == SL_SIGN_NONNEGATIVE ? most_by_prices(g, slopes, prices) : most_by_size(g, slopes, rho);
    double rounding = 0x1p-50 * g->nodes;
    return fmax(trace - most - rounding, 0);
}
