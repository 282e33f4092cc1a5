/* test_session_wrong.c - what callers of a session get wrong, how sessions fail, and what is said
 * of it, with agents and simulated. */
#include "sessions.h"

enum { N = 4, D = 3000 };
static const char ring[] = "{\"topology\": {\"nodes\": 4, \"family\": \"ring\"}, "
                           "\"transport\": {\"chunk_bytes\": 4096}, "
                           "\"membership\": {\"on_loss\": \"stop\"}}";
static const char places[] = "127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003,127.0.0.1:7004";
static float x_of[N][D];

static void setup(void) {
    sl_session_defaults(&options, sizeof options);
    error = (sl_error){0};
    memset(x_of, 0, sizeof x_of);
}

static void be_one_of_places(void) {
    options.rank = 0;
    options.roster = places;
}

static void expect(int result, const char *text) {
    expect_refused(result, text, &error);
}

/* ---- without a session ---- */

FIXTURES(setup, NULL);

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
    EXPECT_WELL(sl_session_leave(&s, &error));
}

/* ---- values that cannot be ---- */

static void refuse(const char *experiment, uint64_t dimension, const char *text) {
    sl_session *s = NULL;
    expect(sl_session_join(&s, experiment, dimension, &options, &error), text);
    ck_assert_ptr_null(s);
}

/* Of a peer by hand; `change` is what is wrong. */
#define REFUSE(change, text)                                                                       \
    do {                                                                                           \
        setup();                                                                                   \
        be_one_of_places();                                                                        \
        change;                                                                                    \
        refuse(ring, D, text);                                                                     \
    } while (0)

static void set(const char *text) {
    static const char *override;
    override = text;
    set_options(&override, 1);
}

/* The first one of two. */
static void set_tensors(const uint64_t *shape, uint64_t axes) {
    static sl_session_tensor tensors[2];
    tensors[0] = (sl_session_tensor){"a", shape, axes};
    tensors[1] = (sl_session_tensor){"b", NULL, 0};
    options.tensors = tensors;
    options.tensor_count = 2;
}

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
    REFUSE(options.nodes = (INT64_C(1) << 32) + N, "options.nodes: 4294967300");
    REFUSE(options.deadline_s = NAN, "options.deadline_s: nan is not allowed");
    REFUSE(options.deadline_s = -1, "options.deadline_s: -1 is not allowed");
    REFUSE(options.override_count = 1, "options.overrides: is NULL");
    REFUSE(set_options(no_text, 1), "options.overrides[0]");
    REFUSE(options.key = "", "options.key: has 0 bytes; allowed are 1 to ");
    REFUSE(options.key = long_text(), "options.key: has 5000 bytes; allowed are 1 to ");
    REFUSE(options.tensor_count = 1, "options.tensors: is NULL");
    REFUSE(options.borrow = 1, "options.borrow: is for begin and end, and options.overlap is 0");
    REFUSE(options.nodes = 5, "5 peers");
    REFUSE(set_tensors((const uint64_t[]){2, 3}, 2), "hold 7 numbers");
    REFUSE(set_tensors((const uint64_t[]){2, 0}, 2), "axis of length 0");
    REFUSE(set_tensors((const uint64_t[]){2, 0}, 17), "axes: 17");
    REFUSE(set("optimizer.momentum=0.9"), "optimizer.momentum: 0.9");
    REFUSE(set("optimizer.weight_decay=0.1"), "optimizer.weight_decay: 0.1");
    REFUSE(set("device=auto"), "device: \"auto\"");
    REFUSE(set("algorithm=no-sgd"), "no-sgd");
    REFUSE((set("algorithm=choco-sgd"), options.overlap = 1), "options.overlap");
    REFUSE((set("transport.overlap=layers"), options.overlap = 1), "options.overlap hides");
    setup();
    be_one_of_places();
    refuse("{\"topology\": {\"nodes\": 1", D, "experiment");
    refuse(ring, 0, "dimension: 0 is not allowed; it must be from 1 to");
    refuse(ring, UINT64_MAX, "dimension: 18446744073709551615 is not allowed");
    expect(sl_session_join(NULL, ring, D, &options, &error), "join");
}

START_TEST(status_wants_the_size_of_its_report) {
    sl_session *s;
    sl_session_report report = {.size = 0};
    be_one_of_places();
    EXPECT_WELL(sl_session_join(&s, ring, D, &options, &error));
    expect(sl_session_status(s, &report, &error), "size: 0");
    expect(sl_session_status(s, NULL, &error), "status: out is NULL");
    sl_session_abort(&s, NULL);
}

/* ---- what rank 2 does in round 3 ---- */

typedef int call(sl_session *s, float *x, sl_error *e);

static int give_nan(sl_session *s, float *x, sl_error *e) {
    x[1500] = NAN;
    return sl_session_mix(s, x, e);
}

static int stop(sl_session *s, float *x, sl_error *e) {
    sl_session_stop(s);
    return sl_session_average(s, x, NULL, NULL, e);
}

static int never_call(sl_session *s, float *x, sl_error *e) {
    sl_session_report report = {.size = sizeof report};
    while (report.state != SL_SESSION_FAILED) {
        usleep(50000);
        ck_assert_int_eq(sl_session_status(s, &report, NULL), 0);
    }
    return sl_session_mix(s, x, e);
}

/* Of changes to what is borrowed, interrupts and time-outs tests/python/ has more. */
static const struct fault {
    call *call;
    double deadline_s;
    bool first;                             /* in its first round, before start */
    bool simulated;                         /* too */
    int code;                               /* of rank 2; the others' is SL_EPEER */
    const char *own, *others, *edge, *root; /* one of the last two: said by one of all, at least */
} faults[] = {
    {give_nan, .simulated = true, .code = SL_EDIVERGED,
     .own = "node 2, round 3: x is nan at element 500 of b [1000]",
     .others = "node 2, round 3: x is nan"},
    {give_nan, .first = true, .simulated = true, .code = SL_EDIVERGED,
     .own = "node 2, round 1: x is nan at element 500 of b [1000]",
     .others = "node 2, round 1: x is nan"},
    {stop, .simulated = true, .code = SL_ESTOPPED, .own = "node 2, round 3: stopped on request",
     .others = "stopped on request"},
    {never_call, .deadline_s = 2, .code = SL_EPEER, .own = "longer than options.deadline_s (2 s)",
     .others = "longer than options.deadline_s (2 s)", .edge = "edge 2->",
     .root = "agent 2 computes"},
};

static int run_to_fault(void *context, const sl_session_options *o, sl_error *e) {
    const struct fault *f = context;
    float *x = x_of[o->rank];
    sl_session *s;
    for (int i = 0; i < D; i++)
        x[i] = f->first && o->rank == 2 && i == 1500 ? NAN : sinf((float)(i + 100 * o->rank));
    int result = peer_start(&s, ring, D, x, o, e);
    for (int round = 1; result == 0; round++)
        result = o->rank == 2 && round == 3 ? f->call(s, x, e) : sl_session_mix(s, x, e);
    if (s != NULL && o->simulation == NULL)
        ck_assert_int_eq(sl_session_mix(s, x, NULL), result); /* and so does each later call */
    sl_session_abort(&s, NULL);
    return result;
}

START_LOOP_TEST(faults_are_named_to_all, sizeof faults / sizeof *faults) {
    static const uint64_t shape = D / 3;
    static const sl_session_tensor tensors[] = {
        {"a", &shape, 1}, {"b", &shape, 1}, {"c", &shape, 1}};
    struct fault f = faults[_i];
    bool named = f.edge == NULL;
    options.tensors = tensors;
    options.tensor_count = 3;
    options.deadline_s = f.deadline_s;
    run_agents(threads, N, run_to_fault, &f, &options);
    for (int i = 0; i < N; i++) {
        expect_text(threads[i].result, i == 2 ? f.code : SL_EPEER, i == 2 ? f.own : f.others,
                    &threads[i].error);
        named = named || strstr(threads[i].error.text, f.edge) != NULL ||
                strstr(threads[i].error.text, f.root) != NULL;
    }
    ck_assert_msg(named, "%s", threads[0].error.text);
    if (f.simulated)
        expect_text(sl_simulate(ring, N, run_to_fault, &f, &options, &error), f.code, f.own,
                    &error);
}

static int meet_nobody(void *context, const sl_session_options *o, sl_error *e) {
    sl_session *s;
    int result = peer_start(&s, ring, D, x_of[0], o, e);
    sl_session_abort(&s, NULL);
    return result;
}

START_TEST(a_start_has_its_deadline_too) {
    char roster[PEERS_MAX * 32];
    free_roster(roster, sizeof roster, N);
    options.deadline_s = 1;
    options.rank = 0;
    options.roster = roster;
    EXPECT_ERROR(meet_nobody(NULL, &options, &error), SL_EPEER, "(1 s), for ");
    ck_assert_msg(strstr(error.text, "agents to come up: 1, 3") != NULL ||
                      strstr(error.text, "its start: rank 0 of 4") != NULL,
                  "%s", error.text);
}
