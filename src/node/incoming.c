/* incoming.c - from a frame that came to the sum that it is part of; see state.h.
 *
 * Each in-neighbour has a queue of parts that came and are not yet combined; a connection keeps
 * order, so the head of every queue is the part that is needed next, or belongs to a later step.
 * Parts are combined in order 0, 1, ... and within a part in neighbour order, whatever the order of
 * arrival: the sums are the same bits in every run. No queue holds a part of a past step.
 */
#include <inttypes.h>

#include "node/state.h"

/* ---- taking in ---- */

/* The step of that number in any exchange; false: there is none. */
static bool find_step(const sl_node *n, uint64_t exchange, uint32_t number, sl_exchange_step *out,
                      bool *plain) {
    for (size_t s = 0; s < n->algorithm->stage_count; s++) {
        const sl_stage *stage = &n->algorithm->stages[s];
        uint32_t steps = sl_route_steps(&n->route, stage->gather);
        if (number < steps) {
            *out = sl_route_step(&n->route, stage->gather, exchange, number);
            *plain = stage->plain;
            return true;
        }
        number -= steps;
    }
    return false;
}

static sl_range range_from(const sl_node *n, const sl_exchange_step *step, uint32_t peer) {
    return step->separate ? sl_route_shard(&n->route, peer) : step->coming;
}

static const sl_codec_set *codec_from(const sl_node *n, const sl_exchange_step *step, bool plain,
                                      uint32_t peer) {
    return sl_codecs_find(&n->codecs, range_from(n, step, peer).count, plain);
}

/* What a frame's message is encoded with; NULL: this peer sends nothing such. */
static const sl_codec_set *codec_of(const sl_node *n, const sl_event *e) {
    sl_exchange_step step;
    bool plain;
    if (!find_step(n, e->exchange, e->step, &step, &plain))
        return NULL;
    for (uint32_t i = 0; i < step.in.count; i++)
        if (step.in.peers[i] == e->peer)
            return codec_from(n, &step, plain, e->peer);
    return NULL;
}

static bool is_after(const sl_event *e, uint64_t exchange, uint32_t step, uint32_t part) {
    if (e->exchange != exchange)
        return e->exchange > exchange;
    return e->step != step ? e->step > step : e->part >= part;
}

/* A part of the step under way that is done already. */
static bool is_combined(const sl_node *n, const sl_event *e) {
    if (e->exchange != n->state.exchange || e->step != n->number)
        return false;
    for (uint32_t i = 0; i < n->step.in.count; i++)
        if (n->step.in.peers[i] == e->peer)
            return e->part < n->combined[n->step.separate ? i : 0];
    return false;
}

/* Late, duplicate, beyond the window or the credit: not wanted. */
static bool is_wanted(const sl_node *n, const sl_queue *q, const sl_event *e) {
    uint64_t next = n->state.exchange +
                    !n->exchanging; /* between exchanges the next one may have begun elsewhere */
    if (e->exchange < next || e->exchange >= next + sl_route_window(&n->route) ||
        sl_queue_is_full(&n->inbox, q))
        return false;
    if (n->exchanging && (!is_after(e, next, n->number, 0) || is_combined(n, e)))
        return false;
    const sl_arrival *last = sl_queue_last(q);
    return last == NULL || is_after(e, last->exchange, last->step, last->part + 1);
}

static int lack_memory(const sl_node *n, sl_error *error) {
    return sl_fail(error, SL_ENOMEM, "node %u: out of memory for what came", n->settings.rank);
}

static int put(sl_node *n, uint32_t slot, const sl_event *e, sl_error *error) {
    const sl_codec_set *set = codec_of(n, e);
    sl_message message = sl_node_message(n, e->peer, e->exchange, e->step);
    if (set == NULL || sl_decoder_check(set->decoders[slot], &message, e->part, e->payload) != 0)
        return sl_fail_edge(error, SL_EPROTO, e->peer, n->settings.rank, n->state.round,
                            "part %u of step %u with %zu bytes is no %s payload", e->part, e->step,
                            e->payload.bytes,
                            sl_compressor_name(n->settings.plan->config.compressor.kind));
    sl_arrival arrival = {e->exchange, e->step, e->part, e->scalar, e->payload, e->token};
    return sl_queue_put(&n->inbox.queues[slot], &arrival) != 0 ? lack_memory(n, error) : 0;
}

int sl_incoming_receive(sl_node *n, const sl_event *e, sl_error *error) {
    uint32_t slot = sl_inbox_find(&n->inbox, e->peer);
    int result = 0;
    if (slot == n->inbox.peer_count || !is_wanted(n, &n->inbox.queues[slot], e))
        n->dropped++;
    else if ((result = put(n, slot, e, error)) == 0)
        return 0;
    sl_inbox_release(&n->inbox, e->token);
    return result;
}

/* ---- combining ---- */

static void measure_part(sl_node *n, sl_range range, uint32_t count) {
    const float *own = sl_node_stage(n)->vector(&n->state) + range.from;
    for (uint32_t i = 0; i < count; i++)
        n->distance_squared +=
            n->step.in.weights[i] *
            n->settings.vec->distance_squared(n->parts[i].payload.data, own, range.count);
}

/* 1: the part is there from that in-neighbour; 0: not yet; negative: it has skipped it. */
static int has_come(const sl_node *n, uint32_t i, uint32_t part, sl_error *error) {
    uint32_t peer = n->step.in.peers[i];
    const sl_arrival *a = sl_queue_first(&n->inbox.queues[sl_inbox_find(&n->inbox, peer)]);
    if (a == NULL)
        return 0;
    if (a->exchange == n->state.exchange && a->step == n->number && a->part == part)
        return 1;
    return sl_fail_edge(error, SL_EPROTO, peer, n->settings.rank, n->state.round,
                        "part %u of step %u never came, part %u of step %u of exchange %" PRIu64
                        " did",
                        part, n->number, a->part, a->step, a->exchange);
}

static void take_part(sl_node *n, uint32_t i, const sl_codec_set *set, sl_range message,
                      sl_part *out) {
    uint32_t peer = n->step.in.peers[i], slot = sl_inbox_find(&n->inbox, peer);
    const sl_arrival *a = sl_queue_first(&n->inbox.queues[slot]);
    *out = (sl_part){.decoder = set->decoders[slot],
                     .message = sl_node_message(n, peer, a->exchange, a->step),
                     .index = a->part,
                     .weight = (float)n->step.in.weights[i],
                     .scalar = a->scalar,
                     .base = message.from};
    out->payload =
        n->settings.vec->on_host ? a->payload : sl_staging_bring(&n->staging, a->payload, a->token);
    n->statistics.payload_bytes_received += a->payload.bytes;
    n->statistics.frames_received++;
}

/* The part's buffer may go, if it was not lent to the staging. */
static int drop_part(sl_node *n, uint32_t i) {
    sl_queue *queue = &n->inbox.queues[sl_inbox_find(&n->inbox, n->step.in.peers[i])];
    int result =
        n->settings.vec->on_host ? sl_inbox_release(&n->inbox, sl_queue_first(queue)->token) : 0;
    sl_queue_drop_first(queue);
    return result;
}

int sl_incoming_collect(sl_node *n, sl_error *error) {
    for (void *token; (token = sl_staging_token(&n->staging)) != NULL;)
        if (sl_inbox_release(&n->inbox, token) != 0)
            return lack_memory(n, error);
    return 0;
}

/* The same part of in-neighbours [first, first + count). */
static int combine(sl_node *n, uint32_t first, uint32_t count, const sl_codec_set *set,
                   sl_range message, uint32_t part) {
    for (uint32_t i = 0; i < count; i++)
        take_part(n, first + i, set, message, &n->parts[i]);
    sl_staging_follow(&n->staging);
    sl_range range = sl_node_part_range(set, message, part);
    if (n->measure)
        measure_part(n, range, count);
    sl_mix mix = {n->step.self_weight, n->parts, count};
    sl_node_stage(n)->combine(&n->state, &mix, range.from, range.count);
    sl_staging_leave(&n->staging);
    int result = 0;
    for (uint32_t i = 0; i < count && result == 0; i++)
        result = drop_part(n, first + i);
    return result;
}

/* Where a node combines what it also sends, its own part has to be ready, or to have left, first.
 */
static uint32_t parts_free(const sl_node *n) {
    bool same = n->step.published.count > 0 && n->step.published.from == n->step.coming.from;
    if (!same)
        return UINT32_MAX;
    return sl_node_stage(n)->in_place ? n->sent : n->encoded;
}

static int combine_jointly(sl_node *n, sl_error *error) {
    uint32_t in = n->step.in.count,
             parts = n->incoming != NULL ? sl_codec_parts(n->incoming->codec) : 0;
    for (; n->combined[0] < parts; n->combined[0]++) {
        int landed = sl_incoming_collect(n, error);
        if (landed != 0 || !sl_staging_has_room(&n->staging) || parts_free(n) <= n->combined[0])
            return landed;
        for (uint32_t i = 0; i < in; i++) {
            int come = has_come(n, i, n->combined[0], error);
            if (come <= 0)
                return come;
        }
        if (combine(n, 0, in, n->incoming, n->step.coming, n->combined[0]) != 0)
            return lack_memory(n, error);
    }
    return 0;
}

static uint32_t parts_from(const sl_node *n, uint32_t i) {
    const sl_codec_set *set = codec_from(n, &n->step, sl_node_stage(n)->plain, n->step.in.peers[i]);
    return set != NULL ? sl_codec_parts(set->codec) : 0;
}

static int combine_separately(sl_node *n, sl_error *error) {
    for (uint32_t i = 0; i < n->step.in.count; i++) {
        uint32_t peer = n->step.in.peers[i], parts = parts_from(n, i);
        for (; n->combined[i] < parts; n->combined[i]++) {
            int come = has_come(n, i, n->combined[i], error);
            if (come < 0)
                return come;
            if (come == 0)
                break;
            int landed = sl_incoming_collect(n, error);
            if (landed != 0 || !sl_staging_has_room(&n->staging))
                return landed;
            if (combine(n, i, 1, codec_from(n, &n->step, sl_node_stage(n)->plain, peer),
                        range_from(n, &n->step, peer), n->combined[i]) != 0)
                return lack_memory(n, error);
        }
    }
    return 0;
}

int sl_incoming_combine(sl_node *n, sl_error *error) {
    return n->step.separate ? combine_separately(n, error) : combine_jointly(n, error);
}

bool sl_incoming_is_complete(const sl_node *n) {
    if (!n->step.separate)
        return n->incoming == NULL || n->combined[0] == sl_codec_parts(n->incoming->codec);
    for (uint32_t i = 0; i < n->step.in.count; i++)
        if (n->combined[i] < parts_from(n, i))
            return false;
    return true;
}

int sl_incoming_name_missing(const sl_node *n, sl_error *error) {
    for (uint32_t i = 0; n->exchanging && i < n->step.in.count; i++) {
        uint32_t peer = n->step.in.peers[i], done = n->combined[n->step.separate ? i : 0],
                 parts = parts_from(n, i);
        if (done < parts &&
            sl_queue_first(&n->inbox.queues[sl_inbox_find(&n->inbox, peer)]) == NULL)
            return sl_fail_edge(error, SL_EPEER, peer, n->settings.rank, n->state.round,
                                "part %u of %u did not come in time", done, parts);
    }
    return 0;
}
