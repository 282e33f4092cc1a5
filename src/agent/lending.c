/* lending.c - see lending.h. */
#include "agent/lending.h"

#include "agent/state.h"

float *sl_agent_rooms(const sl_agent *a, size_t *stride, sl_arena **in) {
    *in = a->side.arena;
    *stride = a->side.room_bytes / sizeof(float);
    return a->side.has_rooms ? a->side.rooms : NULL;
}

unsigned sl_agent_free_rooms(const sl_agent *a) {
    return sl_side_free_rooms(a->neighbours, a->neighbour_count);
}

/* Providers that want memory registered hear of a vector when it is lent first; of the arena they
 * know. From a device it leaves through copies, unless payloads go straight. */
int sl_agent_lend(sl_agent *a, sl_error *error) {
    const sl_task *task = &a->settings.task;
    const float *vector = task->lend(task->context, a->side.rank);
    const sl_vec_ops *vec = a->side.vec;
    int result = 0;
    if (vector != NULL && (vec->on_host || a->side.direct) && !sl_side_shares(&a->side, vector))
        result = sl_fabric_lend(a->side.fabric, (void *)vector, task->dimension * sizeof *vector,
                                vec->cuda_index, error);
    sl_node_lend(a->node.rounds, vector);
    return result;
}
