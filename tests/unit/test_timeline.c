/* test_timeline.c - predicted time against closed forms: messages told by hand, and those of the
 * simulator under every route. */
#include "experiments.h"
#include "starling/sim.h"

enum { DIMENSION = 1000, PART_BYTES = 4096, HEADER = 64 };
#define TOLERANCE 1e-12
#define MBIT 8.0 /* a byte a microsecond */
#define BYTE 1e-6
#define LATENCY_MS 3.0
#define LATENCY 3e-3

static const sl_platform links = {
    .bandwidth_mbit = MBIT, .latency_ms = LATENCY_MS, .compute_ms = 7};
#define COMPUTE 7e-3

static sl_error error;

/* ---- told by hand ---- */

CLOSER(sl_timeline);

static sl_timeline *open_timeline(uint32_t nodes) {
    sl_timeline *t = NULL;
    ck_assert_int_eq(sl_timeline_open(&t, nodes, NULL), 0);
    return close_behind(t, close_sl_timeline);
}

static void send_either(sl_timeline *t, uint32_t from, uint64_t exchange, bool overlaps,
                        uint32_t to, size_t bytes) {
    sl_timeline_send(t, from, exchange, 0, overlaps, &to, 1);
    sl_timeline_part(t, bytes);
}

static void send(sl_timeline *t, uint32_t from, uint64_t exchange, uint32_t to, size_t bytes) {
    send_either(t, from, exchange, false, to, bytes);
}

static void send_old(sl_timeline *t, uint32_t from, uint64_t exchange, uint32_t to, size_t bytes) {
    send_either(t, from, exchange, true, to, bytes);
}

/* A round, in which each node waits for so many messages. */
#define END_ROUND(t, ...)                                                                          \
    end_round(t, (const uint32_t[]){__VA_ARGS__},                                                  \
              sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void end_round(sl_timeline *t, const uint32_t *messages, uint32_t nodes) {
    for (uint32_t i = 0; i < nodes; i++)
        sl_timeline_end_node_round(t, i, messages[i]);
    sl_timeline_end_round(t);
}

/* Of the first rounds, or with 0 of all. */
static double seconds_of(const sl_timeline *t, const sl_platform *platform, uint64_t rounds) {
    double seconds = NAN;
    ck_assert_int_eq(sl_timeline_seconds(&seconds, t, platform, rounds, NULL), 0);
    return seconds;
}

/* And so it is when it was written and read. */
static void check_seconds(const sl_timeline *t, const sl_platform *platform, double expected) {
    const double seconds = seconds_of(t, platform, 0);
    ck_assert_double_eq_tol(seconds, expected, TOLERANCE);
    char path[] = "/tmp/starling-timeline-XXXXXX";
    close(mkstemp(path));
    ck_assert_int_eq(sl_timeline_write(t, path, NULL), 0);
    sl_timeline *read = NULL;
    ck_assert_int_eq(sl_timeline_read(&read, path, NULL), 0);
    ck_assert(seconds_of(read, platform, 0) == seconds);
    sl_timeline_close(&read);
    unlink(path);
}

/* Two copies to one slow pair wait for each other on its link; a third node gets its own at once,
 * and the other way is free. */
START_TEST(a_pair_has_a_slower_link_of_its_own) {
    const sl_number_rows one = {1, 3, {2, 0, MBIT / 10}}, late = {1, 4, {0, 2, 0, 50}};
    for (int slow = 0; slow < 3; slow++) {
        sl_timeline *t = open_timeline(3);
        sl_platform platform = links;
        const double lasts = 100 * BYTE;
        platform.links = slow == 1 ? &one : slow == 2 ? &late : NULL;
        for (uint64_t exchange = 1; exchange <= 2; exchange++)
            send_old(t, 0, exchange, 2, 100);
        END_ROUND(t, 0, 0, 2);
        platform.compute_ms = 0;
        check_seconds(t, &platform,
                      slow == 1   ? 20 * lasts + LATENCY
                      : slow == 2 ? 2 * lasts + 50e-3
                                  : 2 * lasts + LATENCY);
    }
}

/* In order of arrival, not of rank: the slow one's message does not hold the other one up. */
START_TEST(a_link_in_takes_what_comes_first) {
    sl_timeline *t = open_timeline(3);
    send(t, 0, 1, 2, 1000);
    send(t, 1, 1, 2, 1000);
    END_ROUND(t, 0, 0, 2);
    sl_platform slow = links;
    slow.speeds = (const double[]){0.5, 1, 1};
    check_seconds(t, &slow, 2 * COMPUTE + LATENCY + 1000 * BYTE);
}

/* Both links of one round: the neighbour that is ahead has sent its next message before this
 * round's last one is there. */
START_TEST(a_neighbour_that_is_ahead_waits_for_its_turn) {
    sl_timeline *t = open_timeline(3);
    send_old(t, 0, 1, 2, 1000);
    sl_timeline_end_node_round(t, 0, 0);
    send_old(t, 0, 2, 2, 1000);
    send_old(t, 1, 1, 2, 1000);
    sl_timeline_end_node_round(t, 1, 0);
    sl_timeline_end_node_round(t, 2, 2);
    sl_timeline_end_round(t);
    sl_platform instant = links;
    instant.compute_ms = 0;
    ck_assert_double_eq_tol(seconds_of(t, &instant, 1), LATENCY + 2000 * BYTE, TOLERANCE);
    send_old(t, 1, 2, 2, 1000);
    END_ROUND(t, 0, 0, 2);
    check_seconds(t, &instant, LATENCY + 4000 * BYTE);
}

/* More distinct rounds than can be kept: the others are taken to be like the last one that was. */
START_TEST(a_run_of_any_length_is_kept) {
    enum { PEERS = 1 << 18, ROUNDS = 80 };
    uint32_t *peers = malloc(PEERS * sizeof *peers);
    for (uint32_t i = 0; i < PEERS; i++)
        peers[i] = 1;
    sl_timeline *t = open_timeline(2);
    for (uint64_t r = 1; r <= ROUNDS; r++) {
        sl_timeline_send(t, 0, r, 0, false, peers, PEERS);
        sl_timeline_part(t, (size_t)(1 + r % 77)); /* no two of 77 are alike */
        END_ROUND(t, 0, PEERS);
    }
    ck_assert_uint_eq(sl_timeline_rounds(t), ROUNDS);
    ck_assert_double_eq_tol(seconds_of(t, &links, 1), COMPUTE + LATENCY + 2.0 * PEERS * BYTE, 1e-9);
    free(peers);
}

/* Several rounds at once are as one by one. */
START_TEST(rounds_at_once_are_as_one_by_one) {
    sl_timeline *t = open_timeline(2);
    for (uint64_t r = 1; r <= 9; r++) {
        send(t, 0, r, 1, (size_t)(1000 * r));
        END_ROUND(t, 0, 1);
    }
    const uint64_t rounds[] = {1, 4, 4, 9};
    double at_once[4];
    ck_assert_int_eq(sl_timeline_times(at_once, rounds, 4, t, &links, NULL), 0);
    for (int i = 0; i < 4; i++)
        ck_assert(seconds_of(t, &links, rounds[i]) == at_once[i]);
}

/* ---- told by the simulator ---- */

static void initial(void *context, uint32_t rank, float *x) {
    for (size_t i = 0; i < DIMENSION; i++)
        x[i] = (float)(rank + 1) / (float)(i + 1);
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    memcpy(g, x, DIMENSION * sizeof *g);
    return 1;
}

static sl_evaluation evaluate(void *context, const float *x) {
    return (sl_evaluation){1, NAN};
}

static sl_timeline *simulate(const char *topology, const char *algorithm, uint64_t rounds) {
    sl_experiment *e = experiment_of(
        "{'rounds': %llu, 'topology': %s, 'algorithm': %s, 'transport': {'chunk_bytes': %d}}",
        (unsigned long long)rounds, topology, algorithm, PART_BYTES);
    sl_timeline *timeline = NULL;
    sl_task task = {.dimension = DIMENSION,
                    .rounds = rounds,
                    .initial = initial,
                    .gradient = gradient,
                    .evaluate = evaluate};
    EXPECT_WELL(sl_sim_run(e, &task, &(sl_observer){0}, NULL, &timeline, NULL, &error));
    ck_assert_uint_eq(sl_timeline_rounds(timeline), rounds);
    return close_behind(timeline, close_sl_timeline);
}

#define RING(n) "{'nodes': " #n ", 'family': 'ring'}"
#define DENSE_BYTES (4.0 * DIMENSION + HEADER) /* one frame */

#define DENSE (DENSE_BYTES * BYTE)
#define SHARD (BYTE * (4.0 * DIMENSION / 5 + HEADER)) /* of five nodes */
#define FIVE_IN (LATENCY + 5 * DENSE)
#define ONE_OUT (LATENCY + DENSE)

static const struct {
    const char *topology, *algorithm;
    uint64_t rounds;
    double compute_ms, expected;
} closed_forms[] = {
    {RING(8), "'d-psgd'", 5, 7, 5 * (COMPUTE + LATENCY + 2 * DENSE)},
    {"{'nodes': 6, 'family': 'complete'}", "'d-psgd'", 4, 7, 4 * (COMPUTE + LATENCY + 5 * DENSE)},
    /* the overlapped form: the longer of both */
    {RING(8), "{'name': 'd-psgd', 'variant': 'combine-while-adapt'}", 5, 7,
     5 * (LATENCY + 2 * DENSE)},
    {RING(8), "{'name': 'd-psgd', 'variant': 'combine-while-adapt'}", 5, 50, 5 * 0.05},
    {RING(5), "'all-reduce'", 3, 7, 3 * (COMPUTE + 2 * 4 * (LATENCY + SHARD))},
    /* Everybody to the server over its link in, and back over its link out. Who has its answer
     * first computes while the others get theirs, so that of five messages back and five out only
     * one is waited for beside five. */
    {RING(6), "{'name': 'parameter-server', 'server': 2}", 3, 7,
     COMPUTE + FIVE_IN + 2 * (ONE_OUT + COMPUTE + FIVE_IN) + FIVE_IN},
    /* n - 1 steps of a shard each, and back in one */
    {RING(5), "{'name': 'parameter-server', 'server': 'sharded'}", 3, 7,
     3 * (COMPUTE + 4 * (LATENCY + SHARD) + LATENCY + 4 * SHARD)},
    /* local rounds send nothing */
    {RING(5), "{'name': 'local-sgd', 'period': 4}", 12, 7,
     12 * COMPUTE + 3 * 8 * (LATENCY + SHARD)},
};

START_LOOP_TEST(runs_take_the_time_of_the_closed_form, sizeof closed_forms / sizeof *closed_forms) {
    sl_platform platform = links;
    platform.compute_ms = closed_forms[_i].compute_ms;
    check_seconds(
        simulate(closed_forms[_i].topology, closed_forms[_i].algorithm, closed_forms[_i].rounds),
        &platform, closed_forms[_i].expected);
}

/* What is told without a run is what the simulator tells: the first round of `algorithm` on n
 * nodes. */
static void compare_exchange(uint32_t nodes, const char *algorithm) {
    const char *topology =
        printed("{'nodes': %u, 'family': '%s'}", nodes, nodes < 3 ? "path" : "ring");
    sl_timeline *whole = simulate(topology, algorithm, 1), *one = open_timeline(nodes);
    sl_experiment *e =
        experiment_of("{'rounds': 1, 'topology': %s, 'algorithm': %s}", topology, algorithm);
    sl_plan plan;
    EXPECT_WELL(sl_algorithm_plan(&plan, &e->algorithm, e->topology, DIMENSION, &error));
    EXPECT_WELL(sl_timeline_exchange(one, &plan.config, e->topology,
                                     &(sl_shapes){.dimension = DIMENSION}, PART_BYTES, 1, NULL,
                                     false, &error));
    const sl_platform instant = {.bandwidth_mbit = MBIT, .latency_ms = LATENCY_MS};
    const double expected = seconds_of(whole, &instant, 0), found = seconds_of(one, &instant, 0);
    ck_assert_msg(fabs(found - expected) < 1e-9, "%s on %u nodes: %g s, simulated %g s", algorithm,
                  nodes, found, expected);
}

START_TEST(every_form_is_told_as_it_is_simulated) {
    static const char *const forms[] = {
#define FORM_NAME(form, name) name,
        SL_ALL_REDUCES(FORM_NAME)
#undef FORM_NAME
    };
    for (uint32_t nodes = 2; nodes <= 13; nodes++)
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
            compare_exchange(nodes,
                             printed("{'name': 'all-reduce', 'all_reduce': '%s'}", forms[f]));
}

/* Two nodes, half of the vector after the other: of a link that waits for the gradient, and of one
 * that it waits for. */
START_TEST(what_is_there_early_leaves_early) {
    enum { HALF = DIMENSION / 2 };
    sl_range halves[] = {{HALF, DIMENSION - HALF}, {0, HALF}};
    const sl_ranges early = {2, halves};
    sl_experiment *e = experiment_of("{'rounds': 1, 'topology': {'nodes': 2, 'family': 'path'}, "
                                     "'algorithm': {'name': 'all-reduce', 'all_reduce': "
                                     "'recursive-doubling'}}");
    const double half_ms = 8e-3 * (HALF * sizeof(float) + HEADER) / MBIT,
                 gradients_ms[] = {30 * half_ms, half_ms / 2};
    sl_plan plan;
    EXPECT_WELL(sl_algorithm_plan(&plan, &e->algorithm, e->topology, DIMENSION, &error));
    for (int i = 0; i < 4; i++) {
        sl_timeline *t = open_timeline(2);
        const double tau = gradients_ms[i / 2], first = (1. / 3 + 2. / 3 / 2) * tau + half_ms,
                     wait = i % 2 == 0 ? 0 : LATENCY_MS; /* apart, one after the other */
        const sl_platform on = {
            .bandwidth_mbit = MBIT, .latency_ms = LATENCY_MS, .compute_ms = tau};
        EXPECT_WELL(sl_timeline_exchange(t, &plan.config, e->topology,
                                         &(sl_shapes){.dimension = DIMENSION}, PART_BYTES / 2, 1,
                                         &early, i % 2 == 1, &error));
        const double expected = fmax(tau, first + wait) + LATENCY_MS + half_ms,
                     found = 1e3 * seconds_of(t, &on, 0);
        ck_assert_msg(fabs(found - expected) < 1e-3, "%d: %g ms, expected %g", i, found, expected);
    }
}

START_TEST(messages_along_edges_are_not_told) {
    sl_timeline *t = open_timeline(4);
    sl_experiment *e = experiment_of("{'rounds': 1, 'topology': " RING(4) "}");
    EXPECT_ERROR(sl_timeline_exchange(t, &e->algorithm, e->topology,
                                      &(sl_shapes){.dimension = DIMENSION}, PART_BYTES, 1, NULL,
                                      false, &error),
                 SL_EINVAL, "messages of d-psgd go along edges");
}
