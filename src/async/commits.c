/* commits.c - gradients to a server, and its model back; see async.h and algorithm/centralized.
 *
 * A node commits a gradient, and its round is over when the model comes that its next one is taken
 * at. The server is one of the nodes, and does without messages to itself. It applies a commit part
 * by part as it comes; where nodes commit in turn it keeps those that are early. Whom the rule lets
 * go on gets the model in TURN, by rank. Sharded, each node is the server of its part of the
 * vector, for which it counts commits by itself.
 */
#include <stdlib.h>
#include <string.h>

#include "algorithm/centralized/served.h"
#include "async/batches.h"
#include "async/owners.h"
#include "async/serving.h"
#include "starling/steps.h"

static const double WANTS_MODEL = 1, IS_DONE = 2; /* scalar of a silent commit */

static bool serves(const sl_async *n) {
    return n->served.clocks != NULL && n->own != NULL;
}

/* Where commits are kept, there is room for one of each. */
static int open(sl_async *n, sl_error *error) {
    const bool walks = n->state.config->local_steps > 1;
    int result = sl_owners_open(n, error);
    if (n->at_rest.come == NULL)
        n->at_rest.come = calloc(n->ranks, sizeof *n->at_rest.come);
    if (n->at_rest.come == NULL)
        return sl_fail(error, SL_ENOMEM, "node %u: out of memory for commits", n->settings.rank);
    if (walks && n->state.extra[SL_PULLED] == NULL)
        n->state.extra[SL_PULLED] = n->settings.vec->allocate(n->settings.dimension);
    if (result == 0 && walks && n->state.extra[SL_PULLED] == NULL)
        return sl_fail(error, SL_ENOMEM, "node %u: out of memory for commits", n->settings.rank);
    if (result != 0 || n->own == NULL)
        return result;
    if (n->served.clocks == NULL)
        result = sl_serving_open(n, error);
    return result == 0 && sl_serving_keeps(n) && n->settings.inbox_parts > 0
               ? sl_async_open_kept(n, n->own->parts, n->own->codec, error)
               : result;
}

/* All pull the first model. Who joins as a server hears who wants its model. */
static void start(sl_async *n) {
    if (!serves(n) || n->view != NULL)
        return;
    sl_copy(&n->state, n->state.extra[SL_SERVED], n->state.x, n->settings.dimension);
    for (uint32_t i = 0; i < n->ranks; i++)
        n->served.waits[i] = sl_async_has(n, i);
}

/* ---- the server ---- */

static void next_turn(sl_async *n) {
    sl_service *service = &n->served;
    uint32_t tries = 0;
    do
        service->turn = (service->turn + 1) % n->ranks;
    while (service->clocks[service->turn] == SL_TAKES_NO_PART && ++tries < n->ranks);
}

/* A view has begun, and the node has no gradient under way that it will commit. */
static void hear_standing(sl_async *n, uint32_t rank, bool is_done) {
    n->served.waits[rank] = !is_done;
    if (!is_done)
        return;
    n->served.clocks[rank] = SL_TAKES_NO_PART;
    if (n->served.turn == rank)
        next_turn(n);
}

static int fail_commit(const sl_async *n, const sl_event *e, sl_error *error) {
    return sl_fail_edge(error, SL_EPROTO, e->peer, n->settings.rank, n->state.round,
                        "a part of a gradient came that is not the next one");
}

static int take_commit(sl_async *n, uint32_t slot, const sl_event *e, sl_error *error) {
    const sl_arrival a = {.exchange = e->exchange, .part = e->part, .payload = e->payload};
    const uint32_t next = sl_serving_keeps(n) ? n->inbox.queues[slot].count : n->served.come[slot];
    if (e->silent && n->state.config->server != SL_SERVER_SHARDED && !serves(n))
        return fail_commit(n, e, error);
    if (e->silent) {
        if (serves(n))
            hear_standing(n, e->peer, e->scalar == IS_DONE);
        sl_inbox_refuse(&n->inbox, e->token);
        return 0;
    }
    if (!serves(n) || e->exchange <= n->served.numbers[e->peer] || e->part != next)
        return fail_commit(n, e, error);
    if (sl_serving_keeps(n))
        return sl_async_keep(n, slot, e, error);
    n->served.come[slot] = (next + 1) % n->own->parts;
    const int result = sl_serving_take(n, e->peer, &a, error);
    sl_serving_note(n, SL_ACT_COMMIT, e->peer, e->exchange, e->part, e->part + 1);
    sl_inbox_refuse(&n->inbox, e->token);
    return result;
}

/* ---- the node ---- */

/* All of it, before any of it leaves; and what it could not say stays here. */
static int encode(sl_async *n, sl_error *error) {
    const sl_stage *stage = &n->algorithm->stages[0];
    sl_async_sweep(n, stage->prepare);
    const sl_source source = {.vector = stage->vector(&n->state), .fresh = stage->fresh(&n->state)};
    int result = 0;
    for (sl_owner *o = n->owners; o < n->owners + n->owner_count && result == 0; o++) {
        if (!sl_owner_is_reached(n, o))
            continue;
        if (o->parts > 0)
            result = sl_owner_encode(n, o, &source, n->out.number, SL_COMMIT, error);
        o->sent = o == n->own ? o->parts : 0;
        for (uint32_t part = 0; part < o->parts && result == 0; part++) {
            const sl_arrival own = sl_owner_own_part(n, o, part);
            const sl_part mine = sl_owner_part(n, o, n->settings.rank, &own, 0);
            stage->own(&n->state, &mine);
        }
    }
    return result;
}

/* The part of a server that is not reached is trained alone, as that server does without this node.
 */
static void step_alone(sl_async *n) {
    const bool walks = n->state.config->local_steps > 1; /* it has done so */
    for (const sl_owner *o = n->owners; o < n->owners + n->owner_count; o++)
        if (!walks && !sl_owner_is_reached(n, o))
            sl_async_sweep_range(n, n->algorithm->local, o->range.from, o->range.count);
}

static int gradient(sl_async *n, sl_error *error) {
    if (!sl_async_exchanges(n))
        return 0;
    step_alone(n);
    if (n->algorithm->take_gradient != NULL)
        n->algorithm->take_gradient(&n->state);
    n->out = (sl_publication){.number = ++n->state.exchange, .open = true};
    n->served.holds_own = serves(n);
    return encode(n, error);
}

static int take_answer(sl_async *n, const sl_event *e, sl_error *error) {
    sl_owner *owner = sl_owners_of(n, e->peer);
    const bool numbers = e->scalar >= 0 && e->scalar < 0x1p53;
    if (e->part != owner->come || owner->sent < owner->parts || !numbers)
        return sl_fail_edge(error, SL_EPROTO, e->peer, n->settings.rank, n->state.round,
                            "a part of the server's model came that is not the next one");
    const sl_range range = sl_owner_model_part(owner, e->part);
    n->settings.vec->copy_in(n->state.x + range.from, e->payload.data, e->payload.bytes);
    n->pulled = (uint64_t)e->scalar;
    owner->come++;
    sl_inbox_refuse(&n->inbox, e->token);
    return 0;
}

static bool is_right(const sl_async *n, const sl_event *e) {
    const sl_message message = {n->settings.seed, e->exchange, e->peer, e->step};
    const sl_owner *owner = e->step == SL_COMMIT_ANSWER ? sl_owners_of(n, e->peer) : n->own;
    if (owner == NULL)
        return false;
    return e->step == SL_COMMIT_ANSWER
               ? e->part < owner->model_parts &&
                     sl_decoder_check(owner->plain_decoder, &message, e->part, e->payload) == 0
               : e->part < owner->parts &&
                     sl_decoder_check(owner->decoder, &message, e->part, e->payload) == 0;
}

static int received(sl_async *n, uint32_t slot, const sl_event *e, sl_error *error) {
    return e->step == SL_COMMIT_ANSWER ? take_answer(n, e, error) : take_commit(n, slot, e, error);
}

static bool is_done(const sl_async *n) {
    return n->gradient == SL_GRADIENT_NONE && n->state.round == n->settings.rounds;
}

/* Of a run that is repeated: whoever got the model first then is first. */
static void put_first(sl_service *service, const sl_act *expected) {
    uint32_t at = 0;
    while (at < service->answer_count && service->answers[at] != expected->peer)
        at++;
    for (; at > 0 && at < service->answer_count; at--) {
        service->answers[at] = service->answers[at - 1];
        service->answers[at - 1] = expected->peer;
    }
}

/* Where a run is repeated answers wait until the log has them; this node's commits do not wait for
 * those. */
static bool is_to_answer(const sl_async *n) {
    return n->served.answer_count > 0 &&
           (!n->repeats || (n->expected != NULL && n->expected->kind == SL_ACT_SERVE));
}

static sl_payload served_part(const sl_async *n, uint32_t part) {
    const sl_range range = sl_owner_model_part(n->own, part);
    return sl_async_lend(n, n->state.extra[SL_SERVED] + range.from, range.count);
}

static bool next(sl_async *n, sl_async_part *out, sl_row *to) {
    sl_service *service = &n->served;
    if (n->expected != NULL && n->expected->kind == SL_ACT_SERVE && service->sent == 0)
        put_first(service, n->expected);
    if (is_to_answer(n)) {
        const uint32_t slot = sl_async_slot(n, service->answers[0]);
        *to = (sl_row){.count = 1, .peers = n->peers + slot};
        *out = (sl_async_part){.number = service->numbers[service->answers[0]],
                               .step = SL_COMMIT_ANSWER,
                               .part = service->sent,
                               .scalar = (double)service->batch.version,
                               .payload = served_part(n, service->sent)};
        return true;
    }
    if (n->stands) {
        *to = (sl_row){.count = n->inbox.peer_count, .peers = n->peers};
        *out = (sl_async_part){
            .number = n->out.number, .silent = true, .scalar = is_done(n) ? IS_DONE : WANTS_MODEL};
        return true;
    }
    const sl_owner *owner = sl_owners_unsent(n);
    if (owner == NULL)
        return false;
    *to = (sl_row){.count = 1, .peers = &owner->server};
    *out = (sl_async_part){.number = n->out.number,
                           .step = SL_COMMIT,
                           .part = owner->sent,
                           .stays = owner->encoded == NULL,
                           .scalar = (double)n->pulled,
                           .payload = owner->payloads[owner->sent]};
    return true;
}

static int left(sl_async *n, sl_error *error) {
    sl_service *service = &n->served;
    (void)error;
    const bool answers = is_to_answer(n);
    if (n->stands && !answers) {
        n->stands = false;
        return 0;
    }
    if (!answers) {
        sl_owner *owner = sl_owners_unsent(n);
        const size_t bytes = owner->payloads[owner->sent].bytes;
        sl_async_count_sent(n, bytes, owner->sent++ == 0, false, 1);
        return 0;
    }
    const uint32_t part = service->sent++;
    sl_async_count_sent(n, sl_owner_model_part(n->own, part).count * sizeof(float), part == 0,
                        false, 1);
    sl_serving_note(n, SL_ACT_SERVE, service->answers[0], service->numbers[service->answers[0]],
                    part, part + 1);
    if (service->sent == n->own->model_parts) {
        service->sent = 0;
        service->answer_count--;
        for (uint32_t k = 0; k < service->answer_count; k++)
            service->answers[k] = service->answers[k + 1];
    }
    return 0;
}

/* ---- going on ---- */

/* To whom words of where it stands go. */
static bool has_other_servers(const sl_async *n) {
    return n->inbox.peer_count > 0 && (n->own == NULL || n->owner_count > 1);
}

/* Nodes do not commit equally often under a view: after its last round nobody waits for this one.
 */
static int end_round(sl_async *n, void (*hook)(sl_state *s, size_t from, size_t count),
                     sl_update *update, sl_error *error) {
    const int result = sl_async_end_round(n, hook, update, error);
    if (!update->finished || n->view == NULL)
        return result;
    n->stands = has_other_servers(n);
    if (serves(n))
        hear_standing(n, n->settings.rank, true);
    return result;
}

static void forget_model(sl_async *n) {
    for (sl_owner *o = n->owners; o < n->owners + n->owner_count; o++)
        o->come = 0;
}

/* The model for its next gradient is here. */
static int go_on(sl_async *n, sl_update *update, sl_error *error) {
    forget_model(n);
    n->out.open = n->is_over = false;
    if (n->state.extra[SL_PULLED] != NULL)
        sl_copy(&n->state, n->state.extra[SL_PULLED], n->state.x, n->settings.dimension);
    if (n->gradient == SL_GRADIENT_HELD)
        return end_round(n, NULL, update, error);
    sl_async_begin_round(n, update);
    return 0;
}

static bool may_go_on(const sl_async *n, uint32_t rank) {
    const sl_clocks clocks = sl_serving_clocks(n);
    return n->served.waits[rank] && n->served.batch.left == 0 &&
           n->algorithm->async->may_begin(&n->state, &clocks, rank);
}

/* Of a run that is repeated the log says when the server took the model itself: that may have hung
 * on where a batch ended, or on a clock. */
static bool is_due(const sl_async *n, uint32_t rank) {
    const sl_act *act = n->expected;
    return !n->repeats || rank != n->settings.rank ||
           (act != NULL && act->kind == SL_ACT_SERVE && act->peer == rank);
}

/* The first model goes to all at once; later ones in turn to whoever has just committed. */
static void grant(sl_async *n) {
    const sl_range range = n->own->range;
    for (uint32_t i = 0; i < n->ranks; i++) {
        if (!may_go_on(n, i) || !is_due(n, i))
            continue;
        n->served.waits[i] = false;
        n->served.extra[i] -= n->served.extra[i] > 0;
        if (i != n->settings.rank) {
            n->served.answers[n->served.answer_count++] = i;
            continue;
        }
        sl_serving_note(n, SL_ACT_SERVE, i, n->served.numbers[i], 0, n->own->model_parts);
        sl_copy(&n->state, n->state.x + range.from, n->state.extra[SL_SERVED] + range.from,
                range.count);
        n->pulled = n->served.batch.version;
        n->own->come = n->own->model_parts;
    }
}

/* ---- going on at the server ---- */

static bool has_work(const sl_async *n) {
    bool any = (sl_serving_in_turn(n) && sl_serving_has(n, n->served.turn)) ||
               (sl_serving_together(n) && sl_batch_has_work(n));
    for (uint32_t i = 0; i < n->ranks && !any; i++)
        any = may_go_on(n, i) && is_due(n, i);
    return any;
}

static int serve(sl_async *n, sl_error *error) {
    int result = 0;
    if (sl_serving_in_turn(n) && sl_serving_has(n, n->served.turn)) {
        result = sl_serving_apply(n, n->served.turn, error);
        next_turn(n);
    }
    if (sl_serving_together(n))
        result = sl_batch_take(n, error);
    if (result == 0)
        grant(n);
    return result;
}

static bool has_model(const sl_async *n) {
    const bool is_held = n->gradient == SL_GRADIENT_HELD, begins = n->gradient == SL_GRADIENT_NONE;
    return ((is_held && sl_async_may_end(n)) || (begins && !is_done(n))) && sl_owners_have_come(n);
}

static int advance(sl_async *n, bool turn, sl_update *update, sl_error *error) {
    const bool commits = n->served.holds_own && !sl_serving_keeps(n);
    const int committed =
        commits ? sl_serving_take_own(n, error) : 0; /* as others' are, at rest, too */
    if (committed != 0 || n->rests)
        return committed;
    if (n->gradient == SL_GRADIENT_HELD && !sl_async_exchanges(n)) {
        const int ended = end_round(n, n->algorithm->local, update, error);
        if (ended != 0)
            return ended;
    }
    int result = turn && serves(n) ? serve(n, error) : 0;
    if (result == 0 && has_model(n))
        result = go_on(n, update, error);
    update->turn = serves(n) && has_work(n);
    return result;
}

/* ---- rest ---- */

static void cut(sl_async *n) {
    for (sl_owner *o = n->owners; o < n->owners + n->owner_count; o++)
        o->sent = o->parts;
    n->served.answer_count = n->served.sent = 0;
}

static bool is_still(const sl_async *n) {
    return sl_owners_unsent(n) == NULL && n->served.answer_count == 0;
}

/* Commits are counted anew. The model is the server's; of what it has not served, `before`, the one
 * that it had. */
static void serve_anew(sl_async *n, sl_range before) {
    sl_service *service = &n->served;
    float *served = n->state.extra[SL_SERVED];
    const size_t behind = before.from + before.count;
    sl_copy(&n->state, served, n->state.x, before.from);
    sl_copy(&n->state, served + behind, n->state.x + behind, n->settings.dimension - behind);
    for (uint32_t i = 0; i < n->ranks; i++) {
        service->clocks[i] = sl_async_has(n, i) && !sl_async_is_broken(n, i) ? 0 : SL_TAKES_NO_PART;
        service->numbers[i] = 0;
        service->waits[i] = false;
        service->interval_ns[i] = service->extra[i] = 0;
    }
    memset(service->come, 0, n->ranks * sizeof *service->come);
    memset(service->batch.chosen, 0, n->ranks * sizeof *service->batch.chosen);
    memset(service->batch.early, 0, n->ranks * sizeof *service->batch.early);
    service->batch.left = 0;
    if (before.count == 0)
        service->batch.version = n->pulled;
    service->turn = n->ranks - 1;
    next_turn(n);
    if (n->is_over || n->gradient == SL_GRADIENT_NONE)
        hear_standing(n, n->settings.rank, is_done(n));
}

static bool is_over(const sl_async *n) {
    return n->is_over || n->out.open || (serves(n) && n->served.waits[n->settings.rank]);
}

/* A gradient that was under way counts as committed. */
static int begin_view(sl_async *n, sl_error *error) {
    const sl_at_rest *at = &n->at_rest; /* as it is, or as it was saved */
    const sl_range before = {(size_t)at->serves_from, (size_t)at->serves_count};
    const uint32_t count = (uint32_t)at->come_count;
    bool any = false;
    n->is_over = is_over(n);
    n->out.open = n->served.holds_own = false;
    for (uint32_t k = 0; k < count; k++) {
        n->taken[k] = at->come[k];
        any = any || n->taken[k] > 0;
    }
    if (n->is_over || any)
        sl_async_note(n, &(sl_act){.kind = SL_ACT_COMBINE,
                                   .versions = n->taken,
                                   .version_count = any ? count : 0});
    const int result = open(n, error);
    n->stands = has_other_servers(n) && (n->is_over || n->gradient == SL_GRADIENT_NONE);
    if (result == 0 && serves(n))
        serve_anew(n, before);
    return result;
}

/* The server's own next gradient hangs on the slowest, or on whose turn it is. */
static const char *awaits(const sl_async *n, uint32_t slot) {
    const sl_owner *owner = sl_owners_of(n, n->peers[slot]);
    if (owner != NULL && owner->come < owner->model_parts && owner->sent == owner->parts)
        return n->gradient == SL_GRADIENT_NONE || sl_async_exchanges(n) ? "the server's model"
                                                                        : NULL;
    const uint32_t rank = n->peers[slot], own = n->settings.rank;
    if (!serves(n))
        return NULL;
    if (sl_serving_in_turn(n))
        return n->served.turn == rank ? "its gradient" : NULL;
    if (sl_serving_together(n))
        return n->served.holds_own && !sl_serving_has(n, rank) ? "its gradient, or another one"
                                                               : NULL;
    return n->served.waits[own] && n->served.clocks[rank] < n->served.clocks[own] ? "its gradient"
                                                                                  : NULL;
}

/* All have done their rounds, and have got the model of their last. */
static bool is_whole(const sl_async *n) {
    bool whole = is_still(n);
    for (uint32_t i = 0; serves(n) && i < n->ranks; i++)
        whole = whole && !n->served.waits[i];
    return whole;
}

const sl_async_pattern sl_async_commits = {.open = open,
                                           .start = start,
                                           .gradient = gradient,
                                           .is_right = is_right,
                                           .received = received,
                                           .next = next,
                                           .left = left,
                                           .advance = advance,
                                           .cut = cut,
                                           .is_still = is_still,
                                           .begin_view = begin_view,
                                           .rests_late = true,
                                           .is_whole = is_whole,
                                           .is_over = is_over,
                                           .awaits = awaits};
