/* serving.c - see serving.h. */
#include "async/serving.h"

#include <stdlib.h>

#include "algorithm/centralized/served.h"
#include "async/owners.h"
#include "starling/steps.h"

bool sl_serving_in_turn(const sl_async *n) {
    return n->algorithm->async->in_turn;
}

bool sl_serving_together(const sl_async *n) {
    return n->algorithm->async->together != NULL;
}

bool sl_serving_keeps(const sl_async *n) {
    return sl_serving_in_turn(n) || sl_serving_together(n);
}

int sl_serving_open(sl_async *n, sl_error *error) {
    sl_service *service = &n->served;
    service->clocks = calloc(n->ranks, sizeof *service->clocks);
    service->numbers = calloc(n->ranks, sizeof *service->numbers);
    service->last_ns = calloc(3 * (size_t)n->ranks, sizeof *service->last_ns);
    service->waits = calloc(n->ranks, sizeof *service->waits);
    service->answers = calloc(n->ranks, sizeof *service->answers);
    service->batch.early = calloc(n->ranks, sizeof *service->batch.early);
    service->batch.chosen = calloc(n->ranks, sizeof *service->batch.chosen);
    if (n->state.extra[SL_SERVED] == NULL)
        n->state.extra[SL_SERVED] = n->settings.vec->allocate(n->settings.dimension);
    if (service->clocks == NULL || service->numbers == NULL || service->last_ns == NULL ||
        service->waits == NULL || service->answers == NULL || service->batch.early == NULL ||
        service->batch.chosen == NULL || n->state.extra[SL_SERVED] == NULL)
        return sl_fail(error, SL_ENOMEM, "node %u: out of memory for the model that it serves",
                       n->settings.rank);
    service->interval_ns = service->last_ns + n->ranks;
    service->extra = service->interval_ns + n->ranks;
    for (uint32_t i = n->state.nodes; i < n->ranks; i++)
        service->clocks[i] = SL_TAKES_NO_PART;
    return 0;
}

sl_clocks sl_serving_clocks(const sl_async *n) {
    const sl_service *service = &n->served;
    return (sl_clocks){n->ranks, service->clocks, service->last_ns, service->interval_ns,
                       service->extra};
}

void sl_serving_note(sl_async *n, sl_act_kind kind, uint32_t peer, uint64_t number, uint32_t from,
                     uint32_t to) {
    sl_async_note(n,
                  &(sl_act){.kind = kind, .peer = peer, .number = number, .from = from, .to = to});
}

void sl_serving_count(sl_async *n, uint32_t rank, uint64_t number) {
    const sl_async_rule *rule = n->algorithm->async;
    sl_service *service = &n->served;
    if (service->clocks[rank]++ > 0)
        service->interval_ns[rank] = n->now_ns - service->last_ns[rank];
    service->last_ns[rank] = n->now_ns;
    service->numbers[rank] = number;
    service->waits[rank] = true;
    const sl_clocks clocks = sl_serving_clocks(n);
    if (rule->extra != NULL && service->extra[rank] == 0)
        service->extra[rank] = n->repeats ? 1 : rule->extra(&n->state, &clocks, rank);
}

int sl_serving_take(sl_async *n, uint32_t rank, const sl_arrival *a, sl_error *error) {
    const sl_sgd sgd = sl_optimizer_at(n->settings.optimizer, a->exchange, n->settings.rounds);
    const float rate = n->state.config->local_steps > 1 ? 1 : sgd.learning_rate;
    const uint32_t nodes = n->state.nodes,
                   of = sl_serving_together(n)
                            ? n->algorithm->async->together(n->state.config, nodes)
                            : nodes;
    const sl_part one = sl_owner_part(n, n->own, rank, a, -rate / (float)of);
    const sl_mix mix = {1, &one, 1};
    size_t from, count;
    sl_codec_part_range(n->own->codec, a->part, &from, &count);
    n->algorithm->stages[0].combine(&n->state, &mix, n->own->range.from + from, count);
    if (a->part + 1 == n->own->parts)
        sl_serving_count(n, rank, a->exchange);
    return n->state.is_finite
               ? 0
               : sl_fail_node(error, SL_EDIVERGED, n->settings.rank, n->state.round,
                              "a gradient makes the server's model infinite: training diverged; "
                              "lower optimizer.learning_rate");
}

int sl_serving_take_own(sl_async *n, sl_error *error) {
    int result = 0;
    for (uint32_t part = 0; part < n->own->parts && result == 0; part++) {
        const sl_arrival a = sl_owner_own_part(n, n->own, part);
        result = sl_serving_take(n, n->settings.rank, &a, error);
    }
    n->served.holds_own = false;
    sl_serving_note(n, SL_ACT_COMMIT, n->settings.rank, n->out.number, 0, n->own->parts);
    return result;
}

bool sl_serving_has(const sl_async *n, uint32_t rank) {
    const uint32_t slot = sl_async_slot(n, rank);
    return rank == n->settings.rank
               ? n->served.holds_own
               : slot < n->inbox.peer_count && n->inbox.queues[slot].count == n->own->parts;
}

int sl_serving_apply(sl_async *n, uint32_t rank, sl_error *error) {
    int result = 0;
    if (rank == n->settings.rank)
        return sl_serving_take_own(n, error);
    sl_queue *queue = &n->inbox.queues[sl_async_slot(n, rank)];
    for (uint32_t part = 0; part < n->own->parts && result == 0; part++) {
        const sl_arrival *a = sl_queue_first(queue);
        result = sl_serving_take(n, rank, a, error);
        sl_inbox_release(&n->inbox, a->token);
        sl_queue_drop_first(queue);
    }
    sl_serving_note(n, SL_ACT_COMMIT, rank, n->served.numbers[rank], 0, n->own->parts);
    return result;
}
