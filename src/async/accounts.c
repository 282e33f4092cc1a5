/* accounts.c - after a cut, how much of an average holds; see state.h and averager.h.
 *
 * Both of a pair were cut, each where it was. The asker keeps what it has averaged. The server may
 * have averaged more: it asks how far the asker came (CLAIM), hears it (HOLDS), and takes the rest
 * back. An asker that is gone says nothing: then all stays. A claim may
 * come when the asker is in the next view already; so it remembers how each ask has ended.
 */
#include "async/state.h"
#include "starling/steps.h"

enum { CLAIM = SL_AVERAGER_BUSY + 1, HOLDS };

bool sl_accounts_next(sl_async *n, sl_async_part *out, sl_row *to) {
    sl_accounts *c = &n->accounts;
    uint32_t rank = 0;
    *to = (sl_row){.count = 1, .peers = &c->to};
    *out = (sl_async_part){.silent = true, .accounts = true};
    if (c->stage == SL_CLAIM_DUE) {
        c->to = n->averager.account.partner;
        out->number = n->averager.account.event;
        out->step = CLAIM;
        return true;
    }
    while (c->ends != NULL && rank < c->count && c->ends[rank].claimed == 0)
        rank++;
    if (c->ends == NULL || rank == c->count)
        return false;
    const sl_ask_end *end = &c->ends[rank];
    c->to = rank;
    out->number = end->claimed;
    out->step = HOLDS;
    out->part = end->claimed == end->event ? end->parts : n->parts;
    return true;
}

/* What sl_accounts_next said has left. */
void sl_accounts_left(sl_async *n, const sl_async_part *part) {
    if (part->step == CLAIM)
        n->accounts.stage = SL_CLAIM_OPEN;
    else
        n->accounts.ends[n->accounts.to].claimed = 0;
}

static void end_ask(sl_async *n, uint32_t peer, uint64_t event, uint32_t parts) {
    if (n->accounts.ends != NULL) {
        n->accounts.ends[peer].event = event;
        n->accounts.ends[peer].parts = parts;
    }
    sl_async_note(n, &(sl_act){.kind = SL_ACT_AVERAGE, .peer = peer, .number = event, .to = parts});
}

void sl_accounts_end_ask(sl_async *n, uint32_t peer, uint64_t event) {
    end_ask(n, peer, event, n->parts);
}

void sl_accounts_cut(sl_async *n, uint32_t partner) {
    sl_averager *a = &n->averager;
    sl_averager_cut(a, partner);
    if (a->account.served)
        n->accounts.stage = SL_CLAIM_DUE;
    else
        end_ask(n, partner, a->account.event, a->account.parts);
}

/* So many parts hold; those after them are as they were before. */
static void hold(sl_async *n, uint32_t parts) {
    const sl_averager_account *account = &n->averager.account;
    const uint32_t holds = parts < account->parts ? parts : account->parts;
    for (uint32_t part = holds; part < account->parts; part++) {
        size_t from, count;
        sl_codec_part_range(n->codec, part, &from, &count);
        sl_copy(&n->state, n->state.x + from, n->undo + from, count);
    }
    n->accounts.stage = SL_CLAIM_ANSWERED;
    if (holds > 0)
        sl_async_note(n, &(sl_act){.kind = SL_ACT_ANSWER,
                                   .peer = account->partner,
                                   .number = account->event,
                                   .to = holds});
}

int sl_accounts_take(sl_async *n, const sl_event *e, sl_error *error) {
    sl_accounts *c = &n->accounts;
    sl_averager *a = &n->averager;
    if (c->ends == NULL || e->peer >= c->count || e->exchange == 0 || e->step > HOLDS)
        return sl_fail_edge(error, SL_EPROTO, e->peer, n->settings.rank, n->state.round,
                            "an account came of an average that was not cut");
    if (e->step == CLAIM) {
        if (a->phase == SL_AVERAGER_ASKS && a->partner == e->peer && a->event == e->exchange)
            sl_accounts_cut(n, e->peer); /* it is cut there: no answer comes any more */
        c->ends[e->peer].claimed = e->exchange;
    } else if (c->stage == SL_CLAIM_OPEN && a->account.partner == e->peer &&
               a->account.event == e->exchange) {
        hold(n, e->part);
    }
    return 0;
}

void sl_accounts_lose(sl_async *n, uint32_t peer) {
    if (!sl_accounts_are_open(n) || n->averager.account.partner != peer)
        return;
    hold(n, n->parts);
}

bool sl_accounts_are_open(const sl_async *n) {
    return n->accounts.stage == SL_CLAIM_DUE || n->accounts.stage == SL_CLAIM_OPEN;
}
