/* gossip_pga.c - Gossip-PGA: Chen, Yuan, Zhang, Pan, Xu, Yin, "Accelerating Gossip SGD with
 * Periodic Global Averaging", ICML 2021, Algorithm 1.
 *
 *   u_i = x_i - gamma mom(g_i(x_i));  x_i <- sum_j W_ij u_j, in every H-th exchange (1/n) sum_j u_j
 *
 * H: algorithm.average_period; W doubly stochastic. The mean is exact and has the same bits on all
 * nodes. H = 1 is averaging in every exchange, H beyond the run D-PSGD. Memory beside x, g,
 * momentum: none. Wire: D-PSGD's, 32 d bits to each out-neighbour; in an H-th exchange
 * all-reduce's, 64 d (n - 1)/n bits.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

static bool averages(const sl_state *s) {
    return s->exchange % s->config->average_period == 0;
}

static bool gossips(const sl_state *s) {
    return !averages(s);
}

static const sl_stage stages[] = {
    {.in_place = true,
     .wanted = gossips,
     .prepare = sl_local_step,
     .vector = sl_publish_model,
     .combine = sl_mix_models},
    SL_AVERAGE_STAGES(model, averages, sl_local_step, false),
};

static const sl_key keys[] = {
    {SL_OWN_U64(average_period, 1, 1e9), .fallback = "6",
     .help = "every so many exchanges, all nodes' exact average"},
    SL_KEYS_END,
};

const sl_algorithm sl_gossip_pga = {
    .name = "gossip-pga",
    .route = SL_ROUTE_BOTH,
    .matrix = SL_MATRIX_DOUBLY,
    .lazy_below = sl_lazy_adapting,
    .takes_momentum = true,
    .takes_local_steps = true,
    .keys = keys,
    .stages = stages,
    .stage_count = 3,
    .local = sl_local_step,
};
