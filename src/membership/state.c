/* state.c - what a member says of itself, and of its peers; see state.h. */
#include "membership/state.h"

#include <assert.h>

static void list_peers(sl_membership *m) {
    m->unreachable_count = m->reached_count = 0;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (sl_membership_misses(m, i))
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
                                            .standing = m->standing,
                                            .cut = m->cut ? m->number : m->node_cut_in,
                                            .sponsor = m->sponsor,
                                            .unreachable = m->unreachable,
                                            .unreachable_count = m->unreachable_count,
                                            .reached = m->reached,
                                            .reached_count = m->reached_count};
    return &post->message;
}

void sl_membership_cut(sl_membership *m) {
    if (m->cut || !sl_membership_takes_part(m))
        return;
    m->cut = m->news_due = true;
}

void sl_membership_find_followed(sl_membership *m) {
    const sl_epoch *e = sl_membership_view(m);
    for (uint32_t i = 0; i < m->settings.ranks_max; i++) {
        sl_peer *p = &m->peers[i];
        const sl_member *member = sl_epoch_member(e, i);
        p->followed = !p->lost && member != NULL && p->incarnation != 0 &&
                      p->incarnation != member->incarnation;
        if (p->followed)
            sl_membership_cut(m);
    }
}
