/* cause.c - see cause.h. A peer's words count only while it is reached. */
#include "membership/cause.h"

/* Does somebody say that this edge of the newest epoch is broken? */
static bool is_cut(const sl_membership *m, uint32_t a, uint32_t b) {
    const uint32_t self = m->settings.rank;
    const sl_peer *x = &m->peers[a], *y = &m->peers[b];
    return (a == self && y->lost) || (b == self && x->lost) ||
           (a != self && !x->lost && x->cannot[b]) || (b != self && !y->lost && y->cannot[a]);
}

/* Does it say of its edges what it knows of them? */
static bool is_heard(const sl_membership *m, uint32_t rank) {
    return rank == m->settings.rank || (m->peers[rank].known && !m->peers[rank].lost);
}

/* Is it news, whether this edge is broken? Who is not heard says nothing of an edge. */
static bool edge_changed(const sl_membership *m, uint32_t a, uint32_t b) {
    const sl_epoch *e = &m->newest.decision.epoch;
    const bool listed = sl_epoch_is_broken(e, a, b);
    return is_cut(m, a, b) ? !listed && e->broken_count < sl_broken_max(m->settings.ranks_max)
                           : listed && is_heard(m, a) && is_heard(m, b);
}

/* Does no member reach it that this one reaches? Broken edges do not explain that. */
static bool is_alone(const sl_membership *m, uint32_t rank) {
    const sl_epoch *e = &m->newest.decision.epoch;
    if (!m->peers[rank].lost)
        return false;
    for (uint32_t i = 0; i < e->count; i++) {
        const uint32_t other = e->members[i].rank;
        if (other != rank && !m->peers[other].lost && !is_cut(m, rank, other))
            return false;
    }
    return true;
}

/* Has this member of the newest epoch gone, or does it want to? */
static bool goes(const sl_membership *m, const sl_member *member) {
    const sl_peer *p = &m->peers[member->rank];
    if (member->rank == m->settings.rank)
        return m->leaves;
    if (!p->known)
        return false;
    return p->leaves || is_alone(m, member->rank) || (p->hash == 0 && !p->joins && p->number > 0);
}

bool sl_cause_is_own(const sl_membership *m) {
    const sl_epoch *e = &m->newest.decision.epoch;
    for (uint32_t i = 0; m->hash != 0 && i < e->count; i++) {
        const uint32_t rank = e->members[i].rank;
        const sl_peer *p = &m->peers[rank];
        const bool is_sure = p->lost || p->reaches[m->settings.rank];
        if (p->aside || (is_sure && edge_changed(m, m->settings.rank, rank)))
            return true;
    }
    return sl_membership_mends(m);
}

static bool knocks(const sl_membership *m, uint32_t rank) {
    const sl_peer *p = &m->peers[rank];
    return rank != m->settings.rank && p->known && !p->lost && p->joins &&
           sl_epoch_member(&m->newest.decision.epoch, p->sponsor) != NULL;
}

bool sl_cause_is_there(const sl_membership *m) {
    const sl_epoch *e = &m->newest.decision.epoch;
    if (m->hash == 0 || m->leaves_after != 0)
        return false;
    if (m->bound || sl_membership_mends(m))
        return true;
    for (uint32_t i = 0; i < e->count; i++) {
        const sl_peer *p = &m->peers[e->members[i].rank];
        if (goes(m, &e->members[i]) || (p->mends && !p->lost && p->hash == m->hash))
            return true;
        for (uint32_t j = 0; j < i; j++)
            if (edge_changed(m, e->members[j].rank, e->members[i].rank))
                return true;
    }
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (knocks(m, i) || sl_membership_is_foreign(m, i))
            return true;
    return false;
}

/* Could this peer lead? */
static bool can_lead(const sl_membership *m, uint32_t rank) {
    const sl_peer *p = &m->peers[rank];
    if (p->lost)
        return false;
    const sl_member *member = sl_epoch_member(&m->newest.decision.epoch, rank);
    if (member != NULL && (!p->known || p->hash != 0))
        return true;
    return sl_membership_is_foreign(m, rank);
}

/* Does this member, or one that it reaches, reach it? */
static bool is_reached(const sl_membership *m, uint32_t rank) {
    const sl_epoch *e = &m->newest.decision.epoch;
    bool reached = rank == m->settings.rank || (m->peers[rank].known && !m->peers[rank].lost);
    for (uint32_t i = 0; i < e->count; i++) {
        const sl_peer *p = &m->peers[e->members[i].rank];
        reached = reached || (!p->lost && p->reaches[rank]);
    }
    return reached;
}

/* Members that its epoch would leave out, and another's would not; of other epochs, too: who does
 * not reach those sees no cause in them. */
static uint32_t misses(const sl_membership *m, uint32_t rank) {
    const sl_epoch *e = &m->newest.decision.epoch;
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++) {
        const bool is_lost = rank == m->settings.rank ? m->peers[i].lost : m->peers[rank].cannot[i];
        const bool belongs = sl_epoch_member(e, i) != NULL || sl_membership_is_foreign(m, i);
        count += is_lost && i != rank && belongs && is_reached(m, i);
    }
    return count;
}

/* Has there been a cause for longer than `before` others may take to lead? */
static bool is_due(const sl_membership *m, uint32_t before) {
    return m->now_s - m->cause_s >= before * m->settings.grace_s;
}

bool sl_cause_yields(const sl_membership *m) {
    const uint32_t own = misses(m, m->settings.rank);
    uint32_t before = 0;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        before += misses(m, i) < own && !m->peers[i].leaves && can_lead(m, i);
    return !is_due(m, before);
}

/* Who leaves comes behind all who stay; then who reaches most, then the lower rank. */
static bool comes_before(const sl_membership *m, uint32_t rank, uint32_t own) {
    const uint32_t its = misses(m, rank);
    if (m->peers[rank].leaves != m->leaves)
        return m->leaves;
    return its < own || (its == own && rank < m->settings.rank);
}

bool sl_cause_leads(const sl_membership *m) {
    const uint32_t self = m->settings.rank, own = misses(m, self);
    uint32_t before = 0;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        before += i != self && comes_before(m, i, own) && can_lead(m, i);
    return is_due(m, before);
}
