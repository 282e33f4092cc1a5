/* leader.c - how a leader comes to a decision; see leader.h and membership.h. */
#include "membership/leader.h"

#include "base/round_up.h"
#include "membership/cause.h"
#include "membership/member.h"

/* ---- PREPARE ---- */

static void ask(sl_membership *m, uint32_t rank) {
    if (rank != m->settings.rank)
        sl_membership_post(m, rank, SL_MEMBERSHIP_PREPARE)->ballot = m->change.ballot;
}

static void ask_missing(sl_membership *m) {
    m->change.sent_s = m->now_s;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (m->change.answers[i].asked && !m->change.answers[i].here)
            ask(m, i);
}

/* Members of the newest epoch, the suspected too, who joins, and who is in another epoch. */
static bool is_concerned(const sl_membership *m, uint32_t rank) {
    const sl_peer *p = &m->peers[rank];
    return sl_epoch_member(&m->newest.decision.epoch, rank) != NULL ||
           (p->known && !p->lost && (p->joins || p->hash != 0));
}

static void answer_oneself(sl_membership *m) {
    const sl_epoch *e = &m->newest.decision.epoch;
    sl_answer *a = &m->change.answers[m->settings.rank];
    const bool has = m->accepted.decision.epoch.number != 0;
    *a = (sl_answer){.asked = true,
                     .here = true,
                     .incarnation = m->settings.incarnation,
                     .number = m->number,
                     .hash = m->hash,
                     .limit = m->limit,
                     .leaves = m->leaves,
                     .mends = sl_membership_mends(m),
                     .accepted = has ? m->accepted.hash : 0,
                     .round = e->round,
                     .exchange = e->exchange};
    m->change.found.decision.epoch.number = 0;
    if (has)
        sl_decision_copy(&m->change.found, &m->accepted.decision);
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void prepare(sl_membership *m) {
    sl_change *c = &m->change;
    c->ballot = (sl_ballot){larger(m->promised.counter, c->refused) + 1, m->settings.rank};
    sl_member_promise(m, c->ballot);
    c->phase = PHASE_PREPARING;
    c->since_s = m->now_s;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        c->answers[i] = (sl_answer){.asked = is_concerned(m, i)};
    answer_oneself(m);
    ask_missing(m);
}

/* Does the leader wait for it, beyond SL_ANSWER_S? */
static bool is_awaited(const sl_membership *m, uint32_t rank) {
    const sl_peer *p = &m->peers[rank];
    return sl_epoch_member(&m->newest.decision.epoch, rank) != NULL && !p->lost && !p->leaves;
}

/* Is it time to go on without those who are missing? */
static bool may_go_on(const sl_membership *m, bool (*is_missing)(const sl_membership *, uint32_t)) {
    const double waited_s = m->now_s - m->change.since_s;
    bool missing = false, awaited = false;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (is_missing(m, i)) {
            missing = true;
            awaited |= is_awaited(m, i);
        }
    return !missing || (waited_s >= SL_ANSWER_S && !awaited) || waited_s >= m->settings.grace_s;
}

static bool has_not_answered(const sl_membership *m, uint32_t rank) {
    return m->change.answers[rank].asked && !m->change.answers[rank].here;
}

static bool has_not_accepted(const sl_membership *m, uint32_t rank) {
    const sl_answer *a = &m->change.answers[rank];
    return a->here && !a->accepts &&
           sl_epoch_has(&m->change.proposal.decision.epoch, rank, a->incarnation);
}

/* ---- what to propose ---- */

/* May what was found hold already? Not if somebody of its view has not accepted it. */
static bool may_hold(const sl_membership *m) {
    const sl_change *c = &m->change;
    const sl_epoch *e = &c->found.decision.epoch;
    if (e->number == 0)
        return false;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++) {
        const sl_answer *a = &c->answers[i];
        if (a->here && sl_epoch_has(e, i, a->incarnation) && a->accepted != c->found.hash)
            return false;
    }
    return true;
}

static bool takes_part(const sl_membership *m, uint32_t rank) {
    const sl_answer *a = &m->change.answers[rank];
    if (!a->here || a->leaves || m->peers[rank].lost)
        return false;
    if (a->hash != 0)
        return true;
    if (m->peers[rank].late)
        return false;
    const sl_answer *sponsor = &m->change.answers[a->sponsor];
    return a->joins && sponsor->here && sponsor->hash != 0;
}

/* Each side ends after the largest limit of its members, where an exchange ends. */
static void add_side(sl_membership *m, sl_decision *d, const sl_answer *a) {
    const uint64_t last = sl_round_up(a->limit, m->settings.period);
    sl_epoch_side *sides = m->change.proposal.sides;
    uint32_t i = 0;
    while (i < d->side_count && sides[i].hash != a->hash)
        i++;
    if (i == d->side_count)
        sides[d->side_count++] = (sl_epoch_side){a->hash, last};
    else if (last > sides[i].last)
        sides[i].last = last;
}

static void add_sides(sl_membership *m, sl_decision *d) {
    sl_epoch *e = &d->epoch;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++) {
        const sl_answer *a = &m->change.answers[i];
        if (!a->here)
            continue;
        if (a->hash != 0)
            add_side(m, d, a);
        if (a->number >= e->number)
            e->number = a->number + 1;
    }
    for (uint32_t i = 0; i < m->settings.ranks_max; i++) {
        const sl_answer *a = &m->change.answers[i];
        const sl_epoch_side *side = a->here && a->hash != 0 ? sl_decision_side(d, a->hash) : NULL;
        if (side == NULL)
            continue;
        const uint64_t exchange =
            sl_epoch_exchange_at(a->exchange, a->round, side->last, m->settings.period);
        if (exchange > e->exchange)
            e->exchange = exchange;
        if (side->last >= e->round)
            e->round = side->last + 1;
    }
}

/* Either of them says that it cannot reach the other. */
static bool is_cut_between(const sl_membership *m, uint32_t a, uint32_t b) {
    const uint32_t self = m->settings.rank;
    const bool there = a == self ? m->peers[b].lost : m->peers[a].cannot[b];
    const bool back = b == self ? m->peers[a].lost : m->peers[b].cannot[a];
    return there || back;
}

static void add_members(sl_membership *m, sl_decision *d) {
    sl_kept_decision *p = &m->change.proposal;
    const uint32_t broken_max = sl_broken_max(m->settings.ranks_max);
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (takes_part(m, i))
            p->members[d->epoch.count++] = (sl_member){i, m->change.answers[i].incarnation};
    for (uint32_t i = 0; i < d->epoch.count; i++)
        for (uint32_t j = i + 1; j < d->epoch.count; j++)
            if (d->epoch.broken_count < broken_max &&
                is_cut_between(m, p->members[i].rank, p->members[j].rank))
                p->broken[d->epoch.broken_count++] =
                    (sl_pair){p->members[i].rank, p->members[j].rank};
}

static void propose_anew(sl_membership *m) {
    sl_kept_decision *p = &m->change.proposal;
    sl_decision d = {.epoch = {.members = p->members, .broken = p->broken}, .sides = p->sides};
    add_members(m, &d);
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        m->peers[i].late = false; /* next time they may */
    add_sides(m, &d);
    sl_decision_copy(p, &d);
}

/* Is the proposal the epoch that all are in, and does each node exchange with all its edges? */
static bool changes_nothing(const sl_membership *m) {
    const sl_epoch *old = &m->newest.decision.epoch, *new = &m->change.proposal.decision.epoch;
    if (old->count != new->count || old->broken_count != new->broken_count)
        return false;
    for (uint32_t i = 0; i < new->count; i++) {
        const sl_member *member = &new->members[i];
        if (!sl_epoch_has(old, member->rank, member->incarnation) ||
            m->change.answers[member->rank].hash != m->hash ||
            m->change.answers[member->rank].mends)
            return false;
    }
    for (uint32_t i = 0; i < new->broken_count; i++)
        if (!sl_epoch_is_broken(old, new->broken[i].low, new->broken[i].high))
            return false;
    return true;
}

/* ---- decisions ---- */

static void tell(sl_membership *m, sl_membership_type type, const sl_decision *d) {
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (i != m->settings.rank && m->change.answers[i].here) {
            sl_membership_message *message = sl_membership_post(m, i, type);
            message->ballot = m->change.ballot;
            message->decision = d;
        }
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
    sl_member_consider(m, &c->proposal.decision);
}

static void request_missing(sl_membership *m) {
    m->change.sent_s = m->now_s;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (i != m->settings.rank && has_not_accepted(m, i)) {
            sl_membership_message *message = sl_membership_post(m, i, SL_MEMBERSHIP_ACCEPT);
            message->ballot = m->change.ballot;
            message->decision = &m->change.proposal.decision;
        }
}

static void commit_if_accepted(sl_membership *m) {
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (has_not_accepted(m, i))
            return;
    commit(m);
}

static void propose(sl_membership *m) {
    sl_change *c = &m->change;
    const bool holds = may_hold(m);
    if (holds)
        sl_decision_copy(&c->proposal, &c->found.decision);
    else
        propose_anew(m);
    c->proposal.decision.ballot = c->ballot;
    if (c->proposal.decision.epoch.count == 0) { /* nobody stays: all end together */
        commit(m);
        return;
    }
    const bool is_vain = !holds && changes_nothing(m);
    if (is_vain || (!holds && sl_cause_yields(m))) {
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

/* Also those whom this agent's epoch does not have. */
static void ask_members(sl_membership *m, const sl_epoch *e) {
    for (uint32_t i = 0; i < e->count; i++) {
        sl_answer *a = &m->change.answers[e->members[i].rank];
        if (!a->asked)
            ask(m, e->members[i].rank);
        a->asked = true;
    }
}

void sl_leader_on_answer(sl_membership *m, const sl_membership_message *message) {
    sl_change *c = &m->change;
    sl_answer *a = &c->answers[message->from];
    if (c->phase != PHASE_PREPARING || sl_ballot_compare(message->ballot, c->ballot) != 0)
        return;
    if (message->number < m->number && message->hash != 0 &&
        sl_membership_is_member(m, message->from, message->incarnation) &&
        !sl_membership_is_foreign(m, message->from))
        return; /* COMMIT is on its way to it; then it answers again */
    const sl_epoch *e = message->decision != NULL ? &message->decision->epoch : NULL;
    *a = (sl_answer){.asked = true,
                     .here = true,
                     .incarnation = message->incarnation,
                     .number = message->number,
                     .hash = e != NULL ? message->hash : 0,
                     .limit = message->limit,
                     .joins = message->joins,
                     .leaves = message->leaves,
                     .mends = message->mends,
                     .sponsor = message->sponsor,
                     .round = e != NULL ? e->round : 1,
                     .exchange = e != NULL ? e->exchange : 0};
    if (e != NULL)
        ask_members(m, e);
    if (message->accepted != NULL) {
        a->accepted = sl_epoch_hash(&message->accepted->epoch);
        ask_members(m, &message->accepted->epoch); /* whether they have accepted it, too */
        if (c->found.decision.epoch.number == 0 ||
            sl_ballot_compare(message->accepted->ballot, c->found.decision.ballot) > 0)
            sl_decision_copy(&c->found, message->accepted);
    }
    if (may_go_on(m, has_not_answered))
        propose(m);
}

/* Another leader may have asked those who join. What members agree on does not wait for them. */
static void give_up(sl_membership *m) {
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        m->peers[i].late = has_not_accepted(m, i) && m->change.answers[i].hash == 0;
    m->change.phase = PHASE_IDLE;
}

/* Members agree without it, unless what may hold already has it: then its other leader goes on. */
static void on_joiner_refuses(sl_membership *m, const sl_membership_message *message) {
    sl_change *c = &m->change;
    c->refused = larger(c->refused, message->ballot.counter);
    if (c->phase == PHASE_PREPARING) {
        c->answers[message->from].asked = false;
    } else if (has_not_accepted(m, message->from)) {
        if (may_hold(m))
            m->quiet_s = m->now_s + 2 * SL_ANSWER_S;
        give_up(m);
    }
}

void sl_leader_on_refuse(sl_membership *m, const sl_membership_message *message) {
    if (m->change.phase == PHASE_IDLE || sl_ballot_compare(message->ballot, m->change.ballot) <= 0)
        return;
    if (message->hash == 0) {
        on_joiner_refuses(m, message);
        return;
    }
    m->change.phase = PHASE_IDLE;
    m->promised = message->ballot; /* it is bound already, and will answer that one */
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
    if (is_there && m->now_s >= m->quiet_s && sl_cause_leads(m)) {
        prepare(m);
        if (may_go_on(m, has_not_answered))
            propose(m);
    }
}

void sl_leader_tick(sl_membership *m) {
    sl_change *c = &m->change;
    const bool repeats = m->now_s - c->sent_s >= SL_REPEAT_S;
    switch (c->phase) {
    case PHASE_IDLE:
        begin_change(m);
        break;
    case PHASE_PREPARING:
        if (may_go_on(m, has_not_answered))
            propose(m);
        else if (repeats)
            ask_missing(m);
        break;
    case PHASE_ACCEPTING:
        if (may_go_on(m, has_not_accepted))
            give_up(m); /* the promise binds: the next tick asks again */
        else if (repeats)
            request_missing(m);
        break;
    }
}
