/* member.c - what every member does; see state.h and membership.h. */
#include "membership/state.h"

/* ---- promises ---- */

bool sl_member_promise(sl_membership *m, sl_ballot ballot) {
    const int order = sl_ballot_compare(ballot, m->promise.ballot);
    if (order < 0 || (order == 0 && !m->promise.bound))
        return false;
    m->promise.ballot = ballot;
    m->promise.bound = true;
    return true;
}

/* A process that joins decides nothing, so that it promises nothing. */
static void answer(sl_membership *m, uint32_t to, sl_ballot ballot) {
    sl_membership_message *reply =
        sl_membership_post(m, to, SL_MEMBERSHIP_ANSWER, ballot,
                           sl_membership_takes_part(m) ? &m->view.newest.decision : NULL);
    reply->round = m->node.round;
    reply->last = m->wishes.last;
    reply->accepted = sl_membership_has_accepted(m) ? &m->promise.accepted.decision : NULL;
}

/* A leader that is told so leaves it to the other for a while. */
static bool refuses(sl_membership *m, const sl_membership_message *message) {
    const bool is_lower = sl_ballot_compare(message->ballot, m->promise.ballot) < 0;
    if (is_lower)
        sl_membership_post(m, message->from, SL_MEMBERSHIP_REFUSE, m->promise.ballot, NULL);
    return is_lower;
}

/* A view that it has not heard of, or that has not begun here, comes first: its leader asks
 * again. */
void sl_member_on_prepare(sl_membership *m, const sl_membership_message *message) {
    if (m->standing == SL_JOINS)
        answer(m, message->from, message->ballot);
    m->news.due = m->news.due || message->number > m->view.number; /* so that it hears of that */
    if (!sl_membership_takes_part(m) || m->wishes.leaves_after != 0 || m->view.pending ||
        sl_membership_ends(m) || message->number != m->view.number || refuses(m, message))
        return;
    const bool repeated = sl_ballot_compare(message->ballot, m->promise.ballot) == 0;
    if (!sl_member_promise(m, message->ballot))
        return;
    if (!repeated) {
        m->change.phase = PHASE_IDLE;
        m->quiet_s = m->now_s + 2 * SL_ANSWER_S;
    }
    answer(m, message->from, m->promise.ballot);
}

bool sl_member_accept(sl_membership *m, const sl_decision *d, sl_ballot ballot) {
    const sl_view *e = &d->view;
    if (!m->promise.bound || sl_ballot_compare(ballot, m->promise.ballot) != 0 ||
        !sl_claims_next(m, d) ||
        (sl_view_has(e, m->settings.rank, m->settings.incarnation) && e->round <= m->node.round))
        return false;
    sl_decision_copy(&m->promise.accepted, d);
    m->promise.accepted.decision.ballot = ballot;
    return true;
}

void sl_member_on_accept(sl_membership *m, const sl_membership_message *message) {
    const bool joins = m->standing == SL_JOINS;
    if (!joins && (!sl_membership_takes_part(m) || refuses(m, message) ||
                   !sl_member_accept(m, message->decision, message->ballot)))
        return;
    sl_membership_post(m, message->from, SL_MEMBERSHIP_ACCEPTED, message->ballot, NULL);
}

/* No promise to this ballot, or a lower one, binds any more, and none is made. False: a higher one
 * has been promised. */
static bool settle(sl_membership *m, sl_ballot ballot) {
    if (sl_ballot_compare(ballot, m->promise.ballot) < 0)
        return false;
    m->promise.ballot = ballot;
    m->promise.bound = false;
    return true;
}

void sl_member_release(sl_membership *m, sl_ballot ballot) {
    const bool was_bound = m->promise.bound;
    if (!sl_membership_takes_part(m) || !settle(m, ballot))
        return;
    if (was_bound)
        m->quiet_s =
            m->now_s + SL_REPEAT_S; /* its leader has done: one that reaches more may lead */
    sl_member_begin(m);
}

/* ---- views ---- */

static void end_change(sl_membership *m) {
    m->promise.accepted.decision.view.number = 0;
    m->promise.bound = false;
    m->change.phase = PHASE_IDLE;
    m->cause_s = -1;
    m->news.due = true;
}

static void take(sl_membership *m, const sl_decision *d) {
    sl_decision_copy(&m->view.newest, d);
    m->view.number = d->view.number;
    if (m->standing == SL_JOINS) {
        m->standing = SL_MEMBER;
        m->node.round = d->view.round - 1;
        m->promise.ballot = d->ballot;
        m->node.ready = true;
        m->node.is_cut = false;
    }
    m->view.pending = true;
    m->view.cut = false;
    settle(m, d->ballot); /* a promise that is higher was for this view, too */
    end_change(m);
    m->quiet_s = m->now_s + SL_REPEAT_S; /* whatever its leader was waited for is over */
    m->update->committed = &m->view.newest.decision;
    sl_membership_find_followed(m);
    sl_member_begin(m);
}

/* `d` is the others' view. */
static void drop_out(sl_membership *m, const sl_decision *d) {
    const bool leaves = m->standing == SL_LEAVES;
    sl_decision_copy(&m->view.newest, d);
    m->view.number = d->view.number;
    m->standing = SL_OUT;
    m->view.pending = m->view.cut = false;
    end_change(m);
    sl_membership_give(m, leaves ? SL_ORDER_LEAVE : SL_ORDER_RETURN);
}

/* The others let it go, after the round before the view's first. */
static void let_go(sl_membership *m, const sl_decision *d) {
    m->wishes.leaves_after = d->view.round - 1;
    m->wishes.all_leave = d->view.count == 0;
    m->view.cut = m->view.cut || d->cut;
    end_change(m);
    sl_member_begin(m);
}

/* Of two views without a common member, or of one number: does this one go on? */
static bool is_larger(const sl_decision *a, const sl_decision *b) {
    if (a->view.count != b->view.count)
        return a->view.count > b->view.count;
    if (a->view.members[0].rank != b->view.members[0].rank)
        return a->view.members[0].rank < b->view.members[0].rank;
    return sl_ballot_compare(a->ballot, b->ballot) > 0;
}

static bool is_same(const sl_view *a, const sl_view *b) {
    bool same = a->number == b->number && a->round == b->round && a->count == b->count;
    for (uint32_t i = 0; i < a->count && same; i++)
        same = sl_view_has(b, a->members[i].rank, a->members[i].incarnation);
    return same;
}

/* Is it a later view than this member's, or one that goes on in place of it? */
static bool follows(const sl_membership *m, const sl_decision *d) {
    if (d->view.count > 0 &&
        (!sl_view_meets(&d->view, sl_membership_view(m)) || d->view.number == m->view.number))
        return is_larger(d, &m->view.newest.decision);
    return d->view.number > m->view.number;
}

/* Has it accepted that under this ballot? */
static bool has_accepted(const sl_membership *m, const sl_decision *d) {
    return sl_membership_has_accepted(m) && is_same(&d->view, &m->promise.accepted.decision.view) &&
           sl_ballot_compare(d->ballot, m->promise.accepted.decision.ballot) == 0;
}

/* Does this process say that it is in that view, or a later one? */
static bool lives_in(const sl_membership *m, const sl_member *member, const sl_view *e) {
    const sl_peer *p = &m->peers[member->rank];
    return p->incarnation == member->incarnation && p->number >= e->number &&
           sl_standing_is_member(p->standing);
}

/* Do most of a view's other members say so, that are not known to have ended? Who is in this
 * member's own view says that one's number. */
static bool is_lived_in(const sl_membership *m, const sl_view *e) {
    const sl_view *own = sl_membership_view(m);
    uint32_t count = 0, others = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        const sl_member *of = &e->members[i];
        const sl_peer *p = &m->peers[of->rank];
        const bool says_own =
            e->number == own->number && sl_view_has(own, of->rank, of->incarnation);
        if (of->rank != m->settings.rank) {
            others += !(p->lost && p->ended);
            count += lives_in(m, of, e) && !says_own;
        }
    }
    return 2 * count > others;
}

/* A view that it has not accepted itself needs a quorum that knows it. Of another part of the
 * network, its own members say it. */
static bool is_believed(const sl_membership *m, const sl_decision *d) {
    const sl_view *e = &d->view;
    if (e->count > 0 && (e->number <= m->view.number || !sl_view_meets(e, sl_membership_view(m))))
        return is_lived_in(m, e);
    if (e->number == m->view.number + 1 && !sl_claims_next(m, d))
        return false;
    return has_accepted(m, d) || sl_quorum_knows(m, e->number);
}

static void consider_as_member(sl_membership *m, const sl_decision *d) {
    const sl_view *e = &d->view;
    const bool has_it = sl_view_has(e, m->settings.rank, m->settings.incarnation);
    const bool is_next =
        e->number == m->view.number + 1 && e->round > m->node.round &&
        !m->view.pending; /* else it has missed one: it is behind, and joins again */
    if (is_same(e, sl_membership_view(m)))
        sl_member_release(m, d->ballot);
    else if (!follows(m, d) || !is_believed(m, d))
        return;
    else if (has_it && is_next)
        take(m, d);
    else if (!has_it && is_next && m->standing == SL_LEAVES)
        let_go(m, d);
    else
        drop_out(m, d);
}

void sl_member_consider(sl_membership *m, uint32_t from, const sl_decision *d) {
    const sl_view *e = &d->view;
    if (m->wishes.leaves_after != 0)
        return;
    if (sl_membership_takes_part(m)) {
        consider_as_member(m, d);
        return;
    }
    if (e->number <= m->view.number || !sl_view_has(e, m->settings.rank, m->settings.incarnation))
        return;
    if (m->standing == SL_JOINS && (from == m->wishes.sponsor || is_lived_in(m, e))) {
        take(m, d);
    } else if (m->standing == SL_OUT && is_lived_in(m, e)) { /* it has lost its sponsor */
        m->view.number = e->number;
        m->news.due = true;
    }
}

bool sl_member_shares(sl_membership *m, uint32_t from, const sl_decision *d) {
    sl_member_consider(m, from, d);
    const bool same = is_same(&d->view, sl_membership_view(m));
    if (same || !sl_membership_takes_part(m) || d->view.number != m->view.number || follows(m, d))
        return same;
    sl_membership_post(m, from, SL_MEMBERSHIP_COMMIT, m->view.newest.decision.ballot,
                       &m->view.newest.decision);
    return false;
}

/* ---- rounds ---- */

static void begin_round(sl_membership *m, uint64_t round) {
    m->node.ready = false;
    m->node.round = round;
    sl_membership_give(m, SL_ORDER_BEGIN);
    m->update->round = round;
}

static void begin_view(sl_membership *m) {
    sl_decision_copy(&m->node.begun, &m->view.newest.decision);
    m->view.pending = m->wishes.renews = m->wishes.last = m->wishes.ends = false;
    m->node.is_cut = false;
    m->update->view = &m->node.begun.decision.view;
    m->update->last = m->node.begun.decision.last;
    begin_round(m, m->node.begun.decision.view.round);
}

void sl_member_begin(sl_membership *m) {
    const uint64_t next = m->node.round + 1;
    if (!m->node.ready || !sl_membership_takes_part(m))
        return;
    if (m->wishes.leaves_after != 0 && next > m->wishes.leaves_after)
        sl_membership_give(m, m->wishes.all_leave ? SL_ORDER_LEAVE_ALL : SL_ORDER_LEAVE);
    else if (m->wishes.leaves_after == 0 && m->view.pending && next >= sl_membership_view(m)->round)
        begin_view(m);
    else if (m->wishes.leaves_after != 0 || m->view.pending || !(m->promise.bound || m->view.cut))
        begin_round(m, next);
}
