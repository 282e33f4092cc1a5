/* optimal.h - symmetric weights that average fastest on a given graph, with a bound on their
 * distance from the optimum.
 *
 * On an undirected connected graph, W = I - sum_l w_l u_l u_l' (u_l = e_i - e_j for edge l between
 * i and j) is symmetric, and its rows and columns sum to 1. Convex optimization finds the w with
 * the smallest rho = ||W - J||_2, J = 11'/n. With nonnegative w and self-weights this is the
 * fastest mixing Markov chain (Boyd, Diaconis, Xiao 2004); with any sign, the fastest distributed
 * linear averaging (Xiao, Boyd 2004). A point of the dual problem gives a lower bound on rho for
 * all weights.
 *
 * The weights have the same bits on every machine. */
#ifndef STARLING_OPTIMAL_H
#define STARLING_OPTIMAL_H

#include "starling/api.h"
#include "starling/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sl_sign {
    SL_SIGN_NONNEGATIVE, /* edge weights and own weights: fmmc */
    SL_SIGN_ANY          /* fdla */
} sl_sign;

typedef struct sl_optimum_settings {
    double tolerance; /* on rho - lower_bound; default 1e-8 */
    double work_max;  /* floating-point operations after which the best weights so far are returned;
                         default 5e11, some minutes */
    const sl_watch *watch; /* default NULL */
} sl_optimum_settings;

SL_API void sl_optimum_defaults(sl_optimum_settings *settings);

/* weights: (edge_count) output, w_l of each edge. edges: (edge_count) each undirected edge once;
 * their weights are ignored. SL_EINVAL unless connected. settings may be NULL. Reaching a limit is
 * no error: see `converged`. */
SL_API int sl_optimal_weights(sl_optimum *out, double *weights, uint32_t nodes,
                              const sl_edge *edges, size_t edge_count, sl_sign sign,
                              const sl_optimum_settings *settings, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
