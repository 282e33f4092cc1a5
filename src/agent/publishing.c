/* publishing.c - memory of a device from which messages leave, as neighbours of this host read it
 * there; see sl_side_publish. */
#include "agent/state.h"
#include "base/round_up.h"

enum { REGIONS_MAX = 16 };

/* Is all that comes a plain vector, of which nothing has to be checked before it is used? */
bool sl_agent_comes_plain(const sl_agent *a) {
    const sl_algorithm *algorithm = sl_algorithm_of(&a->plan.config, NULL);
    return a->plan.config.compressor.kind == SL_COMPRESSOR_IDENTITY && a->plan.phase_count == 0 &&
           algorithm != NULL && !sl_algorithm_sums_sparse(algorithm) &&
           a->settings.experiment->transport.norm_limit == 0;
}

/* Messages of plain vectors, whose receivers have nothing to check on the host, leave from the
 * device's memory where neighbours of this host can read it. */
void sl_agent_open_published(sl_agent *a) {
    void *bases[REGIONS_MAX];
    size_t bytes[REGIONS_MAX], most = 0;
    char why[SL_ARENA_WHY_MAX];
    const size_t count = sl_machine_regions(&a->node, bases, bytes, REGIONS_MAX);
    if (!a->side.reads || a->side.vec->share == NULL || a->node.rounds == NULL ||
        !sl_agent_comes_plain(a))
        return;
    for (size_t i = 0; i < count; i++)
        most = bytes[i] > most ? bytes[i] : most;
    a->side.device = a->side.vec->share;
    a->side.published_bytes = 2 * sl_round_up(most, SL_VEC_ALIGNMENT);
    if (most > 0 &&
        !sl_arena_open_on(&a->side.published, a->side.device, a->side.published_bytes, why))
        sl_agent_notice(a,
                        "transport.memory: neighbours on this host do not read this GPU's memory: "
                        "%s; what this agent sends goes through the host's",
                        why);
}

void *sl_agent_publish(void *agent, size_t bytes, bool *waits) {
    sl_agent *a = agent;
    return a->side.published != NULL
               ? sl_side_publish(&a->side, a->neighbours, a->neighbour_count, bytes, waits)
               : NULL;
}
