/* pairs.c - averages of two, between the node's own gradients; see async.h and averager.h.
 *
 * A gradient that ends in the midst of an average is held until that is over. After it the node
 * applies its gradient before it serves others; before its own average it serves those who have
 * waited.
 */
#include <stdlib.h>

#include "async/state.h"
#include "starling/steps.h"

static const float half = 0.5f;

static int open_averager(sl_async *n, sl_error *error) {
    const sl_async_rule *rule = n->algorithm->async;
    n->asks = rule->asks(n->state.config, n->settings.topology, n->settings.rank);
    const int result = sl_averager_open(&n->averager, n->settings.seed, n->settings.rank, n->parts,
                                        n->inbox.peer_count, error);
    n->averager.rests = n->awaits_model;
    return result;
}

static int open(sl_async *n, sl_error *error) {
    sl_accounts *c = &n->accounts;
    if (n->settings.turns) {
        c->count = n->ranks;
        c->ends = calloc(c->count, sizeof *c->ends);
        n->undo = n->settings.vec->allocate(n->settings.dimension);
        if (c->ends == NULL || n->undo == NULL)
            return sl_fail(error, SL_ENOMEM, "node %u: out of memory", n->settings.rank);
    }
    return open_averager(n, error);
}

static void wish(sl_async *n, sl_average_when when) {
    if (n->state.config->average == when)
        n->wants = n->asks && n->inbox.peer_count > 0 && sl_async_exchanges(n);
}

static void begin(sl_async *n) {
    wish(n, SL_AVERAGE_BESIDE);
}

static int gradient(sl_async *n, sl_error *error) {
    (void)error;
    wish(n, SL_AVERAGE_AFTER);
    return 0;
}

/* ---- messages ---- */

static int average(sl_async *n, uint32_t peer, const sl_arrival *a, sl_error *error) {
    const bool is_done = n->gradient == SL_GRADIENT_NONE; /* and its last round is recorded */
    n->statistics.staleness += a->part == 0 && !is_done;
    n->room[0] = sl_async_part_of(n, peer, a, half, 0);
    return sl_async_combine(n, half, 1, a->part, error);
}

/* An ask that is over, or refused, is needed no more. */
static void drop_unneeded(sl_async *n, uint32_t slot) {
    if (!sl_averager_keeps(&n->averager, n->peers[slot]))
        sl_inbox_empty(&n->inbox, &n->inbox.queues[slot]);
}

static void note(sl_async *n, sl_act_kind kind, uint32_t peer, uint64_t event, uint32_t parts) {
    sl_async_note(n, &(sl_act){.kind = kind, .peer = peer, .number = event, .to = parts});
}

static int received(sl_async *n, uint32_t slot, const sl_event *e, sl_error *error) {
    const sl_averager_message m = {e->peer, e->exchange, (sl_averager_step)e->step, e->part};
    const sl_arrival arrival = {
        .exchange = m.event, .step = m.step, .part = m.part, .payload = e->payload};
    sl_averager_use use;
    const bool rests = n->averager.rests;
    if (n->expected != NULL && n->expected->kind == SL_ACT_REFUSES)
        n->averager.rests = true; /* it refused then */
    int result = e->silent == (m.step == SL_AVERAGER_BUSY)
                     ? sl_averager_take(&n->averager, &m, &use, error)
                     : sl_fail(error, SL_EPROTO, "node %u: step %u of an average %s a payload",
                               e->peer, e->step, e->silent ? "needs" : "has");
    n->averager.rests = rests;
    if (result != 0)
        return result;
    if (use == SL_AVERAGER_KEEP)
        return sl_async_keep(n, slot, e, error);
    if (use == SL_AVERAGER_AVERAGE)
        result = average(n, e->peer, &arrival, error);
    if (use == SL_AVERAGER_AVERAGE && m.part + 1 == n->parts)
        sl_accounts_end_ask(n, e->peer, m.event);
    else if (use == SL_AVERAGER_END)
        note(n, SL_ACT_REFUSED, e->peer, m.event, 0);
    sl_inbox_refuse(&n->inbox, e->token);
    return result;
}

/* What it answers with. It stays where it is put, in case the average is cut. A device encodes all
 * of it ahead. */
static const float *answered(sl_async *n, uint32_t part) {
    size_t from = 0, count = n->settings.dimension;
    if (n->undo == NULL)
        return n->state.x;
    if (n->settings.vec->on_host)
        sl_codec_part_range(n->codec, part, &from, &count);
    if (n->settings.vec->on_host || part == 0)
        sl_copy(&n->state, n->undo + from, n->state.x + from, count);
    return n->undo;
}

static bool next(sl_async *n, sl_async_part *out, sl_row *to) {
    sl_averager_message m;
    if (sl_accounts_next(n, out, to))
        return true;
    if (!sl_averager_next(&n->averager, &m))
        return false;
    const bool answers = m.step == SL_AVERAGER_ANSWER;
    const uint32_t slot = sl_async_slot(n, m.peer);
    *to = (sl_row){.count = 1, .peers = n->peers + slot};
    *out = (sl_async_part){.number = m.event,
                           .step = m.step,
                           .part = m.part,
                           .silent = m.step == SL_AVERAGER_BUSY,
                           .tells = answers && m.part + 1 == n->parts,
                           .stays = !answers || n->undo != NULL,
                           .scalar = 1};
    if (!out->silent)
        out->payload =
            sl_async_encode(n, answers ? answered(n, m.part) : n->state.x, m.event, m.step, m.part);
    return true;
}

/* The part of the ask that was answered has stood first in its queue. */
static int left(sl_async *n, sl_error *error) {
    sl_averager_message m;
    sl_async_part account;
    sl_row to;
    if (sl_accounts_next(n, &account, &to)) {
        sl_accounts_left(n, &account);
        return 0;
    }
    sl_averager_next(&n->averager, &m);
    const bool silent = m.step == SL_AVERAGER_BUSY;
    sl_async_count_sent(n, silent ? 0 : n->encoded_bytes, m.part == 0, silent, 1);
    if (silent)
        note(n, SL_ACT_REFUSES, m.peer, m.event, 0);
    if (!sl_averager_left(&n->averager, &m))
        return 0;
    const uint32_t slot = sl_async_slot(n, m.peer);
    const sl_arrival *ask = sl_queue_first(&n->inbox.queues[slot]);
    const int result = average(n, m.peer, ask, error);
    sl_inbox_release(&n->inbox, ask->token);
    sl_queue_drop_first(&n->inbox.queues[slot]);
    return result;
}

static void acknowledged(sl_async *n, uint32_t peer) {
    const bool served = n->averager.phase == SL_AVERAGER_SERVES;
    const uint64_t event = n->averager.event;
    sl_averager_acknowledge(&n->averager, peer);
    if (served && n->averager.phase == SL_AVERAGER_FREE)
        note(n, SL_ACT_ANSWER, peer, event, n->parts);
    drop_unneeded(n, sl_async_slot(n, peer));
}

static bool may_ask(const sl_async *n) {
    const sl_act *next = n->expected;
    return n->wants && sl_averager_may_ask(&n->averager) &&
           (!n->repeats ||
            (next != NULL && (next->kind == SL_ACT_AVERAGE || next->kind == SL_ACT_REFUSED)));
}

static void ask(sl_async *n) {
    const uint32_t which =
        n->algorithm->async->partner(&n->state, ++n->events, n->inbox.peer_count);
    n->wants = false;
    sl_averager_ask_for(&n->averager, n->peers[which], n->events);
}

static int advance(sl_async *n, bool turn, sl_update *update, sl_error *error) {
    int result = 0;
    (void)turn; /* nobody waits for an instant to be over */
    /* Once more: without an ask, as its gradient came when there was nobody to ask. */
    const bool may_end = n->repeats || !n->wants;
    if (n->gradient == SL_GRADIENT_HELD && may_end && sl_async_may_end(n) &&
        sl_averager_is_free(&n->averager)) {
        n->wants = false;
        result = sl_async_end_round(n, n->algorithm->local, update, error);
    }
    sl_averager_turn(&n->averager);
    if (may_ask(n))
        ask(n);
    return result;
}

/* ---- rest ---- */

static void rest(sl_async *n) {
    sl_averager_rest(&n->averager);
    for (uint32_t slot = 0; slot < n->inbox.peer_count; slot++)
        drop_unneeded(n, slot);
}

static void cut(sl_async *n) {
    sl_averager *a = &n->averager;
    rest(n);
    a->refused_count = 0; /* whoever asked is cut, too */
    if (a->phase != SL_AVERAGER_FREE)
        sl_accounts_cut(n, a->partner);
    for (uint32_t slot = 0; slot < n->inbox.peer_count; slot++)
        drop_unneeded(n, slot);
}

/* Its ask may have come after the cut: nobody waits to hear that it is refused. */
static void lose(sl_async *n, uint32_t peer) {
    const sl_averager *a = &n->averager;
    if (a->phase == SL_AVERAGER_ASKS && a->partner == peer)
        sl_accounts_cut(n, peer);
    sl_accounts_lose(n, peer);
    if (a->phase != SL_AVERAGER_SERVES || a->partner != peer)
        sl_averager_cut(&n->averager, peer);
}

static bool is_still(const sl_async *n) {
    return sl_averager_is_still(&n->averager) && !sl_accounts_are_open(n);
}

static void release(sl_async *n) {
    n->accounts.stage = SL_CLAIM_NONE;
    sl_averager_go_on(&n->averager);
}

static int begin_view(sl_async *n, sl_error *error) {
    release(n);
    sl_averager_close(&n->averager);
    const int result = open_averager(n, error);
    n->wants = n->wants && n->asks && n->inbox.peer_count > 0;
    return result;
}

static const char *awaits(const sl_async *n, uint32_t slot) {
    const sl_averager *a = &n->averager;
    if (a->phase == SL_AVERAGER_FREE || a->partner != n->peers[slot])
        return NULL;
    if (a->phase == SL_AVERAGER_ASKS)
        return "the model that it was asked for";
    return a->come < n->parts ? "the rest of the model that it asks with"
                              : "word that it has this node's model";
}

static bool is_whole(const sl_async *n) {
    return sl_averager_is_free(&n->averager);
}

const sl_async_pattern sl_async_pairs = {.open = open,
                                         .begin = begin,
                                         .gradient = gradient,
                                         .received = received,
                                         .next = next,
                                         .left = left,
                                         .acknowledged = acknowledged,
                                         .advance = advance,
                                         .rest = rest,
                                         .cut = cut,
                                         .lose = lose,
                                         .is_still = is_still,
                                         .begin_view = begin_view,
                                         .release = release,
                                         .is_whole = is_whole,
                                         .awaits = awaits};
