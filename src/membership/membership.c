/* membership.c - the table of contents: what each event does; see membership.h. */
#include "membership/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

static void note_peer(sl_membership *m, const sl_membership_message *message) {
    sl_peer *p = &m->peers[message->from];
    if (p->incarnation != message->incarnation)
        p->done = false; /* that was another process */
    p->known = true;
    p->incarnation = message->incarnation;
    p->number = message->number;
    p->standing = message->standing;
    p->sponsor = message->sponsor;
    p->renews = message->renews;
    if (message->type != SL_MEMBERSHIP_NEWS && message->type != SL_MEMBERSHIP_ANSWER)
        return;
    memset(p->cannot, 0, 2 * m->settings.ranks_max * sizeof *p->cannot);
    for (uint32_t i = 0; i < message->unreachable_count; i++)
        p->cannot[message->unreachable[i]] = true;
    for (uint32_t i = 0; i < message->reached_count; i++)
        p->reaches[message->reached[i]] = true;
}

/* A member of the newest view, or of the one that the node is in, exchanges nothing more under it,
 * or has never begun it. */
static void hear_cut(sl_membership *m, const sl_membership_message *message) {
    const bool is_of_view = sl_view_has(sl_membership_view(m), message->from, message->incarnation);
    const sl_view *begun = &m->node.begun.decision.view;
    const bool never_begins =
        message->number >= m->view.number && !sl_standing_is_member(message->standing);
    if (is_of_view && (message->cut == m->view.number || never_begins))
        sl_membership_cut(m);
    if (m->view.pending && message->cut == begun->number &&
        sl_view_has(begun, message->from, message->incarnation))
        m->view.newest.decision.cut = true;
}

/* Tells a process of the view that it has missed, whether it is in it or not. One that the view has
 * left out tells it, too, as the view's members may have ended. A process that is bound by a ballot
 * hears that this member has done with it. */
static void help(sl_membership *m, const sl_membership_message *message) {
    const uint64_t newest = sl_membership_view(m)->number;
    const bool tells =
        sl_membership_takes_part(m) || (newest == m->view.number && message->number < newest);
    if (m->wishes.leaves_after != 0 || !tells)
        return;
    const bool is_behind = message->number < m->view.number,
               has_it = sl_view_has(sl_membership_view(m), message->from, message->incarnation);
    if (has_it ? is_behind : sl_standing_is_member(message->standing))
        sl_membership_post(m, message->from, SL_MEMBERSHIP_COMMIT, m->view.newest.decision.ballot,
                           &m->view.newest.decision);
    else if (message->type == SL_MEMBERSHIP_NEWS && message->ballot.counter > 0 &&
             message->ballot.rank == m->settings.rank && !m->promise.bound)
        sl_membership_post(m, message->from, SL_MEMBERSHIP_RELEASE, message->ballot, NULL);
}

/* Is it from another process of its rank than members have agreed on? */
static bool is_other(const sl_membership *m, const sl_membership_message *message) {
    const sl_member *member =
        sl_membership_takes_part(m) ? sl_view_member(sl_membership_view(m), message->from) : NULL;
    return member != NULL && member->incarnation != message->incarnation;
}

static void on_message(sl_membership *m, const sl_membership_message *message) {
    if (!sl_claims_are_sound(m, message))
        return;
    if (is_other(m, message)) {
        m->peers[message->from].incarnation = message->incarnation;
        sl_membership_find_followed(m);
        help(m, message); /* one that was left out hears which process follows it */
        return;
    }
    note_peer(m, message);
    hear_cut(m, message);
    if (message->type == SL_MEMBERSHIP_NEWS || message->type == SL_MEMBERSHIP_ANSWER)
        help(m, message);
    switch (message->type) {
    case SL_MEMBERSHIP_NEWS:
        break;
    case SL_MEMBERSHIP_PREPARE:
        sl_member_on_prepare(m, message);
        break;
    case SL_MEMBERSHIP_ANSWER:
        sl_leader_on_answer(m, message);
        break;
    case SL_MEMBERSHIP_REFUSE:
        sl_leader_on_refuse(m, message);
        break;
    case SL_MEMBERSHIP_ACCEPT:
        sl_member_on_accept(m, message);
        break;
    case SL_MEMBERSHIP_ACCEPTED:
        sl_leader_on_accepted(m, message);
        break;
    case SL_MEMBERSHIP_COMMIT:
        sl_member_shares(m, message->from, message->decision);
        break;
    case SL_MEMBERSHIP_RELEASE:
        sl_member_release(m, message->ballot);
        break;
    }
}

/* ---- the driver's words ---- */

static void on_lost(sl_membership *m, uint32_t peer, bool ended) {
    sl_peer *p = &m->peers[peer];
    if (!p->lost && m->promise.ballot.rank == peer)
        m->quiet_s = m->now_s; /* its leader is gone: nobody waits for it */
    m->news.due = m->news.due || !p->lost;
    if (!p->lost)
        *p = (sl_peer){.known = p->known,
                       .incarnation = p->incarnation,
                       .cannot = p->cannot,
                       .reaches = p->reaches};
    p->lost = true;
    p->ended = p->ended || ended;
    if (sl_membership_takes_part(m) && sl_view_member(sl_membership_view(m), peer) != NULL)
        sl_membership_cut(m);
    if (m->view.pending && sl_view_member(&m->node.begun.decision.view, peer) != NULL)
        m->view.newest.decision.cut = true;
}

static void on_reached(sl_membership *m, uint32_t peer) {
    sl_peer *p = &m->peers[peer];
    m->news.due = true;
    if (p->known && !p->lost)
        return;
    *p = (sl_peer){.known = true, .cannot = p->cannot, .reaches = p->reaches};
    memset(p->cannot, 0, 2 * m->settings.ranks_max * sizeof *p->cannot);
}

static void on_leave(sl_membership *m) {
    if (m->standing != SL_MEMBER) /* nobody waits for it */
        sl_membership_give(m, SL_ORDER_LEAVE);
    m->standing = m->standing == SL_MEMBER ? SL_LEAVES : m->standing;
    m->news.due = true;
    m->wishes.asked_s = m->now_s;
}

static void on_aside(sl_membership *m) {
    sl_membership_cut(m);
    m->standing = SL_ASIDE;
    m->node.ready = false;
    m->news.due = true;
    m->wishes.asked_s = m->now_s;
}

/* Have most of its view stepped aside, as it has? */
static bool are_most_aside(const sl_membership *m) {
    const sl_view *e = sl_membership_view(m);
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        const uint32_t rank = e->members[i].rank;
        count += rank == m->settings.rank || m->peers[rank].standing == SL_ASIDE;
    }
    return m->standing == SL_ASIDE && 2 * count > e->count;
}

static void on_join(sl_membership *m, uint32_t sponsor) {
    if (sl_membership_takes_part(m))
        return;
    m->standing = SL_JOINS;
    m->news.due = true;
    m->wishes.sponsor = sponsor;
    m->wishes.asked_s = m->now_s;
}

/* A sponsor that is gone, or takes no part itself; a member that wants to leave, and is not let
 * go. */
static void watch_wishes(sl_membership *m) {
    const double waited_s = m->now_s - m->wishes.asked_s;
    if (m->standing == SL_JOINS && (sl_membership_misses(m, m->wishes.sponsor) ||
                                    sl_membership_is_out(m, m->wishes.sponsor, 0) ||
                                    waited_s > SL_PATIENCE_S(m->settings.grace_s))) {
        m->standing = SL_OUT;
        sl_membership_give(m, SL_ORDER_ASK_AGAIN);
    }
    if (m->standing > SL_MEMBER && !m->wishes.all_leave && waited_s > SL_LEAVE_S)
        sl_membership_give(m, SL_ORDER_LEAVE);
}

static void tell_news(sl_membership *m) {
    /* A joining process asks its sponsor for the view. */
    const double every_s = m->standing == SL_JOINS ? SL_REPEAT_S : SL_NEWS_S;
    if (!m->news.due && m->now_s - m->news.told_s < every_s)
        return;
    m->news.due = false;
    m->news.told_s = m->now_s;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++) {
        const sl_peer *p = &m->peers[i];
        const bool hears = p->known || (sl_membership_takes_part(m) &&
                                        sl_view_member(sl_membership_view(m), i) != NULL);
        if (i != m->settings.rank && hears && !p->lost)
            sl_membership_post(m, i, SL_MEMBERSHIP_NEWS,
                               m->promise.bound ? m->promise.ballot : (sl_ballot){0}, NULL);
    }
}

/* A view that is agreed on may cut the rounds before it. */
static bool is_node_to_be_cut(const sl_membership *m) {
    return sl_membership_takes_part(m) && !m->node.is_cut &&
           (m->view.cut || (m->view.pending && m->view.newest.decision.cut));
}

void sl_membership_step(sl_membership *m, const sl_membership_event *event,
                        sl_membership_update *update) {
    *update = (sl_membership_update){0};
    m->update = update;
    m->now_s = event->now_s;
    m->mail.post_count = 0;
    switch (event->type) {
    case SL_MEMBERSHIP_TICK:
        watch_wishes(m);
        break;
    case SL_MEMBERSHIP_MESSAGE:
        on_message(m, event->message);
        break;
    case SL_MEMBERSHIP_LOST:
        on_lost(m, event->peer, event->ended);
        break;
    case SL_MEMBERSHIP_REACHED:
        on_reached(m, event->peer);
        break;
    case SL_MEMBERSHIP_DONE:
        m->peers[event->peer].done = true;
        break;
    case SL_MEMBERSHIP_READY:
        m->node.ready = true;
        sl_member_begin(m);
        break;
    case SL_MEMBERSHIP_LEAVE:
        on_leave(m);
        break;
    case SL_MEMBERSHIP_ASIDE:
        on_aside(m);
        break;
    case SL_MEMBERSHIP_JOIN:
        on_join(m, event->peer);
        break;
    case SL_MEMBERSHIP_RENEW:
        m->news.due = m->news.due || !m->wishes.renews;
        m->wishes.renews = sl_membership_takes_part(m);
        m->wishes.last = event->last;
        break;
    case SL_MEMBERSHIP_ENDS:
        m->wishes.ends = true;
        break;
    }
    if (are_most_aside(m))
        sl_membership_give(m, SL_ORDER_DIVERGED);
    if (event->type == SL_MEMBERSHIP_TICK || event->type == SL_MEMBERSHIP_RENEW)
        sl_leader_tick(m);
    tell_news(m);
    update->cut = is_node_to_be_cut(m);
    if (update->cut) {
        m->node.is_cut = true;
        m->node.cut_in = m->node.begun.decision.view.number;
    }
    update->messages = m->mail.posts;
    update->message_count = m->mail.post_count;
}

/* ---- open and close ---- */

static int allocate(sl_membership *m) {
    const uint32_t max = m->settings.ranks_max;
    m->peers = calloc(max, sizeof *m->peers);
    m->mail.posts = calloc(sl_posts_max(m), sizeof *m->mail.posts);
    m->mail.unreachable = calloc(max, sizeof *m->mail.unreachable);
    m->mail.reached = calloc(max, sizeof *m->mail.reached);
    m->change.answers = calloc(max, sizeof *m->change.answers);
    if (m->peers == NULL || m->mail.posts == NULL || m->mail.unreachable == NULL ||
        m->mail.reached == NULL || m->change.answers == NULL)
        return SL_ENOMEM;
    for (uint32_t i = 0; i < max; i++) {
        m->peers[i].cannot = calloc(max, 2 * sizeof *m->peers[i].cannot);
        if (m->peers[i].cannot == NULL)
            return SL_ENOMEM;
        m->peers[i].reaches = m->peers[i].cannot + max;
    }
    int result = 0;
    sl_kept_decision *const kept[] = {&m->view.newest, &m->node.begun, &m->promise.accepted,
                                      &m->change.proposal, &m->change.found};
    for (size_t i = 0; i < sizeof kept / sizeof *kept && result == 0; i++)
        result = sl_decision_open(kept[i], max);
    return result;
}

int sl_membership_open(sl_membership **out, const sl_membership_settings *settings,
                       sl_error *error) {
    assert(settings->rank < settings->ranks_max && settings->period > 0);
    sl_membership *m = calloc(1, sizeof *m);
    if (m != NULL) {
        m->settings = *settings;
        m->cause_s = -1;
    }
    if (m == NULL || allocate(m) != 0) {
        sl_membership_close(&m);
        return sl_fail(error, SL_ENOMEM, "out of memory for the members' states");
    }
    m->node.round = settings->round;
    if (settings->first != NULL) {
        const sl_decision first = {.view = *settings->first};
        sl_decision_copy(&m->view.newest, &first);
        sl_decision_copy(&m->node.begun, &first);
        m->standing = SL_MEMBER;
        m->view.number = settings->first->number;
        m->view.pending = settings->first_begins;
        m->settings.first = NULL;
    }
    *out = m;
    return 0;
}

void sl_membership_close(sl_membership **membership) {
    sl_membership *m = *membership;
    if (m == NULL)
        return;
    for (uint32_t i = 0; m->peers != NULL && i < m->settings.ranks_max; i++)
        free(m->peers[i].cannot);
    free(m->peers);
    free(m->mail.posts);
    free(m->mail.unreachable);
    free(m->mail.reached);
    free(m->change.answers);
    sl_kept_decision *const kept[] = {&m->view.newest, &m->node.begun, &m->promise.accepted,
                                      &m->change.proposal, &m->change.found};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        sl_decision_close(kept[i]);
    free(m);
    *membership = NULL;
}

const sl_view *sl_membership_newest(const sl_membership *m) {
    return sl_membership_takes_part(m) ? sl_membership_view(m) : NULL;
}

const sl_view *sl_membership_others(const sl_membership *m) {
    return sl_membership_view(m);
}

bool sl_membership_turns(const sl_membership *m) {
    return m->view.pending || m->view.cut || m->wishes.leaves_after != 0;
}

bool sl_membership_holds(const sl_membership *m) {
    return sl_membership_turns(m) || m->promise.bound;
}

bool sl_membership_is_let_go(const sl_membership *m) {
    return m->wishes.leaves_after != 0;
}

static bool is_reached(const sl_membership *m, const sl_member *member) {
    return member->rank == m->settings.rank ||
           (!sl_membership_misses(m, member->rank) && !m->peers[member->rank].done);
}

bool sl_membership_lacks_quorum(const sl_membership *m, uint32_t *reached, uint32_t *needed) {
    const sl_view *e = sl_membership_view(m);
    *reached = 0;
    if (!sl_membership_takes_part(m))
        return false;
    for (uint32_t i = 0; i < e->count; i++)
        *reached += is_reached(m, &e->members[i]);
    *needed = sl_quorum_needed(m);
    return !sl_quorum_has(m, is_reached);
}

sl_standing_of sl_membership_standing_of(const sl_membership *m, uint32_t rank) {
    return m->peers[rank].standing;
}

bool sl_membership_is_out(const sl_membership *m, uint32_t rank, uint64_t number) {
    const sl_peer *p = &m->peers[rank];
    return p->incarnation != 0 && !sl_standing_is_member(p->standing) && p->number >= number;
}
