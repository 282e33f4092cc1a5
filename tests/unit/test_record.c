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

FIXTURES(begin, end);

START_TEST(a_line_of_metrics_holds_what_was_given) {
    sl_folder *folder = open_folder(at("run"), e, true);
    for (uint64_t round = 1; round <= 3; round++)
        for (uint32_t rank = 0; rank < 4; rank++) {
            sl_record record = record_of(rank, round);
            ck_assert_int_eq(sl_folder_metrics(folder, &record, NULL), 0);
        }
    close_folder(folder);
    FILE *file = fopen(at("run/metrics-2.jsonl"), "r");
    ck_assert_ptr_nonnull(file);
    char line[4096];
    for (int round = 1; round <= 3; round++) {
        ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        ck_assert_ptr_nonnull(object);
        ck_assert(real_at(object, "round") == round && real_at(object, "node") == 2);
        ck_assert(real_at(object, "loss") == 0.125 * round &&
                  real_at(object, "learning_rate") == 0.1);
        ck_assert(fabs(real_at(object, "test_loss") - 1.0 / 3) < 1e-12 &&
                  real_at(object, "accuracy") == 0.75);
        ck_assert(real_at(object, "neighbour_distance") == 3.5);
        ck_assert(real_at(object, "bytes_sent") == 5000000000 &&
                  real_at(object, "bytes_received") == 7);
        ck_assert(real_at(object, "messages_sent") == 11 &&
                  real_at(object, "messages_silent") == 13);
        json_t *seconds = json_object_get(object, "seconds");
        ck_assert(real_at(seconds, "total") == 6 && real_at(seconds, "gradient") == 1 &&
                  real_at(seconds, "encode") == 2);
        ck_assert(real_at(seconds, "exchange") == 3 && real_at(seconds, "wait") == 4 &&
                  real_at(seconds, "combine") == 5);
        json_decref(object);
    }
    ck_assert_ptr_null(fgets(line, sizeof line, file));
    fclose(file);
}

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
    free(text);
}

START_TEST(consensus_goes_line_by_line) {
    sl_folder *folder = open_folder(at("run"), e, true);
    for (uint64_t round = 1; round <= 2; round++) {
        sl_consensus consensus = {.mean_model = {.loss = 0.25, .accuracy = round == 1 ? NAN : 0.5},
                                  .distance = 2,
                                  .bytes_sent = 1.5};
        ck_assert_int_eq(sl_folder_consensus(folder, round, &consensus, NULL), 0);
    }
    close_folder(folder);
    size_t bytes;
    char *text = contents(at("run/consensus.jsonl"), &bytes);
    ck_assert_str_eq(text,
                     "{\"round\":1,\"consensus_distance\":2.0,\"test_loss\":0.25,\"accuracy\":null,"
                     "\"bytes_sent\":1.5}\n"
                     "{\"round\":2,\"consensus_distance\":2.0,\"test_loss\":0.25,\"accuracy\":0.5,"
                     "\"bytes_sent\":1.5}\n");
    free(text);
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

/* Read as NumPy does: magic, version, little-endian length, a literal that ends in a newline at a
 * multiple of 64. */
START_TEST(a_model_is_a_valid_npy_file) {
    sl_folder *folder = open_folder(at("run"), e, true);
    ck_assert_int_eq(sl_folder_model(folder, 3, "", awkward, AWKWARD, NULL), 0);
    ck_assert_int_eq(sl_folder_model(folder, -1, "", awkward, AWKWARD, NULL), 0);
    close_folder(folder);
    const char *const names[] = {"run/model-3.npy", "run/model.npy"};
    for (int i = 0; i < 2; i++) {
        size_t bytes;
        char *file = contents(at(names[i]), &bytes);
        ck_assert_mem_eq(file, "\x93NUMPY\x01\x00", 8);
        size_t head = 10 + (size_t)(unsigned char)file[8] + 256 * (size_t)(unsigned char)file[9];
        ck_assert_uint_eq(head % 64, 0);
        ck_assert_int_eq(file[head - 1], '\n');
        ck_assert_mem_eq(file + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }",
                         57);
        ck_assert_uint_eq(strspn(file + 10 + 57, " "), head - 10 - 57 - 1);
        ck_assert_uint_eq(bytes, head + sizeof awkward);
        ck_assert_mem_eq(file + head, awkward, sizeof awkward);
        free(file);
    }
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
    for (int i = 0; i < 2; i++) {
        size_t bytes;
        float kept;
        char *file = contents(at(i ? "run/model-7-last.npy" : "run/model-last.npy"), &bytes);
        memcpy(&kept, file + bytes - sizeof kept, sizeof kept);
        ck_assert_float_eq(kept, 3);
        free(file);
    }
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
        float x = (float)r, kept = -1;
        best = rounds[r].taken ? x : best;
        ck_assert_int_eq(sl_folder_best(folder, -1, r + 1, &rounds[r].evaluation, &x, 1, NULL), 0);
        size_t bytes;
        char *file = access(at("run/model-best.npy"), F_OK) == 0
                         ? contents(at("run/model-best.npy"), &bytes)
                         : NULL;
        if (file != NULL)
            memcpy(&kept, file + bytes - sizeof kept, sizeof kept);
        ck_assert_float_eq(kept, best);
        free(file);
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
    free(summary);
}

/* ---- the folder ---- */

START_TEST(a_quadratic_folder_stands_alone) {
    const char *problem = "{\"A\": [[[1]]], \"b\": [[1]], \"x0\": [[0]]}\n";
    put(at("problem-of-mine.json"), problem);
    sl_experiment *q = experiment_of(QUADRATIC);
    close_folder(open_folder(at("run"), q, true));
    ck_assert_int_eq(unlink(at("problem-of-mine.json")), 0);
    ck_assert_int_eq(rename(at("run"), at("moved")), 0);
    sl_experiment *again = NULL;
    sl_error error = {0};
    ck_assert_msg(sl_experiment_load(&again, at("moved/config.json"), NULL, 0, &error) == 0, "%s",
                  error.text);
    ck_assert_str_eq(again->model.path, at("moved/problem.json"));
    for (int s = 0; s < SL_SECTION_COUNT; s++)
        ck_assert_uint_eq(sl_experiment_section_hash(q, s), sl_experiment_section_hash(again, s));
    size_t bytes;
    char *copy = contents(again->model.path, &bytes);
    ck_assert_str_eq(copy, problem);
    free(copy);
    /* The folder of the repeated run is the same once more. */
    close_folder(open_folder(at("again"), again, true));
    char *first = contents(at("moved/config.json"), &bytes),
         *second = contents(at("again/config.json"), &bytes);
    ck_assert_str_eq(first, second);
    free(first), free(second);
    sl_experiment_close(&q), sl_experiment_close(&again);
}

START_TEST(parents_are_made_and_nothing_else_is_left_behind) {
    close_folder(open_folder(at("a/b//c/run"), e, true));
    char command[256];
    snprintf(command, sizeof command, "test \"$(ls -A %s/a/b/c/run)\" = config.json", base);
    ck_assert_int_eq(system(command), 0);
}

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
        experiment_of("{\"rounds\": 11, \"topology\": {\"nodes\": 4, \"family\": \"ring\"}}");
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
    sl_experiment_close(&other);
}

START_TEST(what_a_run_has_left_is_refused_before_it_starts) {
    sl_error error = {0};
    ck_assert_int_eq(sl_folder_check(at("run"), e, 0, &error), 0);
    ck_assert_int_ne(access(at("run"), F_OK), 0);
    sl_folder *folder = open_folder(at("run"), e, false);
    ck_assert_int_eq(sl_folder_check(at("run"), e, 0, &error), 0);
    ck_assert_int_eq(sl_folder_check(at("run"), e, -1, &error), SL_EFILE);
    ck_assert_msg(strstr(error.text, "already holds a run") != NULL, "%s", error.text);
    sl_record record = record_of(0, 1);
    ck_assert_int_eq(sl_folder_metrics(folder, &record, NULL), 0);
    ck_assert_int_eq(sl_folder_check(at("run"), e, 0, &error), SL_EFILE);
    ck_assert_msg(strstr(error.text, "agent 0 has already written") != NULL, "%s", error.text);
    ck_assert_int_eq(sl_folder_check(at("run"), e, 1, &error), 0);
    const sl_summary summary = {.driver = "agent", .rounds = 3, .nodes = 4};
    ck_assert_int_eq(sl_folder_summary(folder, &summary, NULL), 0);
    close_folder(folder);
    ck_assert_int_eq(sl_folder_check(at("run"), e, 1, &error), SL_EFILE);
    ck_assert_msg(strstr(error.text, "finished run") != NULL, "%s", error.text);
}

START_TEST(two_writers_of_one_rank_do_not_mix) {
    sl_folder *first = open_folder(at("run"), e, false), *second = open_folder(at("run"), e, false);
    sl_record record = record_of(0, 1);
    sl_error error = {0};
    ck_assert_int_eq(sl_folder_metrics(first, &record, NULL), 0);
    for (int i = 0; i < 2; i++) { /* not the second time either */
        ck_assert_int_eq(sl_folder_metrics(second, &record, &error), SL_EFILE);
        ck_assert_msg(strstr(error.text, "metrics-0.jsonl") && strstr(error.text, "exists"), "%s",
                      error.text);
    }
    close_folder(first), close_folder(second);
}

START_TEST(agents_that_come_at_once_all_join) {
    put(at("problem-of-mine.json"), "{\"A\": [[[1]]], \"b\": [[1]], \"x0\": [[0]]}\n");
    sl_experiment *q = experiment_of(QUADRATIC);
    enum { AGENTS = 8, TRIES = 5 };
    for (int t = 0; t < TRIES; t++) {
        char name[16];
        snprintf(name, sizeof name, "run-%d", t);
        for (int i = 0; i < AGENTS; i++)
            if (fork() == 0) {
                sl_folder *folder = NULL;
                sl_error error = {0};
                int result = sl_folder_open(&folder, at(name), q, false, &error);
                if (result != 0)
                    fprintf(stderr, "%s\n", error.text);
                _exit(result != 0);
            }
        for (int i = 0; i < AGENTS; i++) {
            int status;
            ck_assert_int_gt(wait(&status), 0);
            ck_assert_int_eq(status, 0);
        }
    }
    sl_experiment_close(&q);
}

int main(void) {
    return run_tests("record");
}
