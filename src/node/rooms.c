/* rooms.c - a model that is read where it is published: it does not change there, and its next
 * value is made in another room; see starling/node.h.
 *
 * There are three. A neighbour that has sent its message of one exchange has read all of the one
 * before, so of three rooms the one that was published two exchanges ago is free. Where a neighbour
 * is cut off, or says late what it has read, none may be: then the sum goes over the model, as
 * without rooms, and the driver copies what it sends.
 */
#include "node/state.h"

#include <string.h>

#include "starling/steps.h"

/* Is all that becomes of what the stage publishes the next model? */
static bool moves(const sl_stage *stage) {
    return stage->in_place && stage->vector == sl_publish_model &&
           stage->combine == sl_mix_models && stage->own == NULL;
}

bool sl_node_moves(const sl_node_settings *s) {
    const sl_algorithm_config *config = &s->plan->config;
    const sl_algorithm *a = sl_algorithm_of(config, NULL);
    bool any = false;
    for (size_t i = 0; a != NULL && a->async == NULL && i < a->stage_count; i++)
        any = any || moves(&a->stages[i]);
    return (any || s->lends) && s->buckets == NULL && s->plan->phase_count == 0 &&
           config->compressor.kind == SL_COMPRESSOR_IDENTITY;
}

void sl_node_take_rooms(sl_node *n, float *rooms, size_t stride) {
    n->rooms = (sl_rooms){.memory = rooms, .stride = stride};
    if (n->settings.lends)
        return;
    memcpy(rooms, n->state.x, n->settings.dimension * sizeof *rooms);
    n->settings.vec->release(n->state.x);
    n->state.x = rooms;
}

void sl_node_free_rooms(sl_node *n, unsigned rooms) {
    n->rooms.free = rooms;
}

static uint32_t room_of(const sl_node *n, const float *vector) {
    const uintptr_t from = (uintptr_t)n->rooms.memory;
    const size_t bytes = n->rooms.stride * sizeof *vector, at = (uintptr_t)vector - from;
    return from != 0 && at / bytes < SL_NODE_ROOMS ? (uint32_t)(at / bytes) : SL_ROOM_NONE;
}

/* A lent one may be the driver's own, or in a room; the model is in one, and stays if it moves. */
uint32_t sl_rooms_published(const sl_node *n) {
    if (n->state.lent != NULL)
        return room_of(n, n->state.lent);
    return n->state.sum != NULL ? room_of(n, n->state.x) : SL_ROOM_NONE;
}

float *sl_rooms_find(const sl_node *n) {
    if (n->rooms.free == 0 || !moves(n->step.what.stage))
        return NULL;
    const uint32_t home = room_of(n, n->state.x);
    for (uint32_t i = 1; i < SL_NODE_ROOMS; i++) {
        const uint32_t room = (home + i) % SL_NODE_ROOMS;
        if (n->rooms.free >> room & 1)
            return n->rooms.memory + room * n->rooms.stride;
    }
    return NULL;
}

void sl_rooms_move(sl_node *n) {
    if (n->state.sum != NULL)
        n->state.x = n->state.sum;
    n->state.sum = NULL;
}
