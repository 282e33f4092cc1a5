/* test_node_views.c - what a node is opened with for later views, and what it does in one. */
#include "harness.h"
#include "starling/experiment.h"
#include "starling/node.h"

static sl_error error;

static uint32_t parts_among(uint32_t nodes, const char *algorithm, size_t *bytes) {
    char text[256];
    sl_experiment *e;
    sl_plan plan;
    sl_node *n;
    const sl_task task = {.dimension = 30000, .rounds = 2};
    snprintf(text, sizeof text,
             "{\"rounds\": 2, \"topology\": {\"nodes\": %u, \"family\": \"ring\"}, %s}", nodes,
             algorithm);
    ck_assert_msg(sl_experiment_parse(&e, text, "test", "/", NULL, 0, &error) == 0, "%s",
                  error.text);
    ck_assert_int_eq(sl_experiment_plan(&plan, e, &task, &error), 0);
    sl_node_settings settings = sl_experiment_node(e, &plan, task.dimension, task.rounds);
    settings.part_bytes = 4096;
    settings.turns = true;
    ck_assert_int_eq(sl_node_open(&n, &settings, &error), 0);
    const uint32_t parts = sl_node_parts_max(n);
    *bytes = sl_node_part_bytes_max(n);
    sl_node_close(&n);
    sl_experiment_close(&e);
    return parts;
}

/* Who opens a node makes room for its parts once, and views may have fewer members. */
START_TEST(parts_of_later_views_are_foreseen) {
    static const char *const algorithms[] = {
        "\"algorithm\": {\"name\": \"ef21\", \"server\": \"sharded\","
        " \"compressor\": {\"name\": \"top-k\", \"fraction\": 0.5}}",
        "\"algorithm\": {\"name\": \"all-reduce\"}",
        "\"algorithm\": {\"name\": \"dgc\", \"all_reduce\": \"halving-doubling\","
        " \"compressor\": {\"name\": \"top-k\", \"fraction\": 0.1}}",
    };
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        size_t bytes_of_few, bytes_of_many;
        const uint32_t of_few = parts_among(2, algorithms[i], &bytes_of_few),
                       of_many = parts_among(8, algorithms[i], &bytes_of_many);
        ck_assert_uint_ge(of_many, of_few);
        ck_assert_uint_ge(bytes_of_many, bytes_of_few);
    }
}

/* A new node begins with such a view. Does it publish, once it has a gradient? */
static bool exchanges_without(sl_pair broken) {
    static const uint32_t ranks[] = {0, 1, 2, 3};
    sl_experiment *e;
    sl_plan plan;
    sl_node *n;
    sl_update update;
    const sl_task task = {.dimension = 8, .rounds = 9};
    ck_assert_int_eq(sl_experiment_parse(&e,
                                         "{\"rounds\": 9, \"topology\": {\"nodes\": 4, \"family\":"
                                         " \"ring\"}, \"algorithm\": {\"name\": \"all-reduce\"}}",
                                         "test", "/", NULL, 0, &error),
                     0);
    ck_assert_int_eq(sl_experiment_plan(&plan, e, &task, &error), 0);
    sl_node_settings settings = sl_experiment_node(e, &plan, task.dimension, task.rounds);
    settings.turns = true;
    ck_assert_int_eq(sl_node_open(&n, &settings, &error), 0);
    const sl_node_view view = {.round = 5,
                               .exchange = 4,
                               .members = {ranks, 4},
                               .topology = e->topology,
                               .plan = &plan,
                               .broken = &broken,
                               .broken_count = 1};
    ck_assert_int_eq(
        sl_node_step(n, &(sl_event){.type = SL_EVENT_VIEW, .view = &view}, &update, &error), 0);
    ck_assert(update.compute);
    ck_assert_int_eq(sl_node_step(n, &(sl_event){.type = SL_EVENT_GRADIENT}, &update, &error), 0);
    const bool publishes = update.publish;
    ck_assert(publishes != update.round_done);
    sl_node_close(&n);
    sl_experiment_close(&e);
    return publishes;
}

/* A ring of four: ranks 0 and 2 exchange nothing with each other. */
START_TEST(an_all_reduce_goes_on_without_an_edge_that_it_does_not_use) {
    ck_assert(exchanges_without((sl_pair){0, 2}));
    ck_assert(exchanges_without((sl_pair){1, 3}));
    ck_assert(!exchanges_without((sl_pair){0, 1}));
    ck_assert(!exchanges_without((sl_pair){0, 3}));
}

int main(void) {
    return run_tests("node views");
}
