/* test_session_faults.c - how sessions fail, and what is said: with agents, and simulated. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "harness.h"
#include "peers.h"

enum { D = 3000, N = 4 };
static const char ring[] = "{\"topology\": {\"nodes\": 4, \"family\": \"ring\"}, "
                           "\"transport\": {\"chunk_bytes\": 4096}, "
                           "\"membership\": {\"on_loss\": \"stop\"}}";
static sl_error error;
static sl_session_options options;
static peer_thread threads[N];
static float x_of[N][D];

static void setup(void) {
    sl_session_defaults(&options, sizeof options);
    error = (sl_error){0};
    memset(x_of, 0, sizeof x_of);
}

static void fill(float *x, int64_t rank) {
    for (int i = 0; i < D; i++)
        x[i] = sinf((float)(i + 100 * rank));
}

/* ---- how sessions fail ---- */

typedef struct failing {
    int (*fault)(sl_session *s, float *x, sl_error *e); /* of rank 2, in round 3 */
} failing;

static int run_to_fault(void *context, const sl_session_options *o, sl_error *e) {
    const failing *f = context;
    float *x = malloc(D * sizeof *x);
    sl_session *s;
    fill(x, o->rank);
    int result = sl_session_join(&s, ring, D, o, e);
    if (result == 0)
        result = sl_session_start(s, x, e);
    for (int round = 1; round <= 1000000 && result == 0; round++)
        result = o->rank == 2 && round == 3 ? f->fault(s, x, e) : sl_session_mix(s, x, e);
    if (s != NULL && result != 0)
        ck_assert_int_eq(sl_session_mix(s, x, NULL), result);
    sl_session_abort(&s, NULL);
    free(x);
    return result;
}

static void fail_with(failing f, int code, const char *own, const char *others) {
    run_agents(threads, N, run_to_fault, &f, &options);
    for (int i = 0; i < N; i++) {
        const char *text = i == 2 ? own : others;
        if (text == NULL)
            continue;
        ck_assert_msg(strstr(threads[i].error.text, text) != NULL, "%d: %s", i,
                      threads[i].error.text);
        ck_assert_int_eq(threads[i].result, i == 2 ? code : SL_EPEER);
    }
}

static int give_nan(sl_session *s, float *x, sl_error *e) {
    x[1500] = NAN;
    return sl_session_mix(s, x, e);
}

START_TEST(nan_is_the_callers_error_and_all_hear_of_rank_and_round) {
    const uint64_t shape[] = {1000};
    const sl_session_tensor tensors[] = {{"a", shape, 1}, {"b", shape, 1}, {"c", shape, 1}};
    options.tensors = tensors;
    options.tensor_count = 3;
    fail_with((failing){.fault = give_nan}, SL_EDIVERGED,
              "node 2, round 3: x is nan at element 500 of b [1000]", "node 2, round 3: x is nan");
}
END_TEST

static int change_x(sl_session *s, float *x, sl_error *e) {
    int result = sl_session_begin(s, x, e);
    x[7]++;
    return result != 0 ? result : sl_session_end(s, x, e);
}

START_TEST(a_borrowed_x_that_changes_is_found) {
    options.overlap = options.borrow = 1;
    fail_with((failing){.fault = change_x}, SL_EINVAL,
              "node 2, round 3: x was changed between begin and end", NULL);
}
END_TEST

static int give_up(sl_session *s, float *x, sl_error *e) {
    sl_session_stop(s);
    return sl_session_average(s, x, NULL, NULL, e);
}

START_TEST(stop_ends_a_call) {
    fail_with((failing){.fault = give_up}, SL_ESTOPPED, "stopped on request", "stopped on request");
}
END_TEST

static _Thread_local int interrupted;
static int interrupt(void *context) {
    (void)context;
    return interrupted;
}

static int wait_long(sl_session *s, float *x, sl_error *e) {
    interrupted = 1;
    return sl_session_average(s, x, NULL, NULL, e);
}

START_TEST(who_waits_may_interrupt) {
    options.waiting = interrupt;
    fail_with((failing){.fault = wait_long}, SL_ESTOPPED, "interrupted", "interrupted");
}
END_TEST

static int never_call(sl_session *s, float *x, sl_error *e) {
    (void)x;
    (void)e;
    while (true) {
        sl_session_report report = {.size = sizeof report};
        ck_assert_int_eq(sl_session_status(s, &report, NULL), 0);
        if (report.state == SL_SESSION_FAILED)
            return sl_session_mix(s, x, e);
        usleep(50000);
    }
}

START_TEST(a_peer_that_never_calls_is_named) {
    static const char *set[] = {"transport.round_timeout_s=1"};
    options.overrides = set;
    options.override_count = 1;
    fail_with((failing){.fault = never_call}, SL_EPEER, "has not come in time",
              "has not come in time");
    int named = 0; /* by those who waited for it, and by whom they told first */
    for (int i = 0; i < N; i++)
        named += strstr(threads[i].error.text, "edge 2->") != NULL;
    ck_assert_int_ge(named, 1);
}
END_TEST

START_TEST(a_call_has_its_deadline) {
    options.deadline_s = 0.5;
    fail_with((failing){.fault = never_call}, SL_EPEER, "options.deadline_s", "options.deadline_s");
}
END_TEST

/* ---- simulations that end early ---- */

static int mix_for_ever(void *context, const sl_session_options *o, sl_error *e) {
    (void)context;
    sl_session *s;
    int result = peer_start(&s, NULL, D, x_of[o->rank], o, e);
    for (int round = 1; result == 0; round++) {
        if (o->rank == 2 && round == 3)
            x_of[2][5] = NAN;
        result = sl_session_mix(s, x_of[o->rank], e);
    }
    sl_session_abort(&s, NULL);
    return result;
}

static int run_away(void *context, const sl_session_options *o, sl_error *e) {
    sl_session *s;
    if (o->rank != 1)
        return mix_for_ever(context, o, e);
    ck_assert_int_eq(sl_session_join(&s, NULL, D, o, e), 0);
    return sl_session_start(s, x_of[1], e);
}

static int never_start(void *context, const sl_session_options *o, sl_error *e) {
    return o->rank == 2 ? 0 : mix_for_ever(context, o, e);
}

static int other_shape(void *context, const sl_session_options *o, sl_error *e) {
    const uint64_t shape[] = {D}, folded[] = {D / 2, 2};
    const sl_session_tensor one = {"w", shape, 1}, two = {"w", folded, 2};
    sl_session_options mine = *o;
    mine.tensors = o->rank == 3 ? &two : &one;
    mine.tensor_count = 1;
    return mix_for_ever(context, &mine, e);
}

static int other_shape_by_path(void *context, const sl_session_options *o, sl_error *e) {
    (void)context;
    const uint64_t shape[] = {D - 2}, rest[] = {2}, folded[] = {1, 2};
    const sl_session_tensor same[] = {{"w", shape, 1}, {"b", rest, 1}},
                            other_one[] = {{"w", shape, 1}, {"b", folded, 2}};
    sl_session_options mine = *o;
    sl_session *s;
    mine.tensors = o->rank == 3 ? other_one : same;
    mine.tensor_count = 2;
    ck_assert_int_eq(sl_session_join(&s, ring, D, &mine, e), 0);
    int result = sl_session_start(s, x_of[o->rank], e);
    while (result == 0) /* of rank 1, whose neighbours are as they should be */
        result = sl_session_mix(s, x_of[o->rank], e);
    sl_session_abort(&s, NULL);
    return result;
}

START_TEST(peers_with_other_tensors_refuse_each_other) {
    run_agents(threads, N, other_shape_by_path, NULL, &options);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(threads[i].result, SL_EPEER);
    ck_assert_msg(strstr(threads[3].error.text, "tensor 1 is b [2] there and b [1, 2] here"), "%s",
                  threads[3].error.text);
    ck_assert_msg(strstr(threads[0].error.text, "tensor 1 is b [") != NULL, "%s",
                  threads[0].error.text);
}
END_TEST

static int change_one(void *context, const sl_session_options *o, sl_error *e) {
    (void)context;
    sl_session *s;
    float *x = x_of[o->rank];
    ck_assert_int_eq(sl_session_join(&s, ring, D, o, e), 0);
    int result = sl_session_start(s, x, e);
    while (result == 0)
        result = o->rank == 2 ? change_x(s, x, e) : sl_session_mix(s, x, e);
    sl_session_abort(&s, NULL);
    return result;
}

START_TEST(a_borrowed_x_that_changes_is_found_in_a_simulation) {
    options.overlap = options.borrow = 1;
    ck_assert_int_eq(sl_simulate(ring, N, change_one, NULL, &options, &error), SL_EINVAL);
    ck_assert_msg(strstr(error.text, "node 2, round 1: x was changed between begin and end"), "%s",
                  error.text);
}
END_TEST

START_TEST(a_simulation_ends_with_the_first_error) {
    const struct {
        peer_function function;
        int code;
        const char *text;
    } rows[] = {
        {never_start, SL_EINVAL, "rank 2 returned without start"},
        {run_away, SL_EINVAL, "node 1, round 1: the peer's function returned without leave"},
        {other_shape, SL_EINVAL, "tensor 0 is w [3000] there and w [1500, 2] here"},
        {mix_for_ever, SL_EDIVERGED, "node 2, round 3: x is nan at element 5"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int result = sl_simulate(ring, N, rows[i].function, NULL, &options, &error);
        ck_assert_int_eq(result, rows[i].code);
        ck_assert_msg(strstr(error.text, rows[i].text) != NULL, "%s", error.text);
    }
    ck_assert_int_eq(sl_simulate(ring, 3, run_away, NULL, &options, &error), SL_EINVAL);
    ck_assert_int_eq(sl_simulate(ring, 0, run_away, NULL, &options, &error), SL_EINVAL);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("session faults");
    ADD_TESTS_WITH(suite, "agents", setup, NULL,
                   nan_is_the_callers_error_and_all_hear_of_rank_and_round,
                   a_borrowed_x_that_changes_is_found, stop_ends_a_call, who_waits_may_interrupt,
                   a_peer_that_never_calls_is_named, a_call_has_its_deadline,
                   peers_with_other_tensors_refuse_each_other);
    ADD_TESTS_WITH(suite, "simulated", setup, NULL, a_simulation_ends_with_the_first_error,
                   a_borrowed_x_that_changes_is_found_in_a_simulation);
    return run_suite(suite);
}
