/* state.c - what a member says of itself, and compares with its peers; see state.h. */
#include "membership/state.h"

#include <assert.h>
#include <string.h>

static void list_peers(sl_membership *m) {
    m->unreachable_count = m->reached_count = 0;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (m->peers[i].lost)
            m->unreachable[m->unreachable_count++] = i;
        else if (m->peers[i].known)
            m->reached[m->reached_count++] = i;
}

sl_membership_message *sl_membership_post(sl_membership *m, uint32_t to, sl_membership_type type) {
    assert(m->post_count < m->posts_max && to != m->settings.rank);
    if (m->post_count == 0)
        list_peers(m);
    struct sl_membership_post *post = &m->posts[m->post_count++];
    post->to = to;
    post->message = (sl_membership_message){.type = type,
                                            .from = m->settings.rank,
                                            .incarnation = m->settings.incarnation,
                                            .number = m->number,
                                            .hash = m->hash,
                                            .joins = m->joins,
                                            .leaves = m->leaves,
                                            .aside = m->aside,
                                            .mends = sl_membership_mends(m),
                                            .sponsor = m->sponsor,
                                            .unreachable = m->unreachable,
                                            .unreachable_count = m->unreachable_count,
                                            .reached = m->reached,
                                            .reached_count = m->reached_count};
    return &post->message;
}

bool sl_membership_mends(const sl_membership *m) {
    const sl_epoch *e = &m->newest.decision.epoch;
    for (uint32_t i = 0; m->hash != 0 && m->queued == 0 && i < e->count; i++) {
        const uint32_t rank = e->members[i].rank;
        if (m->peers[rank].folded && !m->peers[rank].lost &&
            !sl_epoch_is_broken(e, m->settings.rank, rank))
            return true;
    }
    return false;
}

bool sl_membership_is_foreign(const sl_membership *m, uint32_t rank) {
    const sl_peer *p = &m->peers[rank];
    return rank != m->settings.rank && p->known && !p->lost && !p->leaves && p->hash != 0 &&
           p->differs_s >= 0 && m->now_s - p->differs_s >= SL_SETTLE_S;
}

void sl_membership_forget_others(sl_membership *m) {
    const sl_epoch *e = &m->newest.decision.epoch;
    for (uint32_t i = 0; i < e->count; i++) {
        sl_peer *p = &m->peers[e->members[i].rank];
        if (p->incarnation == 0 || p->incarnation == e->members[i].incarnation)
            continue;
        *p = (sl_peer){.lost = p->lost, .cannot = p->cannot, .reaches = p->reaches};
        memset(p->cannot, 0, 2 * m->settings.ranks_max * sizeof *p->cannot);
    }
}

void sl_membership_compare(sl_membership *m) {
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        m->peers[i].differs_s = m->peers[i].hash == m->hash ? -1 : m->now_s;
}
