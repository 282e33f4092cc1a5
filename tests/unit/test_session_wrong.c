/* test_session_wrong.c - what callers of a session get wrong, and what they are told: values that
 * cannot be, calls without a session, peers that are killed or stopped. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "harness.h"
#include "peers.h"

enum { N = 3, D = 50 };
static const char ring[] = "{\"topology\": {\"nodes\": 3, \"family\": \"ring\"}, "
                           "\"membership\": {\"on_loss\": \"stop\"}}";
static const char places[] = "127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003";
static sl_error error;
static sl_session_options options;
static peer_thread threads[N];
static float x_of[N][D];

static void setup(void) {
    sl_session_defaults(&options, sizeof options);
    error = (sl_error){0};
    memset(x_of, 0, sizeof x_of);
}

static void expect(int result, const char *text) {
    ck_assert_int_eq(result, SL_EINVAL);
    ck_assert_int_eq(error.code, SL_EINVAL);
    ck_assert_msg(strstr(error.text, text) != NULL, "%s: %s", text, error.text);
}

/* ---- without a session ---- */

START_TEST(calls_without_a_session_are_refused) {
    sl_session *s = NULL;
    sl_session_report report = {.size = sizeof report};
    float x[D] = {0};
    double number = 0;
    expect(sl_session_start(NULL, x, &error), "start: there is no session");
    expect(sl_session_mix(NULL, x, &error), "mix: there is no session: join comes first");
    expect(sl_session_offer(NULL, x, &error), "offer: there is no session");
    expect(sl_session_begin(NULL, x, &error), "begin: there is no session");
    expect(sl_session_end(NULL, x, &error), "end: there is no session");
    expect(sl_session_average(NULL, x, NULL, NULL, &error), "average: there is no session");
    expect(sl_session_sum(NULL, &number, 1, NULL, &error), "sum: there is no session");
    expect(sl_session_status(NULL, &report, &error), "status: there is no session");
    ck_assert_int_eq(sl_session_mix(NULL, x, NULL), SL_EINVAL);
    ck_assert_uint_eq(sl_session_edges(NULL, NULL, 0), 0);
    ck_assert_int_eq(sl_session_ready(NULL), 0);
    ck_assert_int_eq(sl_session_fd(NULL), -1);
    sl_session_stop(NULL);
    sl_session_abort(&s, "nothing");
    ck_assert_int_eq(sl_session_leave(&s, &error), 0);
}
END_TEST

/* ---- values that cannot be ---- */

static void refuse(uint64_t dimension, const char *text) {
    sl_session *s = NULL;
    expect(sl_session_join(&s, ring, dimension, &options, &error), text);
    ck_assert_ptr_null(s);
}

/* Of a peer by hand; `change` is what is wrong. */
#define REFUSE(change, text)                                                                       \
    do {                                                                                           \
        setup();                                                                                   \
        options.rank = 0;                                                                          \
        options.roster = places;                                                                   \
        change;                                                                                    \
        refuse(D, text);                                                                           \
    } while (0)

static const char *long_text(void) {
    static char text[5001];
    memset(text, 'k', sizeof text - 1);
    return text;
}

START_TEST(join_refuses_values_that_cannot_be) {
    const char *no_text[] = {NULL};
    REFUSE(options.size = 0, "options.size: 0; sl_session_defaults");
    REFUSE(options.size = UINT64_MAX, "options.size: 18446744073709551615");
    REFUSE(options.rank = -2, "options.rank: -2 is not allowed");
    REFUSE(options.rank = INT64_C(1) << 32, "options.rank: 4294967296");
    REFUSE(options.rank = N, "rank");
    REFUSE(options.nodes = 0, "options.nodes: 0 is not allowed");
    REFUSE(options.nodes = -3, "options.nodes: -3 is not allowed");
    REFUSE(options.nodes = (INT64_C(1) << 32) + N, "options.nodes: 4294967299");
    REFUSE(options.deadline_s = NAN, "options.deadline_s: nan is not allowed");
    REFUSE(options.deadline_s = -1, "options.deadline_s: -1 is not allowed");
    REFUSE(options.override_count = 1, "options.overrides: is NULL");
    REFUSE((options.overrides = no_text, options.override_count = 1), "options.overrides[0]");
    REFUSE(options.key = "", "options.key: has 0 bytes; allowed are 1 to ");
    REFUSE(options.key = long_text(), "options.key: has 5000 bytes; allowed are 1 to ");
    REFUSE(options.tensor_count = 1, "options.tensors: is NULL");
    REFUSE(options.borrow = 1, "options.borrow: is for begin and end, and options.overlap is 0");
}
END_TEST

START_TEST(join_refuses_dimensions) {
    options.rank = 0;
    options.roster = places;
    refuse(0, "dimension: 0 is not allowed; it must be from 1 to");
    refuse(UINT64_MAX, "dimension: 18446744073709551615 is not allowed");
    expect(sl_session_join(NULL, ring, D, &options, &error), "join");
}
END_TEST

static int one_number(void *context, const sl_session_options *o, sl_error *e) {
    (void)context;
    sl_session *s = NULL;
    float x = (float)o->rank, average;
    double distance;
    int result = sl_session_join(&s, ring, 1, o, e);
    if (result == 0)
        result = sl_session_start(s, &x, e);
    if (result == 0)
        result = sl_session_mix(s, &x, e);
    if (result == 0)
        result = sl_session_average(s, &x, &average, &distance, e);
    ck_assert(result != 0 || (x == 1 && average == 1 && distance == 0));
    return result == 0 ? sl_session_leave(&s, e) : (sl_session_abort(&s, NULL), result);
}

START_TEST(one_number_is_a_model) {
    ck_assert_msg(sl_simulate(ring, N, one_number, NULL, &options, &error) == 0, "%s", error.text);
    run_agents(threads, N, one_number, NULL, &options);
    for (int i = 0; i < N; i++)
        ck_assert_msg(threads[i].result == 0, "%s", threads[i].error.text);
}
END_TEST

START_TEST(status_wants_the_size_of_its_report) {
    sl_session *s;
    sl_session_report report = {.size = 0};
    options.rank = 0;
    options.roster = places;
    ck_assert_int_eq(sl_session_join(&s, ring, D, &options, &error), 0);
    expect(sl_session_status(s, &report, &error), "size: 0");
    expect(sl_session_status(s, NULL, &error), "status: out is NULL");
    sl_session_abort(&s, NULL);
}
END_TEST

/* ---- peers' functions ---- */

static int fail_without_words(void *context, const sl_session_options *o, sl_error *e) {
    (void)e;
    const bool starts = *(const bool *)context;
    sl_session *s = NULL;
    if (!starts)
        return o->rank == 1 ? -77 : 0;
    ck_assert_int_eq(sl_session_join(&s, NULL, D, o, NULL), 0);
    int result = sl_session_start(s, x_of[o->rank], NULL);
    if (result == 0)
        result = sl_session_mix(s, x_of[o->rank], NULL);
    sl_session_abort(&s, NULL);
    return o->rank == 1 ? 5 : result;
}

START_TEST(a_function_that_says_nothing_is_named) {
    bool starts = true;
    int result = sl_simulate(ring, N, fail_without_words, &starts, &options, &error);
    ck_assert_int_eq(result, SL_ESTOPPED);
    ck_assert_msg(strstr(error.text, "aborted") != NULL, "%s", error.text);
    setup();
    starts = false;
    result = sl_simulate(ring, N, fail_without_words, &starts, &options, &error);
    expect(result, "rank 0 returned without start");
}
END_TEST

static int leave_then_fail(void *context, const sl_session_options *o, sl_error *e) {
    (void)context;
    sl_session *s;
    int result = peer_start(&s, NULL, D, x_of[o->rank], o, e);
    if (result == 0)
        result = sl_session_leave(&s, e);
    return o->rank == 1 ? 5 : result;
}

START_TEST(a_function_that_fails_after_leave_is_heard) {
    expect(sl_simulate(ring, N, leave_then_fail, NULL, &options, &error),
           "the function of rank 1 returned 5, and did not say why");
}
END_TEST

static int stop_itself(void *context, const sl_session_options *o, sl_error *e) {
    (void)context;
    sl_session *s;
    int result = peer_start(&s, NULL, D, x_of[o->rank], o, e);
    for (int round = 0; round < 1000 && result == 0; round++) {
        if (o->rank == 1 && round == 2)
            sl_session_stop(s);
        result = sl_session_mix(s, x_of[o->rank], e);
    }
    sl_session_abort(&s, NULL);
    return result;
}

START_TEST(stop_ends_a_simulation_too) {
    int result = sl_simulate(ring, N, stop_itself, NULL, &options, &error);
    ck_assert_int_eq(result, SL_ESTOPPED);
    ck_assert_msg(strstr(error.text, "node 1, round 3: stopped on request") != NULL, "%s",
                  error.text);
}
END_TEST

/* ---- numbers that are none, from the start ---- */

static int start_with_nan(void *context, const sl_session_options *o, sl_error *e) {
    (void)context;
    sl_session *s = NULL;
    float *x = x_of[o->rank];
    int result = sl_session_join(&s, ring, D, o, e);
    x[7] = o->rank == 1 ? NAN : 0;
    if (result == 0)
        result = sl_session_start(s, x, e);
    for (int round = 0; round < 1000 && result == 0; round++)
        result = sl_session_mix(s, x, e);
    sl_session_abort(&s, NULL);
    return result;
}

START_TEST(nan_in_the_first_model_is_the_callers_error) {
    const char *text = "node 1, round 1: x is nan at element 7";
    ck_assert_int_eq(sl_simulate(ring, N, start_with_nan, NULL, &options, &error), SL_EDIVERGED);
    ck_assert_msg(strstr(error.text, text) != NULL, "%s", error.text);
    run_agents(threads, N, start_with_nan, NULL, &options);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(threads[i].result, i == 1 ? SL_EDIVERGED : SL_EPEER);
        ck_assert_msg(strstr(threads[i].error.text, text) != NULL, "%s", threads[i].error.text);
    }
}
END_TEST

/* ---- who is waited for ---- */

static int come_late(void *context, const sl_session_options *o, sl_error *e) {
    (void)context;
    sl_session *s;
    int result = peer_start(&s, ring, D, x_of[o->rank], o, e);
    sl_session_report report = {.size = sizeof report};
    while (o->rank == 1 && result == 0 && report.state != SL_SESSION_FAILED) {
        usleep(20000);
        ck_assert_int_eq(sl_session_status(s, &report, NULL), 0);
    }
    while (result == 0)
        result = sl_session_mix(s, x_of[o->rank], e);
    sl_session_abort(&s, NULL);
    return result;
}

START_TEST(a_deadline_says_whom_the_call_waited_for) {
    options.deadline_s = 2;
    run_agents(threads, N, come_late, NULL, &options);
    const char *text = "longer than options.deadline_s (2 s), for ";
    const char *whom = threads[0].error.round > 0 ? "edge 1->" : ""; /* else even start took long */
    int named = 0;
    for (int i = 0; i < N; i++) {
        const char *found = strstr(threads[i].error.text, text);
        named += found != NULL && strstr(found, whom) != NULL;
    }
    ck_assert_msg(named > 0, "%s", threads[0].error.text);
}
END_TEST

static int meet_nobody(void *context, const sl_session_options *o, sl_error *e) {
    (void)context;
    sl_session *s;
    int result = peer_start(&s, ring, D, x_of[0], o, e);
    sl_session_abort(&s, NULL);
    return result;
}

START_TEST(so_does_a_start) {
    char roster[PEERS_MAX * 32];
    free_roster(roster, sizeof roster, N);
    options.deadline_s = 1;
    options.rank = 0;
    options.roster = roster;
    ck_assert_int_eq(meet_nobody(NULL, &options, &error), SL_EPEER);
    ck_assert_msg(strstr(error.text, "(1 s), for agents to come up: 1, 2") != NULL ||
                      strstr(error.text, "(1 s), for its start: rank 0 of 3") != NULL,
                  "%s", error.text);
}
END_TEST

/* ---- processes that are killed or stopped ---- */

/* What a peer writes when its session has ended. */
typedef struct last_words {
    int rank, result;
    char text[SL_ERROR_TEXT_MAX];
} last_words;

static void train_for_ever(int rank, int out) {
    options.rank = rank;
    sl_session *s = NULL;
    last_words last = {.rank = rank};
    sl_error why = {0};
    float *x = x_of[rank];
    int result = sl_session_join(&s, ring, D, &options, &why);
    if (result == 0)
        result = sl_session_start(s, x, &why);
    for (int round = 0; result == 0; round++) {
        result = sl_session_mix(s, x, &why);
        if (round == 5 && write(out, &last, sizeof last) != sizeof last) /* it trains */
            _exit(3);
    }
    sl_session_abort(&s, NULL);
    last.result = result;
    snprintf(last.text, sizeof last.text, "%s", why.text);
    _exit(write(out, &last, sizeof last) == sizeof last ? 0 : 3);
}

/* Sends `signal` to rank 1 once all train; what the others say comes to heard (N). */
static void lose_a_peer(int signal, last_words *heard) {
    char roster[PEERS_MAX * 32];
    static const char *set[] = {"transport.timeout_s=3"};
    pid_t peers[N];
    int words[2];
    free_roster(roster, sizeof roster, N);
    options.roster = roster;
    options.overrides = set;
    options.override_count = 1;
    ck_assert_int_eq(pipe(words), 0);
    for (int i = 0; i < N; i++)
        if ((peers[i] = fork()) == 0)
            train_for_ever(i, words[1]);
    last_words last;
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(read(words[0], &last, sizeof last), sizeof last);
        ck_assert_msg(last.result == 0, "%d: %s", last.rank, last.text);
    }
    kill(peers[1], signal);
    for (int i = 0; i < N - 1; i++) {
        ck_assert_int_eq(read(words[0], &last, sizeof last), sizeof last);
        heard[last.rank] = last;
    }
    kill(peers[1], SIGKILL);
    for (int i = 0; i < N; i++)
        waitpid(peers[i], NULL, 0);
}

static void check_words(const last_words *heard, const char *text) {
    int named = 0;
    for (int i = 0; i < N; i++)
        if (i != 1) {
            ck_assert_int_eq(heard[i].result, SL_EPEER);
            ck_assert_msg(strstr(heard[i].text, "edge 1->") != NULL, "%s", heard[i].text);
            named += strstr(heard[i].text, text) != NULL;
        }
    ck_assert_msg(named > 0, "%s", heard[0].text);
}

START_TEST(a_killed_peer_is_named) {
    last_words heard[N] = {{0}};
    lose_a_peer(SIGKILL, heard);
    check_words(heard, "agent 1");
}
END_TEST

START_TEST(a_stopped_peer_is_named) {
    last_words heard[N] = {{0}};
    lose_a_peer(SIGSTOP, heard);
    check_words(heard, "agent 1 has been silent for");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("session wrong");
    ADD_TESTS_WITH(suite, "values", setup, NULL, calls_without_a_session_are_refused,
                   join_refuses_values_that_cannot_be, join_refuses_dimensions,
                   one_number_is_a_model, status_wants_the_size_of_its_report);
    ADD_TESTS_WITH(suite, "functions", setup, NULL, a_function_that_says_nothing_is_named,
                   a_function_that_fails_after_leave_is_heard, stop_ends_a_simulation_too,
                   nan_in_the_first_model_is_the_callers_error);
    ADD_TESTS_WITH(suite, "peers", setup, NULL, a_deadline_says_whom_the_call_waited_for,
                   so_does_a_start, a_killed_peer_is_named, a_stopped_peer_is_named);
    return run_suite(suite);
}
