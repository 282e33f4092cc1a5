/* link_budget.h - compression that follows the links: how much choco-sgd with algorithm.budget
 * sends over each edge, so that a round's messages take a given time.
 *
 * Edges meet in steps, one after the other (no two at a node in one): a round's messages take the
 * sum of the steps' times. Of what latencies leave of the budget, step c has
 *
 *   t_c = T / sqrt(b_c) / sum_s 1/sqrt(b_s),   b_c the bandwidth of the slowest of its links,
 *
 * or what the whole vector takes, if that is less, and the others share the rest. That makes
 * sum_c 1/(t_c b_c) least: for as many rounds an entry waits over those links. Edge e
 * of the step sends what its own link carries in t_c: the most entries (of a compressor with a
 * fraction), levels or bits whose message is not longer, nor longer than the vector itself; and at
 * least fraction_min of the entries, or 1 level or bit.
 *
 * A pair without a bandwidth, which only a later view can have, is as slow as the slowest given. */
#ifndef STARLING_LINK_BUDGET_H
#define STARLING_LINK_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/compressor.h"
#include "starling/links.h"
#include "starling/topology.h"
#include "starling/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* algorithm.budget of an experiment, and what of its network.* the budget goes by. */
typedef struct sl_budget {
    double round_ms; /* 0: there is no budget; NaN: as long as messages of the compressor as it is
                        configured would take over the median link, in each step */
    double fraction_min;
    sl_link link;                /* of pairs without one of their own, and at most of all */
    const sl_number_rows *links; /* [i, j, bandwidth_mbit] or with latency_ms. Borrowed; NULL: none
                                  */
} sl_budget;

/* Does the configuration's form go by its budget? */
struct sl_algorithm_config;
SL_API bool sl_algorithm_has_budget(const struct sl_algorithm_config *config);

typedef struct sl_budget_edge {
    uint32_t i, j, step; /* i < j; steps count from 0 */
    sl_link link;
    double ms;       /* for its message, without latency */
    double share;    /* that is of all steps' times */
    double round_ms; /* the budget, with latencies */
} sl_budget_edge;

/* Tells each edge of a topology that is no schedule, in the order of i and j. compressor: as it is
 * configured. SL_ENOMEM. */
SL_API int sl_budget_edges(const sl_budget *budget, const sl_compressor_config *compressor,
                           const sl_topology *topology, size_t dimension,
                           void (*each)(void *context, const sl_budget_edge *edge), void *context,
                           sl_error *error);
/* What that edge's messages are compressed with. */
SL_API sl_compressor_config sl_budget_compressor(const sl_budget *budget,
                                                 const sl_compressor_config *compressor,
                                                 const sl_budget_edge *edge, size_t dimension);
/* How long one takes over the link with its header, without latency. */
SL_API double sl_budget_message_ms(const sl_compressor_config *compressor, sl_link link,
                                   size_t dimension);
/* What all edges come to. */
typedef struct sl_budget_extent {
    sl_budget_edge least, most; /* by the length of their messages; of equal ones the first */
    sl_compressor_config of_least, of_most;
    uint32_t steps;
    double round_ms; /* of a round's messages, with latencies */
} sl_budget_extent;
/* SL_ENOMEM. */
SL_API int sl_budget_measure(sl_budget_extent *out, const sl_budget *budget,
                             const sl_compressor_config *compressor, const sl_topology *topology,
                             size_t dimension, sl_error *error);
/* SL_EINVAL: a compressor that cannot follow a link, or an edge of the topology without a
 * bandwidth. */
SL_API int sl_budget_check(const sl_budget *budget, const sl_compressor_config *compressor,
                           const sl_topology *topology, sl_error *error);
/* SL_EINVAL: the least message of an edge takes longer than the edge has. */
SL_API int sl_budget_check_times(const sl_budget *budget, const sl_compressor_config *compressor,
                                 const sl_topology *topology, size_t dimension, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
