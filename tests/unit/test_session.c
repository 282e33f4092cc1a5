/* test_session.c - sessions: what rounds leave in x, averages, who may call what, and how they end;
 * simulated, and with agents. */
#include <semaphore.h>

#include "descent.h"
#include "sessions.h"

enum { D = 3000, N = 4 };
static const char ring[] = "{\"topology\": {\"nodes\": 4, \"family\": \"ring\"}, "
                           "\"transport\": {\"chunk_bytes\": 4096}}";

static const char directed_ring[] = "{\"topology\": {\"nodes\": 4, \"family\": \"directed-ring\"}, "
                                    "\"transport\": {\"chunk_bytes\": 4096}}";

/* What the peers' functions work with. */
typedef struct scene {
    const char *experiment;
    float x[N][D];
} scene;
static scene *world, *other;

static void setup(void) {
    sl_session_defaults(&options, sizeof options);
    world = calloc(1, sizeof *world);
    other = calloc(1, sizeof *other);
    world->experiment = ring;
    error = (sl_error){0};
}

static void teardown(void) {
    free(world);
    free(other);
}

/* ---- averages; tests/parity/test_session.py has what rounds leave, and
 * tests/python/test_arrays.py what averages are ---- */

FIXTURES(setup, teardown);

/* Ranks below 3 wait for rank 3's rounds, which move their models. */
static int average_and_wait(void *context, const sl_session_options *o, sl_error *e) {
    enum { FEW = 12 };
    float x[FEW], average[FEW];
    sl_session *s;
    for (int i = 0; i < FEW; i++)
        x[i] = (float)o->rank;
    int result = peer_start(&s, ring, FEW, x, o, e);
    for (int k = 0; k < 3 && o->rank == 3 && result == 0; k++)
        result = sl_session_mix(s, x, e);
    for (int i = 0; i < FEW; i++)
        x[i] += 30 * (float)o->rank;
    THEN(result, sl_session_average(s, x, average, NULL, e));
    for (int i = 0; i < FEW && result == 0; i++)
        ck_assert_msg(fabsf(average[i] - 46.5f) < 1e-4f, "%g", average[i]);
    return end_session(s, result, e);
}

START_TEST(who_waits_for_an_average_gives_its_step_once) {
    run_both(ring, N, average_and_wait, NULL);
}

enum { NUMBERS = 70000 };
static double numbers[N][NUMBERS];

static int add_up(void *context, const sl_session_options *o, sl_error *e) {
    float x = 0;
    double *own = numbers[o->rank];
    uint64_t givers = 0;
    sl_session *s;
    int result = peer_start(&s, ring, 1, &x, o, e);
    for (int i = 0; i < NUMBERS; i++)
        own[i] = i + 1e300 * (double)o->rank;
    own[1] = 0.1;
    if (result == 0 && o->rank != 3) /* who has left gives nothing */
        result = sl_session_sum(s, own, NUMBERS, &givers, e);
    ck_assert(result != 0 || o->rank == 3 ||
              (givers == 3 && own[1] == 0.1 + 0.1 + 0.1 && own[NUMBERS - 1] == 3e300));
    return end_session(s, result, e);
}

START_TEST(sums_are_in_double_and_of_any_length) {
    run_both(ring, N, add_up, NULL);
}

/* ---- saved while an offer is under way; Python's scripts save all else ---- */

static char states[N][1 << 17];
static uint64_t state_bytes[N];
static float kept[N][D];
static bool goes_on;

static int begin_or_go_on(sl_session *s, float *x, int64_t rank, sl_error *e) {
    int result = goes_on ? sl_session_load(s, states[rank], state_bytes[rank], e) : 0;
    descent_fill(x, D, rank);
    if (goes_on)
        memcpy(x, kept[rank], sizeof kept[rank]);
    return THEN(result, sl_session_start(s, x, e));
}

static int offer_and_save(void *context, const sl_session_options *o, sl_error *e) {
    float *x = ((scene *)context)->x[o->rank];
    const bool saves = !goes_on;
    sl_session *s;
    int result = sl_session_join(&s, ((scene *)context)->experiment, D, o, e);
    THEN(result, begin_or_go_on(s, x, o->rank, e));
    for (int k = saves ? 0 : 1; k < 4 && result == 0; k++) {
        if (saves || k > 1) {
            descent_step(x, x, D, o->rank);
            result = sl_session_offer(s, x, e);
        }
        if (saves && k == 1) {
            memcpy(kept[o->rank], x, sizeof kept[o->rank]);
            state_bytes[o->rank] = sizeof states[o->rank];
            THEN(result, sl_session_save(s, x, states[o->rank], &state_bytes[o->rank], e));
        }
        THEN(result, sl_session_end(s, x, e));
    }
    return end_session(s, result, e);
}

START_TEST(an_offer_goes_on) {
    other->experiment = world->experiment =
        "{\"topology\": {\"nodes\": 4, \"family\": \"ring\"}, \"algorithm\": {\"name\": "
        "\"choco-sgd\", \"compressor\": {\"name\": \"top-k\", \"fraction\": 0.1}}}";
    run_as_agents(N, offer_and_save, world);
    goes_on = true;
    run_simulated(world->experiment, N, offer_and_save, other);
    goes_on = false;
    ck_assert_mem_eq(other->x, world->x, sizeof world->x);
}

/* ---- calls; tests/python/test_ends.py has those of other threads, and of forked children ---- */

static int misuse(void *context, const sl_session_options *o, sl_error *e) {
    scene *w = context;
    float *x = w->x[o->rank];
    sl_session_report r = {.size = sizeof r};
    sl_session_edge edges[3] = {{0}};
    sl_session *s;
    int result = sl_session_join(&s, w->experiment, D, o, e);
    if (result != 0)
        return result;
    expect_refused(sl_session_stream(s, NULL, e),
                   "stream: device is \"cpu\", which has none; x on a GPU needs device \"cuda:N\"",
                   e);
    expect_refused(sl_session_mix(s, x, e), "mix: start comes first", e);
    ck_assert(sl_session_status(s, &r, e) == 0 && r.state == SL_SESSION_JOINED);
    expect_refused(sl_session_start(s, NULL, e), "start: x is NULL", e);
    descent_fill(x, D, o->rank);
    ck_assert_int_eq(sl_session_start(s, x, e), 0);
    expect_refused(sl_session_start(s, x, e), "has started", e);
    ck_assert(sl_session_status(s, &r, e) == 0 && r.state == SL_SESSION_STARTED);
    ck_assert_uint_eq(sl_session_edges(s, edges, 3), 2);
    ck_assert(edges[0].rank < edges[1].rank && edges[0].connected && edges[1].connected);
    expect_refused(sl_session_end(s, x, e), "end: no round is under way", e);
    expect_refused(sl_session_mix(s, (float *)((char *)x + 1), e), "aligned", e);
    ck_assert_int_eq(sl_session_begin(s, x, e), 0);
    expect_refused(sl_session_begin(s, x, e), "begin: a round is under way since begin", e);
    expect_refused(sl_session_mix(s, x, e), "mix: a round is under way since begin", e);
    expect_refused(sl_session_average(s, x, NULL, NULL, e), "average: a round is under way", e);
    expect_refused(sl_session_leave(&s, e), "leave: a round is under way", e);
    ck_assert_int_eq(sl_session_end(s, x, e), 0);
    return sl_session_leave(&s, e);
}

START_TEST(calls_that_are_not_allowed_change_nothing) {
    options.overlap = 1;
    run_both(ring, N, misuse, world);
}

/* ---- tensor by tensor ---- */

#define BLOCKING                                                                                   \
    "{\"topology\": {\"nodes\": 4, \"family\": \"ring\"}, \"algorithm\": {\"name\": \"d-psgd\", "  \
    "\"variant\": \"adapt-then-combine\"}, \"transport\": {\"chunk_bytes\": 4096, \"overlap\": "

/* Refused calls change nothing. */
static int give_tensors(sl_session *s, float *x, bool awaits, sl_error *e) {
    int result = sl_session_final(s, x, 2, e);
    expect_refused(sl_session_final(s, x, 2, e), "the number falls with each call", e);
    expect_refused(sl_session_await(s, x, 2, 1, e), "tensors from number 2 on only", e);
    expect_refused(sl_session_end(s, x, e), "final of 0 comes first", e);
    expect_refused(sl_session_mix(s, x, e), "mix: a round is under way since final", e);
    for (uint64_t t = 2; t-- > 0;)
        THEN(result, sl_session_final(s, x, t, e));
    for (uint64_t t = 0; awaits && t < 3; t++)
        THEN(result, sl_session_await(s, x, t, 1, e));
    if (awaits)
        return result;
    expect_refused(sl_session_final(s, x, 2, e), "were not awaited", e);
    return THEN(result, sl_session_end(s, x, e));
}

static int mix_by_tensors(void *context, const sl_session_options *o, sl_error *e) {
    static const uint64_t shapes[] = {D / 2, D / 4, D - D / 2 - D / 4};
    static const sl_session_tensor tensors[] = {
        {"a", shapes, 1}, {"b", shapes + 1, 1}, {"c", shapes + 2, 1}};
    const scene *w = context;
    float *x = ((scene *)context)->x[o->rank];
    sl_session_options own = *o;
    sl_session *s;
    own.tensors = tensors;
    own.tensor_count = 3;
    descent_fill(x, D, o->rank);
    int result = peer_start(&s, w->experiment, D, x, &own, e);
    for (int round = 0; round < 4 && result == 0; round++) {
        descent_step(x, x, D, o->rank);
        if (w == other)
            result = sl_session_mix(s, x, e);
        else
            result = give_tensors(s, x, round != 2, e);
    }
    if (w == other && result == 0) {
        expect_refused(sl_session_final(s, x, 2, e), "transport.overlap is \"none\"", e);
        expect_refused(sl_session_begin(s, x, e), "set options.overlap", e);
    }
    return end_session(s, result, e);
}

START_TEST(tensors_that_come_one_by_one_have_the_bits_of_mix) {
    other->experiment = BLOCKING "\"none\"}}";
    world->experiment = BLOCKING "\"layers\"}}";
    run_simulated(other->experiment, N, mix_by_tensors, other);
    run_simulated(world->experiment, N, mix_by_tensors, world);
    ck_assert_mem_eq(other->x, world->x, sizeof world->x);
    run_as_agents(N, mix_by_tensors, world);
    ck_assert_mem_eq(other->x, world->x, sizeof world->x);
}

/* ---- where neighbours read it ---- */

static enum { WELL, AVERAGED, DIRECTED, WRONG } way;

/* A round. Each peer is late at another time, and on a directed ring rank 1 reads late what comes
 * of rank 0, which need not wait for it. */
static int exchange_late(sl_session *s, float *x, int k, int64_t rank, sl_error *e) {
    const struct timespec late = {.tv_nsec = (rank == 1 ? 6 : (7 * k + 5 * rank) % 4) * 1000000};
    nanosleep(&late, NULL);
    if (k % 4 == 3)
        return sl_session_mix(s, x, e);
    int result = sl_session_begin(s, x, e);
    if (way == WRONG && rank == 1 && k == 9)
        x[D / 2] = 1e9F;
    return THEN(result, sl_session_end(s, x, e));
}

/* The first one moves in, and may not know yet that others read there. */
static void expect_no_copies(sl_session *s) {
    const struct timespec until_seen = {.tv_nsec = 600000000};
    sl_session_report r = {.size = sizeof r};
    nanosleep(&until_seen, NULL);
    ck_assert_int_eq(sl_session_status(s, &r, NULL), 0);
    ck_assert_uint_le(r.bytes_copied, 3 * sizeof world->x[0]);
}

/* In `world` x is at home. In an average, others' rounds go on with the model of the last one. */
static int train_at_home(void *context, const sl_session_options *o, sl_error *e) {
    enum { ROUNDS = 14 };
    sl_session_options own = *o;
    float *x = ((scene *)context)->x[o->rank], *given = x;
    sl_session *s;
    int result = context == world ? sl_session_home_open(&own.home, D, &x, e) : 0;
    descent_fill(x, D, o->rank);
    THEN(result, peer_start(&s, ((scene *)context)->experiment, D, x, &own, e));
    for (int k = 0; k < ROUNDS && result == 0; k++) {
        result = exchange_late(s, x, k, o->rank, e);
        descent_step(x, x, D, o->rank);
        if (way == AVERAGED && k == 5 && o->rank != 2)
            THEN(result, sl_session_average(s, x, NULL, NULL, e));
    }
    if (way == WELL && context == world && result == 0)
        expect_no_copies(s);
    result = end_session(s, result, e);
    memmove(given, x, sizeof world->x[0]);
    sl_session_home_close(&own.home);
    return result;
}

START_TEST(x_at_home_is_sent_without_a_copy_and_has_the_bits_of_others) {
    options.overlap = options.borrow = 1;
    for (way = WELL; way <= DIRECTED; way++) {
        world->experiment = other->experiment = way == DIRECTED ? directed_ring : ring;
        run_simulated(other->experiment, N, train_at_home, other);
        run_as_agents(N, train_at_home, world);
        ck_assert_mem_eq(other->x, world->x, sizeof world->x);
    }
}

START_TEST(what_is_written_at_home_while_it_is_read_is_nobody_else_s) {
    options.overlap = options.borrow = 1;
    way = WRONG;
    run_agents(threads, N, train_at_home, world, &options);
    expect_refused(threads[1].result, "x was changed between begin and end", &threads[1].error);
    for (int i = 0; i < N * D; i++)
        ck_assert(i == D + D / 2 || world->x[i / D][i % D] < 100);
}

/* ---- status ---- */

static sl_session *alone;
static sem_t joined;
static void *start_alone(void *context) {
    peer_thread *p = context;
    sl_session *s = NULL;
    p->result = sl_session_join(&s, ring, D, &p->options, &p->error);
    alone = s;
    sem_post(&joined);
    if (p->result == 0)
        p->result = sl_session_start(s, world->x[0], &p->error);
    sl_session_abort(&s, NULL);
    return NULL;
}

START_TEST(status_says_who_has_not_come) {
    sl_session_report r = {.size = sizeof r};
    sl_session_edge edges[3];
    char roster[PEERS_MAX * 32];
    free_roster(roster, sizeof roster, N);
    sem_init(&joined, 0, 0);
    options.rank = 0;
    options.roster = roster;
    threads[0] = (peer_thread){.options = options};
    pthread_create(&threads[0].thread, NULL, start_alone, &threads[0]);
    ck_assert_int_eq(sem_wait(&joined), 0);
    for (int i = 0; i < 1000 && strstr(r.waits_for, "agents") == NULL; i++) {
        usleep(20000);
        EXPECT_WELL(sl_session_status(alone, &r, &error));
    }
    ck_assert_str_eq(r.waits_for, "agents to come up: 1, 3");
    ck_assert_uint_eq(sl_session_edges(alone, edges, 3), 2);
    ck_assert(edges[0].awaited && !edges[0].connected && edges[1].awaited);
    char said[SL_SESSION_SAID_MAX];
    EXPECT_WELL(sl_session_reload(alone, said, &error));
    ck_assert_str_eq(said, "the roster is as before");
    sl_session_stop(alone);
    pthread_join(threads[0].thread, NULL);
    ck_assert_int_eq(threads[0].result, SL_ESTOPPED);
}
