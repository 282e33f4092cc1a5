/* members_scene.h - the vocabulary in which test_membership_trace.c and test_merge_trace.c write
 * their transcripts. */
#ifndef MEMBERS_SCENE_H
#define MEMBERS_SCENE_H

#include <stdlib.h>
#include <string.h>

#include "../unit/harness.h"
#include "../world/members.h"

enum { HERE = 5, EVERYBODY = HERE, WAITING = 512, SLACK = 2 };

static sl_membership *members[HERE];
static sl_membership_update update[HERE]; /* the last that said something, put together */
static uint64_t began[HERE], viewed[HERE];
static bool cut[HERE][HERE]; /* no letter passes */
static double now_s;
static uint64_t latest = 1000; /* incarnation: later processes have smaller ones */
static const sl_member all[] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}};

/* ---- letters ---- */

static struct {
    uint32_t to;
    letter *letter;
} waiting[WAITING];
static int count;

static void post(uint32_t to, const sl_membership_message *message) {
    ck_assert_int_lt(count, WAITING);
    waiting[count].to = to;
    waiting[count++].letter = letter_copy(message);
}

static void lose_letters(void) {
    while (count > 0)
        free(waiting[--count].letter);
}

/* ---- the vocabulary of a transcript ---- */

static void step(uint32_t rank, sl_membership_event event) {
    sl_membership_update u;
    event.now_s = now_s;
    if (members[rank] == NULL)
        return;
    sl_membership_step(members[rank], &event, &u);
    for (size_t i = 0; i < u.message_count; i++)
        post(u.messages[i].to, &u.messages[i].message);
    if (u.begin)
        began[rank] = u.round;
    if (u.view != NULL)
        viewed[rank] = u.view->number;
    update[rank].dropped |= u.dropped;
    update[rank].ask_again |= u.ask_again;
    update[rank].replaced |= u.replaced;
    update[rank].diverged |= u.diverged;
    update[rank].left |= u.left;
    update[rank].nobody_stays |= u.nobody_stays;
}

static void start(uint32_t rank, const sl_epoch *first, uint64_t round) {
    const sl_membership_settings settings = {.rank = rank,
                                             .incarnation = first != NULL ? SL_FOUNDER : latest--,
                                             .ranks_max = HERE,
                                             .slack = SLACK,
                                             .period = 1,
                                             .grace_s = 5,
                                             .first = first,
                                             .round = round};
    ck_assert_int_eq(sl_membership_open(&members[rank], &settings, NULL), 0);
}

static void ready(uint32_t rank) {
    step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_READY});
}

static const sl_epoch *first_of(uint32_t n) {
    static sl_epoch first = {.number = 1, .round = 1, .members = all};
    first.count = n;
    return &first;
}

static void open_members(uint32_t n) {
    now_s = 0;
    for (uint32_t i = 0; i < n; i++) {
        start(i, first_of(n), 9);
        ready(i); /* all are in round 10 */
    }
}

static void close_members(void) {
    lose_letters();
    for (uint32_t i = 0; i < HERE; i++)
        sl_membership_close(&members[i]);
}

static void kill_member(uint32_t rank) {
    sl_membership_close(&members[rank]);
}

static void lost(uint32_t rank, uint32_t peer) {
    step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_LOST, .peer = peer});
}

static void all_lose(uint32_t peer) {
    for (uint32_t i = 0; i < HERE; i++)
        if (i != peer)
            lost(i, peer);
}

static void meet(uint32_t a, uint32_t b) {
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_REACHED, .peer = b});
    step(b, (sl_membership_event){.type = SL_MEMBERSHIP_REACHED, .peer = a});
}

static inline void cut_off(uint32_t a, uint32_t b) {
    cut[a][b] = cut[b][a] = true;
    lost(a, b);
    lost(b, a);
}

static void deliver(uint32_t to, const letter *l) {
    if (!cut[l->message.from][to])
        step(to, (sl_membership_event){.type = SL_MEMBERSHIP_MESSAGE, .message = &l->message});
}

/* Lets all letters of a type arrive, those to one rank only or to EVERYBODY; returns their number.
 */
static int arrive(sl_membership_type type, uint32_t to) {
    int arrived = 0;
    for (int i = 0; i < count; i++) {
        letter *l = waiting[i].letter;
        if (l == NULL || l->message.type != type || (to != EVERYBODY && waiting[i].to != to))
            continue;
        waiting[i].letter = NULL;
        deliver(waiting[i].to, l);
        free(l);
        arrived++;
    }
    return arrived;
}

static void tick(void) {
    for (uint32_t i = 0; i < HERE; i++)
        step(i, (sl_membership_event){.type = SL_MEMBERSHIP_TICK});
}

/* Time goes by, and all arrives; not between ranks below `parted` and others. */
static void pass_parted(double seconds, uint32_t parted) {
    for (const double end_s = now_s + seconds; now_s < end_s;) {
        now_s += 0.1;
        tick();
        for (int i = 0; i < count; i++) { /* and their answers */
            letter *l = waiting[i].letter;
            waiting[i].letter = NULL;
            if (l != NULL && (waiting[i].to < parted) == (l->message.from < parted))
                deliver(waiting[i].to, l);
            free(l);
        }
        lose_letters();
    }
}

static void pass(double seconds) {
    pass_parted(seconds, 0);
}

static void expect_epoch(uint32_t rank, uint64_t number, uint32_t size) {
    const sl_epoch *e = sl_membership_epoch(members[rank]);
    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(e->number, number);
    ck_assert_uint_eq(e->count, size);
}

static void expect_same(uint32_t a, uint32_t b) {
    ck_assert_uint_eq(sl_epoch_hash(sl_membership_epoch(members[a])),
                      sl_epoch_hash(sl_membership_epoch(members[b])));
}

/* It goes on as far as it may, and comes to `round`. */
static void expect_rounds_until(uint32_t rank, uint64_t round) {
    for (int i = 0; i < 64; i++)
        ready(rank);
    ck_assert_uint_eq(began[rank], round);
}

static void forget_updates(void) {
    memset(update, 0, sizeof update);
    memset(cut, 0, sizeof cut);
    memset(began, 0, sizeof began);
    memset(viewed, 0, sizeof viewed);
}

#endif
