/* quorum.c - see state.h. */
#include "membership/state.h"

/* A member that was dropped, and joins again, decides nothing until it is let in. */
static bool has_ended(const sl_membership *m, const sl_member *member) {
    const sl_peer *p = &m->peers[member->rank];
    return member->rank != m->settings.rank &&
           (sl_membership_has_ended(m, member->rank) ||
            (p->incarnation == member->incarnation && p->standing == SL_JOINS &&
             p->number == m->view.number));
}

/* The rank that an even half needs; the others' lowest, where its process has ended. */
static uint32_t find_lowest(const sl_membership *m) {
    const sl_view *e = sl_membership_view(m);
    uint32_t i = 0;
    while (i + 1 < e->count && has_ended(m, &e->members[i]))
        i++;
    return e->members[i].rank;
}

static uint32_t count_living(const sl_membership *m) {
    const sl_view *e = sl_membership_view(m);
    uint32_t living = 0;
    for (uint32_t i = 0; i < e->count; i++)
        living += !has_ended(m, &e->members[i]);
    return living;
}

uint32_t sl_quorum_needed(const sl_membership *m) {
    return m->settings.quorum > 0 ? m->settings.quorum : count_living(m) / 2 + 1;
}

/* So many, and perhaps the one that an even half needs? */
static bool is_enough(const sl_membership *m, uint32_t count, bool has_lowest) {
    const uint32_t living = count_living(m);
    if (m->settings.quorum > 0)
        return count >= m->settings.quorum;
    return 2 * count > living || (2 * count == living && has_lowest);
}

bool sl_quorum_has(const sl_membership *m, sl_quorum_of holds) {
    const sl_view *e = sl_membership_view(m);
    const uint32_t lowest = find_lowest(m);
    uint32_t count = 0;
    bool has_lowest = false;
    for (uint32_t i = 0; i < e->count; i++)
        if (holds(m, &e->members[i])) {
            count++;
            has_lowest |= e->members[i].rank == lowest;
        }
    return is_enough(m, count, has_lowest);
}

bool sl_quorum_knows(const sl_membership *m, uint64_t number) {
    const sl_view *e = sl_membership_view(m);
    const uint32_t lowest = find_lowest(m);
    uint32_t count = 0;
    bool has_lowest = false;
    for (uint32_t i = 0; i < e->count; i++) {
        const sl_member *member = &e->members[i];
        const sl_peer *p = &m->peers[member->rank];
        if (member->rank != m->settings.rank && p->incarnation == member->incarnation &&
            p->number >= number) {
            count++;
            has_lowest |= member->rank == lowest;
        }
    }
    return is_enough(m, count, has_lowest) || (count > 0 && count + 1 == count_living(m));
}
