/* test_together.c - what agents do together (agent/collectives/collective.h): they meet although
 * some have fewer rounds than others, add up with the bits of one process, and end; and what
 * becomes of it when one does not come. All agents are real, each on threads of its own, over
 * loopback. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/collectives/collective.h"
#include "harness.h"
#include "starling/starling.h"

enum { AGENTS_MAX = 9, DIMENSION_MAX = 5000 };

/* What the task of one rank does. */
typedef enum behaviour { AVERAGES, TRAINS_ON, PAUSES, GIVES_ANOTHER_SIZE, IS_ALONE } behaviour;

typedef struct peer {
    pthread_t thread;
    sl_agent *agent;
    uint32_t rank;
    behaviour behaviour;
    uint64_t rounds; /* of its own; then it answers the others' */
    int averages, done;
    uint64_t met; /* round in which it met the others last */
    float at_meeting[DIMENSION_MAX], start[DIMENSION_MAX], mean[DIMENSION_MAX];
    double numbers[2];
    int result, call_result;
    sl_error error, call_error;
} peer;

static sl_error error;
static sl_experiment *experiment;
static sl_roster *roster;
static peer peers[AGENTS_MAX];
static uint32_t nodes;
static bool starts_alike = true;
static double patience_s = 10;
static size_t dimension;

/* ---- the task ---- */

static float own_x0(uint32_t rank, size_t i) {
    return (float)(rank + 1) * 0.37f + (float)(i % 101) * 1e-3f * (float)(rank % 3) - 0.5f;
}

/* Of rank 0 to all: the others add zeros. */
static void start_alike(peer *p, float *x) {
    for (size_t i = 0; i < dimension; i++)
        x[i] = p->rank == 0 ? own_x0(0, i) : 0;
    sl_share share = {.x = x, .count = dimension, .divisor = 1};
    p->call_result = sl_agent_meet(p->agent, 0, SL_MEET_SUM, &p->call_error);
    if (p->call_result > 0)
        p->call_result = sl_agent_sum(p->agent, &share, &p->call_error);
    memcpy(p->start, x, dimension * sizeof *x);
}

static void initial(void *context, uint32_t rank, float *x) {
    peer *p = context;
    usleep(3000 * (rank % 3));
    if (starts_alike)
        start_alike(p, x);
    for (size_t i = 0; i < dimension; i++)
        x[i] = own_x0(rank, i);
}

static double own_gradient(uint32_t rank, uint64_t round, uint64_t rounds, const float *x,
                           float *g) {
    for (size_t i = 0; i < dimension; i++)
        g[i] = round <= rounds ? x[i] - (float)rank : 0;
    return 1;
}

static int average(peer *p, const float *x) {
    sl_share share = {p->mean, dimension - (p->behaviour == GIVES_ANOTHER_SIZE), p->numbers, 2,
                      nodes};
    memcpy(p->at_meeting, x, dimension * sizeof *x);
    memcpy(p->mean, x, dimension * sizeof *x);
    p->numbers[0] = p->rank + 0.25;
    p->numbers[1] = 1e-17;
    return sl_agent_sum(p->agent, &share, &p->call_error);
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    peer *p = context;
    usleep(500 * (rank % 4));
    own_gradient(rank, round, p->rounds, x, g);
    if (round <= p->rounds || p->behaviour == TRAINS_ON || p->behaviour == IS_ALONE)
        return 1;
    if (p->behaviour == PAUSES)
        sleep(2);
    while (p->call_result >= 0 && p->done <= p->averages) {
        const bool ends = p->done == p->averages;
        p->call_result =
            sl_agent_meet(p->agent, round, ends ? SL_MEET_END : SL_MEET_SUM, &p->call_error);
        if (p->call_result <= 0)
            break;
        p->met = round;
        p->done += !ends || p->call_result == SL_MEET_END;
        if (p->call_result == SL_MEET_SUM)
            p->call_result = average(p, x) < 0 ? -1 : 1;
    }
    return 1;
}

static sl_evaluation evaluate(void *context, const float *x) {
    (void)context;
    (void)x;
    return (sl_evaluation){0};
}

/* ---- all agents, each on a thread ---- */

static void *run(void *of) {
    peer *p = of;
    p->result = sl_agent_run(p->agent, roster, &p->error);
    return NULL;
}

static void open_experiment(const char *topology, const char *algorithm) {
    char json[1024];
    snprintf(json, sizeof json,
             "{\"rounds\": 1000, \"topology\": %s, \"algorithm\": %s, \"optimizer\": "
             "{\"learning_rate\": 0.1}, \"transport\": {\"chunk_bytes\": 4096, \"timeout_s\": 10, "
             "\"round_timeout_s\": %g}, \"membership\": {\"on_loss\": \"stop\"}}",
             topology, algorithm, patience_s);
    ck_assert_msg(sl_experiment_parse(&experiment, json, "test", ".", NULL, 0, &error) == 0, "%s",
                  error.text);
    nodes = sl_topology_nodes(experiment->topology);
}

static void open_agents(void) {
    char text[64 * AGENTS_MAX];
    size_t used = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        peer *p = &peers[i];
        p->rank = i;
        sl_agent_settings settings = {.experiment = experiment,
                                      .rank = i,
                                      .host = "127.0.0.1",
                                      .meets = p->behaviour != IS_ALONE,
                                      .task = {.context = p,
                                               .dimension = dimension,
                                               .rounds = UINT64_MAX,
                                               .initial = initial,
                                               .gradient = gradient,
                                               .evaluate = evaluate}};
        ck_assert_msg(sl_agent_open(&p->agent, &settings, &error) == 0, "%s", error.text);
        used += (size_t)snprintf(text + used, sizeof text - used, "127.0.0.1:%u\n",
                                 sl_agent_port(p->agent));
    }
    ck_assert_int_eq(sl_roster_parse(&roster, text, "roster", &error), 0);
    ck_assert_int_eq(sl_roster_resolve(roster, 5, NULL, &error), 0);
}

static void start_agents(void) {
    open_agents();
    for (uint32_t i = 0; i < nodes; i++)
        pthread_create(&peers[i].thread, NULL, run, &peers[i]);
}

/* Until the tasks make no more calls. */
static void join_agents(void) {
    for (uint32_t i = 0; i < nodes; i++)
        pthread_join(peers[i].thread, NULL);
    for (uint32_t i = 0; i < nodes; i++) {
        sl_agent *closed = peers[i].agent; /* the task may still call it */
        sl_agent_close(&closed);
    }
}

static void close_experiment(void) {
    sl_roster_close(&roster);
    sl_experiment_close(&experiment);
}

static void expect_success(void) {
    for (uint32_t i = 0; i < nodes; i++) {
        ck_assert_msg(peers[i].result == 0, "agent %u: %s", i, peers[i].error.text);
        ck_assert_msg(peers[i].call_result > 0, "agent %u: %s", i, peers[i].call_error.text);
    }
}

/* ---- the same in one process ---- */

static float simulated[AGENTS_MAX][DIMENSION_MAX];
static uint64_t last_round;

static void simulated_initial(void *context, uint32_t rank, float *x) {
    (void)context;
    for (size_t i = 0; i < dimension; i++)
        x[i] = own_x0(rank, i);
}

static double simulated_gradient(void *context, uint32_t rank, uint64_t round, const float *x,
                                 float *g) {
    (void)context;
    if (round == last_round)
        memcpy(simulated[rank], x, dimension * sizeof *x);
    return own_gradient(rank, round, peers[rank].rounds, x, g);
}

/* Where the agents should meet, with the models that they should have there. */
static void simulate(void) {
    const sl_task task = {.dimension = dimension,
                          .rounds = last_round,
                          .initial = simulated_initial,
                          .gradient = simulated_gradient,
                          .evaluate = evaluate};
    const sl_observer nobody = {0};
    ck_assert_msg(sl_sim_run(experiment, &task, &nobody, NULL, NULL, NULL, &error) == 0, "%s",
                  error.text);
}

static void add_up(float *const *x, double (*numbers)[2], double divisor) {
    sl_share shares[AGENTS_MAX];
    sl_tree tree;
    const sl_algorithm_config *config = &experiment->algorithm;
    ck_assert_int_eq(sl_tree_open(&tree, sl_algorithm_of(config, &error), config,
                                  experiment->topology, NULL, &error),
                     0);
    for (uint32_t i = 0; i < nodes; i++)
        shares[i] = (sl_share){x[i], dimension, numbers[i], 2, divisor};
    ck_assert_int_eq(sl_tree_sum(&tree, shares, &error), 0);
    sl_tree_close(&tree);
}

static void expect_simulated_average(void) {
    float *x[AGENTS_MAX];
    double numbers[AGENTS_MAX][2];
    simulate();
    for (uint32_t i = 0; i < nodes; i++) {
        ck_assert_mem_eq(peers[i].at_meeting, simulated[i], dimension * sizeof(float));
        x[i] = simulated[i];
        numbers[i][0] = i + 0.25;
        numbers[i][1] = 1e-17;
    }
    double first = 0;
    for (uint32_t i = 0; i < nodes; i++)
        first += simulated[i][0];
    add_up(x, numbers, nodes);
    ck_assert_double_eq_tol(simulated[0][0], first / nodes, 1e-6);
    for (uint32_t i = 0; i < nodes; i++) {
        ck_assert_mem_eq(peers[i].mean, simulated[0], dimension * sizeof(float));
        ck_assert_mem_eq(peers[i].numbers, numbers[0], sizeof numbers[0]);
    }
}

/* Each rank trains for another number of rounds, then averages twice, then leaves; rank 3 leaves at
 * once. */
static void train_average_and_leave(const char *topology, const char *algorithm, size_t d) {
    open_experiment(topology, algorithm);
    dimension = d;
    for (uint32_t i = 0; i < nodes; i++) {
        peers[i] = (peer){.rounds = 3 + i * 5 % 7, .averages = i == 3 ? 0 : 2};
        last_round = peers[i].rounds > last_round ? peers[i].rounds : last_round;
    }
    last_round++;
    start_agents();
    join_agents();
    expect_success();
    for (uint32_t i = 0; i < nodes; i++) {
        ck_assert_uint_eq(peers[i].met, last_round);
        for (size_t k = 0; k < dimension; k++)
            ck_assert_float_eq(peers[i].start[k], own_x0(0, k));
    }
    expect_simulated_average();
    close_experiment();
    last_round = 0;
}

#define FAMILY(n, name) "{\"nodes\": " #n ", \"family\": \"" name "\"}"
#define RING FAMILY(5, "ring")

START_TEST(agents_with_unequal_rounds_meet_and_average_with_the_bits_of_one_process) {
    train_average_and_leave(RING, "\"d-psgd\"", 17);
    train_average_and_leave(FAMILY(8, "one-peer-exponential"), "\"d-psgd\"", 3000);
    train_average_and_leave(FAMILY(9, "grid"), "\"d-psgd\"", DIMENSION_MAX);
    train_average_and_leave(FAMILY(2, "path"), "\"d-psgd\"", 1);
}
END_TEST

START_TEST(every_kind_of_exchange_lets_them_meet) {
    static const char *const algorithms[] = {
        "{\"name\": \"d-psgd\", \"variant\": \"combine-while-adapt\"}",
        "{\"name\": \"d-psgd\", \"local_steps\": 3}",
        "{\"name\": \"choco-sgd\", \"compressor\": {\"name\": \"top-k\", \"fraction\": 0.1}}",
        "\"gradient-tracking\"",
        "\"all-reduce\"",
        "\"parameter-server\"",
    };
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        train_average_and_leave(RING, algorithms[i], 700);
    train_average_and_leave(
        "{\"nodes\": 6, \"family\": \"directed-ring\", \"weights\": \"push-sum\"}", "\"sgp\"", 200);
}
END_TEST

/* Rank 1 hears of rank 0's second exchange by no data. */
START_TEST(who_is_needed_hears_of_it_on_one_way_edges_too) {
    train_average_and_leave("{\"nodes\": 3, \"directed\": true, \"weights\": \"push-sum\", "
                            "\"schedule\": [{\"edges\": [[0,1]]}, {\"edges\": [[1,2]]}, "
                            "{\"edges\": [[2,0]]}]}",
                            "\"sgp\"", 5);
}
END_TEST

START_TEST(one_agent_is_enough) {
    train_average_and_leave(FAMILY(1, "complete"), "\"d-psgd\"", 40);
}
END_TEST

/* ---- when it goes wrong ---- */

/* Of all agents, whoever noticed it first. */
static void expect_failure(int code, const char *text) {
    bool found = false;
    for (uint32_t i = 0; i < nodes; i++) {
        ck_assert_msg(peers[i].result < 0, "agent %u ended well", i);
        ck_assert_msg(strstr(peers[i].error.text, text) != NULL, "agent %u: %s", i,
                      peers[i].error.text);
        if (peers[i].call_result < 0)
            ck_assert_str_eq(peers[i].call_error.text, peers[i].error.text);
        found = found || peers[i].result == code;
    }
    ck_assert(found);
}

static void fail_with(behaviour of_2, int averages_of_2, int code, const char *text) {
    open_experiment(RING, "\"d-psgd\"");
    dimension = 2000;
    for (uint32_t i = 0; i < nodes; i++)
        peers[i] = (peer){.rounds = i == 2 ? 9 : 2 + i, .averages = 1};
    peers[2].behaviour = of_2;
    peers[2].averages = averages_of_2;
    start_agents();
    join_agents();
    expect_failure(code, text);
    close_experiment();
}

START_TEST(shares_of_different_sizes_are_refused) {
    fail_with(GIVES_ANOTHER_SIZE, 1, SL_EPROTO, "where this agent's share has another size");
}
END_TEST

START_TEST(an_agent_without_a_session_says_so) {
    starts_alike = false;
    fail_with(IS_ALONE, 0, SL_EPROTO, "runs in a session, and this agent does not");
}
END_TEST

START_TEST(who_does_not_come_is_named) {
    patience_s = 0.5;
    fail_with(PAUSES, 1, SL_EPEER,
              "waited 0.5 s (transport.round_timeout_s) for agents that have not come to average: "
              "2");
}
END_TEST

static void *stop_soon(void *unused) {
    (void)unused;
    usleep(300000);
    sl_agent_stop(peers[2].agent);
    return NULL;
}

START_TEST(who_is_stopped_while_others_wait_ends_their_wait) {
    pthread_t stopper;
    open_experiment(RING, "\"d-psgd\"");
    dimension = 100;
    for (uint32_t i = 0; i < nodes; i++)
        peers[i] = (peer){.rounds = 2, .averages = 1};
    peers[2].behaviour = TRAINS_ON;
    start_agents();
    pthread_create(&stopper, NULL, stop_soon, NULL);
    pthread_join(stopper, NULL);
    join_agents();
    expect_failure(SL_ESTOPPED, "stopped on request");
    close_experiment();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("together");
    ADD_TESTS(suite, "meetings",
              agents_with_unequal_rounds_meet_and_average_with_the_bits_of_one_process,
              every_kind_of_exchange_lets_them_meet, who_is_needed_hears_of_it_on_one_way_edges_too,
              one_agent_is_enough);
    ADD_TESTS(suite, "failures", shares_of_different_sizes_are_refused,
              an_agent_without_a_session_says_so, who_does_not_come_is_named,
              who_is_stopped_while_others_wait_ends_their_wait);
    return run_suite(suite);
}
