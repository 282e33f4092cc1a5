/* settings.c - an experiment as the settings of the rooms below; see starling/experiment.h. */
#include "starling/experiment.h"

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
    };
}

sl_node_settings sl_experiment_node(const sl_experiment *e, const sl_plan *plan, size_t dimension,
                                    uint64_t rounds) {
    return (sl_node_settings){
        .rounds = rounds,
        .dimension = dimension,
        .part_bytes = e->transport.chunk_bytes,
        .seed = e->seed,
        .loss_limit = e->loss_limit,
        .norm_limit = e->transport.norm_limit,
        .topology = e->topology,
        .plan = plan,
        .vec = sl_vec_cpu(),
        .optimizer = &e->optimizer,
    };
}
