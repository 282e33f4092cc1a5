/* membership.c - the table of contents: what each event does; see membership.h. */
#include "membership/membership.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "membership/leader.h"
#include "membership/member.h"

/* ---- messages ---- */

static bool are_ranks(const uint32_t *list, uint32_t count, uint32_t max) {
    for (uint32_t i = 0; i < count; i++)
        if (i == max || list[i] >= max)
            return false;
    return true;
}

static bool is_sound(const sl_membership *m, const sl_membership_message *message) {
    const uint32_t max = m->settings.ranks_max;
    if (message->from >= max || message->from == m->settings.rank || message->sponsor >= max ||
        !are_ranks(message->unreachable, message->unreachable_count, max) ||
        !are_ranks(message->reached, message->reached_count, max))
        return false;
    if (message->decision != NULL
            ? !sl_decision_is_valid(message->decision, max)
            : message->type == SL_MEMBERSHIP_ACCEPT || message->type == SL_MEMBERSHIP_COMMIT)
        return false;
    return message->accepted == NULL || sl_decision_is_valid(message->accepted, max);
}

static void note_peer(sl_membership *m, const sl_membership_message *message) {
    sl_peer *p = &m->peers[message->from];
    if (p->hash != message->hash || !p->known || p->incarnation != message->incarnation)
        p->differs_s = message->hash == m->hash ? -1 : m->now_s;
    p->known = true;
    p->incarnation = message->incarnation;
    p->number = message->number;
    p->hash = message->hash;
    p->joins = message->joins;
    p->leaves = message->leaves;
    p->aside = message->aside;
    p->mends = message->mends;
    p->sponsor = message->sponsor;
    if (message->type != SL_MEMBERSHIP_NEWS && message->type != SL_MEMBERSHIP_ANSWER)
        return;
    memset(p->cannot, 0, 2 * m->settings.ranks_max * sizeof *p->cannot);
    for (uint32_t i = 0; i < message->unreachable_count; i++)
        p->cannot[message->unreachable[i]] = true;
    for (uint32_t i = 0; i < message->reached_count; i++)
        p->reaches[message->reached[i]] = true;
}

/* Who has missed what was agreed on is told, whether it takes part in it or not; and who is bound
 * by a ballot that this member has done with. */
static void help(sl_membership *m, const sl_membership_message *message) {
    if (m->leaves_after != 0)
        return;
    if (m->hash != 0 && message->number < m->number &&
        (message->hash != 0 || sl_membership_is_member(m, message->from, message->incarnation))) {
        sl_membership_message *reply = sl_membership_post(m, message->from, SL_MEMBERSHIP_COMMIT);
        reply->ballot = m->newest.decision.ballot;
        reply->decision = &m->newest.decision;
    } else if (message->type == SL_MEMBERSHIP_NEWS && message->ballot.counter > 0 &&
               message->ballot.rank == m->settings.rank && !m->bound) {
        sl_membership_post(m, message->from, SL_MEMBERSHIP_RELEASE)->ballot = message->ballot;
    }
}

static void on_accept(sl_membership *m, const sl_membership_message *message) {
    if (!sl_member_refuses(m, message) && sl_member_accept(m, message->decision, message->ballot))
        sl_membership_post(m, message->from, SL_MEMBERSHIP_ACCEPTED)->ballot = message->ballot;
}

/* Is it from another process of its rank than members have agreed on? */
static bool is_ousted(const sl_membership *m, const sl_membership_message *message) {
    const sl_member *member =
        m->hash != 0 ? sl_epoch_member(&m->newest.decision.epoch, message->from) : NULL;
    return member != NULL && member->incarnation != message->incarnation;
}

static void on_message(sl_membership *m, const sl_membership_message *message) {
    if (!is_sound(m, message))
        return;
    if (is_ousted(m, message)) {
        help(m, message); /* it hears on whom */
        return;
    }
    note_peer(m, message);
    if (message->type == SL_MEMBERSHIP_NEWS || message->type == SL_MEMBERSHIP_ANSWER)
        help(m, message);
    switch (message->type) {
    case SL_MEMBERSHIP_NEWS:
        break;
    case SL_MEMBERSHIP_PREPARE:
        sl_member_on_prepare(m, message);
        break;
    case SL_MEMBERSHIP_ANSWER:
        if (message->decision != NULL)
            sl_member_consider(m, message->decision);
        sl_leader_on_answer(m, message);
        break;
    case SL_MEMBERSHIP_REFUSE:
        sl_leader_on_refuse(m, message);
        break;
    case SL_MEMBERSHIP_ACCEPT:
        on_accept(m, message);
        break;
    case SL_MEMBERSHIP_ACCEPTED:
        sl_leader_on_accepted(m, message);
        break;
    case SL_MEMBERSHIP_COMMIT:
        sl_member_consider(m, message->decision);
        break;
    case SL_MEMBERSHIP_RELEASE:
        sl_member_release(m, message->ballot);
        break;
    }
}

/* ---- the driver's words ---- */

static void on_lost(sl_membership *m, uint32_t peer) {
    m->peers[peer].lost = true;
    m->news_due = true;
    if (m->promised.rank == peer)
        m->quiet_s = m->now_s; /* its leader is gone: nobody waits for it */
}

static void on_reached(sl_membership *m, uint32_t peer, bool folded) {
    m->peers[peer].lost = false;
    m->peers[peer].folded = folded;
    m->peers[peer].known = true;
    m->news_due = true;
    sl_member_begin(m); /* if the loss has kept it */
}

static void on_aside(sl_membership *m) {
    m->aside = m->leaves = m->news_due = true;
    m->ready = false;
    m->asked_s = m->now_s;
}

/* Have most of its epoch stepped aside, as it has? */
static bool are_most_aside(const sl_membership *m) {
    const sl_epoch *e = &m->newest.decision.epoch;
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        const uint32_t rank = e->members[i].rank;
        count += rank == m->settings.rank || m->peers[rank].aside;
    }
    return m->hash != 0 && m->aside && 2 * count > e->count;
}

static void on_join(sl_membership *m, uint32_t sponsor) {
    if (m->hash != 0)
        return;
    m->joins = m->ready = m->news_due = true;
    m->pace_s = SL_AGREE_S; /* until it knows better: it waits for the others */
    m->sponsor = sponsor;
    m->asked_s = m->now_s;
}

/* A sponsor that is gone, is in no epoch itself, or that nobody knows any more; who wants to leave,
 * and is not let go. */
static void watch_wishes(sl_membership *m) {
    const bool is_late = m->now_s - m->asked_s > SL_PATIENCE_S(m->settings.grace_s);
    if (m->joins &&
        (m->peers[m->sponsor].lost || sl_membership_is_out(m, m->sponsor, 0) || is_late)) {
        m->joins = false;
        m->update->ask_again = true;
    }
    if (m->leaves && !m->nobody_stays && m->now_s - m->asked_s > SL_LEAVE_S)
        m->update->left = true;
}

static void tell_news(sl_membership *m) {
    if (!m->news_due && m->now_s - m->news_s < SL_NEWS_S)
        return;
    m->news_due = false;
    m->news_s = m->now_s;
    for (uint32_t i = 0; i < m->settings.ranks_max; i++) {
        const sl_peer *p = &m->peers[i];
        const bool hears =
            p->known || (m->hash != 0 && sl_epoch_member(&m->newest.decision.epoch, i) != NULL);
        if (i != m->settings.rank && hears && !p->lost)
            sl_membership_post(m, i, SL_MEMBERSHIP_NEWS)->ballot =
                m->bound ? m->promised : (sl_ballot){0};
    }
}

void sl_membership_step(sl_membership *m, const sl_membership_event *event,
                        sl_membership_update *update) {
    *update = (sl_membership_update){0};
    m->update = update;
    m->now_s = event->now_s;
    m->post_count = 0;
    switch (event->type) {
    case SL_MEMBERSHIP_TICK:
        watch_wishes(m);
        sl_member_begin(m); /* who had stepped aside may be back */
        break;
    case SL_MEMBERSHIP_MESSAGE:
        on_message(m, event->message);
        break;
    case SL_MEMBERSHIP_LOST:
        on_lost(m, event->peer);
        break;
    case SL_MEMBERSHIP_REACHED:
        on_reached(m, event->peer, event->folded);
        break;
    case SL_MEMBERSHIP_READY:
        m->ready = true;
        sl_member_begin(m);
        break;
    case SL_MEMBERSHIP_LEAVE:
        m->leaves = m->news_due = true;
        update->left = m->hash == 0 || m->aside; /* nobody waits for it */
        m->aside = false;
        m->asked_s = m->now_s;
        break;
    case SL_MEMBERSHIP_ASIDE:
        on_aside(m);
        break;
    case SL_MEMBERSHIP_JOIN:
        on_join(m, event->peer);
        break;
    }
    update->diverged = are_most_aside(m);
    if (event->type == SL_MEMBERSHIP_TICK)
        sl_leader_tick(m);
    tell_news(m);
    update->messages = m->posts;
    update->message_count = m->post_count;
}

/* ---- open and close ---- */

static int allocate(sl_membership *m) {
    const uint32_t max = m->settings.ranks_max;
    m->posts_max = 8 * (size_t)max;
    m->peers = calloc(max, sizeof *m->peers);
    m->posts = calloc(m->posts_max, sizeof *m->posts);
    m->unreachable = calloc(max, sizeof *m->unreachable);
    m->reached = calloc(max, sizeof *m->reached);
    m->change.answers = calloc(max, sizeof *m->change.answers);
    if (m->peers == NULL || m->posts == NULL || m->unreachable == NULL || m->reached == NULL ||
        m->change.answers == NULL)
        return SL_ENOMEM;
    for (uint32_t i = 0; i < max; i++) {
        m->peers[i].cannot = calloc(max, 2 * sizeof *m->peers[i].cannot);
        m->peers[i].differs_s = -1;
        if (m->peers[i].cannot == NULL)
            return SL_ENOMEM;
        m->peers[i].reaches = m->peers[i].cannot + max;
    }
    int result = 0;
    sl_kept_decision *const kept[] = {&m->newest, &m->begun, &m->accepted, &m->change.proposal,
                                      &m->change.found};
    for (size_t i = 0; i < sizeof kept / sizeof *kept && result == 0; i++)
        result = sl_decision_open(kept[i], max);
    for (int i = 0; i < QUEUE_MAX && result == 0; i++)
        result = sl_decision_open(&m->queue[i].kept, max);
    return result;
}

int sl_membership_open(sl_membership **out, const sl_membership_settings *settings,
                       sl_error *error) {
    assert(settings->rank < settings->ranks_max && settings->period > 0);
    sl_membership *m = calloc(1, sizeof *m);
    if (m == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the members' states");
    m->settings = *settings;
    m->cause_s = m->began_s = m->pace_s = -1;
    if (allocate(m) != 0) {
        sl_membership_close(&m);
        return sl_fail(error, SL_ENOMEM, "out of memory for the members' states");
    }
    m->round = m->calm = settings->round;
    if (settings->first != NULL) {
        const sl_decision first = {.epoch = *settings->first};
        sl_decision_copy(&m->newest, &first);
        m->number = settings->first->number;
        m->hash = m->newest.hash;
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
    free(m->posts);
    free(m->unreachable);
    free(m->reached);
    free(m->change.answers);
    sl_kept_decision *const kept[] = {&m->newest, &m->begun, &m->accepted, &m->change.proposal,
                                      &m->change.found};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        sl_decision_close(kept[i]);
    for (int i = 0; i < QUEUE_MAX; i++)
        sl_decision_close(&m->queue[i].kept);
    free(m);
    *membership = NULL;
}

const sl_epoch *sl_membership_epoch(const sl_membership *m) {
    return m->hash != 0 ? &m->newest.decision.epoch : NULL;
}

const sl_epoch *sl_membership_others(const sl_membership *m) {
    return &m->newest.decision.epoch;
}

uint64_t sl_membership_round(const sl_membership *m) {
    return m->round;
}

bool sl_membership_is_let_go(const sl_membership *m) {
    return m->leaves_after != 0;
}

bool sl_membership_is_aside(const sl_membership *m, uint32_t rank, uint64_t number) {
    return m->peers[rank].aside && m->peers[rank].number >= number;
}

bool sl_membership_is_out(const sl_membership *m, uint32_t rank, uint64_t number) {
    const sl_peer *p = &m->peers[rank];
    return p->incarnation != 0 && p->hash == 0 && p->number >= number;
}

bool sl_membership_leaves(const sl_membership *m, uint32_t rank) {
    return m->peers[rank].leaves;
}
