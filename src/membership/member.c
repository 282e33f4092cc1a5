/* member.c - what every member does; see member.h and membership.h. */
#include "membership/member.h"

#include <math.h>

#include "membership/cause.h"

enum { PACE_ROUNDS = 8 }; /* in which a slower pace is believed */

/* ---- promises ---- */

/* Rounds that may begin while all agree. Who joins waits until they are over, so they are not more
 * than agreeing takes: the next one waits for that, if it is due before. */
static uint64_t slack_of(const sl_membership *m) {
    if (m->pace_s <= 0)
        return m->settings.slack;
    const double rounds =
        sl_cause_is_own(m) ? ceil(SL_AGREE_S / m->pace_s) : floor(SL_BRISK_S / m->pace_s);
    return rounds < m->settings.slack ? (uint64_t)rounds : m->settings.slack;
}

/* The last round that it may begin before all have agreed, if an epoch begins with round `first`.
 */
static uint64_t limit_of(const sl_membership *m, uint64_t first) {
    const uint64_t last = m->round + slack_of(m);
    return last > first ? last : first;
}

bool sl_member_promise(sl_membership *m, sl_ballot ballot) {
    const int order = sl_ballot_compare(ballot, m->promised);
    if (order < 0 || (order == 0 && !m->bound))
        return false;
    m->promised = ballot;
    if (!m->bound) /* else the earlier limit stays: what was accepted relies on it */
        m->limit = limit_of(m, m->hash != 0 ? m->newest.decision.epoch.round : 0);
    m->bound = true;
    return true;
}

static void answer(sl_membership *m, uint32_t to) {
    sl_membership_message *reply = sl_membership_post(m, to, SL_MEMBERSHIP_ANSWER);
    reply->ballot = m->promised;
    reply->limit = m->limit;
    reply->decision = m->hash != 0 ? &m->newest.decision : NULL;
    reply->accepted = m->accepted.decision.epoch.number != 0 ? &m->accepted.decision : NULL;
}

/* A leader that is told so leaves it to the other for a while. */
bool sl_member_refuses(sl_membership *m, const sl_membership_message *message) {
    const bool is_lower = sl_ballot_compare(message->ballot, m->promised) < 0;
    if (is_lower)
        sl_membership_post(m, message->from, SL_MEMBERSHIP_REFUSE)->ballot = m->promised;
    return is_lower;
}

void sl_member_on_prepare(sl_membership *m, const sl_membership_message *message) {
    if (m->leaves_after != 0 || sl_member_refuses(m, message))
        return;
    const bool repeated = sl_ballot_compare(message->ballot, m->promised) == 0;
    if (!sl_member_promise(m, message->ballot))
        return;
    if (!repeated) {
        m->change.phase = PHASE_IDLE;
        m->quiet_s = m->now_s + 2 * SL_ANSWER_S;
    }
    answer(m, message->from);
}

/* Who has accepted it while it wanted to join may not go back on that: it may hold. */
static bool may_join(const sl_membership *m, const sl_epoch *e) {
    const bool has_accepted = m->accepted.decision.epoch.number != 0;
    return m->joins || (has_accepted && m->accepted.hash == sl_epoch_hash(e));
}

bool sl_member_accept(sl_membership *m, const sl_decision *d, sl_ballot ballot) {
    const sl_epoch *e = &d->epoch;
    if (!m->bound || sl_ballot_compare(ballot, m->promised) != 0 || e->number <= m->number ||
        !sl_epoch_has(e, m->settings.rank, m->settings.incarnation) || m->queued == QUEUE_MAX)
        return false;
    const sl_epoch_side *side = sl_decision_side(d, m->hash);
    if (m->hash != 0 ? side == NULL || side->last < m->limit : !may_join(m, e))
        return false;
    sl_decision_copy(&m->accepted, d);
    m->accepted.decision.ballot = ballot;
    return true;
}

/* No promise to this ballot, or a lower one, binds any more, and none is made. False: a higher one
 * has been promised. */
static bool settle(sl_membership *m, sl_ballot ballot) {
    if (sl_ballot_compare(ballot, m->promised) < 0)
        return false;
    m->promised = ballot;
    m->bound = false;
    return true;
}

void sl_member_release(sl_membership *m, sl_ballot ballot) {
    const bool was_bound = m->bound;
    if (!settle(m, ballot))
        return;
    if (was_bound)
        m->quiet_s = m->now_s + SL_REPEAT_S; /* its leader has done: who reaches more may lead */
    m->accepted.decision.epoch.number = 0;
    sl_member_begin(m);
}

/* ---- epochs ---- */

/* It begins after round `last`. */
static void take(sl_membership *m, const sl_decision *d, uint64_t last) {
    const sl_epoch *e = &d->epoch;
    sl_decision_copy(&m->newest, d);
    sl_decision_copy(&m->queue[m->queued].kept, d);
    m->queue[m->queued++].last = last;
    m->number = e->number;
    m->hash = m->newest.hash;
    m->aside = m->aside && !m->joins;
    m->joins = false;
    if (m->accepted.decision.epoch.number <= m->number ||
        sl_decision_side(&m->accepted.decision, m->hash) == NULL) /* it cannot be taken any more */
        m->accepted.decision.epoch.number = 0;
    if (!settle(m, d->ballot) && m->bound)
        m->limit = limit_of(m, e->round);
    m->change.phase = PHASE_IDLE;
    m->quiet_s = m->now_s + SL_REPEAT_S; /* whatever its leader was waited for is over */
    m->cause_s = -1;
    m->news_due = true;
    m->update->committed = &m->newest.decision;
    sl_membership_forget_others(m);
    sl_membership_compare(m);
    sl_member_begin(m);
}

/* `d` is the others' epoch. */
static void drop_out(sl_membership *m, const sl_decision *d) {
    sl_decision_copy(&m->newest, d);
    m->hash = 0;
    m->queued = 0;
    m->bound = m->joins = false;
    m->accepted.decision.epoch.number = 0;
    m->change.phase = PHASE_IDLE;
    m->cause_s = -1;
    m->news_due = true;
    m->leaves = m->leaves && !m->aside;
    m->update->left = m->leaves;
    m->update->dropped = !m->leaves;
}

/* Could this round be the last one under the newest epoch? */
static bool can_end_at(const sl_membership *m, uint64_t last) {
    return last >= (m->queued > 0 ? m->newest.decision.epoch.round : m->round);
}

static void join_view(sl_membership *m, const sl_decision *d, const sl_epoch_side *side) {
    if (m->queued == QUEUE_MAX)
        return;
    if (m->hash == 0 && m->joins) {
        take(m, d, m->round);
    } else if (m->hash == 0) { /* it has lost its sponsor, or was dropped after its answer */
        m->number = d->epoch.number;
        m->news_due = true;
    } else if (side != NULL && can_end_at(m, side->last)) {
        take(m, d, side->last);
    }
}

/* Is another process of its rank in it? */
static bool has_heir(const sl_membership *m, const sl_decision *d) {
    return sl_epoch_member(&d->epoch, m->settings.rank) != NULL;
}

/* Are most of its epoch in it? */
static bool goes_on(const sl_membership *m, const sl_decision *d) {
    return sl_epoch_has_most_of(&d->epoch, &m->newest.decision.epoch);
}

static void leave_view(sl_membership *m, const sl_decision *d, const sl_epoch_side *side) {
    const bool is_bound = m->bound && sl_ballot_compare(d->ballot, m->promised) < 0;
    if (m->leaves && !m->aside && !is_bound && side != NULL && can_end_at(m, side->last)) {
        m->leaves_after = side->last;
        m->nobody_stays = d->epoch.count == 0;
        m->bound = false;
        m->change.phase = PHASE_IDLE;
        sl_member_begin(m);
    } else if (has_heir(m, d) && (side != NULL || goes_on(m, d))) {
        m->update->replaced = true;
    } else if (m->aside || goes_on(m, d)) {
        drop_out(m, d);
    }
}

void sl_member_consider(sl_membership *m, const sl_decision *d) {
    const sl_epoch *e = &d->epoch;
    if (m->leaves_after != 0)
        return;
    if (m->hash != 0 && sl_epoch_hash(e) == m->hash) {
        if (m->accepted.decision.epoch.number == 0) /* else that may hold, after this one */
            sl_member_release(m, d->ballot);
        return;
    }
    if (e->number <= m->number)
        return;
    const sl_epoch_side *side = m->hash != 0 ? sl_decision_side(d, m->hash) : NULL;
    if (sl_epoch_has(e, m->settings.rank, m->settings.incarnation))
        join_view(m, d, side);
    else if (m->hash != 0)
        leave_view(m, d, side);
}

/* ---- rounds ---- */

/* Nobody trains on alone while the others may drop it: it would come back before its own rounds. */
static bool is_held(const sl_membership *m, uint64_t round) {
    const uint64_t first = m->newest.decision.epoch.round;
    const uint64_t calm = m->calm > first ? m->calm : first;
    return (m->bound && round > m->limit) ||
           (round > calm + slack_of(m) && m->leaves_after == 0 && sl_cause_is_own(m));
}

static void note_pace(sl_membership *m) {
    const double took_s = m->now_s - m->began_s, pace_s = m->pace_s;
    if (m->began_s >= 0)
        m->pace_s =
            pace_s < 0 || took_s < pace_s ? took_s : pace_s + (took_s - pace_s) / PACE_ROUNDS;
}

static void begin_round(sl_membership *m, uint64_t round) {
    note_pace(m);
    m->began_s = m->now_s;
    m->ready = false;
    if (!sl_cause_is_own(m))
        m->calm = round;
    m->round = round;
    m->update->begin = true;
    m->update->round = round;
}

static void begin_epoch(sl_membership *m) {
    sl_decision_copy(&m->begun, &m->queue[0].kept.decision);
    const sl_kept_decision first = m->queue[0].kept;
    m->queued--;
    for (uint32_t i = 0; i < m->queued; i++)
        m->queue[i] = m->queue[i + 1];
    m->queue[m->queued].kept = first; /* its memory */
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        m->peers[i].folded = false;
    m->update->view = &m->begun.decision.epoch;
    m->update->sides = m->begun.decision.side_count;
    begin_round(m, m->begun.decision.epoch.round);
}

static void leave(sl_membership *m) {
    m->update->left = true;
    m->update->nobody_stays = m->nobody_stays;
}

void sl_member_begin(sl_membership *m) {
    if (!m->ready || m->hash == 0)
        return;
    const uint64_t next = m->round + 1;
    if (m->queued > 0 && m->round >= m->queue[0].last)
        begin_epoch(m);
    else if (m->leaves_after != 0 && next > m->leaves_after)
        leave(m);
    else if (m->queued > 0 || !is_held(m, next))
        begin_round(m, next);
}
