/* masked_gossip.c - D-PSGD on the same few coordinates of all nodes: Tang, Shi, Chu,
 * "Communication- Efficient Decentralized Learning with Sparsification and Adaptive Peer
 * Selection", ICDCS 2020 (SAPS-PSGD), with any W.
 *
 *   u_i = x_i - gamma mom(g_i(x_i));  x_i <- u_i + M_t o sum_j W_ij (u_j - u_i)
 *
 * M_t: a random mask, the compressor's (shared-mask), the same on all nodes in exchange t and never
 * sent. All that is known of a neighbour is used at once: no replicas, no errors, any doubly
 * stochastic W, also one that changes. The mean is exact, and all coordinates are D-PSGD. Memory
 * beside x, g, momentum: none. Wire: 32 k bits to each out-neighbour.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

static bool is_masked(const sl_algorithm_config *config) {
    return config->compressor.kind == SL_COMPRESSOR_SHARED_MASK;
}

/* What neighbours give takes the place of as much of the own. A part has the same coordinates in
 * all messages, and is encoded here before any is combined. */
static void give(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -sl_given(s), s->x);
}

static void take(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1, s->x);
}

static const sl_stage stages[] = {
    {.prepare = sl_local_step, .vector = sl_publish_model, .own = give, .combine = take}};

const sl_algorithm sl_masked_gossip = {
    .name = "d-psgd",
    .variant = SL_VARIANT_ADAPT_THEN_COMBINE,
    .when = is_masked,
    .matrix = SL_MATRIX_DOUBLY,
    .check = sl_check_not_stale,
    .compressor = SL_TAKES_ANY,
    .takes_momentum = true,
    .takes_local_steps = true,
    .stages = stages,
    .stage_count = 1,
    .local = sl_local_step,
};
