/* leader.c - how a leader comes to a decision; see state.h and membership.h. */
#include "membership/state.h"

/* ---- PREPARE ---- */

static bool is_rank_of_view(const sl_membership *m, uint32_t rank) {
    return sl_view_member(sl_membership_view(m), rank) != NULL;
}

static void ask_missing(sl_membership *m) {
    m->change.sent_s = m->now_s;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (m->change.answers[i].asked && !m->change.answers[i].here)
            sl_membership_post(m, i, SL_MEMBERSHIP_PREPARE, m->change.ballot, NULL);
}

/* Members of the newest view, the suspected too, and processes that join. */
static bool is_concerned(const sl_membership *m, uint32_t rank) {
    const sl_peer *p = &m->peers[rank];
    return is_rank_of_view(m, rank) || (p->known && !p->lost && p->standing == SL_JOINS);
}

static void answer_oneself(sl_membership *m) {
    m->change.answers[m->settings.rank] = (sl_answer){.asked = true,
                                                      .here = true,
                                                      .cut = m->view.cut,
                                                      .last = m->wishes.last,
                                                      .standing = m->standing,
                                                      .incarnation = m->settings.incarnation,
                                                      .round = m->node.round};
    m->change.found.decision.view.number = 0;
    if (sl_membership_has_accepted(m))
        sl_decision_copy(&m->change.found, &m->promise.accepted.decision);
}

static void prepare(sl_membership *m) {
    sl_change *c = &m->change;
    c->ballot = (sl_ballot){m->promise.ballot.counter + 1, m->settings.rank};
    sl_member_promise(m, c->ballot);
    c->phase = PHASE_PREPARING;
    c->since_s = m->now_s;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        c->answers[i] = (sl_answer){.asked = i != m->settings.rank && is_concerned(m, i)};
    answer_oneself(m);
    ask_missing(m);
}

/* Is it time to go on without those who are missing? A member that is reached is waited for: if it
 * does not live, it is lost soon. One that says that it is ahead does not answer. */
static bool may_go_on(const sl_membership *m, bool (*is_missing)(const sl_membership *, uint32_t)) {
    bool missing = false, awaited = false;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (is_missing(m, i)) {
            missing = true;
            awaited |= is_rank_of_view(m, i) && !sl_membership_misses(m, i) &&
                       m->peers[i].number <= m->view.number;
        }
    return !missing || (!awaited && m->now_s - m->change.since_s >= SL_ANSWER_S);
}

/* A process that has ended is not waited for. */
static bool has_not_answered(const sl_membership *m, uint32_t rank) {
    const sl_answer *a = &m->change.answers[rank];
    return a->asked && !a->here && !sl_membership_has_ended(m, rank);
}

/* A process that joins is waited for as the proposal is new. */
static bool has_not_accepted(const sl_membership *m, uint32_t rank) {
    const sl_answer *a = &m->change.answers[rank];
    return a->here && !a->accepts && !sl_membership_has_ended(m, rank);
}

/* ---- what to propose ---- */

/* As a member: one that joins again promises nothing. */
static bool has_answered(const sl_membership *m, const sl_member *member) {
    const sl_answer *a = &m->change.answers[member->rank];
    return a->here && a->incarnation == member->incarnation && sl_standing_is_member(a->standing);
}

static bool has_accepted(const sl_membership *m, const sl_member *member) {
    return has_answered(m, member) && m->change.answers[member->rank].accepts;
}

static bool stays(const sl_membership *m, uint32_t rank) {
    const sl_answer *a = &m->change.answers[rank];
    return a->here && a->standing == SL_MEMBER && !sl_membership_misses(m, rank);
}

static bool is_last(const sl_membership *m) {
    const sl_view *e = sl_membership_view(m);
    bool last = false;
    for (uint32_t i = 0; i < e->count; i++)
        last =
            last || (has_answered(m, &e->members[i]) && m->change.answers[e->members[i].rank].last);
    return last;
}

/* Two views one after the other have a member in common. */
static bool takes_part(const sl_membership *m, uint32_t rank) {
    const sl_answer *a = &m->change.answers[rank];
    return stays(m, rank) || (a->here && a->standing == SL_JOINS && !is_last(m) &&
                              !sl_membership_misses(m, rank) && stays(m, a->sponsor));
}

static void add_members(sl_membership *m, sl_decision *d) {
    sl_kept_decision *p = &m->change.proposal;
    const uint32_t broken_max = sl_broken_max(m->settings.ranks_max);
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (takes_part(m, i))
            p->members[d->view.count++] = (sl_member){i, m->change.answers[i].incarnation};
    for (uint32_t i = 0; i < d->view.count; i++)
        for (uint32_t j = i + 1; j < d->view.count; j++)
            if (d->view.broken_count < broken_max &&
                sl_cause_is_cut(m, p->members[i].rank, p->members[j].rank))
                p->broken[d->view.broken_count++] =
                    (sl_pair){p->members[i].rank, p->members[j].rank};
}

/* Has somebody of the newest view gone without a word, or its node been cut? */
static bool has_lost(const sl_membership *m) {
    const sl_view *e = sl_membership_view(m);
    for (uint32_t i = 0; i < e->count; i++)
        if (!has_answered(m, &e->members[i]) || m->change.answers[e->members[i].rank].cut)
            return true;
    return false;
}

/* Its first round comes after all that any member is in. */
static void propose_anew(sl_membership *m) {
    sl_kept_decision *p = &m->change.proposal;
    const sl_view *old = sl_membership_view(m);
    sl_decision d = {
        .view = {.number = m->view.number + 1, .members = p->members, .broken = p->broken},
        .cut = has_lost(m),
        .last = is_last(m)};
    uint64_t last = 0;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++) {
        const sl_answer *a = &m->change.answers[i];
        if (a->here && sl_standing_is_member(a->standing) && a->round > last)
            last = a->round;
    }
    add_members(m, &d);
    d.view.round = last + 1;
    d.view.exchange = sl_view_exchange_at(old->exchange, old->round, last, m->settings.period);
    sl_decision_copy(p, &d);
}

/* Is the proposal the view that all are in, and does each node exchange under it? */
static bool changes_nothing(const sl_membership *m) {
    const sl_view *old = sl_membership_view(m), *new = &m->change.proposal.decision.view;
    if (m->change.proposal.decision.cut || m->change.proposal.decision.last ||
        sl_cause_is_renewed(m) || old->count != new->count ||
        old->broken_count != new->broken_count)
        return false;
    for (uint32_t i = 0; i < new->count; i++)
        if (!sl_view_has(old, new->members[i].rank, new->members[i].incarnation) ||
            m->change.answers[new->members[i].rank].standing != SL_MEMBER)
            return false;
    for (uint32_t i = 0; i < new->broken_count; i++)
        if (!sl_view_is_broken(old, new->broken[i].low, new->broken[i].high))
            return false;
    return true;
}

/* ---- decisions ---- */

static void tell(sl_membership *m, sl_membership_type type, const sl_decision *d) {
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (i != m->settings.rank && m->change.answers[i].here)
            sl_membership_post(m, i, type, m->change.ballot, d);
}

static void release(sl_membership *m) {
    tell(m, SL_MEMBERSHIP_RELEASE, NULL);
    m->change.phase = PHASE_IDLE;
    sl_member_release(m, m->change.ballot);
    m->quiet_s = m->now_s + SL_ANSWER_S;
}

static void commit(sl_membership *m) {
    sl_change *c = &m->change;
    tell(m, SL_MEMBERSHIP_COMMIT, &c->proposal.decision);
    c->phase = PHASE_IDLE;
    sl_member_consider(m, m->settings.rank, &c->proposal.decision);
}

static void request_missing(sl_membership *m) {
    m->change.sent_s = m->now_s;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (i != m->settings.rank && has_not_accepted(m, i))
            sl_membership_post(m, i, SL_MEMBERSHIP_ACCEPT, m->change.ballot,
                               &m->change.proposal.decision);
}

static void commit_if_accepted(sl_membership *m) {
    if (may_go_on(m, has_not_accepted) && sl_quorum_has(m, has_accepted))
        commit(m);
}

/* May what was found hold already? Not if a member of it has begun later rounds: a leader that did
 * not find it has released that one, with a quorum. */
static bool may_hold(const sl_membership *m) {
    const sl_view *e = &m->change.found.decision.view;
    if (e->number != m->view.number + 1)
        return false;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++) {
        const sl_answer *a = &m->change.answers[i];
        if (a->here && sl_standing_is_member(a->standing) && sl_view_has(e, i, a->incarnation) &&
            a->round >= e->round)
            return false;
    }
    return true;
}

/* What may hold already is proposed again. */
static void propose(sl_membership *m) {
    sl_change *c = &m->change;
    const bool is_new = !may_hold(m);
    if (!sl_quorum_has(m, has_answered))
        return;
    if (is_new)
        propose_anew(m);
    else
        sl_decision_copy(&c->proposal, &c->found.decision);
    c->proposal.decision.ballot = c->ballot;
    const bool is_vain = is_new && changes_nothing(m);
    if (is_vain || (is_new && sl_cause_yields(m))) {
        m->cause_s = is_vain ? -1 : m->cause_s;
        release(m);
        return;
    }
    c->phase = PHASE_ACCEPTING;
    c->since_s = m->now_s;
    c->answers[m->settings.rank].accepts = sl_member_accept(m, &c->proposal.decision, c->ballot);
    request_missing(m);
    commit_if_accepted(m);
}

/* ---- events ---- */

void sl_leader_on_answer(sl_membership *m, const sl_membership_message *message) {
    sl_change *c = &m->change;
    const bool joins = message->standing == SL_JOINS,
               is_member = sl_view_has(sl_membership_view(m), message->from, message->incarnation),
               is_behind = message->number < m->view.number && (!joins || is_member);
    if (c->phase != PHASE_PREPARING || sl_ballot_compare(message->ballot, c->ballot) != 0 ||
        !c->answers[message->from].asked || is_behind ||
        ((!joins || is_member) && message->number > m->view.number))
        return; /* where COMMIT is on its way to it, it answers again */
    if (message->decision != NULL && !sl_member_shares(m, message->from, message->decision))
        return;
    if (sl_standing_is_member(message->standing) && !sl_claims_round(m, message->round))
        return;
    c->answers[message->from] = (sl_answer){.asked = true,
                                            .here = true,
                                            .cut = message->cut == m->view.number,
                                            .last = message->last,
                                            .standing = message->standing,
                                            .incarnation = message->incarnation,
                                            .round = message->round,
                                            .sponsor = message->sponsor};
    if (message->accepted != NULL && sl_claims_next(m, message->accepted) &&
        (c->found.decision.view.number == 0 ||
         sl_ballot_compare(message->accepted->ballot, c->found.decision.ballot) > 0))
        sl_decision_copy(&c->found, message->accepted);
    if (may_go_on(m, has_not_answered))
        propose(m);
}

/* It is bound already, and will answer that one. */
void sl_leader_on_refuse(sl_membership *m, const sl_membership_message *message) {
    if (m->change.phase == PHASE_IDLE || sl_ballot_compare(message->ballot, m->change.ballot) <= 0)
        return;
    m->change.phase = PHASE_IDLE;
    m->promise.ballot = message->ballot;
    m->quiet_s = m->now_s + 2 * SL_ANSWER_S;
}

void sl_leader_on_accepted(sl_membership *m, const sl_membership_message *message) {
    sl_change *c = &m->change;
    sl_answer *a = &c->answers[message->from];
    if (c->phase != PHASE_ACCEPTING || sl_ballot_compare(message->ballot, c->ballot) != 0 ||
        !a->here || a->incarnation != message->incarnation)
        return;
    a->accepts = true;
    commit_if_accepted(m);
}

static void begin_change(sl_membership *m) {
    const bool is_there = sl_cause_is_there(m);
    if (!is_there)
        m->cause_s = -1;
    else if (m->cause_s < 0)
        m->cause_s = m->now_s;
    const bool may = m->now_s >= m->quiet_s || m->wishes.renews; /* that waits for nobody */
    if (is_there && may && sl_cause_leads(m)) {
        prepare(m);
        if (may_go_on(m, has_not_answered))
            propose(m);
    }
}

/* Where members are lost meanwhile, or have heard another leader, it asks anew. */
static void repeat_request(sl_membership *m) {
    commit_if_accepted(m);
    if (m->change.phase != PHASE_ACCEPTING)
        return;
    if (may_go_on(m, has_not_accepted) || m->now_s - m->change.since_s > m->settings.grace_s)
        m->change.phase = PHASE_IDLE; /* the promise binds: the next tick asks */
    else if (m->now_s - m->change.sent_s >= SL_REPEAT_S)
        request_missing(m);
}

void sl_leader_tick(sl_membership *m) {
    switch (m->change.phase) {
    case PHASE_IDLE:
        begin_change(m);
        break;
    case PHASE_PREPARING:
        if (may_go_on(m, has_not_answered))
            propose(m);
        if (m->change.phase == PHASE_PREPARING && m->now_s - m->change.sent_s >= SL_REPEAT_S)
            ask_missing(m);
        break;
    case PHASE_ACCEPTING:
        repeat_request(m);
        break;
    }
}
