/* pieces.c - the state that a node carries from one round to the next, as one list; see
 * starling/node.h.
 *
 * Saving and loading walk this list, so that an algorithm gets them for nothing: what it keeps is
 * in its vectors, and numbers of its own. The rest follows from the settings and the round: random
 * numbers, weights of the topology, learning rates. Gradient, scratch and buffers hold nothing
 * between rounds. An own vector may do so only within a round, as the sum of combine-while-adapt: a
 * session that overlaps gives out its state there, once the exchange is over.
 */
#include <assert.h>
#include <stdio.h>

#include "node/piece_table.h"
#include "node/state.h"

#define WHOLE(text, field) SL_PIECE_WHOLE(sl_node, text, field)
#define REAL(text, field) SL_PIECE_REAL(sl_node, text, field)

static const sl_piece_number numbers[] = {
    WHOLE("round", life.ended.round),
    WHOLE("exchange", life.ended_exchange),
    WHOLE("exchanged", life.exchanged),
    WHOLE("optimizer_steps", direction.steps),
    REAL("push_sum_weight", state.push_sum_weight),
    REAL("loss_limit", life.loss_limit),
    REAL("loss", life.ended.loss),
    REAL("learning_rate", life.ended.learning_rate),
    REAL("neighbour_distance", life.ended.neighbour_distance),
    WHOLE("payload_bytes_sent", life.ended.payload_bytes_sent),
    WHOLE("payload_bytes_received", life.ended.payload_bytes_received),
    WHOLE("frames_sent", life.ended.frames_sent),
    WHOLE("frames_received", life.ended.frames_received),
    WHOLE("messages_sent", life.ended.messages_sent),
    WHOLE("messages_silent", life.ended.messages_silent),
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* A vector that is there; `name` is printf-like, for one number. */
static bool is_vector(sl_piece *out, size_t *index, float *vector, const char *name,
                      size_t number) {
    if (vector == NULL || (*index)-- > 0)
        return false;
    *out = (sl_piece){.vector = vector};
    snprintf(out->name, sizeof out->name, "%s", name);
    if (number != SIZE_MAX)
        snprintf(out->name, sizeof out->name, "%s.%zu", name, number);
    return true;
}

static bool find_vector(const sl_node *n, size_t *index, sl_piece *out) {
    const sl_state *s = &n->state;
    const bool summed = s->config->replicas == SL_REPLICAS_SUM && !n->algorithm->keeps_received;
    bool found = is_vector(out, index, s->x, "model", SIZE_MAX) ||
                 is_vector(out, index, s->m, "momentum", SIZE_MAX) ||
                 is_vector(out, index, n->direction.m, "first_moment", SIZE_MAX) ||
                 is_vector(out, index, n->direction.v, "second_moment", SIZE_MAX);
    for (size_t i = 0; i < SL_ALGORITHM_VECTORS_MAX && !found; i++)
        found = is_vector(out, index, s->extra[i], "own", i);
    if (found)
        return true;
    const size_t replicas = n->algorithm->keeps_messages ? 0 : s->replica_count;
    for (size_t i = 0; i < replicas && !found; i++)
        found = s->received != NULL
                    ? is_vector(out, index, s->replicas[i], "received", i)
                    : is_vector(out, index, s->replicas[i], summed ? "replicas" : "replica",
                                summed ? SIZE_MAX : n->view.route.peers[i]);
    out->of_view = found;
    return found;
}

static bool is_own_number(sl_piece *out, size_t index, const sl_node *n) {
    if (index >= n->own_number_count)
        return false;
    *out = (sl_piece){.real = &n->state.own_numbers[index]};
    snprintf(out->name, sizeof out->name, "own_number.%zu", index);
    return true;
}

bool sl_node_piece(sl_node *n, size_t index, sl_piece *out) {
    if (find_vector(n, &index, out))
        return true;
    if (index >= NUMBERS)
        return is_own_number(out, index - NUMBERS, n);
    *out = sl_piece_of_number(&numbers[index], n);
    return true;
}

/* As sl_node_open leaves it, but for x: replicas and queues are those of the view that comes. */
void sl_node_forget(sl_node *n) {
    sl_piece piece;
    assert(sl_node_rests(n) && !n->life.finished);
    for (size_t i = 1; sl_node_piece(n, i, &piece) && piece.vector != NULL; i++)
        n->settings.vec->fill(piece.vector, 0, n->settings.dimension);
    n->state.round = n->state.exchange = 0;
    n->state.push_sum_weight = 1;
    n->direction.steps = 0;
    n->life = (sl_life){.loss_limit = n->settings.loss_limit};
}
