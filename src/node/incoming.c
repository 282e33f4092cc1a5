/* incoming.c - from a frame that came to the sum that it is part of; see incoming.h.
 *
 * Each in-neighbour has a queue of parts that came and are not yet combined. A connection keeps
 * order, so the head of a queue is the part that is needed next, or belongs to a later step. Parts
 * are combined in order 0, 1, ..., and within a part in neighbour order, whatever the order of
 * arrival: the sums are the same bits in every run. No queue holds a part of a past step.
 */
#include "node/incoming.h"

#include <inttypes.h>
#include <math.h>

#include "algorithm/mix.h"
#include "vec/finite.h"

static const uint32_t OWN = UINT32_MAX; /* in place of a neighbour */

/* ---- the step ---- */

static void add_group(sl_node *n, uint32_t first, uint32_t count, sl_range range) {
    const sl_codec_set *set =
        sl_codecs_find(&n->view.codecs, range.count, &n->step.what, n->state.exchange);
    n->room.groups[n->step.group_count++] = (sl_group){
        .first = first,
        .count = count,
        .range = range,
        .set = set,
        .parts = set != NULL ? sl_codec_parts(set->codec) : 0,
        .batch = set != NULL && sl_codec_joins(set->codec, count + 1) ? n->view.batch : 1,
    };
    for (uint32_t i = first; i < first + count; i++) {
        const uint32_t peer = n->step.what.in.peers[i], slot = sl_route_slot(&n->view.route, peer);
        n->room.incoming[i] = (sl_incoming){.peer = peer,
                                            .weight = (float)n->step.what.in.weights[i],
                                            .queue = &n->inbox.queues[slot],
                                            .decoder = set != NULL ? set->decoders[slot] : NULL};
    }
}

void sl_incoming_begin(sl_node *n) {
    const sl_exchange_step *step = &n->step.what;
    if (step->separate)
        for (uint32_t i = 0; i < step->in.count; i++)
            add_group(n, i, 1, sl_route_range(&n->view.route, step, step->in.peers[i]));
    else if (step->in.count > 0 || step->along_edges || step->stage->ranked)
        add_group(n, 0, step->in.count, step->coming);
}

/* ---- taking in ---- */

static bool is_after(const sl_event *e, uint64_t exchange, uint32_t step, uint32_t part) {
    if (e->exchange != exchange)
        return e->exchange > exchange;
    return e->step != step ? e->step > step : e->part >= part;
}

/* Has this part of the step under way been combined? */
static bool is_combined(const sl_node *n, const sl_event *e) {
    const sl_row *in = &n->step.what.in;
    if (e->exchange != n->state.exchange || e->step != n->step.number)
        return false;
    uint32_t i = sl_peer_index(in->peers, in->count, e->peer);
    return i < in->count && e->part < n->room.groups[n->step.what.separate ? i : 0].combined;
}

/* Late, duplicate, beyond the window or the credit: not wanted. Whose way back to a neighbour led
 * over a lost one may go on ahead of it, as far as its credit leads. */
static bool is_wanted(const sl_node *n, const sl_queue *q, const sl_event *e) {
    /* Between exchanges the next one may have begun elsewhere. */
    uint64_t next = n->state.exchange + !n->round.exchanging;
    const bool ahead = !n->settings.turns && e->exchange >= next + sl_route_window(&n->view.route);
    if (e->exchange < next || ahead || sl_inbox_is_full(&n->inbox, q))
        return false;
    if (n->round.exchanging && (!is_after(e, next, n->step.number, 0) || is_combined(n, e)))
        return false;
    const sl_arrival *last = sl_queue_at(q, q->count - 1);
    return last == NULL || is_after(e, last->exchange, last->step,
                                    last->silent ? UINT32_MAX : last->part + last->parts);
}

/* The elements that so many parts from this one on cover, which lie in a row. */
static sl_range range_of(const sl_codec_set *set, size_t base, uint32_t first, uint32_t count) {
    const sl_range range = sl_node_part_range(set, base, first),
                   last = sl_node_part_range(set, base, first + count - 1);
    return (sl_range){range.from, last.from + last.count - range.from};
}

/* Of so many bytes of a vector's own memory. 0: they are no whole parts of it. */
static uint32_t count_in_row(const sl_codec_set *set, uint32_t first, size_t bytes) {
    if (!sl_codec_borrows(set->codec) || set->order != NULL)
        return 0;
    const size_t each = range_of(set, 0, first, 1).count * sizeof(float),
                 count = (bytes + each - 1) / each;
    return count > 0 && count <= sl_codec_parts(set->codec) - first &&
                   range_of(set, 0, first, (uint32_t)count).count * sizeof(float) == bytes
               ? (uint32_t)count
               : 0;
}

/* How many parts are this, of a message that this peer sends, and that can be decoded? 0: none. */
static uint32_t count_right(const sl_node *n, uint32_t slot, const sl_event *e) {
    const sl_message message = sl_node_message(n, e->peer, e->exchange, e->step);
    sl_exchange_step step;
    if (!sl_route_step_ahead(&n->view.route, e->exchange, e->step, &step) ||
        sl_peer_index(step.in.peers, step.in.count, e->peer) == step.in.count)
        return 0;
    if (e->silent)
        return step.stage->speaks != NULL && e->part == 0 && e->payload.bytes == 0;
    const sl_codec_set *set = sl_codecs_find(
        &n->view.codecs, sl_route_range(&n->view.route, &step, e->peer).count, &step, e->exchange);
    if (set == NULL || e->part >= sl_codec_parts(set->codec))
        return 0;
    return sl_decoder_check(set->decoders[slot], &message, sl_node_place(set, e->part),
                            e->payload) == 0
               ? 1
               : count_in_row(set, e->part, e->payload.bytes);
}

static int put(sl_node *n, uint32_t slot, const sl_event *e, sl_error *error) {
    const uint32_t parts = count_right(n, slot, e);
    if (parts == 0)
        return sl_fail_edge(error, SL_EPROTO, e->peer, n->settings.rank, n->state.round,
                            "part %u of step %u with %zu bytes%s is no %s payload", e->part,
                            e->step, e->payload.bytes, e->silent ? ", marked as silent," : "",
                            sl_compressor_name(n->settings.plan->config.compressor.kind));
    sl_arrival arrival = {e->exchange, e->step,      e->part, e->scalar, e->payload,
                          e->silent,   e->on_device, parts,   e->token};
    if (sl_inbox_put(&n->inbox, &n->inbox.queues[slot], &arrival) != 0)
        return sl_fail(error, SL_ENOMEM, "node %u: out of memory for what came from node %u",
                       n->settings.rank, e->peer);
    return 0;
}

int sl_incoming_receive(sl_node *n, const sl_event *e, sl_error *error) {
    uint32_t slot = sl_route_slot(&n->view.route, e->peer);
    int result = 0;
    if (slot == n->inbox.peer_count || sl_fold_lacks(&n->view.fold, slot) || n->view.is_cut ||
        !is_wanted(n, &n->inbox.queues[slot], e))
        n->dropped++;
    else if ((result = put(n, slot, e, error)) == 0)
        return 0;
    sl_inbox_refuse(&n->inbox, e->token);
    return result;
}

/* ---- combining ---- */

static bool is_of_step(const sl_node *n, const sl_arrival *a) {
    return a->exchange == n->state.exchange && a->step == n->step.number;
}

/* Has it said that it has nothing to say? */
static bool is_silent(const sl_node *n, const sl_incoming *from) {
    const sl_arrival *a = sl_queue_first(from->queue);
    return a != NULL && a->silent && is_of_step(n, a);
}

/* How many of the neighbour's parts can be combined at once: those of a reference to memory of a
 * device, or a batch of others, of which some may not have come. */
static uint32_t span_of(const sl_group *g, const sl_incoming *from) {
    const sl_arrival *a = sl_queue_first(from->queue);
    if (a != NULL && a->on_device)
        return g->batch > 1 ? a->parts : 1;
    uint32_t i = 0;
    while (i < g->batch && (a = sl_queue_at(from->queue, i)) != NULL && !a->on_device)
        i++;
    return a == NULL ? g->batch : i;
}

/* How many parts the group combines next. The own ones may come from the host. */
static uint32_t next_batch(const sl_node *n, const sl_group *g) {
    uint32_t parts = g->parts - g->combined;
    if (parts > g->batch && (!n->step.is_shared || g->batch == 1))
        parts = g->batch;
    for (uint32_t i = g->first; i < g->first + g->count && parts > 1; i++) {
        const uint32_t span = span_of(g, &n->room.incoming[i]);
        if (span < parts && !is_silent(n, &n->room.incoming[i]))
            parts = span;
    }
    return parts;
}

/* Of the step, parts that are not combined. */
static uint32_t count_come(const sl_node *n, const sl_incoming *from) {
    return sl_queue_of_step(from->queue, n->state.exchange, n->step.number);
}

/* 1: these parts have come; 0: not yet; SL_EPROTO: the neighbour skipped one. */
static int has_come(const sl_node *n, const sl_incoming *from, uint32_t first, uint32_t count,
                    sl_error *error) {
    const uint32_t behind = first + count;
    const sl_arrival *a = sl_queue_first(from->queue);
    for (uint32_t i = 1; a != NULL && is_of_step(n, a) && (a->part == first || a->silent); i++) {
        first += a->parts;
        if (a->silent || first >= behind)
            return 1;
        a = sl_queue_at(from->queue, i);
    }
    if (a == NULL)
        return 0;
    return sl_fail_edge(error, SL_EPROTO, from->peer, n->settings.rank, n->state.round,
                        "part %u of step %u never came, part %u of step %u of exchange %" PRIu64
                        " did",
                        first, n->step.number, a->part, a->step, a->exchange);
}

/* The same for all in-neighbours of the group. */
static int have_come(const sl_node *n, const sl_group *g, uint32_t count, sl_error *error) {
    int come = 1;
    for (uint32_t i = g->first; i < g->first + g->count && come > 0; i++)
        come = has_come(n, &n->room.incoming[i], g->combined, count, error);
    return come;
}

/* To where it is combined, behind those of the same message. */
static void add_to(sl_node *n, const sl_group *g, sl_part *part, sl_payload payload, uint32_t parts,
                   bool on_device, void *token) {
    const size_t behind = part->count > 0 ? sl_codec_stride(g->set->codec) : 0;
    uint32_t *sizes = n->room.sizes + (part - n->room.parts) * n->room.most;
    part->sizes = sizes;
    for (uint32_t i = 0, first = g->combined + part->count; i < parts; i++)
        sizes[part->count++] =
            (uint32_t)(parts > 1 ? range_of(g->set, 0, first + i, 1).count * sizeof(float)
                                 : payload.bytes);
    if (!n->settings.vec->on_host)
        payload = on_device || n->settings.direct
                      ? sl_staging_keep(&n->view.staging, payload, token)
                      : sl_staging_bring(&n->view.staging, payload, token, behind);
    if (behind == 0)
        part->payload = payload;
}

/* Of what came, the first parts. */
static sl_payload first_of(const sl_group *g, const sl_arrival *a, uint32_t parts) {
    const size_t bytes = parts < a->parts
                             ? range_of(g->set, 0, a->part, parts).count * sizeof(float)
                             : a->payload.bytes;
    return (sl_payload){a->payload.data, bytes};
}

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static void put_parts(sl_node *n, const sl_group *g, sl_part *out, uint32_t neighbour,
                      uint32_t count) {
    const sl_incoming *from = &n->room.incoming[neighbour];
    const sl_arrival *a = sl_queue_first(from->queue);
    *out = (sl_part){.decoder = from->decoder,
                     .message = sl_node_message(n, from->peer, a->exchange, a->step),
                     .index = sl_node_place(g->set, a->part),
                     .neighbour = neighbour,
                     .weight = from->weight,
                     .scalar = a->scalar,
                     .base = g->range.from};
    for (uint32_t i = 0; out->count < count; i++) {
        a = sl_queue_at(from->queue, i);
        const uint32_t parts = smaller(a->parts, count - out->count);
        const sl_payload payload = first_of(g, a, parts);
        n->round.statistics.payload_bytes_received += payload.bytes;
        n->round.statistics.frames_received += parts;
        add_to(n, g, out, payload, parts, a->on_device, parts == a->parts ? a->token : NULL);
    }
}

/* The own parts, from where they leave. */
static void put_own(sl_node *n, const sl_group *g, sl_part *out, float weight, uint32_t count) {
    *out = (sl_part){.decoder = n->step.outgoing->own,
                     .message =
                         sl_node_message(n, n->settings.rank, n->state.exchange, n->step.number),
                     .index = sl_node_place(g->set, g->combined),
                     .neighbour = OWN,
                     .weight = weight,
                     .base = g->range.from};
    for (uint32_t i = 0; i < count; i++)
        add_to(n, g, out, n->room.own[g->combined + i], 1, n->step.is_shared, NULL);
}

/* A silent message stays until all parts of the others are combined. */
static void drop_parts(sl_node *n, const sl_group *g, const sl_incoming *from, uint32_t count) {
    const bool silent = is_silent(n, from);
    if (silent && g->combined + count < g->parts)
        return;
    n->round.statistics.frames_received += silent;
    for (uint32_t left = silent ? 1 : count, parts; left > 0; left -= parts) {
        const sl_arrival *a = sl_queue_first(from->queue);
        parts = smaller(a->parts, left);
        if (parts < a->parts) {
            sl_queue_shorten_first(from->queue, parts, first_of(g, a, parts).bytes);
            continue;
        }
        if (n->settings.vec->on_host || silent) /* else the staging has its token */
            sl_inbox_release(&n->inbox, a->token);
        sl_queue_drop_first(from->queue);
    }
}

void sl_incoming_collect(sl_node *n) {
    for (void *token; (token = sl_staging_token(&n->view.staging)) != NULL;)
        sl_inbox_release(&n->inbox, token);
}

/* Was the own part weighed as it was encoded? Then it is combined in the place of others that are
 * cut off. */
static bool weighs_own(const sl_node *n) {
    return n->step.what.stage->own != NULL && !n->algorithm->keeps_replicas &&
           !n->step.what.stage->ranked;
}

/* Collects the group's next parts, so many of each; returns of how many. */
static uint32_t collect_parts(sl_node *n, const sl_group *g, uint32_t parts) {
    uint32_t count = 0;
    bool awaits_own = n->step.what.stage->ranked && !n->step.message.silent;
    for (uint32_t i = g->first; i < g->first + g->count; i++) {
        if (awaits_own && n->room.incoming[i].peer > n->settings.rank) {
            put_own(n, g, &n->room.parts[count++], n->step.what.self_weight, parts);
            awaits_own = false;
        }
        if (!is_silent(n, &n->room.incoming[i]))
            put_parts(n, g, &n->room.parts[count++], i, parts);
    }
    if (awaits_own)
        put_own(n, g, &n->room.parts[count++], n->step.what.self_weight, parts);
    if (n->step.given != 0 && weighs_own(n))
        put_own(n, g, &n->room.parts[count++], n->step.given, parts);
    return count;
}

static void measure_parts(sl_node *n, uint32_t count, sl_range range, size_t elements) {
    const float *own = n->step.what.stage->vector(&n->state) + range.from;
    for (uint32_t i = 0; i < count; i++) {
        const sl_part *p = &n->room.parts[i];
        sl_measure_add(&n->view.measured, p->neighbour, n->step.what.in.weights[p->neighbour],
                       n->round.measured + p->index, p->payload.data, own, range.count, elements);
    }
}

/* Whose numbers made a sum of plain vectors infinite or NaN? */
static int name_not_finite(sl_node *n, uint32_t count, sl_error *error) {
    for (uint32_t i = 0; i < count; i++) {
        const sl_payload *payload = &n->room.parts[i].payload;
        if (n->room.parts[i].neighbour == OWN)
            continue;
        const uint32_t peer = n->room.incoming[n->room.parts[i].neighbour].peer;
        if (sl_vec_is_finite(payload->data, payload->bytes / sizeof(float)))
            continue;
        n->life.spoiled = n->settings.turns; /* what it was mixed into is gone */
        return sl_fail_edge(error, SL_EDIVERGED, peer, n->settings.rank, n->state.round,
                            "part %u of the neighbour's message holds a number that is not "
                            "finite: node %u diverged first, or is faulty",
                            n->room.parts[i].index, peer);
    }
    return sl_node_spoil(n, "the own step or the mixing made a number that is not finite", error);
}

/* Of the neighbour's parts none is mixed. */
static int refuse_norm(sl_node *n, const sl_part *p, double norm, sl_error *error) {
    const sl_incoming *from = &n->room.incoming[p->neighbour];
    const uint32_t part = p->index;
    sl_inbox_empty(&n->inbox, from->queue);
    return sl_fail_edge(error, SL_EPROTO, from->peer, n->settings.rank, n->state.round,
                        "part %u of the neighbour's message has a norm of %g, over %g times the "
                        "own part's (transport.norm_limit)",
                        part, norm, n->step.norm_limit);
}

static int check_norms(sl_node *n, uint32_t count, sl_range range, sl_error *error) {
    const sl_vec_ops *vec = n->settings.vec;
    if (n->step.norm_limit <= 0)
        return 0;
    const float *own = n->step.what.stage->vector(&n->state) + range.from;
    const double most = n->step.norm_limit * sqrt(vec->norm2_squared(own, range.count));
    for (uint32_t i = 0; i < count && most > 0; i++) {
        const sl_part *p = &n->room.parts[i];
        const double norm =
            sqrt(vec->norm2_squared(p->payload.data, p->payload.bytes / sizeof(float)));
        if (p->neighbour != OWN && !(norm <= most))
            return refuse_norm(n, p, norm, error);
    }
    return 0;
}

/* The next parts of the group: all of them have come. */
static int combine_parts(sl_node *n, sl_group *g, uint32_t parts, sl_error *error) {
    const uint32_t count = collect_parts(n, g, parts);
    const sl_range range = range_of(g->set, g->range.from, g->combined, parts);
    int result = check_norms(n, count, range, error);
    if (result != 0)
        return result;
    sl_staging_follow(&n->view.staging);
    if (n->round.measure)
        measure_parts(n, count, range, range_of(g->set, 0, g->combined, 1).count);
    sl_mix mix = {n->step.what.self_weight, n->room.parts, count};
    n->step.what.stage->combine(&n->state, &mix, range.from, range.count);
    sl_staging_leave(&n->view.staging);
    result = n->state.is_finite ? 0 : name_not_finite(n, count, error);
    for (uint32_t i = g->first; i < g->first + g->count; i++)
        drop_parts(n, g, &n->room.incoming[i], parts);
    g->combined += parts;
    return result;
}

/* How many parts of the group may be combined: where a node combines what it also sends, its own
 * parts must have been encoded, or have left. */
static uint32_t parts_free(const sl_node *n, const sl_group *g) {
    const sl_range *published = &n->step.what.published;
    if (published->count == 0 || published->from != g->range.from || n->step.message.silent)
        return UINT32_MAX;
    return n->step.what.in_place && n->state.sum == NULL ? n->step.sent : n->step.encoded;
}

/* Of the group, parts that are combined, or have come from all. */
static uint32_t parts_here(const sl_node *n, const sl_group *g) {
    const uint32_t free = parts_free(n, g);
    uint32_t most = free < g->parts ? free : g->parts;
    for (uint32_t i = g->first; i < g->first + g->count; i++) {
        const sl_incoming *from = &n->room.incoming[i];
        const uint32_t here = g->combined + count_come(n, from);
        if (!is_silent(n, from) && here < most)
            most = here;
    }
    return most > g->combined ? most : g->combined;
}

/* Up to this part, in batches. What is `left` of a step waits for no whole batch, nor for room. */
static int combine_up_to(sl_node *n, sl_group *g, uint32_t end, bool left, sl_error *error) {
    int result = 0;
    while (result == 0 && g->combined < end) {
        const uint32_t parts = smaller(next_batch(n, g), end - g->combined);
        if (!left && (parts_free(n, g) < g->combined + parts ||
                      !sl_node_is_final(n, range_of(g->set, g->range.from, g->combined, parts))))
            return 0;
        const int come = have_come(n, g, parts, error);
        if (come <= 0)
            return come;
        if (left && !sl_staging_has_room(&n->view.staging))
            result = n->settings.vec->fence(error);
        sl_incoming_collect(n);
        if (result != 0 || !sl_staging_has_room(&n->view.staging))
            return result;
        result = combine_parts(n, g, parts, error);
    }
    return result;
}

int sl_incoming_combine(sl_node *n, bool left, sl_error *error) {
    int result = 0;
    for (sl_group *g = n->room.groups; g < n->room.groups + n->step.group_count && result == 0; g++)
        result = combine_up_to(n, g, left ? parts_here(n, g) : g->parts, left, error);
    return result;
}

/* Of buckets each is a step, and the last one ends with the exchange. */
static bool find_mixed(const sl_node *n, uint32_t index, sl_range *out) {
    const sl_ranges *buckets = n->settings.buckets;
    const sl_group *g = n->room.groups;
    const bool is_there = buckets != NULL ? index < n->step.what.bucket
                                          : n->step.group_count == 1 && index < g->combined;
    if (is_there)
        *out = buckets != NULL ? buckets->items[index]
                               : sl_node_part_range(g->set, g->range.from, index);
    return is_there;
}

/* Nothing changes the model after it is combined. */
bool sl_node_mixed(const sl_node *n, uint32_t index, sl_range *out, const float **model) {
    const sl_algorithm *a = n->algorithm;
    const bool stays = a->route == SL_ROUTE_TOPOLOGY && a->stage_count == 1 && a->settle == NULL &&
                       a->finish == NULL;
    if (!stays || !n->round.exchanging || !n->step.what.in_place || !find_mixed(n, index, out))
        return false;
    *model = n->state.sum != NULL ? n->state.sum : n->state.x;
    return true;
}

void sl_incoming_leave(sl_node *n) {
    n->step.given = sl_given(&n->state);
    for (uint32_t i = 0; i < n->step.group_count; i++)
        n->room.groups[i].count = 0;
}

bool sl_incoming_is_complete(const sl_node *n) {
    for (uint32_t i = 0; i < n->step.group_count; i++)
        if (n->room.groups[i].combined < n->room.groups[i].parts)
            return false;
    return true;
}

/* Has it not sent all of the group's next batch? */
static bool lacks(const sl_node *n, const sl_group *g, const sl_incoming *from) {
    return !is_silent(n, from) && count_come(n, from) < next_batch(n, g);
}

/* Has the group's next batch come from everybody? Then only this node's own holds it up. */
static bool has_all(const sl_node *n, const sl_group *g) {
    for (uint32_t i = g->first; i < g->first + g->count; i++)
        if (lacks(n, g, &n->room.incoming[i]))
            return false;
    return true;
}

bool sl_node_awaits_sent(const sl_node *n) {
    if (!n->round.exchanging || n->step.sent == n->step.encoded)
        return false;
    for (const sl_group *g = n->room.groups; g < n->room.groups + n->step.group_count; g++)
        if (g->combined < g->parts && has_all(n, g))
            return true;
    return sl_incoming_is_complete(n);
}

/* Of whom a part is combined next that has not come: this peer, or with SL_NOBODY any. NULL: of
 * none. */
static const sl_incoming *find_missing(const sl_node *n, uint32_t peer, const sl_group **of) {
    for (uint32_t k = 0; n->round.exchanging && k < n->step.group_count; k++) {
        const sl_group *g = *of = &n->room.groups[k];
        for (uint32_t i = g->first; i < g->first + g->count && g->combined < g->parts; i++) {
            const sl_incoming *from = &n->room.incoming[i];
            if ((peer == SL_NOBODY || peer == from->peer) && lacks(n, g, from))
                return from;
        }
    }
    return NULL;
}

bool sl_node_awaits(const sl_node *n, uint32_t peer) {
    const sl_group *of;
    return find_missing(n, peer, &of) != NULL;
}

int sl_incoming_name_missing(const sl_node *n, sl_error *error) {
    const sl_group *of;
    const sl_incoming *from = find_missing(n, SL_NOBODY, &of);
    return from == NULL ? 0
                        : sl_fail_edge(error, SL_EPEER, from->peer, n->settings.rank,
                                       n->state.round, "part %u of %u has not come",
                                       of->combined + count_come(n, from), of->parts);
}

static uint32_t steps_of(const sl_node *n) {
    sl_exchange_step step;
    uint32_t steps = 0;
    while (
        sl_route_step(&n->view.route, n->state.exchange + (n->state.exchange == 0), steps, &step))
        steps++;
    return steps;
}

void sl_node_reach(const sl_node *n, sl_reach *out) {
    *out = (sl_reach){.exchange = sl_node_exchange(n)};
    out->step = n->round.exchanging ? n->step.number : steps_of(n);
    if (n->round.exchanging && n->step.group_count > 0)
        out->part = parts_here(n, &n->room.groups[0]);
}
