/* pieces.c - the state that a node at rest goes on from, as one list; see async.h.
 *
 * The view that comes next begins versions, averages and commits anew. So what is of the view, or
 * on its way, is not in the list: it holds what begin_anew and its kin go on from. Numbers come
 * first: they say which vectors there are.
 */
#include <stdio.h>

#include "async/serving.h"
#include "async/state.h"
#include "node/piece_table.h"

#define WHOLE(text, field) SL_PIECE_WHOLE(sl_async, text, field)
#define REAL(text, field) SL_PIECE_REAL(sl_async, text, field)

static const sl_piece_number numbers[] = {
    WHOLE(SL_OWN_ROUND_NAME, state.round),
    WHOLE("exchange", state.exchange),
    WHOLE("optimizer_steps", direction.steps),
    WHOLE("asks", events),
    WHOLE("pulled", pulled),
    WHOLE("batch_version", served.batch.version),
    REAL("push_sum_weight", state.push_sum_weight),
    REAL("loss_limit", loss_limit),
    REAL("loss", statistics.loss),
    REAL("neighbour_distance", statistics.neighbour_distance),
    WHOLE("staleness", statistics.staleness),
    WHOLE("payload_bytes_sent", statistics.payload_bytes_sent),
    WHOLE("payload_bytes_received", statistics.payload_bytes_received),
    WHOLE("frames_sent", statistics.frames_sent),
    WHOLE("frames_received", statistics.frames_received),
    WHOLE("messages_sent", statistics.messages_sent),
    WHOLE("messages_silent", statistics.messages_silent),
    WHOLE("rests", at_rest.rests),
    WHOLE("gradient", at_rest.gradient),
    WHOLE("wants", at_rest.wants),
    WHOLE("is_over", at_rest.is_over),
    WHOLE("keeps", at_rest.keeps),
    WHOLE("serves_from", at_rest.serves_from),
    WHOLE("serves_count", at_rest.serves_count),
    WHOLE("come_count", at_rest.come_count),
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* A gradient that nobody has applied; one that runs is computed again. */
static bool holds_gradient(const sl_async *n) {
    return n->at_rest.gradient == SL_GRADIENT_HELD && !n->at_rest.is_over;
}

/* How much of each server's model has come. */
static size_t count_come(const sl_async *n) {
    if (n->at_rest.come == NULL)
        return 0;
    return n->state.config->server == SL_SERVER_SHARDED ? n->ranks : 1;
}

bool sl_async_piece(sl_async *n, size_t index, sl_piece *out) {
    if (index < NUMBERS) {
        *out = sl_piece_of_number(&numbers[index], n);
        return true;
    }
    index -= NUMBERS;
    if (index < count_come(n)) {
        *out = (sl_piece){.whole = &n->at_rest.come[index]};
        snprintf(out->name, sizeof out->name, "come.%zu", index);
        return true;
    }
    if (n->at_rest.serves_count > 0 && n->served.clocks == NULL) /* it is loaded; see begin */
        sl_serving_open(n, NULL);
    const struct {
        const char *name;
        float *vector;
    } named[] = {{"model", n->state.x},
                 {"momentum", n->state.m},
                 {"first_moment", n->direction.m},
                 {"second_moment", n->direction.v},
                 {"gradient", holds_gradient(n) ? n->state.g : NULL}};
    enum { NAMED = sizeof named / sizeof *named };
    size_t left = index - count_come(n);
    for (size_t i = 0; i < NAMED + SL_ALGORITHM_VECTORS_MAX; i++) {
        float *vector = i < NAMED ? named[i].vector : n->state.extra[i - NAMED];
        if (vector == NULL || left-- > 0)
            continue;
        *out = (sl_piece){.vector = vector};
        if (i < NAMED)
            snprintf(out->name, sizeof out->name, "%s", named[i].name);
        else
            snprintf(out->name, sizeof out->name, "own.%zu", i - NAMED);
        return true;
    }
    return false;
}

void sl_async_note_rest(sl_async *n) {
    sl_at_rest *at = &n->at_rest;
    const bool serves = n->own != NULL && n->served.clocks != NULL;
    *at = (sl_at_rest){.rests = true,
                       .gradient = n->gradient,
                       .wants = n->wants,
                       .is_over = n->pattern->is_over != NULL && n->pattern->is_over(n),
                       .keeps = n->ending.keeps,
                       .serves_from = serves ? n->own->range.from : 0,
                       .serves_count = serves ? n->own->range.count : 0,
                       .come_count = n->owner_count,
                       .come = at->come};
    for (uint32_t k = 0; k < n->owner_count; k++)
        at->come[k] = n->owners[k].come;
}

void sl_async_go_on_from_pieces(sl_async *n) {
    const sl_at_rest *at = &n->at_rest;
    sl_state *s = &n->state;
    if (s->round > 0)
        s->sgd = sl_optimizer_at(n->settings.optimizer, s->round, n->settings.rounds);
    if (s->round > 1)
        s->last_sgd = sl_optimizer_at(n->settings.optimizer, s->round - 1, n->settings.rounds);
    s->loss = n->statistics.loss;
    n->statistics.round = s->round;
    n->statistics.learning_rate = s->sgd.learning_rate;
    n->gradient = (sl_gradient_phase)at->gradient;
    n->wants = at->wants;
    n->is_over = at->is_over;
    n->rests = n->is_loaded = true;
    n->pattern->cut(n);
    n->ending.keeps = at->keeps;
}
