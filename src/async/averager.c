/* averager.c - see averager.h. */
#include "async/averager.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "starling/rng.h"

int sl_averager_open(sl_averager *out, uint64_t seed, uint32_t rank, uint32_t parts, uint32_t peers,
                     sl_error *error) {
    *out = (sl_averager){.seed = seed, .rank = rank, .parts = parts, .room = peers};
    out->waiting = calloc(peers + 1u, sizeof *out->waiting);
    out->refused = calloc(peers + 1u, sizeof *out->refused);
    if (out->waiting != NULL && out->refused != NULL)
        return 0;
    sl_averager_close(out);
    return sl_fail(error, SL_ENOMEM, "out of memory for the asks of %u neighbours", peers);
}

void sl_averager_close(sl_averager *p) {
    free(p->waiting);
    free(p->refused);
    p->waiting = p->refused = NULL;
}

static void be_free(sl_averager *p) {
    p->phase = SL_AVERAGER_FREE;
    p->sent = p->come = p->averaged = 0;
}

static void begin(sl_averager *p, sl_averager_phase phase, uint32_t partner, uint64_t event) {
    assert(p->phase == SL_AVERAGER_FREE);
    p->phase = phase;
    p->partner = partner;
    p->event = event;
}

bool sl_averager_is_free(const sl_averager *p) {
    return p->phase == SL_AVERAGER_FREE && !p->is_cut;
}

bool sl_averager_may_ask(const sl_averager *p) {
    return sl_averager_is_free(p) && !p->rests && p->waiting_count == 0;
}

void sl_averager_ask_for(sl_averager *p, uint32_t partner, uint64_t event) {
    assert(sl_averager_may_ask(p));
    begin(p, SL_AVERAGER_ASKS, partner, event);
}

/* ---- asks ---- */

static uint64_t priority(const sl_averager *p, uint32_t rank, uint64_t event) {
    sl_rng draw = sl_rng_open(p->seed, rank, event, SL_PURPOSE_PAIR);
    return sl_rng_u64(&draw);
}

/* Is the ask above the own one? */
static bool is_above(const sl_averager *p, const sl_averager_message *ask) {
    const uint64_t theirs = priority(p, ask->peer, ask->event),
                   ours = priority(p, p->rank, p->event);
    return theirs != ours ? theirs > ours : ask->peer > p->rank;
}

static bool is_listed(const sl_averager_ask *asks, uint32_t count, uint32_t peer) {
    uint32_t i = 0;
    while (i < count && asks[i].peer != peer)
        i++;
    return i < count;
}

static int refuse_to_believe(const sl_averager_message *m, const char *why, sl_error *error) {
    return sl_fail(error, SL_EPROTO, "node %u, average %" PRIu64 ", part %u: %s", m->peer, m->event,
                   m->part, why);
}

static bool is_of_average(const sl_averager *p, const sl_averager_message *m) {
    return p->phase != SL_AVERAGER_FREE && p->partner == m->peer && p->event == m->event;
}

static int take_ask(sl_averager *p, const sl_averager_message *m, sl_averager_use *use,
                    sl_error *error) {
    const sl_averager_ask ask = {m->peer, m->event};
    if (p->phase == SL_AVERAGER_SERVES && is_of_average(p, m)) {
        if (m->part != p->come || m->part >= p->parts)
            return refuse_to_believe(m, "it is not the next part of the ask", error);
        p->come++;
        *use = SL_AVERAGER_KEEP;
        return 0;
    }
    const bool is_served = p->phase == SL_AVERAGER_SERVES && p->partner == m->peer &&
                           p->averaged < p->parts,
               asks_again = is_served || is_listed(p->waiting, p->waiting_count, m->peer) ||
                            is_listed(p->refused, p->refused_count, m->peer);
    if (m->part != 0 || asks_again || p->waiting_count == p->room || p->refused_count == p->room)
        return refuse_to_believe(m, "it asks before it has an answer", error);
    if (p->rests || (p->phase == SL_AVERAGER_ASKS && !is_above(p, m))) {
        p->refused[p->refused_count++] = ask;
        *use = SL_AVERAGER_DROP;
        return 0;
    }
    p->waiting[p->waiting_count++] = ask;
    *use = SL_AVERAGER_KEEP;
    return 0;
}

static void take_off(sl_averager_ask *asks, uint32_t *count, uint32_t at) {
    memmove(asks + at, asks + at + 1, (--*count - at) * sizeof *asks);
}

bool sl_averager_keeps(const sl_averager *p, uint32_t peer) {
    return is_listed(p->waiting, p->waiting_count, peer) ||
           (p->phase == SL_AVERAGER_SERVES && p->partner == peer && p->averaged < p->parts);
}

void sl_averager_turn(sl_averager *p) {
    if (p->phase != SL_AVERAGER_FREE || p->rests || p->waiting_count == 0)
        return;
    begin(p, SL_AVERAGER_SERVES, p->waiting[0].peer, p->waiting[0].event);
    take_off(p->waiting, &p->waiting_count, 0);
    p->come = 1;
}

/* ---- answers ---- */

static int take_answer(sl_averager *p, const sl_averager_message *m, sl_averager_use *use,
                       sl_error *error) {
    if (p->phase != SL_AVERAGER_ASKS || !is_of_average(p, m) || m->part != p->averaged ||
        m->part >= p->sent)
        return refuse_to_believe(m, "it answers what was not asked", error);
    *use = SL_AVERAGER_AVERAGE;
    p->averaged++;
    if (p->averaged == p->parts)
        be_free(p);
    return 0;
}

static int take_refusal(sl_averager *p, const sl_averager_message *m, sl_averager_use *use,
                        sl_error *error) {
    if (p->phase != SL_AVERAGER_ASKS || !is_of_average(p, m) || p->averaged > 0 || p->sent == 0)
        return refuse_to_believe(m, "it refuses what was not asked", error);
    *use = SL_AVERAGER_END;
    be_free(p);
    return 0;
}

/* Its peer has not cut yet. */
static bool is_late(const sl_averager *p, const sl_averager_message *m) {
    return p->is_cut && m->peer == p->account.partner && m->event == p->account.event;
}

int sl_averager_take(sl_averager *p, const sl_averager_message *m, sl_averager_use *use,
                     sl_error *error) {
    *use = SL_AVERAGER_DROP;
    if (is_late(p, m))
        return 0;
    switch (m->step) {
    case SL_AVERAGER_ASK:
        return take_ask(p, m, use, error);
    case SL_AVERAGER_ANSWER:
        return take_answer(p, m, use, error);
    case SL_AVERAGER_BUSY:
        return take_refusal(p, m, use, error);
    }
    return refuse_to_believe(m, "it is no step of an average", error);
}

/* ---- what leaves ---- */

bool sl_averager_next(const sl_averager *p, sl_averager_message *out) {
    if (p->refused_count > 0) {
        *out = (sl_averager_message){p->refused[0].peer, p->refused[0].event, SL_AVERAGER_BUSY, 0};
        return true;
    }
    const bool asks = p->phase == SL_AVERAGER_ASKS;
    const uint32_t may = !asks ? p->come : p->averaged > 0 ? p->parts : 1;
    if (p->phase == SL_AVERAGER_FREE || p->sent >= may)
        return false;
    *out = (sl_averager_message){p->partner, p->event, asks ? SL_AVERAGER_ASK : SL_AVERAGER_ANSWER,
                                 p->sent};
    return true;
}

bool sl_averager_left(sl_averager *p, const sl_averager_message *m) {
    if (m->step == SL_AVERAGER_BUSY) {
        take_off(p->refused, &p->refused_count, 0);
        return false;
    }
    assert(is_of_average(p, m) && m->part == p->sent);
    p->sent++;
    if (m->step == SL_AVERAGER_ASK)
        return false;
    p->averaged++;
    return true;
}

void sl_averager_acknowledge(sl_averager *p, uint32_t peer) {
    if (p->phase == SL_AVERAGER_SERVES && p->partner == peer && p->averaged == p->parts)
        be_free(p);
}

/* ---- rest ---- */

void sl_averager_rest(sl_averager *p) {
    p->rests = true;
    while (p->waiting_count > 0)
        p->refused[p->refused_count++] = p->waiting[--p->waiting_count];
}

bool sl_averager_is_still(const sl_averager *p) {
    return p->phase == SL_AVERAGER_FREE && p->refused_count == 0;
}

static void forget(sl_averager_ask *asks, uint32_t *count, uint32_t peer) {
    for (uint32_t i = *count; i-- > 0;)
        if (asks[i].peer == peer)
            take_off(asks, count, i);
}

void sl_averager_cut(sl_averager *p, uint32_t peer) {
    sl_averager_rest(p);
    forget(p->refused, &p->refused_count, peer);
    if (p->phase == SL_AVERAGER_FREE || p->partner != peer)
        return;
    p->is_cut = true;
    p->account = (sl_averager_account){peer, p->event, p->averaged,
                                       .served = p->phase == SL_AVERAGER_SERVES};
    be_free(p);
}

void sl_averager_go_on(sl_averager *p) {
    assert(p->phase == SL_AVERAGER_FREE && p->waiting_count == 0); /* who leaves may ask late */
    p->rests = p->is_cut = false;
}
