/* test_task.c - a task that is not complete is refused, by both drivers, before anything starts. */
#include "harness.h"
#include "starling/agent.h"
#include "starling/sim.h"

static sl_error error;

static void initial(void *context, uint32_t rank, float *x) {
    (void)context, (void)rank;
    x[0] = x[1] = 1;
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    (void)context, (void)rank, (void)round;
    g[0] = x[0], g[1] = x[1];
    return 0.5 * (x[0] * x[0] + x[1] * x[1]);
}

static sl_evaluation evaluate(void *context, const float *x) {
    (void)context;
    return (sl_evaluation){.loss = 0.5 * (x[0] * x[0] + x[1] * x[1]), .accuracy = NAN};
}

static sl_task complete(void) {
    return (sl_task){.dimension = 2,
                     .rounds = 3,
                     .initial = initial,
                     .gradient = gradient,
                     .evaluate = evaluate};
}

static sl_experiment *experiment(void) {
    sl_experiment *e = NULL;
    int result = sl_experiment_parse(
        &e, "{\"rounds\": 3, \"topology\": {\"nodes\": 2, \"family\": \"path\"}}", "test", "/",
        NULL, 0, &error);
    ck_assert_msg(result == 0, "%s", error.text);
    return e;
}

static void refuse(const sl_task *task, const char *field) {
    sl_experiment *e = experiment();
    ck_assert_int_eq(sl_sim_run(e, task, &(sl_observer){0}, NULL, NULL, NULL, &error), SL_EINVAL);
    ck_assert_msg(strstr(error.text, field) == error.text, "%s: %s", field, error.text);
    sl_agent *agent = NULL;
    sl_agent_settings settings = {.experiment = e, .task = *task};
    error = (sl_error){0};
    ck_assert_int_eq(sl_agent_open(&agent, &settings, &error), SL_EINVAL);
    ck_assert_msg(strstr(error.text, field) == error.text, "%s: %s", field, error.text);
    ck_assert_ptr_null(agent);
    sl_experiment_close(&e);
}

START_TEST(a_complete_task_runs) {
    sl_experiment *e = experiment();
    sl_task task = complete();
    EXPECT_WELL(sl_sim_run(e, &task, &(sl_observer){0}, NULL, NULL, NULL, &error));
    sl_experiment_close(&e);
}

/* Rank r begins at r, and nothing moves but what is averaged. */
static void initial_rank(void *context, uint32_t rank, float *x) {
    (void)context;
    x[0] = x[1] = (float)rank;
}

static double no_gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    (void)rank, (void)round;
    *(float *)context = x[0];
    g[0] = g[1] = 0;
    return 1;
}

static double one_or_three(void *context, uint32_t rank) {
    (void)context;
    return rank == 0 ? 1 : 3;
}

/* The model of the second round. */
static float averaged(const char *algorithm, bool samples) {
    float found = -1;
    char json[256];
    sl_experiment *e = NULL;
    const sl_task task = {.context = &found,
                          .dimension = 2,
                          .rounds = 2,
                          .initial = initial_rank,
                          .gradient = no_gradient,
                          .evaluate = evaluate,
                          .samples = samples ? one_or_three : NULL};
    snprintf(json, sizeof json,
             "{\"rounds\": 2, \"topology\": {\"nodes\": 2, \"family\": \"path\"}, "
             "\"algorithm\": %s}",
             algorithm);
    EXPECT_WELL(sl_experiment_parse(&e, json, "test", "/", NULL, 0, &error));
    EXPECT_WELL(sl_sim_run(e, &task, &(sl_observer){0}, NULL, NULL, NULL, &error));
    sl_experiment_close(&e);
    return found;
}

START_TEST(samples_are_weights) {
    const char *uniform = "{\"name\": \"fedavg\", \"client_weights\": \"uniform\"}";
    ck_assert_float_eq(averaged("\"fedavg\"", true), 0.75f);
    ck_assert_float_eq(averaged("{\"name\": \"fedavg\", \"server\": 1}", true), 0.75f);
    ck_assert_float_eq(averaged("\"fedavg\"", false), 0.5f);
    ck_assert_float_eq(averaged(uniform, true), 0.5f);
}

/* Three samples in batches of two are two steps; who has none to count by cannot tell. */
START_TEST(epochs_of_clients_follow_from_their_samples) {
    sl_experiment *e = NULL;
    sl_plan plan;
    sl_task task = complete();
    task.samples = one_or_three;
    ck_assert_int_eq(sl_experiment_parse(&e,
                                         "{\"rounds\": 2, \"data\": {\"batch\": 2}, "
                                         "\"topology\": {\"nodes\": 2, \"family\": \"path\"}, "
                                         "\"algorithm\": {\"name\": \"fedavg\", "
                                         "\"local_epochs\": 3}}",
                                         "test", "/", NULL, 0, &error),
                     0);
    ck_assert_int_eq(sl_experiment_plan(&plan, e, &task, &error), 0);
    ck_assert_uint_eq(plan.config.local_steps, 6);
    ck_assert_uint_eq(sl_clients_steps(&plan.config, 1), 3);
    ck_assert_uint_eq(sl_clients_steps(&plan.config, 3), 6);
    task.samples = NULL;
    EXPECT_ERROR(sl_experiment_plan(&plan, e, &task, &error), SL_EINVAL,
                 "nobody says how many samples a node has");
    sl_experiment_close(&e);
}

START_TEST(a_missing_hook_is_named) {
    sl_task task = complete();
    task.initial = NULL;
    refuse(&task, "task.initial:");
    task = complete();
    task.gradient = NULL;
    refuse(&task, "task.gradient:");
    task = complete();
    task.evaluate = NULL;
    refuse(&task, "task.evaluate:");
}

START_TEST(impossible_sizes_are_named) {
    sl_task task = complete();
    task.dimension = 0;
    refuse(&task, "task.dimension:");
    task = complete();
    task.rounds = 0;
    refuse(&task, "task.rounds:");
}

START_TEST(rows_must_divide_their_tensors) {
    const size_t ends[] = {2}, good[] = {2}, none[] = {0}, more[] = {3};
    sl_task task = complete();
    task.tensor_ends = ends, task.tensor_count = 1, task.tensor_rows = good;
    ck_assert_int_eq(sl_task_check(&task, &error), 0);
    task.tensor_rows = none;
    refuse(&task, "task.tensor_rows[0]: 0; it must divide the tensor's size, 2");
    task.tensor_rows = more;
    refuse(&task, "task.tensor_rows[0]: 3;");
    task.tensor_ends = NULL, task.tensor_count = 0;
    refuse(&task, "task.tensor_rows:");
}

START_TEST(tensors_must_end_at_the_dimension) {
    const size_t good[] = {1, 2}, same[] = {1, 1}, shorter[] = {1};
    sl_task task = complete();
    task.tensor_ends = good, task.tensor_count = 2;
    ck_assert_int_eq(sl_task_check(&task, &error), 0);
    task.tensor_ends = same;
    refuse(&task, "task.tensor_ends:");
    task.tensor_ends = shorter, task.tensor_count = 1;
    refuse(&task, "task.tensor_ends:");
    task.tensor_count = 0;
    refuse(&task, "task.tensor_count:");
    task.tensor_ends = NULL, task.tensor_count = 1;
    refuse(&task, "task.tensor_ends:");
}
