/* cause.c - see state.h. A peer's words count only while it is reached. */
#include "membership/state.h"

bool sl_cause_is_cut(const sl_membership *m, uint32_t a, uint32_t b) {
    const uint32_t self = m->settings.rank;
    const bool misses_a = sl_membership_misses(m, a), misses_b = sl_membership_misses(m, b);
    return (a == self && misses_b) || (b == self && misses_a) ||
           (a != self && !misses_a && m->peers[a].cannot[b]) ||
           (b != self && !misses_b && m->peers[b].cannot[a]);
}

/* Does it say of its edges what it knows of them? */
static bool is_heard(const sl_membership *m, uint32_t rank) {
    return rank == m->settings.rank || (m->peers[rank].known && !sl_membership_misses(m, rank));
}

/* Is it news, whether this edge is broken? A peer that is not heard says nothing of an edge. */
static bool edge_changed(const sl_membership *m, uint32_t a, uint32_t b) {
    const sl_view *e = sl_membership_view(m);
    const bool listed = sl_view_is_broken(e, a, b);
    return sl_cause_is_cut(m, a, b)
               ? !listed && e->broken_count < sl_broken_max(m->settings.ranks_max)
               : listed && is_heard(m, a) && is_heard(m, b);
}

/* Does no member reach it that this one reaches? Broken edges do not explain that. */
static bool is_alone(const sl_membership *m, uint32_t rank) {
    const sl_view *e = sl_membership_view(m);
    if (!sl_membership_misses(m, rank))
        return false;
    for (uint32_t i = 0; i < e->count; i++) {
        const uint32_t other = e->members[i].rank;
        if (other != rank && !sl_membership_misses(m, other) && !sl_cause_is_cut(m, rank, other))
            return false;
    }
    return true;
}

bool sl_cause_is_renewed(const sl_membership *m) {
    const sl_view *e = sl_membership_view(m);
    bool any = m->wishes.renews;
    for (uint32_t i = 0; i < e->count && !any; i++) {
        const uint32_t rank = e->members[i].rank;
        any = m->peers[rank].renews == e->number && !sl_membership_misses(m, rank);
    }
    return any;
}

/* Has this member of the newest view gone, or does it want to? */
static bool goes(const sl_membership *m, const sl_member *member) {
    const sl_peer *p = &m->peers[member->rank];
    if (member->rank == m->settings.rank)
        return m->standing > SL_MEMBER;
    if (!p->known)
        return false;
    return is_alone(m, member->rank) ||
           (!p->followed && (p->standing > SL_MEMBER || (p->standing == SL_OUT && p->number > 0)));
}

static bool knocks(const sl_membership *m, uint32_t rank) {
    const sl_peer *p = &m->peers[rank];
    return rank != m->settings.rank && p->known && !sl_membership_misses(m, rank) &&
           p->standing == SL_JOINS && sl_view_member(sl_membership_view(m), p->sponsor) != NULL;
}

bool sl_cause_is_there(const sl_membership *m) {
    const sl_view *e = sl_membership_view(m);
    if (!sl_membership_takes_part(m) || m->wishes.leaves_after != 0 || m->view.pending ||
        sl_membership_ends(m))
        return false;
    if (m->promise.bound || m->view.cut || sl_cause_is_renewed(m))
        return true;
    for (uint32_t i = 0; i < e->count; i++) {
        if (goes(m, &e->members[i]))
            return true;
        for (uint32_t j = 0; j < i; j++)
            if (edge_changed(m, e->members[j].rank, e->members[i].rank))
                return true;
    }
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (knocks(m, i))
            return true;
    return false;
}

/* Could this peer lead? */
static bool can_lead(const sl_membership *m, uint32_t rank) {
    const sl_peer *p = &m->peers[rank];
    return !sl_membership_misses(m, rank) && !p->done &&
           sl_view_member(sl_membership_view(m), rank) != NULL &&
           (!p->known || sl_standing_is_member(p->standing));
}

/* Does this member, or one that it reaches, reach it? */
static bool is_reached(const sl_membership *m, uint32_t rank) {
    const sl_view *e = sl_membership_view(m);
    bool reached = is_heard(m, rank);
    for (uint32_t i = 0; i < e->count; i++) {
        const uint32_t other = e->members[i].rank;
        reached = reached || (!sl_membership_misses(m, other) && m->peers[other].reaches[rank]);
    }
    return reached;
}

/* Members that its view would leave out, and another's would not. */
static uint32_t misses(const sl_membership *m, uint32_t rank) {
    const sl_view *e = sl_membership_view(m);
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        const uint32_t other = e->members[i].rank;
        const bool is_lost = rank == m->settings.rank ? sl_membership_misses(m, other)
                                                      : m->peers[rank].cannot[other];
        count += is_lost && other != rank && is_reached(m, other);
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
        before += misses(m, i) < own && m->peers[i].standing == SL_MEMBER && can_lead(m, i);
    return !is_due(m, before);
}

/* A member that leaves comes behind all that stay; then the one that reaches most, then the lower
 * rank. */
static bool comes_before(const sl_membership *m, uint32_t rank, uint32_t own) {
    const uint32_t its = misses(m, rank);
    const bool goes_too = m->peers[rank].standing > SL_MEMBER, goes_self = m->standing > SL_MEMBER;
    if (goes_too != goes_self)
        return goes_self;
    return its < own || (its == own && rank < m->settings.rank);
}

bool sl_cause_leads(const sl_membership *m) {
    const uint32_t self = m->settings.rank, own = misses(m, self);
    uint32_t before = 0;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        before += i != self && comes_before(m, i, own) && can_lead(m, i);
    /* Who wants the view itself waits for nobody, unless it would leave out whom others reach. */
    return (m->wishes.renews && own == 0) || is_due(m, before);
}
