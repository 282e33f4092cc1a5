/* members_scene.h - the vocabulary in which test_membership_trace.c, test_loss_trace.c and
 * test_joining_trace.c write their transcripts.
 *
 * Members of a run, all in view 1 and round 10. Messages wait in a list until the test lets them
 * arrive, or loses them.
 */
#ifndef MEMBERS_SCENE_H
#define MEMBERS_SCENE_H

#include "../unit/harness.h"
#include "../world/members.h"

enum { HERE = 6, EVERYBODY = HERE, WAITING = 512 };

static sl_membership *members[HERE];
static unsigned orders[HERE]; /* that each was given: a bit for each */
static uint64_t began[HERE], viewed[HERE];
static int cuts[HERE];          /* of its node's exchanges */
static bool parted[HERE][HERE]; /* no letter passes */
static uint32_t quorum;         /* of those that start; 0: the majority */
static double now_s;
static uint64_t latest = 1000; /* incarnation: later processes have smaller ones */
static const sl_member all[] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}};

/* ---- letters ---- */

static struct {
    uint32_t to;
    letter *letter;
} waiting[WAITING];
static int count;

static inline void post(uint32_t to, const sl_membership_message *message) {
    ck_assert_int_lt(count, WAITING);
    waiting[count].to = to;
    waiting[count++].letter = letter_copy(message);
}

static inline void lose_letters(void) {
    while (count > 0)
        free(waiting[--count].letter);
}

/* ---- the vocabulary of a transcript ---- */

static inline void step(uint32_t rank, sl_membership_event event) {
    sl_membership_update u;
    event.now_s = now_s;
    if (members[rank] == NULL)
        return;
    sl_membership_step(members[rank], &event, &u);
    for (size_t i = 0; i < u.message_count; i++)
        post(u.messages[i].to, &u.messages[i].message);
    if (u.order == SL_ORDER_BEGIN)
        began[rank] = u.round;
    if (u.view != NULL)
        viewed[rank] = u.view->number;
    cuts[rank] += u.cut;
    orders[rank] |= 1u << u.order;
}

/* Was it ever told to? */
static inline bool is_told(uint32_t rank, sl_membership_order order) {
    return (orders[rank] >> order & 1) != 0;
}
static inline bool is_told_to_leave(uint32_t rank) {
    return is_told(rank, SL_ORDER_LEAVE) || is_told(rank, SL_ORDER_LEAVE_ALL);
}

static inline void start(uint32_t rank, const sl_view *first, uint64_t round) {
    const sl_membership_settings settings = {.rank = rank,
                                             .incarnation = first != NULL ? SL_FOUNDER : latest--,
                                             .ranks_max = HERE,
                                             .quorum = quorum,
                                             .period = 1,
                                             .grace_s = 5,
                                             .first = first,
                                             .round = round};
    ck_assert_int_eq(sl_membership_open(&members[rank], &settings, NULL), 0);
}

static inline void ready(uint32_t rank) {
    step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_READY});
}

static inline const sl_view *first_of(uint32_t n) {
    static sl_view first = {.number = 1, .round = 1, .members = all};
    first.count = n;
    return &first;
}

static inline void open_members(uint32_t n) {
    now_s = 0;
    for (uint32_t i = 0; i < n; i++) {
        start(i, first_of(n), 9);
        ready(i); /* all are in round 10 */
    }
}

static inline void close_members(void) {
    lose_letters();
    for (uint32_t i = 0; i < HERE; i++)
        sl_membership_close(&members[i]);
}

static inline void kill_member(uint32_t rank) {
    sl_membership_close(&members[rank]);
}

static inline void lost(uint32_t rank, uint32_t peer) {
    step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_LOST, .peer = peer});
}

static inline void all_lose(uint32_t peer) {
    for (uint32_t i = 0; i < HERE; i++)
        if (i != peer)
            lost(i, peer);
}

/* As they do when its port refuses: the process has ended. */
static inline void all_see_it_end(uint32_t peer) {
    kill_member(peer);
    for (uint32_t i = 0; i < HERE; i++)
        if (i != peer)
            step(i, (sl_membership_event){.type = SL_MEMBERSHIP_LOST, .peer = peer, .ended = true});
}

static inline void meet(uint32_t a, uint32_t b) {
    parted[a][b] = parted[b][a] = false;
    step(a, (sl_membership_event){.type = SL_MEMBERSHIP_REACHED, .peer = b});
    step(b, (sl_membership_event){.type = SL_MEMBERSHIP_REACHED, .peer = a});
}

static inline void cut_off(uint32_t a, uint32_t b) {
    parted[a][b] = parted[b][a] = true;
    lost(a, b);
    lost(b, a);
}

/* Ranks from `from` on, of n, reach no lower ones, */
static inline void part(uint32_t from, uint32_t n) {
    for (uint32_t i = 0; i < from; i++)
        for (uint32_t j = from; j < n; j++)
            cut_off(i, j);
}

/* and do again. */
static inline void heal(uint32_t from, uint32_t n) {
    for (uint32_t i = 0; i < from; i++)
        for (uint32_t j = from; j < n; j++)
            meet(i, j);
}

static inline void die(uint32_t rank) {
    kill_member(rank);
    all_lose(rank);
}

static inline void hear(uint32_t rank, sl_membership_message message) {
    step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_MESSAGE, .message = &message});
}

/* That this is decided, by a founder's word. */
static inline sl_membership_message commit_of(uint32_t from, const sl_decision *d) {
    return (sl_membership_message){.type = SL_MEMBERSHIP_COMMIT,
                                   .from = from,
                                   .incarnation = SL_FOUNDER,
                                   .number = d->view.number,
                                   .standing = SL_MEMBER,
                                   .ballot = d->ballot,
                                   .decision = d};
}

static inline void join(uint32_t rank, uint32_t sponsor) {
    step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_JOIN, .peer = sponsor});
}

static inline void deliver(uint32_t to, const letter *l) {
    if (!parted[l->message.from][to])
        step(to, (sl_membership_event){.type = SL_MEMBERSHIP_MESSAGE, .message = &l->message});
}

/* Lets all letters of a type arrive, those to one rank only or to EVERYBODY; returns their number.
 */
static inline int arrive(sl_membership_type type, uint32_t to) {
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

/* Takes such a letter to that rank out of the post; NULL: there is none. */
static inline letter *take(sl_membership_type type, uint32_t to) {
    for (int i = 0; i < count; i++) {
        letter *l = waiting[i].letter;
        if (l == NULL || l->message.type != type || waiting[i].to != to)
            continue;
        waiting[i].letter = NULL;
        return l;
    }
    return NULL;
}

static inline void tick(void) {
    for (uint32_t i = 0; i < HERE; i++)
        step(i, (sl_membership_event){.type = SL_MEMBERSHIP_TICK});
}

/* Time goes by, and all arrives. */
static inline void pass(double seconds) {
    for (const double end_s = now_s + seconds; now_s < end_s;) {
        now_s += 0.1;
        tick();
        for (int i = 0; i < count; i++) { /* and their answers */
            letter *l = waiting[i].letter;
            waiting[i].letter = NULL;
            if (l != NULL)
                deliver(waiting[i].to, l);
            free(l);
        }
        lose_letters();
    }
}

/* So do rounds, which all may end at any time. */
static inline void train(double seconds) {
    for (const double end_s = now_s + seconds; now_s < end_s;) {
        pass(0.1);
        for (uint32_t i = 0; i < HERE; i++)
            ready(i);
    }
}

static inline void expect_view(uint32_t rank, uint64_t number, uint32_t size) {
    const sl_view *e = sl_membership_newest(members[rank]);
    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(e->number, number);
    ck_assert_uint_eq(e->count, size);
}

static inline void expect_same(uint32_t a, uint32_t b) {
    ck_assert_uint_eq(sl_view_hash(sl_membership_newest(members[a])),
                      sl_view_hash(sl_membership_newest(members[b])));
}

/* It goes on as far as it may, and comes to `round`. */
static inline void expect_rounds_until(uint32_t rank, uint64_t round) {
    for (int i = 0; i < 64; i++)
        ready(rank);
    ck_assert_uint_eq(began[rank], round);
}

/* Nothing keeps it. */
static inline void expect_training(uint32_t rank) {
    ready(rank);
    expect_rounds_until(rank, began[rank] + 64);
}

/* It lacks no quorum, and nothing keeps it. */
static inline void expect_quorum(uint32_t rank) {
    uint32_t reached, needed;
    ck_assert(!sl_membership_lacks_quorum(members[rank], &reached, &needed));
    expect_training(rank);
}

/* Ranks from `low` to `high` have that view, and train. */
static inline void expect_agreed(uint32_t low, uint32_t high, uint64_t number, uint32_t size) {
    for (uint32_t i = low; i < high; i++) {
        expect_view(i, number, size);
        expect_same(i, low);
        expect_quorum(i);
    }
}

static inline uint64_t number_of(uint32_t rank) {
    return sl_membership_newest(members[rank])->number;
}

static inline void expect_cuts(uint32_t ranks, int many) {
    for (uint32_t i = 0; i < ranks; i++)
        ck_assert_msg(cuts[i] == many, "rank %u was cut %d times", i, cuts[i]);
}

static inline void forget_updates(void) {
    memset(orders, 0, sizeof orders);
    memset(parted, 0, sizeof parted);
    memset(began, 0, sizeof began);
    memset(viewed, 0, sizeof viewed);
    memset(cuts, 0, sizeof cuts);
    quorum = 0;
}

#endif
