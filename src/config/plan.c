/* plan.c - see plan.h, and sl_experiment_plan in starling/experiment.h. */
#include "config/plan.h"

int sl_plan_check_checkpoint(const sl_experiment *e, const sl_algorithm_config *algorithm,
                             sl_error *error) {
    const uint64_t every = e->checkpoint.every, keep = e->checkpoint.keep;
    uint64_t spread;
    if (every == 0 || sl_experiment_is_asynchronous(e)) /* a cut is of all at once */
        return 0;
    int result = sl_algorithm_spread(&spread, algorithm, e->topology, error);
    if (result != 0 || every * (keep - 1) >= spread)
        return result;
    return sl_fail(error, SL_EINVAL,
                   "checkpoint.every: %llu rounds and checkpoint.keep %llu reach over %llu rounds, "
                   "and nodes may be %llu rounds apart here; set keep to %llu, or every to %llu "
                   "with keep %llu",
                   (unsigned long long)every, (unsigned long long)keep,
                   (unsigned long long)(every * (keep - 1)), (unsigned long long)spread,
                   (unsigned long long)((spread + every - 1) / every + 1),
                   (unsigned long long)(keep > 1 ? (spread + keep - 2) / (keep - 1) : spread),
                   (unsigned long long)(keep > 1 ? keep : 2));
}

/* How long clients train is known once their samples are. */
static int plan_clients(sl_algorithm_config *c, const sl_experiment *e, const sl_task *task,
                        sl_error *error) {
    if (task->samples == NULL)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.local_epochs: %llu, but nobody says how many samples a node has; "
                       "give algorithm.local_steps",
                       (unsigned long long)c->local_epochs);
    c->batch = e->data.batch;
    for (uint32_t i = 0; i < sl_topology_nodes(e->topology); i++) {
        const uint64_t steps = sl_clients_steps(c, task->samples(task->context, i));
        c->local_steps = steps > c->local_steps ? steps : c->local_steps;
    }
    return sl_plan_check_checkpoint(e, c, error);
}

int sl_experiment_plan(sl_plan *out, const sl_experiment *e, const sl_task *task, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, error);
    if (a == NULL)
        return SL_EINVAL;
    int result = sl_algorithm_plan(out, &e->algorithm, e->topology, task->dimension, error);
    if (result == 0 && sl_algorithm_has_budget(&e->algorithm))
        result = sl_budget_check_times(&out->config.budget, &out->config.compressor, e->topology,
                                       task->dimension, error);
    return result == 0 && e->algorithm.local_epochs > 0 &&
                   sl_algorithm_reads(a, SL_COMPRESSOR_IDENTITY, "local_epochs")
               ? plan_clients(&out->config, e, task, error)
               : result;
}
