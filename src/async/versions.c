/* versions.c - a vector published in each round, and of each neighbour the version that the
 * algorithm's rule names; see async.h.
 *
 * A node publishes its version t with its t-th gradient, and combines when the rule finds a version
 * of every in-neighbour. Versions are whole messages. Those older than what was combined are
 * dropped; newer ones wait in the queue. Where the choice hangs on what has come, it is made in
 * TURN: what comes at one instant counts whatever its order.
 */
#include "async/state.h"
#include "node/route.h"

/* A node is so many rounds ahead of a neighbour that it sends to, at most. */
static uint32_t ahead_max(const sl_async *n) {
    const sl_algorithm_config *c = n->state.config;
    const uint64_t lag = c->staleness > c->overlap_rounds ? c->staleness : c->overlap_rounds;
    return sl_topology_window(n->settings.topology) * (uint32_t)(lag + 1);
}

static int open(sl_async *n, sl_error *error) {
    n->out.sent = n->algorithm->async->sends_first ? 0 : n->parts;
    n->out.scalar = 1;
    return n->settings.inbox_parts > 0 ? sl_async_open_kept(n, ahead_max(n) + 1, error) : 0;
}

static bool is_out(const sl_async *n) {
    return n->out.sent == n->parts;
}

/* ---- messages ---- */

static int received(sl_async *n, uint32_t slot, const sl_event *e, sl_error *error) {
    const sl_arrival *last = sl_queue_last(&n->inbox.queues[slot]);
    const uint32_t expected = last == NULL || last->part + 1 == n->parts ? 0 : last->part + 1;
    const uint64_t number = expected > 0 ? last->exchange : n->newest[slot] + n->heard[slot];
    if (e->step != 0 || e->silent || e->part != expected || e->exchange < number ||
        (expected > 0 && e->exchange != number))
        return sl_fail_edge(error, SL_EPROTO, e->peer, n->settings.rank, n->state.round,
                            "part %u of version %llu came, and not part %u of version %llu",
                            e->part, (unsigned long long)e->exchange, expected,
                            (unsigned long long)number);
    const int result = sl_async_keep(n, slot, e, error);
    if (result == 0 && e->part + 1 == n->parts) {
        n->newest[slot] = e->exchange;
        n->heard[slot] = true;
    }
    return result;
}

static sl_row out_row(const sl_async *n) {
    const uint64_t number = n->out.number > 0 ? n->out.number : 1;
    return sl_topology_out(n->settings.topology, number, n->settings.rank);
}

static const float *published(const sl_async *n) {
    return n->algorithm->stages[0].vector(&n->state);
}

static bool next(sl_async *n, sl_async_part *out, sl_row *to) {
    if (is_out(n))
        return false;
    *to = out_row(n);
    *out =
        (sl_async_part){.number = n->out.number,
                        .part = n->out.sent,
                        .scalar = n->out.scalar,
                        .payload = sl_async_encode(n, published(n), n->out.number, 0, n->out.sent)};
    return true;
}

static int left(sl_async *n, sl_error *error) {
    (void)error;
    size_t from, count;
    sl_codec_part_range(n->codec, n->out.sent, &from, &count);
    sl_async_count_sent(n, count * sizeof(float), n->out.sent == 0, false, out_row(n).count);
    n->out.sent++;
    return 0;
}

/* ---- rounds ---- */

static void publish(sl_async *n) {
    n->out = (sl_publication){
        .number = ++n->state.exchange, .open = true, .scalar = n->state.push_sum_weight};
    sl_async_sweep(n, n->algorithm->stages[0].prepare);
}

/* Those whose versions the round under way combines. */
static sl_row in_row(const sl_async *n) {
    const uint64_t t = n->state.exchange,
                   number = n->algorithm->async->version(&n->state, t, UINT64_MAX);
    return number > 0 ? sl_topology_in(n->settings.topology, number, n->settings.rank)
                      : (sl_row){0};
}

/* Of a run that is repeated: the one that was taken then. */
static uint64_t version_again(const sl_async *n, uint32_t k, uint64_t newest) {
    const sl_act *next = n->expected;
    const bool combines = next != NULL && next->kind == SL_ACT_COMBINE && k < next->version_count;
    return combines && next->versions[k] <= newest ? next->versions[k] : SL_VERSION_NONE;
}

static uint64_t version_of(const sl_async *n, uint32_t k, uint32_t slot) {
    if (!n->heard[slot])
        return SL_VERSION_NONE;
    return n->repeats ? version_again(n, k, n->newest[slot])
                      : n->algorithm->async->version(&n->state, n->state.exchange, n->newest[slot]);
}

/* Is there a version of each of them? Then they are chosen. */
static bool choose(sl_async *n, const sl_row *in) {
    for (uint32_t k = 0; k < in->count; k++) {
        const uint32_t slot = sl_async_slot(n, in->peers[k]);
        const uint64_t version = version_of(n, k, slot);
        if (version == SL_VERSION_NONE)
            return false;
        n->chosen[slot] = version;
    }
    return true;
}

/* Older versions than the chosen one are never needed again. */
static void drop_older(sl_async *n, uint32_t slot) {
    sl_queue *queue = &n->inbox.queues[slot];
    for (const sl_arrival *a;
         (a = sl_queue_first(queue)) != NULL && a->exchange < n->chosen[slot];) {
        sl_inbox_release(&n->inbox, a->token);
        sl_queue_drop_first(queue);
    }
}

static int combine(sl_async *n, float self_weight, const sl_row *in, sl_error *error) {
    n->state.in = *in;
    n->state.self_weight = self_weight;
    int result = 0;
    for (uint32_t k = 0; k < in->count; k++)
        drop_older(n, sl_async_slot(n, in->peers[k]));
    for (uint32_t part = 0; part < n->parts && result == 0; part++) {
        for (uint32_t k = 0; k < in->count; k++) {
            const sl_queue *queue = &n->inbox.queues[sl_async_slot(n, in->peers[k])];
            n->room[k] =
                sl_async_part_of(n, in->peers[k], sl_queue_at(queue, part), (float)in->weights[k]);
            n->room[k].neighbour = k;
        }
        result = sl_async_combine(n, self_weight, in->count, part, error);
    }
    sl_async_sweep(n, n->algorithm->settle);
    if (result == 0 && n->algorithm->finish != NULL)
        n->algorithm->finish(&n->state);
    return result;
}

static int end_exchange(sl_async *n, const sl_row *in, sl_update *update, sl_error *error) {
    const sl_topology *topology = n->settings.topology;
    const sl_row own = sl_topology_in(topology, n->state.exchange, n->settings.rank),
                 out = sl_topology_out(topology, n->state.exchange, n->settings.rank);
    const int result = combine(n, sl_route_own_weight(&own, &out), in, error);
    n->out.open = false;
    for (uint32_t k = 0; k < in->count; k++)
        n->taken[k] = n->chosen[sl_async_slot(n, in->peers[k])];
    sl_async_note(n, &(sl_act){.kind = SL_ACT_COMBINE,
                               .number = n->state.exchange,
                               .versions = n->taken,
                               .version_count = in->count});
    return result == 0 ? sl_async_end_round(n, NULL, update, error) : result;
}

static int advance(sl_async *n, bool turn, sl_update *update, sl_error *error) {
    if (n->gradient != SL_GRADIENT_HELD || !is_out(n))
        return 0;
    if (!n->out.open && !sl_async_exchanges(n))
        return sl_async_end_round(n, n->algorithm->local, update, error);
    if (!n->out.open) {
        publish(n);
        return 0;
    }
    const sl_row in = in_row(n);
    if (!choose(n, &in))
        return 0;
    update->turn = !turn;
    return turn ? end_exchange(n, &in, update, error) : 0;
}

/* Versions later than those that the last exchange took, up to its own number. */
static int drain(sl_async *n, sl_error *error) {
    const uint64_t last = n->state.exchange,
                   taken = n->algorithm->async->version(&n->state, last, UINT64_MAX);
    int result = 0;
    for (uint64_t number = taken + 1; number <= last && result == 0; number++) {
        const sl_row in = sl_topology_in(n->settings.topology, number, n->settings.rank);
        for (uint32_t k = 0; k < in.count; k++)
            n->chosen[sl_async_slot(n, in.peers[k])] = number;
        result = combine(n, 1, &in, error);
    }
    return result;
}

static const char *awaits(const sl_async *n, uint32_t slot) {
    if (!n->out.open || !is_out(n))
        return NULL;
    const sl_row in = in_row(n);
    const uint32_t k = sl_peer_index(in.peers, in.count, n->peers[slot]);
    return k < in.count && version_of(n, k, slot) == SL_VERSION_NONE
               ? "a version of its model that is new enough"
               : NULL;
}

/* Each neighbour publishes as often as this node. */
static bool is_whole(const sl_async *n) {
    const sl_row in = sl_topology_in(n->settings.topology, n->state.exchange, n->settings.rank);
    bool whole = is_out(n);
    for (uint32_t k = 0; k < in.count; k++)
        whole = whole && n->newest[sl_async_slot(n, in.peers[k])] == n->state.exchange;
    return whole;
}

const sl_async_pattern sl_async_versions = {.open = open,
                                            .received = received,
                                            .next = next,
                                            .left = left,
                                            .advance = advance,
                                            .drain = drain,
                                            .is_whole = is_whole,
                                            .awaits = awaits};
