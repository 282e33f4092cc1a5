/* test_record.c - the run folder: what is written comes back, bit for bit. */
#include <sys/wait.h>

#include <jansson.h>

#include "record_folder.h"

/* ---- metrics ---- */

static double real_at(json_t *object, const char *name) {
    json_t *value = json_object_get(object, name);
    ck_assert_msg(json_is_number(value), "%s is no number", name);
    return json_number_value(value);
}

FIXTURES(begin, remove_base);

/* What a killed process leaves of a write(2) is whole pages. */
START_TEST(no_line_of_metrics_crosses_a_page) {
    enum { LINES = 60, PAGE = 4096 };
    sl_folder *folder = open_folder(at("run"), e, true);
    for (uint64_t round = 1; round <= LINES; round++) {
        sl_record record = record_of(0, round * round * round);
        record.bytes_sent = 1000000007 * round * round;
        ck_assert_int_eq(sl_folder_metrics(folder, &record, NULL), 0);
    }
    close_folder(folder);
    size_t bytes, count = 0;
    char *text = contents(at("run/metrics-0.jsonl"), &bytes), *end;
    ck_assert_uint_gt(bytes, 4 * PAGE);
    for (char *line = text; line < text + bytes; line = end + 1, count++) {
        end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        ck_assert_msg((line - text) / PAGE == (end - text) / PAGE, "line %zu crosses a page",
                      count);
        *end = '\0';
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        ck_assert_ptr_nonnull(object);
        json_decref(object);
    }
    ck_assert_uint_eq(count, LINES);
}

START_TEST(what_is_no_number_is_null) {
    sl_folder *folder = open_folder(at("run"), e, true);
    sl_record record = record_of(0, 1);
    record.evaluation.accuracy = NAN;
    record.round.loss = INFINITY;
    record.refused[SL_REFUSED_HELLO] = 3;
    record.doubtful = 7;
    ck_assert_int_eq(sl_folder_metrics(folder, &record, NULL), 0);
    sl_summary summary = {
        .driver = "sim",
        .rounds = 10,
        .nodes = 4,
        .record_count = 1,
        .records = &record,
        .has_consensus = true,
        .consensus = {.mean_model = {.loss = 2.5, .accuracy = NAN}, .distance = 0.5},
        .seconds = 1.5};
    ck_assert_int_eq(sl_folder_summary(folder, &summary, NULL), 0);
    close_folder(folder);
    json_t *line = json_load_file(at("run/metrics-0.jsonl"), 0, NULL),
           *table = json_load_file(at("run/summary.json"), 0, NULL);
    ck_assert(json_is_null(json_object_get(line, "accuracy")) &&
              json_is_null(json_object_get(line, "loss")));
    ck_assert_str_eq(json_string_value(json_object_get(table, "driver")), "sim");
    ck_assert(real_at(table, "rounds") == 10 && real_at(table, "nodes") == 4 &&
              real_at(table, "seconds") == 1.5);
    ck_assert(real_at(table, "consensus_distance") == 0.5 &&
              real_at(json_object_get(table, "mean_model"), "loss") == 2.5);
    ck_assert(json_is_null(json_object_get(json_object_get(table, "mean_model"), "accuracy")));
    json_t *node = json_array_get(json_object_get(table, "per_node"), 0),
           *refused = json_object_get(node, "refused");
    ck_assert(real_at(refused, "silent") == 0 && real_at(refused, "greeting") == 0 &&
              real_at(refused, "hello") == 3);
    ck_assert(real_at(node, "doubtful") == 7);
    json_object_del(node, "refused");
    json_object_del(node, "doubtful");
    ck_assert(json_equal(node, line));
    json_decref(line), json_decref(table);
}

/* ---- parameters and models ---- */

START_TEST(parameters_come_back_bit_for_bit_and_in_order) {
    sl_folder *folder = open_folder(at("run"), e, true);
    const int order[][2] = {{0, 0}, {0, 2}, {0, 1},  {0, 3}, {20, 3}, {20, 0},
                            {3, 1}, {3, 0}, {20, 1}, {3, 3}, {3, 2},  {20, 2}};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        float x[AWKWARD];
        for (size_t k = 0; k < AWKWARD; k++)
            x[k] = awkward[(k + (size_t)order[i][1]) % AWKWARD];
        ck_assert_int_eq(sl_folder_parameters(folder, (uint64_t)order[i][0], (uint32_t)order[i][1],
                                              x, AWKWARD, 1.0 / 3, NULL),
                         0);
    }
    close_folder(folder);
    FILE *file = fopen(at("run/parameters.jsonl"), "r");
    char text[4096];
    for (int i = 0; i < 12; i++) {
        ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
        json_t *object = json_loads(text, 0, NULL), *list = json_object_get(object, "parameters");
        ck_assert_int_eq(real_at(object, "round"), i < 4 ? 0 : i < 8 ? 3 : 20);
        ck_assert_int_eq(real_at(object, "node"), i % 4);
        ck_assert(real_at(object, "push_sum_weight") == 1.0 / 3);
        ck_assert_uint_eq(json_array_size(list), AWKWARD);
        for (size_t k = 0; k < AWKWARD; k++) {
            float back = (float)json_number_value(json_array_get(list, k)),
                  want = awkward[(k + (size_t)(i % 4)) % AWKWARD];
            ck_assert_msg(memcmp(&back, &want, sizeof back) == 0, "%a came back as %a", want, back);
        }
        json_decref(object);
    }
    ck_assert_ptr_null(fgets(text, sizeof text, file));
    fclose(file);
}

/* The last number of a file; -1: there is none. */
static float number_kept(const char *path) {
    float kept = -1;
    size_t bytes;
    if (access(path, F_OK) == 0) {
        const char *file = contents(path, &bytes);
        memcpy(&kept, file + bytes - sizeof kept, sizeof kept);
    }
    return kept;
}

/* Of a run that fails, the last model whose loss is finite; nothing where there was none. */
START_TEST(the_last_finite_model_is_rescued) {
    sl_folder *folder = open_folder(at("run"), e, true);
    const double losses[] = {NAN, 2, 3, INFINITY};
    uint64_t round = 9;
    ck_assert_int_eq(sl_folder_rescue(folder, -1, &round, NULL), 0);
    ck_assert_uint_eq(round, 0);
    ck_assert_int_ne(access(at("run/model-last.npy"), F_OK), 0);
    for (uint64_t r = 1; r <= 4; r++) {
        float x = (float)r;
        ck_assert_int_eq(
            sl_folder_remember(folder, r, &(sl_evaluation){.loss = losses[r - 1]}, &x, 1, NULL), 0);
    }
    ck_assert_int_eq(sl_folder_rescue(folder, -1, &round, NULL), 0);
    ck_assert_uint_eq(round, 3);
    ck_assert_int_eq(sl_folder_rescue(folder, 7, &round, NULL), 0);
    ck_assert_float_eq(number_kept(at("run/model-last.npy")), 3);
    ck_assert_float_eq(number_kept(at("run/model-7-last.npy")), 3);
    close_folder(folder);
}

/* By accuracy, then by loss; by loss where there is no accuracy; never one whose loss is not
 * finite. */
START_TEST(the_best_model_is_kept) {
    static const struct {
        sl_evaluation evaluation;
        bool taken;
    } rounds[] = {{{NAN, 0.9}, false}, {{2, 0.5}, true}, {{1, 0.4}, false},       {{3, 0.6}, true},
                  {{3, 0.6}, false},   {{2, 0.6}, true}, {{INFINITY, 0.9}, false}};
    sl_folder *folder = open_folder(at("run"), e, true);
    float best = -1;
    for (uint64_t r = 0; r < sizeof rounds / sizeof *rounds; r++) {
        float x = (float)r;
        best = rounds[r].taken ? x : best;
        ck_assert_int_eq(sl_folder_best(folder, -1, r + 1, &rounds[r].evaluation, &x, 1, NULL), 0);
        ck_assert_float_eq(number_kept(at("run/model-best.npy")), best);
    }
    close_folder(folder);
    folder = open_folder(at("quadratic"), e, true);
    for (uint64_t r = 1; r <= 3; r++)
        ck_assert_int_eq(sl_folder_best(folder, 3, r,
                                        &(sl_evaluation){.loss = 4 - (double)r, .accuracy = NAN},
                                        &best, 1, NULL),
                         0);
    ck_assert_int_eq(
        sl_folder_summary(folder, &(sl_summary){.driver = "agent", .rounds = 3, .nodes = 4}, NULL),
        0);
    close_folder(folder);
    char *summary = contents(at("quadratic/summary.json"), &(size_t){0});
    ck_assert_ptr_nonnull(strstr(summary, "\"round\": 3"));
    ck_assert_int_eq(access(at("quadratic/model-3-best.npy"), F_OK), 0);
}

/* ---- the folder ---- */

START_TEST(a_folder_that_holds_a_run_is_refused) {
    close_folder(open_folder(at("run"), e, true));
    refuse_folder(at("run"), e, true, "already holds a run");
    refuse_folder("", e, true, "path must have");
    char longest[2000] = "/tmp/";
    memset(longest + 5, 'x', sizeof longest - 6);
    refuse_folder(longest, e, true, "path must have");
}

START_TEST(agents_join_a_folder_of_the_same_configuration_only) {
    sl_experiment *other =
        experiment_of("{'rounds': 11, 'topology': {'nodes': 4, 'family': 'ring'}}");
    sl_folder *first = open_folder(at("run"), e, false), *second = open_folder(at("run"), e, false);
    refuse_folder(at("run"), other, false, "another configuration");
    sl_record record = record_of(0, 1);
    ck_assert_int_eq(sl_folder_metrics(first, &record, NULL), 0);
    ck_assert_int_eq(sl_folder_parameters(first, 0, 0, awkward, AWKWARD, 1, NULL), 0);
    ck_assert_int_eq(sl_folder_parameters(second, 5, 1, awkward, AWKWARD, 1, NULL), 0);
    ck_assert_int_eq(sl_folder_parameters(second, 4, 1, awkward, AWKWARD, 1, NULL), 0);
    close_folder(first), close_folder(second);
    ck_assert_int_eq(access(at("run/parameters-0.jsonl"), F_OK), 0);
    json_error_t problem;
    json_t *line = json_load_file(at("run/parameters-1.jsonl"), JSON_DISABLE_EOF_CHECK, &problem);
    ck_assert_int_eq(real_at(line, "round"), 4);
    json_decref(line);
}

START_TEST(what_a_run_has_left_is_refused_before_it_starts) {
    EXPECT_WELL(sl_folder_check(at("run"), e, 0, &error));
    ck_assert_int_ne(access(at("run"), F_OK), 0);
    sl_folder *folder = open_folder(at("run"), e, false);
    EXPECT_WELL(sl_folder_check(at("run"), e, 0, &error));
    EXPECT_ERROR(sl_folder_check(at("run"), e, -1, &error), SL_EFILE, "already holds a run");
    sl_record record = record_of(0, 1);
    ck_assert_int_eq(sl_folder_metrics(folder, &record, NULL), 0);
    EXPECT_ERROR(sl_folder_check(at("run"), e, 0, &error), SL_EFILE, "agent 0 has already written");
    EXPECT_WELL(sl_folder_check(at("run"), e, 1, &error));
    const sl_summary summary = {.driver = "agent", .rounds = 3, .nodes = 4};
    ck_assert_int_eq(sl_folder_summary(folder, &summary, NULL), 0);
    close_folder(folder);
    EXPECT_ERROR(sl_folder_check(at("run"), e, 1, &error), SL_EFILE, "finished run");
}

START_TEST(two_writers_of_one_rank_do_not_mix) {
    sl_folder *first = open_folder(at("run"), e, false), *second = open_folder(at("run"), e, false);
    sl_record record = record_of(0, 1);
    ck_assert_int_eq(sl_folder_metrics(first, &record, NULL), 0);
    for (int i = 0; i < 2; i++) { /* not the second time either */
        ck_assert_int_eq(sl_folder_metrics(second, &record, &error), SL_EFILE);
        ck_assert_msg(strstr(error.text, "metrics-0.jsonl") && strstr(error.text, "exists"), "%s",
                      error.text);
    }
    close_folder(first), close_folder(second);
}
