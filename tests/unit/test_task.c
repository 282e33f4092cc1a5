/* test_task.c - a task that is not complete is refused, by both drivers, before anything starts. */
#include "experiments.h"
#include "starling/agent.h"
#include "starling/sim.h"

static sl_error error;

static void initial(void *context, uint32_t rank, float *x) {
    x[0] = x[1] = 1;
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    g[0] = x[0], g[1] = x[1];
    return 0.5 * (x[0] * x[0] + x[1] * x[1]);
}

static sl_evaluation evaluate(void *context, const float *x) {
    return (sl_evaluation){.loss = 0.5 * (x[0] * x[0] + x[1] * x[1]), .accuracy = NAN};
}

static sl_experiment *pair(const char *algorithm) {
    return experiment_of("{'rounds': 2, 'data': {'batch': 2}, 'topology': {'nodes': 2, 'family': "
                         "'path'}, 'algorithm': %s}",
                         algorithm);
}

#define COMPLETE                                                                                   \
    .dimension = 2, .rounds = 3, .initial = initial, .gradient = gradient, .evaluate = evaluate
#define ENDS(...)                                                                                  \
    .tensor_ends = (const size_t[]) {                                                              \
        __VA_ARGS__                                                                                \
    }
#define ROWS(...)                                                                                  \
    .tensor_rows = (const size_t[]) {                                                              \
        __VA_ARGS__                                                                                \
    }

static const struct {
    sl_task task;
    const char *said; /* its refusal begins so; NULL: it is taken */
} tasks[] = {
    {{COMPLETE}, NULL},
    {{COMPLETE, ENDS(1, 2), .tensor_count = 2}, NULL},
    {{COMPLETE, ENDS(2), ROWS(2), .tensor_count = 1}, NULL},
    {{.dimension = 2, .rounds = 3, .gradient = gradient, .evaluate = evaluate}, "task.initial:"},
    {{.dimension = 2, .rounds = 3, .initial = initial, .evaluate = evaluate}, "task.gradient:"},
    {{.dimension = 2, .rounds = 3, .initial = initial, .gradient = gradient}, "task.evaluate:"},
    {{.rounds = 3, .initial = initial, .gradient = gradient, .evaluate = evaluate},
     "task.dimension:"},
    {{.dimension = 2, .initial = initial, .gradient = gradient, .evaluate = evaluate},
     "task.rounds:"},
    {{COMPLETE, ENDS(1, 1), .tensor_count = 2}, "task.tensor_ends:"},
    {{COMPLETE, ENDS(1), .tensor_count = 1}, "task.tensor_ends:"},
    {{COMPLETE, ENDS(1)}, "task.tensor_count:"},
    {{COMPLETE, .tensor_count = 1}, "task.tensor_ends:"},
    {{COMPLETE, ENDS(2), ROWS(0), .tensor_count = 1},
     "task.tensor_rows[0]: 0; it must divide the tensor's size, 2"},
    {{COMPLETE, ENDS(2), ROWS(3), .tensor_count = 1}, "task.tensor_rows[0]: 3;"},
    {{COMPLETE, ROWS(3)}, "task.tensor_rows:"},
};

/* By both drivers alike. */
START_LOOP_TEST(a_task_is_complete_or_refused_by_name, sizeof tasks / sizeof *tasks) {
    sl_experiment *e = pair("'d-psgd'");
    const sl_task *task = &tasks[_i].task;
    const char *said = tasks[_i].said;
    const int simulated = sl_sim_run(e, task, &(sl_observer){0}, NULL, NULL, NULL, &error);
    ck_assert_msg(simulated == (said != NULL ? SL_EINVAL : 0), "%s", error.text);
    ck_assert_int_eq(sl_task_check(task, &error), simulated);
    if (said != NULL) {
        const sl_agent_settings settings = {.experiment = e, .task = *task};
        sl_agent *agent = NULL;
        ck_assert_ptr_eq(strstr(error.text, said), error.text);
        EXPECT_ERROR(sl_agent_open(&agent, &settings, &error), SL_EINVAL, said);
        ck_assert_ptr_null(agent);
    }
}

/* Rank r begins at r, and nothing moves but what is averaged. */
static void initial_rank(void *context, uint32_t rank, float *x) {
    x[0] = x[1] = (float)rank;
}

static double no_gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    *(float *)context = x[0];
    g[0] = g[1] = 0;
    return 1;
}

static double one_or_three(void *context, uint32_t rank) {
    return rank == 0 ? 1 : 3;
}

/* The model of the second round. */
static float averaged(const char *algorithm, bool samples) {
    float found = -1;
    sl_experiment *e = pair(algorithm);
    const sl_task task = {.context = &found,
                          .dimension = 2,
                          .rounds = 2,
                          .initial = initial_rank,
                          .gradient = no_gradient,
                          .evaluate = evaluate,
                          .samples = samples ? one_or_three : NULL};
    EXPECT_WELL(sl_sim_run(e, &task, &(sl_observer){0}, NULL, NULL, NULL, &error));
    return found;
}

START_TEST(samples_are_weights) {
    const char *uniform = "{'name': 'fedavg', 'client_weights': 'uniform'}";
    ck_assert_float_eq(averaged("'fedavg'", true), 0.75f);
    ck_assert_float_eq(averaged("{'name': 'fedavg', 'server': 1}", true), 0.75f);
    ck_assert_float_eq(averaged("'fedavg'", false), 0.5f);
    ck_assert_float_eq(averaged(uniform, true), 0.5f);
}

/* Three samples in batches of two are two steps; who has none to count by cannot tell. */
START_TEST(epochs_of_clients_follow_from_their_samples) {
    sl_experiment *e = pair("{'name': 'fedavg', 'local_epochs': 3}");
    sl_plan plan;
    sl_task task = {COMPLETE, .samples = one_or_three};
    EXPECT_WELL(sl_experiment_plan(&plan, e, &task, &error));
    ck_assert_uint_eq(plan.config.local_steps, 6);
    ck_assert_uint_eq(sl_clients_steps(&plan.config, 1), 3);
    ck_assert_uint_eq(sl_clients_steps(&plan.config, 3), 6);
    task.samples = NULL;
    EXPECT_ERROR(sl_experiment_plan(&plan, e, &task, &error), SL_EINVAL,
                 "nobody says how many samples a node has");
}
