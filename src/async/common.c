/* common.c - what the patterns share: from round to round, and parts of messages; see state.h. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "async/state.h"
#include "base/round_up.h"
#include "route/route.h"
#include "vec/asked.h"

void sl_async_sweep_range(sl_async *n, void (*hook)(sl_state *s, size_t from, size_t count),
                          size_t from, size_t count) {
    const size_t block = n->settings.vec->block, behind = from + count;
    for (size_t some; hook != NULL && from < behind; from += some) {
        some = behind - from < block ? behind - from : block;
        hook(&n->state, from, some);
    }
}

void sl_async_sweep(sl_async *n, void (*hook)(sl_state *s, size_t from, size_t count)) {
    sl_async_sweep_range(n, hook, 0, n->settings.dimension);
}

bool sl_async_exchanges(const sl_async *n) {
    return sl_algorithm_exchanges(n->algorithm, n->state.config, n->state.round);
}

void sl_async_begin_round(sl_async *n, sl_update *update) {
    sl_state *s = &n->state;
    s->round++;
    s->last_sgd = s->sgd;
    s->sgd = sl_optimizer_at(n->settings.optimizer, s->round, n->settings.rounds);
    n->statistics = (sl_round){
        .round = s->round, .learning_rate = s->sgd.learning_rate, .neighbour_distance = NAN};
    n->gradient = SL_GRADIENT_RUNNING;
    if (n->algorithm->async->begin != NULL)
        sl_async_sweep(n, n->algorithm->async->begin);
    update->compute = true;
    update->round = s->round;
    if (n->pattern->begin != NULL)
        n->pattern->begin(n);
}

bool sl_async_may_end(const sl_async *n) {
    return !n->rests &&
           (!n->repeats || (n->expected != NULL && n->expected->kind == SL_ACT_GRADIENT));
}

int sl_async_end_round(sl_async *n, void (*hook)(sl_state *s, size_t from, size_t count),
                       sl_update *update, sl_error *error) {
    assert(n->gradient == SL_GRADIENT_HELD);
    sl_async_sweep(n, hook);
    n->gradient = SL_GRADIENT_NONE;
    sl_async_note(n, &(sl_act){.kind = SL_ACT_GRADIENT, .number = n->state.round});
    n->statistics.round = n->state.round; /* it may have missed some while it was away */
    n->statistics.push_sum_weight = n->state.push_sum_weight;
    n->statistics.doubtful = n->state.doubtful;
    n->state.doubtful = 0;
    update->round_done = true;
    update->finished_round = n->statistics;
    update->finished = n->state.round == n->settings.rounds;
    const int asked =
        sl_vec_ask(n->settings.vec, update->finished, n->settings.rank, n->state.round, error);
    if (asked != 0)
        return asked;
    if (!sl_vec_are_finite(n->settings.vec, n->state.x, n->settings.dimension))
        return sl_fail_node(error, SL_EDIVERGED, n->settings.rank, n->state.round,
                            "the model holds a number that is not finite; training diverged "
                            "(learning rate %g): lower optimizer.learning_rate",
                            (double)n->state.sgd.learning_rate);
    if (!update->finished)
        sl_async_begin_round(n, update);
    return 0;
}

uint64_t sl_async_exchanges_before(const sl_async *n, uint64_t round) {
    return (round - 1) / sl_algorithm_interval(n->algorithm, n->state.config);
}

bool sl_async_has(const sl_async *n, uint32_t rank) {
    const sl_members *m = n->view != NULL ? &n->view->members : NULL;
    return m == NULL ? rank < n->state.nodes : sl_peer_index(m->ranks, m->count, rank) < m->count;
}

bool sl_async_is_broken(const sl_async *n, uint32_t peer) {
    if (n->view == NULL)
        return false;
    const uint32_t own = n->settings.rank;
    const sl_view broken = {.broken = n->view->broken, .broken_count = n->view->broken_count};
    return sl_view_is_broken(&broken, own < peer ? own : peer, own < peer ? peer : own);
}

void sl_async_note(sl_async *n, const sl_act *act) {
    assert(n->act_count < SL_ASYNC_ACTS_MAX);
    n->acts[n->act_count++] = *act;
}

uint32_t sl_async_slot(const sl_async *n, uint32_t peer) {
    return sl_peer_index(n->peers, n->inbox.peer_count, peer);
}

int sl_async_open_kept(sl_async *n, uint32_t parts, const sl_codec *codec, sl_error *error) {
    sl_kept *kept = &n->kept;
    const uint32_t peers = n->inbox.peer_count;
    free(kept->count);
    free(kept->memory);
    kept->room = parts;
    kept->stride = sl_round_up(sl_codec_part_bytes_max(codec), SL_VEC_ALIGNMENT);
    kept->count = calloc(peers + 1u, sizeof *kept->count);
    kept->memory = aligned_alloc(SL_VEC_ALIGNMENT, ((size_t)peers * kept->room + 1) * kept->stride);
    sl_inbox_end(&n->inbox);
    return kept->count != NULL && kept->memory != NULL &&
                   sl_inbox_open(&n->inbox, peers, kept->room, 0) == 0
               ? 0
               : sl_fail(error, SL_ENOMEM, "node %u: out of memory for %u parts of each neighbour",
                         n->settings.rank, parts);
}

/* A queue is first in, first out: so is its memory. */
static void copy_kept(sl_async *n, uint32_t slot, sl_arrival *arrival) {
    sl_kept *kept = &n->kept;
    uint8_t *copy = kept->memory +
                    ((size_t)slot * kept->room + kept->count[slot]++ % kept->room) * kept->stride;
    memcpy(copy, arrival->payload.data, arrival->payload.bytes);
    arrival->payload.data = copy;
    sl_inbox_refuse(&n->inbox, arrival->token);
    arrival->token = NULL;
}

int sl_async_keep(sl_async *n, uint32_t slot, const sl_event *e, sl_error *error) {
    sl_queue *queue = &n->inbox.queues[slot];
    sl_arrival arrival = {.exchange = e->exchange,
                          .step = e->step,
                          .part = e->part,
                          .scalar = e->scalar,
                          .payload = e->payload,
                          .silent = e->silent,
                          .token = e->token};
    if (sl_inbox_is_full(&n->inbox, queue))
        return sl_fail_edge(error, SL_EPROTO, e->peer, n->settings.rank, n->state.round,
                            "more than the credit came");
    if (n->kept.memory != NULL)
        copy_kept(n, slot, &arrival);
    return sl_inbox_put(&n->inbox, queue, &arrival) == 0
               ? 0
               : sl_fail(error, SL_ENOMEM, "node %u: out of memory for what came",
                         n->settings.rank);
}

int sl_async_combine(sl_async *n, float self_weight, uint32_t count, uint32_t part,
                     sl_error *error) {
    const sl_mix mix = {self_weight, n->room, count};
    size_t from, elements;
    sl_codec_part_range(n->codec, part, &from, &elements);
    n->algorithm->stages[0].combine(&n->state, &mix, from, elements);
    return n->state.is_finite
               ? 0
               : sl_fail_node(error, SL_EDIVERGED, n->settings.rank, n->state.round,
                              "a neighbour's model, or the own one, is not finite: training "
                              "diverged; lower optimizer.learning_rate");
}

void sl_async_count_sent(sl_async *n, uint64_t bytes, bool begins, bool silent,
                         uint32_t receivers) {
    n->statistics.payload_bytes_sent += bytes * receivers;
    n->statistics.frames_sent += receivers;
    if (begins)
        *(silent ? &n->statistics.messages_silent : &n->statistics.messages_sent) += receivers;
}
