/* state.c - what a member says of itself, and of its peers; see state.h. */
#include "membership/state.h"

#include <assert.h>

static void list_peers(sl_membership *m) {
    m->mail.unreachable_count = m->mail.reached_count = 0;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++)
        if (sl_membership_misses(m, i))
            m->mail.unreachable[m->mail.unreachable_count++] = i;
        else if (m->peers[i].known)
            m->mail.reached[m->mail.reached_count++] = i;
}

sl_membership_message *sl_membership_post(sl_membership *m, uint32_t to, sl_membership_type type,
                                          sl_ballot ballot, const sl_decision *decision) {
    assert(m->mail.post_count < sl_posts_max(m) && to != m->settings.rank);
    if (m->mail.post_count == 0)
        list_peers(m);
    struct sl_membership_post *post = &m->mail.posts[m->mail.post_count++];
    post->to = to;
    post->message =
        (sl_membership_message){.type = type,
                                .from = m->settings.rank,
                                .incarnation = m->settings.incarnation,
                                .number = m->view.number,
                                .standing = m->standing,
                                .cut = m->view.cut ? m->view.number : m->node.cut_in,
                                .renews = m->wishes.renews ? m->node.begun.decision.view.number : 0,
                                .ballot = ballot,
                                .decision = decision,
                                .sponsor = m->wishes.sponsor,
                                .unreachable = m->mail.unreachable,
                                .unreachable_count = m->mail.unreachable_count,
                                .reached = m->mail.reached,
                                .reached_count = m->mail.reached_count};
    return &post->message;
}

void sl_membership_cut(sl_membership *m) {
    if (m->view.cut || !sl_membership_takes_part(m))
        return;
    m->view.cut = m->news.due = true;
}

void sl_membership_find_followed(sl_membership *m) {
    const sl_view *e = sl_membership_view(m);
    for (uint32_t i = 0; i < m->settings.ranks_max; i++) {
        sl_peer *p = &m->peers[i];
        const sl_member *member = sl_view_member(e, i);
        p->followed = !p->lost && member != NULL && p->incarnation != 0 &&
                      p->incarnation != member->incarnation;
        if (p->followed)
            sl_membership_cut(m);
    }
}
