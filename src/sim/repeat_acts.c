/* repeat_acts.c - nodes at their own times, once more in the order in which they went in a real
 * run.
 *
 * Each node's acts are there, in order. What is first of a node's is done as soon as it can be: an
 * average when it is first of both nodes', a combination when its versions have been published, a
 * gradient at the server when it was committed. The machine says what it does; that has to be what
 * was first. So no times are needed, and a log that cannot have been is found out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/averager.h"
#include "base/clock.h"
#include "sim/repeated.h"

/* Until the ask is over, or so many parts are averaged on both sides. *moved: some were. */
static int exchange(repeated *r, uint32_t asker, uint32_t other, uint64_t number, uint32_t parts,
                    bool *moved, sl_error *error) {
    int result = 0;
    *moved = false;
    for (bool any = true; any && result == 0; *moved = *moved || any) {
        letter **ask = sl_repeated_find_of(r, asker, other, true, number),
               **answer = sl_repeated_find_of(r, other, asker, false, number);
        any = true;
        if (ask != NULL && (*ask)->part.part < parts)
            result = sl_repeated_take(r, ask, other, error);
        else if (answer != NULL && (*answer)->part.part < parts)
            result = sl_repeated_take(r, answer, asker, error);
        else
            any = false;
    }
    return result;
}

/* Lets the ask leave: with its gradient, or when the node looks at what it does next. */
static int let_ask(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    *any = true;
    if (r->s->plan.config.average == SL_AVERAGE_AFTER && r->computes[rank])
        return sl_repeated_give_gradient(r, rank, error);
    const int result = sl_repeated_deliver(r, rank, &(sl_event){.type = SL_EVENT_TURN}, error);
    *any = sl_async_asks(r->s->peers[rank].async) == act->number;
    return result;
}

/* Refusals may cross: whoever refuses an ask may go on long before its asker hears of it. Nothing
 * else comes of one, so each of the two does its own by itself. */
static int refuse(repeated *r, uint32_t rank, const sl_act *act, sl_averager_step step,
                  sl_error *error) {
    sl_async *async = r->s->peers[rank].async;
    sl_event event = {.type = SL_EVENT_RECEIVED,
                      .peer = act->peer,
                      .exchange = act->number,
                      .step = step,
                      .silent = step == SL_AVERAGER_BUSY};
    if (!event.silent) /* nobody reads it */
        event.payload = (sl_payload){sl_async_model(async), sl_async_part_bytes_max(async)};
    return sl_repeated_deliver(r, rank, &event, error);
}

/* A log that cannot have been may have it refuse what it does not hear. */
static int do_refuse(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    const size_t before = r->done[rank];
    const int result = refuse(r, rank, act, SL_AVERAGER_ASK, error);
    *any = r->done[rank] > before;
    return result;
}

static void drop_ask(repeated *r, uint32_t asker, const sl_act *act) {
    letter **at = &r->letters[act->peer];
    while (*at != NULL && ((*at)->from != asker || (*at)->part.number != act->number ||
                           (*at)->part.step != SL_AVERAGER_ASK))
        at = &(*at)->next;
    if (*at != NULL)
        sl_repeated_drop(r, at);
}

static int do_ask(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    const uint32_t parts = sl_async_parts(r->s->peers[rank].async);
    const bool is_cut = act->kind == SL_ACT_AVERAGE && act->to < parts;
    if (sl_async_asks(r->s->peers[rank].async) != act->number)
        return let_ask(r, rank, act, any, error);
    if (act->kind == SL_ACT_REFUSED) {
        *any = true;
        drop_ask(r, rank, act);
        return refuse(r, rank, act, SL_AVERAGER_BUSY, error);
    }
    *any = sl_repeated_is_next(r, act->peer, SL_ACT_ANSWER, rank, act->number) ||
           (sl_repeated_is_lost(r, act->peer) && sl_repeated_share_view(r, act->peer, rank)) ||
           (is_cut && act->to == 0);
    if (!*any)
        return 0;
    const int result =
        exchange(r, rank, act->peer, act->number, is_cut ? act->to : parts, any, error);
    *any = *any || is_cut;
    return result == 0 && is_cut
               ? sl_repeated_deliver(r, rank, &(sl_event){.type = SL_EVENT_CUT}, error)
               : result;
}

/* ---- answers ---- */

/* An asker that was killed asks once more. */
static int ask_again(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    const size_t before = r->done[rank];
    const uint32_t asker = act->peer, parts = act->to;
    const uint64_t number = act->number;
    bool moved = false;
    int result = 0;
    if (!sl_repeated_is_lost(r, asker) || !sl_repeated_share_view(r, asker, rank))
        return 0;
    r->again = (sl_act){.kind = SL_ACT_AVERAGE, .peer = rank, .number = number, .to = parts};
    r->again_of = asker;
    if (sl_async_asks(r->s->peers[asker].async) != number)
        result = let_ask(r, asker, &r->again, any, error);
    if (result == 0)
        result = exchange(r, asker, rank, number, parts, &moved, error);
    r->again_of = UINT32_MAX;
    *any = *any || moved || r->done[rank] > before;
    return result;
}

/* What it has averaged holds. */
static int end_answer(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    const uint32_t asker = act->peer;
    const int result = sl_repeated_deliver(r, rank, &(sl_event){.type = SL_EVENT_CUT}, error);
    *any = true;
    return result == 0 ? sl_repeated_deliver(
                             r, rank, &(sl_event){.type = SL_EVENT_PEER_DOWN, .peer = asker}, error)
                       : result;
}

/* The asker has gone on, and this node was stopped meanwhile: it has taken what had come. */
static int take_late(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    letter **ask = sl_repeated_find_of(r, act->peer, rank, true, act->number);
    *any = ask != NULL && (*ask)->part.part < act->to &&
           !sl_repeated_is_next(r, act->peer, SL_ACT_AVERAGE, rank, act->number);
    return *any ? sl_repeated_take(r, ask, rank, error) : 0;
}

/* An asker drives its average, unless it was killed. One that was cut is the last thing under its
 * view, but for asks that are refused. */
static int do_answer(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    const sl_history *h = &r->s->checkpoints->history[rank];
    const size_t after = r->done[rank] + 1;
    size_t next = after;
    while (next < h->act_count &&
           (h->acts[next].kind == SL_ACT_REFUSES || h->acts[next].kind == SL_ACT_GIVES))
        next++;
    const bool is_last = next == h->act_count || h->acts[next].kind >= SL_ACT_VIEW;
    const int result = ask_again(r, rank, act, any, error);
    if (result != 0 || r->done[rank] >= after || !is_last)
        return result;
    return sl_async_served(r->s->peers[rank].async) == act->to
               ? end_answer(r, rank, act, any, error)
               : take_late(r, rank, act, any, error);
}

/* ---- other patterns ---- */

/* A server that was killed may have sent one part more of its model than it wrote down. */
static int serve_more(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    int result = 0;
    *any = false;
    for (uint32_t i = 0; i < r->s->nodes && result == 0 && !*any; i++) {
        if (i == rank || !sl_repeated_is_lost(r, i) || !sl_repeated_share_view(r, i, rank))
            continue;
        r->again = (sl_act){.kind = SL_ACT_SERVE, .peer = rank};
        r->again_of = i;
        result = sl_repeated_send_all(r, i, any, error);
        if (result == 0 && !*any && !r->in_turn) /* whose turn it is, it has written down */
            result = sl_repeated_turn(r, i, any, error);
        r->again_of = UINT32_MAX;
    }
    return result;
}

enum { COMMIT, ANSWER }; /* steps of messages to a server, and back */

/* The next part of this server's model; UINT32_MAX: of any one's. */
static int take_part(repeated *r, uint32_t rank, uint32_t server, bool *any, sl_error *error) {
    letter **at = sl_repeated_find(r, server, rank, ANSWER);
    if (at == NULL)
        return serve_more(r, rank, any, error);
    *any = true;
    return sl_repeated_take(r, at, rank, error);
}

/* A server of whose model less has come than had when the exchange was cut; UINT32_MAX: none. */
static uint32_t find_lagging(const repeated *r, uint32_t rank, const sl_act *act) {
    const sl_async *async = r->s->peers[rank].async;
    for (uint32_t k = 0; k < act->version_count; k++)
        if (sl_async_server(async, k) != rank && sl_async_come(async, k) < act->versions[k])
            return sl_async_server(async, k);
    return UINT32_MAX;
}

/* Some parts of servers' models may have come. */
static int do_cut_exchange(repeated *r, uint32_t rank, const sl_act *act, bool *any,
                           sl_error *error) {
    if (!sl_repeated_has_begun(r, rank))
        return take_part(r, rank, UINT32_MAX, any, error);
    const int result = sl_repeated_deliver(r, rank, &(sl_event){.type = SL_EVENT_REST}, error);
    if (result != 0) /* it rested as the last of them came */
        return result;
    const uint32_t server = find_lagging(r, rank, act);
    return server != UINT32_MAX && !r->comes[rank] ? take_part(r, rank, server, any, error)
                                                   : sl_repeated_view(r, rank, any, error);
}

/* At rest the model may be the server's, whose parts are not counted any more once all have come.
 */
static int do_give(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    if (r->pattern == SL_PATTERN_COMMITS && act->version_count > 0) {
        if (!sl_repeated_has_begun(r, rank))
            return take_part(r, rank, UINT32_MAX, any, error);
        const uint32_t server = find_lagging(r, rank, act);
        *any = true;
        if (server != UINT32_MAX && r->computes[rank]) /* it had sent that */
            return sl_repeated_give_gradient(r, rank, error);
        if (server != UINT32_MAX)
            return take_part(r, rank, server, any, error);
    }
    return sl_repeated_give(r, rank, act, any, error);
}

/* What came of the servers' models came before another's model did. */
static int do_return(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    const sl_history *h = &r->s->checkpoints->history[rank];
    const size_t next = r->done[rank] + 1;
    const bool is_over = r->pattern == SL_PATTERN_COMMITS && next < h->act_count &&
                         h->acts[next].kind == SL_ACT_COMBINE && h->acts[next].number == 0;
    const uint32_t server = is_over ? find_lagging(r, rank, &h->acts[next]) : UINT32_MAX;
    return server != UINT32_MAX ? take_part(r, rank, server, any, error)
                                : sl_repeated_come(r, rank, act, any, error);
}

/* Versions are taken as they come: the log says which of them are combined. */
static int do_combine(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    *any = true;
    if (r->computes[rank])
        return sl_repeated_give_gradient(r, rank, error);
    *any = r->pattern != SL_PATTERN_VERSIONS || act->number > 0 ||
           sl_async_is_over(r->s->peers[rank].async); /* else it has not heard all yet */
    if (act->number == 0 && *any)
        return do_cut_exchange(r, rank, act, any, error);
    if (!*any)
        return 0;
    letter **at = sl_repeated_find_any(r, rank);
    return at != NULL ? sl_repeated_take(r, at, rank, error)
                      : sl_repeated_turn(r, rank, any, error);
}

/* A node that was killed had committed more than it wrote down. */
static int do_more(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    letter **at = sl_repeated_find_any(r, rank);
    *any = true;
    if (r->computes[rank])
        return sl_repeated_give_gradient(r, rank, error);
    *any = at != NULL;
    return at != NULL ? sl_repeated_take(r, at, rank, error) : 0;
}

/* Did the model that it waits for come whole, before a view? */
static bool goes_on(const repeated *r, uint32_t rank) {
    const sl_history *h = &r->s->checkpoints->history[rank];
    for (size_t i = r->done[rank]; i < h->act_count; i++) {
        const sl_act *act = &h->acts[i];
        if (act->kind == SL_ACT_GRADIENT || (act->kind == SL_ACT_COMMIT && act->peer == rank))
            return true;
        if (act->kind == SL_ACT_COMBINE || act->kind == SL_ACT_VIEW)
            return false;
    }
    return false;
}

/* A server waits for other servers' models, too. */
static int take_answer(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    letter **at = sl_repeated_find(r, UINT32_MAX, rank, ANSWER);
    *any = at != NULL && goes_on(r, rank);
    return *any ? sl_repeated_take(r, at, rank, error) : 0;
}

/* In turn, a gradient is applied when it is whole. */
static int do_commit(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    letter **at = sl_repeated_find(r, act->peer, rank, COMMIT);
    *any = true;
    if (at == NULL && act->peer != rank && sl_repeated_is_lost(r, act->peer)) {
        const int result = do_more(r, act->peer, any, error);
        if (result != 0 || *any)
            return result;
    }
    *any = true;
    if (act->peer == rank && r->computes[rank])
        return sl_repeated_give_gradient(r, rank, error);
    if (at != NULL)
        return sl_repeated_take(r, at, rank, error);
    *any = false;
    return r->in_turn ? sl_repeated_turn(r, rank, any, error) : take_answer(r, rank, any, error);
}

/* A server takes its own model when it looks at what it does next. */
static int do_serve(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    const bool own = sl_repeated_next_act(r, rank)->peer == rank;
    const size_t before = r->done[rank];
    int result = sl_repeated_send_all(r, rank, any, error);
    if (result != 0 || *any || !own)
        return result == 0 && !*any ? sl_repeated_turn(r, rank, any, error) : result;
    result = sl_repeated_deliver(r, rank, &(sl_event){.type = SL_EVENT_TURN}, error);
    *any = r->done[rank] > before;
    return result;
}

/* How nodes stand is heard as it comes, but for one that is between two views. */
static int hear(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    letter **at = &r->letters[rank];
    while (*at != NULL && !((*at)->part.silent && sl_repeated_is_of_view(r, rank, *at)))
        at = &(*at)->next;
    *any = r->pattern != SL_PATTERN_PAIRS && !r->comes[rank] && *at != NULL;
    return *any ? sl_repeated_take(r, at, rank, error) : 0;
}

/* What comes from the server is taken as it comes. One of a pair applies a gradient that it has
 * when it looks at what it does next. */
static int do_gradient(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    const size_t before = r->done[rank];
    letter **at =
        r->pattern == SL_PATTERN_COMMITS ? sl_repeated_find(r, UINT32_MAX, rank, ANSWER) : NULL;
    *any = true;
    if (r->computes[rank])
        return sl_repeated_give_gradient(r, rank, error);
    if (at != NULL)
        return sl_repeated_take(r, at, rank, error);
    const int result = sl_repeated_deliver(r, rank, &(sl_event){.type = SL_EVENT_NOTIFIED}, error);
    *any = r->done[rank] > before;
    return result == 0 && !*any && r->pattern == SL_PATTERN_COMMITS
               ? serve_more(r, rank, any, error)
               : result;
}

/* All that the others have sent for its rounds has come then. */
static int do_add(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    sl_async *async = r->s->peers[rank].async;
    letter **at = sl_async_is_whole(async) ? NULL : sl_repeated_find_any(r, rank);
    *any = at != NULL || sl_async_is_whole(async);
    if (at != NULL)
        return sl_repeated_take(r, at, rank, error);
    if (!*any)
        return 0;
    r->s->peers[rank].added = true;
    r->done[rank]++;
    return sl_async_drain(async, error);
}

/* Goes on with the node's next act, if that is possible. */
static int go_on(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    const sl_act *act = sl_repeated_next_act(r, rank);
    *any = false;
    if (act == NULL)
        return 0;
    if (act->peer >= r->s->nodes)
        return sl_repeated_fail_at(r, rank, "peer: there is no such node", error);
    if (act->kind == SL_ACT_JOINS)
        return sl_repeated_come(r, rank, act, any, error);
    if (r->s->peers[rank].async == NULL)
        return sl_repeated_fail_at(r, rank, "the node has not joined", error);
    const int heard = hear(r, rank, any, error);
    if (heard != 0 || *any)
        return heard;
    switch (act->kind) {
    case SL_ACT_AVERAGE:
    case SL_ACT_REFUSED:
        return do_ask(r, rank, act, any, error);
    case SL_ACT_ANSWER:
        return do_answer(r, rank, act, any, error);
    case SL_ACT_REFUSES:
        return do_refuse(r, rank, act, any, error);
    case SL_ACT_VIEW:
        return sl_repeated_has_begun(r, rank) ? sl_repeated_view(r, rank, any, error)
                                              : take_part(r, rank, UINT32_MAX, any, error);
    case SL_ACT_COMBINE:
        return do_combine(r, rank, act, any, error);
    case SL_ACT_COMMIT:
        return do_commit(r, rank, act, any, error);
    case SL_ACT_SERVE:
        return do_serve(r, rank, any, error);
    case SL_ACT_GRADIENT:
        return do_gradient(r, rank, any, error);
    case SL_ACT_GIVES_UP:
        r->s->peers[rank].gave_up = *any = true;
        r->done[rank]++;
        return 0;
    case SL_ACT_ADD:
        return do_add(r, rank, any, error);
    case SL_ACT_GATHER:
        return sl_repeated_gather(r, rank, act, any, error);
    case SL_ACT_GIVES:
        return do_give(r, rank, act, any, error);
    case SL_ACT_RETURNS:
        return do_return(r, rank, act, any, error);
    case SL_ACT_JOINS:
        break; /* see above */
    }
    return 0;
}

/* ---- the run ---- */

/* Of versions: the first neighbour whose version has not been published. UINT32_MAX: that is not
 * known. */
static uint32_t find_late(const repeated *r, uint32_t rank, const sl_act *act) {
    const uint32_t *peers;
    const sl_async *async = r->s->peers[rank].async;
    const uint32_t count = sl_async_peers(async, &peers);
    uint32_t k = r->pattern == SL_PATTERN_VERSIONS && act->version_count == count ? 0 : count;
    while (k < count && sl_async_newest(async)[k] >= act->versions[k])
        k++;
    return k < count ? peers[k] : UINT32_MAX;
}

/* Whom a node waits for that stands still; UINT32_MAX: nobody. */
static uint32_t find_awaited(const repeated *r, uint32_t rank, const sl_act *act) {
    const sl_act_kind kind = act->kind;
    if (kind == SL_ACT_COMBINE || kind == SL_ACT_GATHER)
        return find_late(r, rank, act);
    const bool has_peer = kind != SL_ACT_GRADIENT && kind != SL_ACT_VIEW && kind != SL_ACT_ADD &&
                          kind != SL_ACT_GIVES_UP;
    return has_peer ? act->peer : UINT32_MAX;
}

/* From a node that stands still to the one that it waits for, and so on; UINT32_MAX: none does. */
static uint32_t find_hole(const repeated *r) {
    uint32_t at = 0;
    while (at < r->s->nodes && sl_repeated_next_act(r, at) == NULL)
        at++;
    if (at == r->s->nodes)
        return UINT32_MAX;
    for (uint32_t steps = 0; steps < r->s->nodes; steps++) {
        const uint32_t other = find_awaited(r, at, sl_repeated_next_act(r, at));
        if (other >= r->s->nodes || sl_repeated_next_act(r, other) == NULL)
            break;
        at = other;
    }
    return at;
}

static int name_hole(const repeated *r, sl_error *error) {
    static const char *const lacks[SL_ACT_KINDS] = {
        [SL_ACT_GRADIENT] = "the gradient of round",
        [SL_ACT_AVERAGE] = "the answer to ask",
        [SL_ACT_ANSWER] = "its peer's ask",
        [SL_ACT_REFUSED] = "the refusal of ask",
        [SL_ACT_REFUSES] = "what lets it refuse ask",
        [SL_ACT_COMBINE] = "a version that is combined in exchange",
        [SL_ACT_COMMIT] = "the gradient that is committed as number",
        [SL_ACT_SERVE] = "what lets the server give its model after gradient",
        [SL_ACT_VIEW] = "what comes before view",
        [SL_ACT_ADD] = "what was on its way to it, beside",
        [SL_ACT_GIVES_UP] = "its end",
        [SL_ACT_GATHER] = "what was on its way to it, beside",
        [SL_ACT_GIVES] = "its model for request",
        [SL_ACT_JOINS] = "the model of request",
        [SL_ACT_RETURNS] = "the model of request"};
    const uint32_t at = find_hole(r);
    char whose[64] = "";
    if (at == UINT32_MAX)
        return 0;
    const sl_act *act = sl_repeated_next_act(r, at);
    const uint32_t other = find_awaited(r, at, act);
    if (other < r->s->nodes)
        snprintf(whose, sizeof whose, ", of node %u%s,", other,
                 sl_repeated_next_act(r, other) == NULL ? ", whose log ends before it" : "");
    return sl_fail(error, SL_EFILE,
                   "acts-%u.jsonl:%zu: cannot be done: %s %" PRIu64
                   "%s is missing in the logs of the run",
                   at, r->done[at] + 1, lacks[act->kind], act->number, whose);
}

/* A node that was killed may have sent what came of a gradient that it did not write down. */
static int compute_lost(repeated *r, bool *any, sl_error *error) {
    int result = 0;
    *any = false;
    for (uint32_t i = 0; i < r->s->nodes && result == 0; i++)
        if (sl_repeated_is_lost(r, i) && r->computes[i]) {
            *any = true;
            result = sl_repeated_give_gradient(r, i, error);
        } else if (sl_repeated_is_lost(r, i)) {
            bool hears;
            result = hear(r, i, &hears, error);
            *any = *any || hears;
        }
    return result;
}

static bool is_stopped(const volatile int *stop) {
    return stop != NULL && *stop;
}

static int run_acts(repeated *r, const volatile int *stop, sl_error *error) {
    int result = 0;
    for (bool all = true; all && result == 0;) {
        all = false;
        for (uint32_t i = 0; i < r->s->nodes && result == 0; i++)
            for (bool any = true; any && result == 0 && !is_stopped(stop); all = all || any)
                result = go_on(r, i, &any, error);
        if (!all && result == 0)
            result = compute_lost(r, &all, error);
        if (is_stopped(stop))
            return sl_fail(error, SL_ESTOPPED, "stopped on request");
    }
    return result == 0 ? name_hole(r, error) : result;
}

/* Did its last process come to the last round? It may have been lost. */
static bool ends(const sl_history *h, uint64_t rounds) {
    size_t k = h->act_count;
    while (k > 0 && h->acts[k - 1].kind != SL_ACT_GRADIENT)
        k--;
    return k > 0 && h->acts[k - 1].number >= rounds;
}

static int run(repeated *r, const volatile int *stop, sl_error *error) {
    simulator *s = r->s;
    int result = sl_apart_report_start(s);
    s->began = sl_clock_seconds();
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (s->peers[i].async != NULL)
            result = sl_repeated_deliver(r, i, &(sl_event){.type = SL_EVENT_START}, error);
    if (result == 0)
        result = run_acts(r, stop, error);
    for (uint32_t i = 0; i < s->nodes; i++)
        if (!ends(&s->checkpoints->history[i], s->task->rounds))
            sl_async_close(&s->peers[i].async);
    if (result != 0 || r->finished == 0)
        return result;
    sl_recorded_tell_members(&r->recorded, s->task->rounds);
    /* Versions that no round has come to are still to be added; the asks that are left were
     * refused. */
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        while (result == 0 && r->letters[i] != NULL)
            if (s->peers[i].async != NULL && sl_sim_ends_with(s, i) &&
                r->pattern != SL_PATTERN_PAIRS && sl_repeated_is_of_view(r, i, r->letters[i]))
                result = sl_repeated_take(r, &r->letters[i], i, error);
            else
                sl_repeated_drop(r, &r->letters[i]);
    if (result == 0 && s->experiment->final_average)
        result = sl_apart_average(s, &r->recorded, error);
    return result == 0 ? sl_apart_report_all(s, &r->recorded, s->task->rounds, -1) : result;
}

int sl_sim_run_repeated(simulator *s, const volatile int *stop, sl_error *error) {
    const sl_algorithm *algorithm = sl_algorithm_of(&s->plan.config, error);
    repeated r = {.s = s,
                  .recorded = sl_apart_recorded(s),
                  .pattern = algorithm->async->pattern,
                  .in_turn = algorithm->async->in_turn || algorithm->async->together != NULL,
                  .letters = calloc(s->nodes, sizeof(letter *)),
                  .done = calloc(s->nodes, sizeof *r.done),
                  .parts = calloc(s->nodes, sizeof *r.parts),
                  .again_of = UINT32_MAX,
                  .computes = calloc(s->nodes, sizeof *r.computes),
                  .comes = calloc(s->nodes, sizeof *r.comes)};
    r.recorded.does = calloc(s->nodes, (s->task->rounds + 1) * sizeof *r.recorded.does);
    r.recorded.ranks = calloc(s->nodes, sizeof *r.recorded.ranks);
    int result = r.letters != NULL && r.done != NULL && r.parts != NULL && r.computes != NULL &&
                         r.comes != NULL && r.recorded.does != NULL && r.recorded.ranks != NULL
                     ? 0
                     : sl_fail(error, SL_ENOMEM, "simulator: out of memory for %u nodes", s->nodes);
    if (result == 0)
        sl_repeated_find_rounds(&r);
    if (result == 0)
        result = run(&r, stop, error);
    for (uint32_t i = 0; r.letters != NULL && i < s->nodes; i++)
        while (r.letters[i] != NULL)
            sl_repeated_drop(&r, &r.letters[i]);
    sl_recorded_close(&r.recorded);
    free(r.letters);
    free(r.done);
    free(r.parts);
    free(r.computes);
    free(r.comes);
    free(r.recorded.does);
    sl_repeated_forget_given(&r);
    free(r.recorded.ranks);
    return result;
}
