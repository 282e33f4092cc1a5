/* ad_psgd.c - AD-PSGD: Lian, Zhang, Zhang, Liu, "Asynchronous Decentralized Parallel Stochastic
 * Gradient Descent", ICML 2018, Algorithm 1.
 *
 *   node i, when its gradient g_i(xhat_i) is done, picks a neighbour j:
 *   (x_i, x_j) <- ((x_i + x_j)/2, (x_i + x_j)/2);  x_i <- x_i - gamma mom(g_i);  xhat_i <- x_i
 *
 * An average is atomic: nothing else touches the two models in between (async/averager.h). j's
 * running gradient goes on; it was taken at xhat_j. Nobody waits for a slow node, but for an
 * average with it. The mean moves by -(gamma/n) mom(g_i) with a gradient and by nothing but
 * rounding with an average. Edge weights are not used: an average is W = I - (e_i - e_j)(e_i -
 * e_j)'/2.
 *
 * Memory beside x, g, momentum: xhat. Wire: 32 d bits each way with a gradient; with algorithm.bits
 * fewer (swarm.c). With local_steps H, a node asks with each H-th gradient.
 */
#include <stdio.h>
#include <stdlib.h>

#include "algorithm/algorithms.h"
#include "algorithm/gossip/ad_psgd.h"
#include "algorithm/gossip/sides.h"
#include "algorithm/own_keys.h"
#include "starling/rng.h"

const float *sl_pairs_point(const sl_state *s) {
    return s->extra[SL_PAIRS_POINT];
}

static void take_point(sl_state *s, size_t from, size_t count) {
    sl_copy(s, s->extra[SL_PAIRS_POINT] + from, s->x + from, count);
}

static uint32_t partner(const sl_state *s, uint64_t event, uint32_t count) {
    if (s->config->pairing == SL_PAIRING_CYCLIC)
        return (uint32_t)((event - 1) % count);
    sl_rng draw = sl_rng_open(s->seed, s->rank, event, SL_PURPOSE_PARTNER);
    return sl_rng_below(&draw, count);
}

static bool asks(const sl_algorithm_config *config, const sl_topology *topology, uint32_t rank) {
    uint8_t *side = malloc(sl_topology_nodes(topology) + 1u);
    const bool all = config->initiators == SL_INITIATORS_ALL || side == NULL ||
                     sl_sides(side, topology, NULL) != 0,
               asks = all || side[rank] == 0;
    free(side);
    return asks;
}

static int check_sides(const sl_topology *topology, sl_error *error) {
    uint8_t *side = malloc(sl_topology_nodes(topology) + 1u);
    sl_error why;
    const int result =
        side != NULL ? sl_sides(side, topology, &why) : sl_fail(&why, SL_ENOMEM, "out of memory");
    free(side);
    return result == 0 ? 0
                       : sl_fail(error, result,
                                 "algorithm.initiators: \"bipartite\" needs a graph of two sides, "
                                 "and this one has %s; take \"all\", or another topology",
                                 why.text);
}

int sl_pairs_check(const sl_algorithm_config *config, const sl_topology *topology,
                   sl_error *error) {
    if (sl_topology_period(topology) > 1)
        return sl_fail(error, SL_EINVAL,
                       "algorithm 'ad-psgd' draws a neighbour for each average, and this topology "
                       "is a schedule of %u; take a fixed one",
                       sl_topology_period(topology));
    for (uint32_t i = 0; i < sl_topology_nodes(topology); i++) {
        const uint32_t *peers, both = sl_topology_peers(topology, i, &peers);
        if (both != sl_topology_in(topology, 1, i).count ||
            both != sl_topology_out(topology, 1, i).count)
            return sl_fail(error, SL_EINVAL,
                           "algorithm 'ad-psgd' averages both ways, and this topology is directed "
                           "(node %u); take an undirected one, or sgp with overlap_rounds",
                           i);
    }
    return config->initiators == SL_INITIATORS_BIPARTITE ? check_sides(topology, error) : 0;
}

static void waits_for(const sl_algorithm_config *config, char *out, size_t bytes) {
    snprintf(out, bytes, "an average with one neighbour%s, while others may ask it for theirs",
             config->average == SL_AVERAGE_BESIDE ? ", beside its gradient" : "");
}

static const sl_stage halves[] = {
    {.in_place = true, .vector = sl_publish_model, .combine = sl_mix_models}};
const sl_async_rule sl_pairs_rule = {.pattern = SL_PATTERN_PAIRS,
                                     .begin = take_point,
                                     .asks = asks,
                                     .partner = partner,
                                     .waits_for = waits_for};

static const char *const pairings[] = {"random", "cyclic", NULL};
static const char *const initiators[] = {"all", "bipartite", NULL};
static const char *const averages[] = {"after", "beside", NULL};
const sl_key sl_pairs_keys[] = {
    {SL_OWN_CHOICE(pairing, pairings), .is_later = true, .fallback = "\"random\"",
     .help = "whom a node asks for an average: a random neighbour, or each in turn (cyclic)"},
    {SL_OWN_CHOICE(initiators, initiators), .is_later = true, .fallback = "\"all\"",
     .help = "who asks: all nodes, or those of rank 0's side of a bipartite graph"},
    {SL_OWN_CHOICE(average, averages), .is_later = true, .fallback = "\"after\"",
     .help = "when a node asks: after its gradient, or beside it, while it is computed"},
    {SL_ROW_BITS, .help = "bits of an element of the model that is sent, auto = 32, as it is"},
    {SL_ROW_THETA},
    SL_KEYS_END,
};

static const double usual_theta = 2;

static void warn(const sl_algorithm_config *config, char *out, size_t bytes) {
    if (config->theta != usual_theta)
        snprintf(out, bytes, "algorithm.theta has no effect without algorithm.bits");
}

const sl_algorithm sl_ad_psgd = {
    SL_AD_PSGD,
    .warn = warn,
    .extra_vectors = SL_PAIRS_VECTORS,
    .stages = halves,
};
