/* settings.c - an experiment as the settings of the rooms below; see starling/experiment.h. */
#include "starling/experiment.h"
#include "starling/rng.h"

uint32_t sl_experiment_ranks(const sl_experiment *e) {
    return sl_topology_nodes(e->topology) + e->membership.joiners;
}

uint32_t sl_experiment_simulated(const sl_experiment *e) {
    return e->faults.count > 0 ? sl_experiment_ranks(e) : sl_topology_nodes(e->topology);
}

sl_learner_settings sl_experiment_learner(const sl_experiment *e) {
    return (sl_learner_settings){
        .model = e->model,
        .data = e->data,
        .nodes = sl_topology_nodes(e->topology),
        .joiners = e->membership.joiners,
        .seed = e->seed,
        .rounds = e->rounds,
        .epochs = e->epochs,
        .by_layers = e->transport.overlap != SL_OVERLAP_NONE,
    };
}

sl_node_settings sl_experiment_node(const sl_experiment *e, const sl_plan *plan,
                                    const sl_sending *sending, size_t dimension, uint64_t rounds) {
    return (sl_node_settings){
        .ranks = sl_experiment_ranks(e),
        .rounds = rounds,
        .dimension = dimension,
        .part_bytes = e->transport.chunk_bytes,
        .leaves = sending != NULL && sending->leaves.count > 0 ? &sending->leaves : NULL,
        .buckets = sending != NULL && sending->buckets.count > 0 ? &sending->buckets : NULL,
        .tensor_fractions = sending != NULL ? sending->fractions : NULL,
        .seed = e->seed,
        .loss_limit = e->loss_limit,
        .norm_limit = e->transport.norm_limit,
        .topology = e->topology,
        .plan = plan,
        .vec = sl_vec_cpu(),
        .optimizer = &e->optimizer,
    };
}

double sl_network_gradient_ms(const sl_network_config *n, double usual_ms, uint64_t seed,
                              uint32_t rank, uint64_t round) {
    const sl_number_rows *turns = &n->compute_ms;
    /* ranks beyond the first topology are as fast as those from 0 on */
    double ms =
        turns->rows > 0
            ? turns->values[(round - 1) % turns->rows * turns->columns + rank % turns->columns]
        : n->speed_count > 0 ? usual_ms / n->speeds[rank % n->speed_count]
                             : usual_ms;
    if (n->jitter <= 0 && n->straggler_share <= 0)
        return ms;
    sl_rng draw = sl_rng_open(seed, rank, round, SL_PURPOSE_SPEED);
    ms *= 1 + n->jitter * (2 * sl_rng_uniform(&draw) - 1);
    return sl_rng_uniform(&draw) < n->straggler_share ? n->straggler_factor * ms : ms;
}

bool sl_network_draws(const sl_network_config *n) {
    return n->compute_ms.rows > 0 || n->jitter > 0 || n->straggler_share > 0;
}

bool sl_experiment_is_asynchronous(const sl_experiment *e) {
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, NULL);
    return a != NULL && a->async != NULL;
}

int sl_experiment_check_session(const sl_experiment *e, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, NULL);
    if (a == NULL || a->async == NULL || a->async->pattern != SL_PATTERN_COMMITS)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.name: \"%s\" has a server that takes gradients, which no session "
                   "gives; take \"ad-psgd\", or \"d-psgd\" with staleness",
                   e->algorithm.name);
}
