/* test_experiment.c - the experiment file: what is accepted, what it becomes, and what each mistake
 * is told. */
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "config/keys.h"
#include "config/tree.h"
#include "harness.h"
#include "starling/experiment.h"

#define TOPOLOGY "\"topology\": {\"nodes\": 4, \"family\": \"ring\"}"
#define SMALLEST "{\"rounds\": 10, " TOPOLOGY "}"
#define WITH(members) "{\"rounds\": 10, " TOPOLOGY ", " members "}"

static char folder[] = "/tmp/starling-experiment-XXXXXX";

static void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
}

static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text) {
    FILE *file = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static sl_experiment *parse_set(const char *json, const char *const *overrides, size_t count) {
    sl_experiment *e = NULL;
    sl_error error = {0};
    int result = sl_experiment_parse(&e, json, "test.json", folder, overrides, count, &error);
    ck_assert_msg(result == 0, "%s", error.text);
    return e;
}

static sl_experiment *parse(const char *json) {
    return parse_set(json, NULL, 0);
}

static sl_experiment *with_override(const char *json, const char *override) {
    return parse_set(json, &override, 1);
}

/* Refused, leaving *out alone, with an error that holds each of the texts. */
static void refuse(const char *json, const char *override, const char *text, const char *another) {
    sl_experiment *e = NULL;
    sl_error error = {0};
    int result =
        sl_experiment_parse(&e, json, "test.json", folder, &override, override != NULL, &error);
    ck_assert_msg(result < 0, "accepted: %s %s", json, override ? override : "");
    ck_assert_ptr_null(e);
    ck_assert_int_eq(error.code, result);
    ck_assert_msg(strstr(error.text, "test.json") == error.text, "no source named: %s", error.text);
    ck_assert_msg(strstr(error.text, text) != NULL, "\"%s\" not in: %s", text, error.text);
    ck_assert_msg(another == NULL || strstr(error.text, another) != NULL, "\"%s\" not in: %s",
                  another ? another : "", error.text);
    ck_assert_int_eq(
        sl_experiment_parse(&e, json, "test.json", folder, &override, override != NULL, NULL),
        result);
}

static char *json_of(const char *json) {
    sl_experiment *e = parse(json);
    char *text = sl_experiment_json(e);
    ck_assert_ptr_nonnull(text);
    sl_experiment_close(&e);
    ck_assert_ptr_null(e);
    return text;
}

/* ---- what is accepted ---- */

START_TEST(the_smallest_experiment_gets_every_default) {
    sl_experiment *e = parse(SMALLEST);
    ck_assert_str_eq(e->name, "experiment");
    ck_assert_uint_eq(e->seed, 1);
    ck_assert_uint_eq(e->rounds, 10);
    ck_assert_str_eq(e->algorithm.name, "d-psgd");
    ck_assert_int_eq(e->algorithm.variant, SL_VARIANT_DEFAULT);
    ck_assert_int_eq(e->algorithm.compressor.kind, SL_COMPRESSOR_IDENTITY);
    ck_assert_double_eq(e->optimizer.learning_rate, 0.1);
    ck_assert_double_eq(e->optimizer.momentum, 0);
    ck_assert_int_eq(e->optimizer.schedule.kind, SL_SCHEDULE_CONSTANT);
    ck_assert_int_eq(e->model.kind, SL_MODEL_MLP);
    ck_assert_uint_eq(e->model.hidden_count, 1);
    ck_assert_uint_eq(e->model.hidden[0], 256);
    ck_assert_int_eq(e->data.kind, SL_DATA_DIGITS);
    ck_assert_uint_eq(e->data.batch, 32);
    ck_assert_uint_eq(e->record.parameters_at_count, 0);
    ck_assert_str_eq(e->transport.provider, "tcp");
    ck_assert_double_eq(e->transport.timeout_s, 30);
    ck_assert_uint_eq(sl_topology_nodes(e->topology), 4);
    sl_experiment_close(&e);
}
END_TEST

/* A value that the key accepts and, where it has one, that is not its default. */
static json_t *another_value(const sl_key *k) {
    switch (k->type) {
    case SL_KEY_TEXT:
        return json_string(strcmp(k->path, "algorithm.name") == 0 ? "choco-sgd"
                           : strcmp(k->path, "device") == 0       ? "auto"
                                                                  : "another");
    case SL_KEY_PATH:
        return json_string(in_folder("some-file"));
    case SL_KEY_CHOICE:
        return json_string(k->choices[strcmp(k->path, "model.name") == 0 ? 2
                                      : strcmp(k->path, "algorithm.variant") == 0 ||
                                              strcmp(k->path, "algorithm.compressor.name") == 0
                                          ? 3
                                      : k->choices[1] == NULL ? 0
                                                              : 1]);
    case SL_KEY_BOOL:
    case SL_KEY_SWITCH:
        return json_true();
    case SL_KEY_SERVER:
        return json_string("sharded");
    case SL_KEY_U32:
    case SL_KEY_U64:
        return json_integer(strcmp(k->path, "transport.chunk_bytes") == 0 ? 8192 : 9);
    case SL_KEY_REAL:
        return json_real(strncmp(k->path, "transport.", 10) == 0 ? 7.25
                         : strcmp(k->path, "epochs") == 0        ? 0.0
                                                                 : 0.3);
    case SL_KEY_REALS:
        return json_pack("[fff]", 0.1, 1.0 / 3, 0.75);
    case SL_KEY_FACTORS: /* one for each node of everything_different */
        return json_pack("[fffff]", 1.0, 0.5, 2.0, 1.0 / 3, 1.0);
    case SL_KEY_U32S:
        return json_pack("[iii]", 30, 20, 30);
    case SL_KEY_U64S:
        return json_pack("[iii]", 0, 1, 1000000);
    }
    return NULL;
}

static json_t *everything_different(void) {
    json_t *root = json_pack("{s{si ss}}", "topology", "nodes", 5, "family", "path");
    for (size_t i = 0; i < sl_key_count; i++)
        ck_assert_int_eq(sl_tree_set(root, sl_keys[i].path, another_value(&sl_keys[i])), 0);
    return root;
}

START_TEST(every_key_is_taken_and_printed_back) {
    write_file("some-file", "");
    json_t *given = everything_different();
    char *text = json_dumps(given, JSON_REAL_PRECISION(17));
    sl_experiment *e = parse(text);
    char *printed = sl_experiment_json(e);
    json_t *back = json_loads(printed, 0, NULL);
    json_object_set_new(given, "topology", json_incref(json_object_get(back, "topology")));
    json_object_del(given, "epochs"); /* 0: not given */
    char *want = json_dumps(given, JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    char *got = json_dumps(back, JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    ck_assert_str_eq(got, want);

    sl_experiment *again = parse(printed);
    char *printed_again = sl_experiment_json(again);
    ck_assert_str_eq(printed_again, printed);
    for (int s = 0; s < SL_SECTION_COUNT; s++)
        ck_assert_uint_eq(sl_experiment_section_hash(e, s), sl_experiment_section_hash(again, s));
    ck_assert_uint_eq(sl_topology_hash(e->topology), sl_topology_hash(again->topology));
    free(text), free(printed), free(printed_again), free(want), free(got);
    json_decref(given), json_decref(back);
    sl_experiment_close(&e), sl_experiment_close(&again);
}
END_TEST

START_TEST(epochs_come_back_and_rounds_stay_out) {
    char *text = json_of("{\"epochs\": 2.5, " TOPOLOGY "}");
    ck_assert_ptr_nonnull(strstr(text, "\"epochs\": 2.5"));
    ck_assert_ptr_null(strstr(text, "\"rounds\""));
    free(text);
}
END_TEST

START_TEST(numbers_print_as_they_were_written) {
    char *text = json_of(
        WITH("\"optimizer\": {\"learning_rate\": 0.1, \"momentum\": 0.7, \"weight_decay\": 1e-4}"));
    ck_assert_ptr_nonnull(strstr(text, "\"learning_rate\": 0.1,"));
    ck_assert_ptr_nonnull(strstr(text, "\"weight_decay\": 0.0001,"));
    free(text);
}
END_TEST

START_TEST(a_number_that_needs_17_digits_comes_back_bit_for_bit) {
    sl_experiment *e = parse(WITH("\"optimizer\": {\"learning_rate\": 0.33333333333333331483, "
                                  "\"momentum\": 0.30000000000000004, \"weight_decay\": 0.1}"));
    char *text = sl_experiment_json(e);
    sl_experiment *again = parse(text);
    ck_assert(again->optimizer.learning_rate == 1.0 / 3 && again->optimizer.momentum == 0.1 + 0.2);
    ck_assert_ptr_nonnull(strstr(text, "\"weight_decay\": 0.1,"));
    ck_assert_ptr_nonnull(strstr(text, "\"momentum\": 0.30000000000000004,"));
    free(text);
    sl_experiment_close(&e), sl_experiment_close(&again);
}
END_TEST

START_TEST(text_in_place_of_a_group_is_its_name) {
    char *brief = json_of(WITH("\"algorithm\": \"d-psgd\", \"model\": \"softmax\", \"data\": "
                               "{\"name\": \"digits\", \"partition\": \"shards\"},"
                               "\"optimizer\": {\"schedule\": \"cosine\"}"));
    char *full =
        json_of(WITH("\"algorithm\": {\"name\": \"d-psgd\"}, \"model\": {\"name\": \"softmax\"},"
                     "\"data\": {\"name\": \"digits\", \"partition\": {\"name\": \"shards\"}},"
                     "\"optimizer\": {\"schedule\": {\"name\": \"cosine\"}}"));
    ck_assert_str_eq(brief, full);
    free(brief), free(full);
}
END_TEST

START_TEST(comments_are_allowed_anywhere) {
    char *with =
        json_of("{\"comment\": \"why\", \"rounds\": 10, \"topology\": {\"comment\": [1], "
                "\"nodes\": 4, \"family\": \"ring\"},"
                "\"data\": {\"comment\": {\"deep\": null}, \"partition\": {\"comment\": 3}}}");
    char *without = json_of(SMALLEST);
    ck_assert_str_eq(with, without);
    free(with), free(without);
}
END_TEST

START_TEST(a_topology_may_be_a_file_beside_the_experiment) {
    write_file("ring.json", "{\"nodes\": 6, \"family\": \"ring\"}");
    write_file("experiment.json", "{\"rounds\": 1, \"topology\": \"ring.json\"}");
    sl_experiment *e = NULL;
    sl_error error = {0};
    ck_assert_msg(sl_experiment_load(&e, in_folder("experiment.json"), NULL, 0, &error) == 0, "%s",
                  error.text);
    ck_assert_uint_eq(sl_topology_nodes(e->topology), 6);
    char *text = sl_experiment_json(e);
    ck_assert_ptr_nonnull(
        strstr(text, "\"family\": \"ring\"")); /* inline, so that it stands alone */
    free(text);
    sl_experiment_close(&e);
}
END_TEST

/* Run from the root of the sources. */
START_TEST(every_example_is_accepted) {
    glob_t found;
    ck_assert_int_eq(glob("examples/*.json", 0, NULL, &found), 0);
    int count = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i], *const here = "data.path=.";
        if (strstr(path, "-problem") != NULL ||
            strstr(path, "compare") !=
                NULL) /* the latter holds several: tests/parity/test_compare.py */
            continue;
        sl_experiment *e = NULL;
        sl_error error = {0};
        bool has_data_elsewhere =
            strstr(path, "mnist") || strstr(path, "cifar10") || strstr(path, "shakespeare");
        int result = sl_experiment_load(&e, path, &here, has_data_elsewhere, &error);
        ck_assert_msg(result == 0, "%s", error.text);
        ck_assert_msg(has_data_elsewhere || e->warnings[0] == '\0', "%s: %s", path, e->warnings);
        sl_experiment_close(&e);
        count++;
    }
    ck_assert_int_ge(count, 7);
    globfree(&found);
}
END_TEST

START_TEST(help_and_docs_name_every_key) {
    char *help = sl_experiment_keys_help(), *docs = NULL;
    ck_assert_int_eq(sl_file_read(&docs, "docs/experiment.md", 1 << 20, NULL), 0);
    ck_assert(strstr(help, "topology") && strstr(docs, "`topology`"));
    for (size_t i = 0; i < sl_key_count; i++) {
        char row[128];
        snprintf(row, sizeof row, "| `%s` |", sl_keys[i].path);
        ck_assert_msg(strstr(help, sl_keys[i].path) != NULL, "%s is not in the help",
                      sl_keys[i].path);
        ck_assert_msg(strstr(docs, row) != NULL, "%s is not in docs/experiment.md",
                      sl_keys[i].path);
    }
    free(help), free(docs);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(an_unknown_key_gets_the_nearest_known_one) {
    refuse(WITH("\"variants\": []"), NULL, "variants", "starling compare");
    refuse(WITH("\"sede\": 3"), NULL, "unknown key \"sede\"", "did you mean \"seed\"");
    refuse(WITH("\"optimizer\": {\"learning_rte\": 1}"), NULL, "\"optimizer.learning_rte\"",
           "did you mean \"optimizer.learning_rate\"");
    refuse(WITH("\"data\": {\"partition\": {\"aplha\": 1}}"), NULL, "\"data.partition.aplha\"",
           "did you mean \"data.partition.alpha\"");
    refuse("{\"rounds\": 1, \"topolgy\": {}}", NULL, "\"topolgy\"", "did you mean \"topology\"");
    refuse(SMALLEST, "optimizer.momentun=0.5", "--set: unknown key \"optimizer.momentun\"",
           "did you mean \"optimizer.momentum\"");
    refuse(WITH("\"qqqqqqqqqqqqqqqqqqqqqq\": 3"), NULL, "unknown key", "docs/experiment.md");
}
END_TEST

START_TEST(a_misspelt_group_gets_the_group) {
    refuse(WITH("\"optimiser\": {\"momentum\": 0.5}"), NULL, "\"optimiser\"",
           "did you mean \"optimizer\"");
    refuse(WITH("\"algoritm\": \"d-psgd\""), NULL, "\"algoritm\"", "did you mean \"algorithm\"");
    refuse(WITH("\"data\": {\"partitions\": \"iid\"}"), NULL, "\"data.partitions\"",
           "did you mean \"data.partition\"");
}
END_TEST

START_TEST(a_key_outside_of_its_group_gets_its_full_name) {
    refuse(WITH("\"momentum\": 0.5"), NULL, "\"momentum\"", "did you mean \"optimizer.momentum\"");
    refuse(WITH("\"optimizer\": {\"batch\": 3}"), NULL, "\"optimizer.batch\"",
           "did you mean \"data.batch\"");
    refuse(SMALLEST, "learning_rate=0.5", "\"learning_rate\"",
           "did you mean \"optimizer.learning_rate\"");
}
END_TEST

START_TEST(a_dotted_key_in_the_file_is_not_passed_over) {
    refuse(WITH("\"optimizer.momentum\": 0.5"), NULL, "\"optimizer.momentum\"", "dot");
    refuse(WITH("\"data\": {\"partition.alpha\": 0.5}"), NULL, "\"partition.alpha\"", "dot");
}
END_TEST

START_TEST(a_wrong_type_is_refused_with_what_is_allowed) {
    refuse(WITH("\"seed\": \"3\""), NULL, "seed: \"3\" is not allowed", "an integer from 0");
    refuse(WITH("\"seed\": 1.5"), NULL, "seed: 1.5", "an integer");
    refuse(WITH("\"name\": 3"), NULL, "name: 3", "text");
    refuse(WITH("\"optimizer\": {\"nesterov\": 1}"), NULL, "optimizer.nesterov: 1 ",
           "true or false");
    refuse(WITH("\"optimizer\": 5"), NULL, "optimizer: 5 is not allowed", "an object");
    refuse(WITH("\"optimizer\": null"), NULL, "optimizer: null is not allowed", "an object");
    refuse(WITH("\"model\": 5"), NULL, "model: 5 is not allowed", "the text of its name");
    refuse(WITH("\"optimizer\": {\"learning_rate\": null}"), NULL, "optimizer.learning_rate: null",
           "a number");
    refuse(WITH("\"optimizer\": {\"learning_rate\": true}"), NULL, "optimizer.learning_rate: true",
           "a number");
    refuse(WITH("\"model\": {\"hidden\": 5}"), NULL, "model.hidden: 5", "a list of integers");
    refuse(WITH("\"model\": {\"hidden\": [5, \"6\"]}"), NULL, "model.hidden: [5,\"6\"]", NULL);
    refuse(WITH("\"data\": {\"path\": []}"), NULL, "data.path: []", "a path");
    refuse("[1, 2]", NULL, "must be a JSON object", NULL);
    refuse("\"text\"", NULL, "must be a JSON object", NULL);
    refuse("{\"rounds\": 1, \"topology\": 5}", NULL, "topology", "must be an object");
}
END_TEST

START_TEST(a_number_out_of_range_is_refused_with_the_range) {
    refuse(WITH("\"optimizer\": {\"learning_rate\": -0.1}"), NULL, "optimizer.learning_rate: -0.1",
           "from 0 to 1000000");
    refuse(WITH("\"optimizer\": {\"momentum\": 1}"), NULL, "optimizer.momentum: 1 ",
           "from 0 to 0.99999999");
    refuse(WITH("\"data\": {\"batch\": 0}"), NULL, "data.batch: 0", "from 1 to 1000000");
    refuse(WITH("\"data\": {\"batch\": 4294967328}"), NULL, "data.batch: 4294967328", NULL);
    refuse(WITH("\"seed\": -1"), NULL, "seed: -1", NULL);
    refuse("{\"rounds\": -5, " TOPOLOGY "}", NULL, "rounds: -5", NULL);
    refuse(WITH("\"model\": {\"hidden\": [0]}"), NULL, "model.hidden: [0]", NULL);
    refuse(WITH("\"model\": {\"hidden\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}"), NULL,
           "model.hidden", NULL);
    refuse(WITH("\"record\": {\"parameters_at\": [5, 5]}"), NULL, "record.parameters_at: [5,5]",
           "rising");
    refuse(WITH("\"optimizer\": {\"schedule\": {\"milestones\": [0.5, 0.2]}}"), NULL,
           "optimizer.schedule.milestones", "rising");
    refuse(WITH("\"transport\": {\"chunk_bytes\": 5000}"), NULL, "transport.chunk_bytes: 5000",
           "4096");
    refuse(WITH("\"network\": {\"speeds\": [1, 2]}"), NULL, "network.speeds: has 2 speeds",
           "4 nodes");
    refuse(WITH("\"network\": {\"speeds\": [1, 2, 0, 1]}"), NULL, "network.speeds", "1e-06");
    refuse(WITH("\"transport\": {\"timeout_s\": 0}"), NULL, "transport.timeout_s: 0", "from 0.5");
}
END_TEST

START_TEST(numbers_that_are_none_are_refused) {
    refuse(WITH("\"optimizer\": {\"learning_rate\": 1e999}"), NULL, "test.json:1:", NULL);
    refuse(WITH("\"optimizer\": {\"learning_rate\": NaN}"), NULL, "test.json:1:", NULL);
    refuse(WITH("\"seed\": 99999999999999999999999"), NULL, "test.json:1:", NULL);
    refuse(SMALLEST, "optimizer.learning_rate=1e999", "optimizer.learning_rate: \"1e999\"",
           "a number");
    refuse(SMALLEST, "optimizer.learning_rate=NaN", "optimizer.learning_rate: \"NaN\"", "a number");
    refuse(SMALLEST, "optimizer.learning_rate=-inf", "optimizer.learning_rate: \"-inf\"",
           "a number");
}
END_TEST

START_TEST(a_choice_that_is_none_gets_the_nearest) {
    refuse(WITH("\"model\": \"mlpp\""), NULL, "model.name: \"mlpp\"", "did you mean \"mlp\"");
    refuse(WITH("\"data\": \"minst\""), NULL, "data.name: \"minst\"", "did you mean \"mnist\"");
    refuse(WITH("\"algorithm\": {\"variant\": \"combine-while-adopt\"}"), NULL, "algorithm.variant",
           "did you mean \"combine-while-adapt\"");
    refuse(WITH("\"algorithm\": \"dpsgd\""), NULL, "algorithm.name: \"dpsgd\"", "\"d-psgd\"");
    refuse(WITH("\"algorithm\": {\"compressor\": \"topk\"}"), NULL,
           "algorithm.compressor.name: \"topk\"", "did you mean \"top-k\"?");
}
END_TEST

START_TEST(text_for_a_group_without_a_name_is_refused) {
    refuse(WITH("\"optimizer\": \"adam\""), NULL, "optimizer: \"adam\" is not allowed",
           "learning_rate, momentum");
    refuse(WITH("\"record\": \"often\""), NULL, "record: \"often\" is not allowed", "every");
    refuse(WITH("\"transport\": \"tcp\""), NULL, "transport: \"tcp\" is not allowed", "provider");
    refuse(SMALLEST, "optimizer=adam", "optimizer: \"adam\" is not allowed", "learning_rate");
    refuse(SMALLEST, "record=5", "record: 5 is not allowed", "every");
    refuse(WITH("\"security\": \"none\""), NULL, "security: \"none\"", "trusted_network");
}
END_TEST

/* One warning, which holds the key; NULL: none at all. */
static void expect_warning(const char *json, const char *override, const char *key) {
    sl_experiment *e = parse_set(json, &override, override != NULL);
    if (key == NULL)
        ck_assert_str_eq(e->warnings, "");
    else {
        ck_assert_msg(strncmp(e->warnings, "warning: ", 9) == 0 &&
                          strncmp(e->warnings + 9, key, strlen(key)) == 0,
                      "%s: %s", key, e->warnings);
        ck_assert_ptr_eq(strchr(e->warnings, '\n'), e->warnings + strlen(e->warnings) - 1);
    }
    sl_experiment_close(&e);
}

START_TEST(a_key_without_effect_is_warned_of) {
    expect_warning(SMALLEST, NULL, NULL);
    expect_warning(WITH("\"algorithm\": {\"compressor\": {\"fraction\": 0.1}}"), NULL,
                   "algorithm.compressor.fraction has no effect");
    expect_warning(WITH("\"model\": {\"name\": \"softmax\", \"hidden\": [3]}"), NULL,
                   "model.hidden has no effect with model.name softmax; only mlp uses it");
    expect_warning(WITH("\"optimizer\": {\"schedule\": {\"name\": \"cosine\", "
                        "\"milestones\": [0.5]}}"),
                   NULL, "optimizer.schedule.milestones has no effect");
    expect_warning(SMALLEST, "algorithm.period=5",
                   "algorithm.period has no effect with algorithm.name d-psgd; only local-sgd uses "
                   "it");
    expect_warning(SMALLEST, "algorithm.server=0",
                   "algorithm.server has no effect with algorithm.name d-psgd; only "
                   "parameter-server double-squeeze cd-sgd use it");
    expect_warning(SMALLEST, "algorithm.compressor.k=3",
                   "algorithm.compressor.k has no effect with algorithm.compressor.name identity; "
                   "only top-k random-k use it");
    expect_warning(WITH("\"algorithm\": \"local-sgd\""), "algorithm.period=5", NULL);
    expect_warning(WITH("\"data\": {\"partition\": {\"alpha\": 3}}"), NULL, "data.partition.alpha");
    write_file("q.json", "{\"A\": [], \"b\": [], \"x0\": []}");
    expect_warning(WITH("\"model\": {\"name\": \"quadratic\", \"path\": \"q.json\"}, "
                        "\"data\": {\"partition\": {\"alpha\": 3}}"),
                   NULL, "data.partition.alpha has no effect with model.name quadratic");
}
END_TEST

START_TEST(a_resolved_experiment_has_no_warnings) {
    sl_experiment *e = parse_set(SMALLEST, &(const char *){"algorithm.period=5"}, 1), *again;
    char *text = sl_experiment_json(e);
    again = parse(text);
    ck_assert(e->warnings[0] != '\0' && again->warnings[0] == '\0');
    free(text);
    sl_experiment_close(&e), sl_experiment_close(&again);
}
END_TEST

/* Names in the table of keys are names that exist. */
START_TEST(what_uses_a_key_exists) {
    for (size_t i = 0; i < sl_key_count; i++) {
        if (sl_keys[i].user == NULL)
            continue;
        const sl_key *user = sl_key_find(sl_keys[i].user);
        ck_assert_ptr_nonnull(user);
        if (sl_keys[i].users == NULL) /* the descriptors say */
            continue;
        char users[256], *rest = users;
        snprintf(users, sizeof users, "%s", sl_keys[i].users + (sl_keys[i].users[0] == '!'));
        for (char *name; (name = strsep(&rest, " ")) != NULL;) {
            size_t n = 0;
            while (sl_key_choice(user, n) != NULL && strcmp(sl_key_choice(user, n), name) != 0)
                n++;
            ck_assert_msg(sl_key_choice(user, n) != NULL, "%s: no %s", sl_keys[i].path, name);
        }
    }
}
END_TEST

START_TEST(keys_are_listed_with_what_they_allow) {
    size_t count;
    const sl_key *keys = sl_experiment_keys(&count);
    char allowed[256];
    ck_assert_uint_gt(count, 60);
    ck_assert_str_eq(keys[0].path, "name");
    for (size_t i = 0; i < count; i++) {
        sl_key_allowed(&keys[i], allowed, sizeof allowed);
        ck_assert(allowed[0] != '\0' && keys[i].help[0] != '\0' && keys[i].fallback[0] != '\0');
        ck_assert_int_eq(keys[i].type == SL_KEY_CHOICE,
                         keys[i].choices != NULL && keys[i].type != SL_KEY_TEXT);
        if (strcmp(keys[i].path, "algorithm.name") == 0)
            ck_assert_str_eq(sl_key_choice(&keys[i], 0), sl_algorithm_name(0));
        if (strcmp(keys[i].path, "security.mode") == 0)
            ck_assert(strcmp(sl_key_choice(&keys[i], 0), "none") == 0 &&
                      sl_key_choice(&keys[i], 1) == NULL);
        if (strcmp(keys[i].path, "seed") == 0)
            ck_assert_ptr_null(sl_key_choice(&keys[i], 0));
    }
}
END_TEST

START_TEST(broken_text_is_refused_with_line_and_column) {
    refuse("{\n  \"rounds\": 3,\n  oops\n}", NULL, "test.json:3:", NULL);
    refuse("", NULL, "test.json:", NULL);
    refuse("{\"rounds\": 3, \"rounds\": 4, " TOPOLOGY "}", NULL, "test.json:1:", "duplicate");
    refuse("{\"rounds\": 3} trailing", NULL, "test.json:1:", NULL);
    refuse("{\"name\": \"\xff\xfe\"}", NULL, "test.json:1:", NULL);
    refuse("{\"name\": \"a\\u0000b\"}", NULL, "test.json:1:", NULL);
    static char deep[100000];
    memset(deep, '[', sizeof deep - 1);
    refuse(deep, NULL, "test.json:1:", "depth");
}
END_TEST

START_TEST(what_must_fit_together_is_checked) {
    refuse("{\"rounds\": 3}", NULL, "topology: missing", "\"family\": \"ring\"");
    refuse("{" TOPOLOGY "}", NULL, "rounds, epochs", "exactly one");
    refuse("{\"rounds\": 3, \"epochs\": 1, " TOPOLOGY "}", NULL, "rounds, epochs", "exactly one");
    refuse("{\"rounds\": 0, " TOPOLOGY "}", NULL, "rounds, epochs", "above 0");
    refuse(WITH("\"data\": \"mnist\""), NULL, "data.path: missing", NULL);
    refuse(WITH("\"model\": \"quadratic\""), NULL, "model.path: missing", NULL);
    refuse(WITH("\"model\": {\"name\": \"mlp\", \"hidden\": []}"), NULL, "model.hidden: is empty",
           NULL);
    refuse(WITH("\"optimizer\": {\"nesterov\": true}"), NULL, "optimizer.nesterov",
           "optimizer.momentum above 0");
    refuse(WITH("\"optimizer\": {\"schedule\": \"step\"}"), NULL,
           "optimizer.schedule.milestones: is empty", NULL);
    refuse("{\"rounds\": 3, \"topology\": {\"nodes\": 3, \"directed\": true, \"edges\": "
           "[[0,1],[1,2],[2,0],[0,2]], \"weights\": \"push-sum\"}}",
           NULL, "test.json", "stochastic");
}
END_TEST

START_TEST(a_missing_file_is_named) {
    refuse(WITH("\"data\": {\"name\": \"mnist\", \"path\": \"nowhere\"}"), NULL,
           "data.path: ", "/nowhere: No such file");
    refuse(WITH("\"model\": {\"name\": \"quadratic\", \"path\": \"none.json\"}"), NULL,
           "model.path: ", "/none.json: No such file");
    refuse("{\"rounds\": 3, \"topology\": \"none.json\"}", NULL,
           "topology: ", "/none.json: No such file");
    sl_experiment *e = NULL;
    sl_error error = {0};
    ck_assert_int_eq(sl_experiment_load(&e, in_folder("gone.json"), NULL, 0, &error), SL_EFILE);
    ck_assert_ptr_nonnull(strstr(error.text, "gone.json: No such file"));
    ck_assert_int_eq(sl_experiment_load(&e, folder, NULL, 0, &error), SL_EFILE);
    ck_assert_ptr_nonnull(strstr(error.text, "not a regular file"));
}
END_TEST

START_TEST(a_pipe_is_refused_and_not_waited_for) {
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    sl_experiment *e = NULL;
    sl_error error = {0};
    alarm(5);
    ck_assert_int_eq(sl_experiment_load(&e, in_folder("pipe"), NULL, 0, &error), SL_EFILE);
    ck_assert_ptr_nonnull(strstr(error.text, "not a regular file"));
}
END_TEST

START_TEST(a_folder_that_json_cannot_name_is_refused) {
    char odd[128];
    snprintf(odd, sizeof odd, "%s/caf\xe9", folder);
    ck_assert_int_eq(mkdir(odd, 0700), 0);
    sl_experiment *e = NULL;
    sl_error error = {0};
    int result = sl_experiment_parse(&e, WITH("\"data\": {\"name\": \"mnist\", \"path\": \".\"}"),
                                     "test.json", odd, NULL, 0, &error);
    ck_assert_int_eq(result, SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "not valid UTF-8"));
}
END_TEST

START_TEST(text_that_is_too_long_is_refused) {
    char json[4096], name[2048];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(json, sizeof json, WITH("\"name\": \"%s\""), name);
    refuse(json, NULL, "name: ", "not allowed");
    snprintf(json, sizeof json, WITH("\"data\": {\"path\": \"%s\"}"), name);
    refuse(json, NULL, "data.path: ", "not allowed");
    snprintf(json, sizeof json, "{\"rounds\": 1, \"topology\": \"%s\"}", name);
    refuse(json, NULL, "topology: ", "longer than");
    snprintf(json, sizeof json, WITH("\"%s\": 1"), name);
    refuse(json, NULL, "unknown key \"nnnn", NULL);
}
END_TEST

/* ---- overrides ---- */

START_TEST(an_override_is_read_as_json_or_else_as_text) {
    const char *const overrides[] = {"optimizer.learning_rate=0.25",
                                     "name=plain text",
                                     "data.partition.name=shards",
                                     "model.hidden=[8,9]",
                                     "optimizer.nesterov=true",
                                     "optimizer.momentum=0.5",
                                     "seed=11",
                                     "algorithm.variant=\"combine-while-adapt\""};
    sl_experiment *e = parse_set(SMALLEST, overrides, sizeof overrides / sizeof *overrides);
    ck_assert_double_eq(e->optimizer.learning_rate, 0.25);
    ck_assert_str_eq(e->name, "plain text");
    ck_assert_int_eq(e->data.partition, SL_PARTITION_SHARDS);
    ck_assert_uint_eq(e->model.hidden_count, 2);
    ck_assert_uint_eq(e->model.hidden[1], 9);
    ck_assert(e->optimizer.nesterov);
    ck_assert_uint_eq(e->seed, 11);
    ck_assert_int_eq(e->algorithm.variant, SL_VARIANT_COMBINE_WHILE_ADAPT);
    sl_experiment_close(&e);
}
END_TEST

START_TEST(an_override_goes_over_the_file_and_the_last_one_wins) {
    const char *const overrides[] = {"optimizer.momentum=0.3", "optimizer.momentum=0.4"};
    sl_experiment *e =
        parse_set(WITH("\"optimizer\": {\"momentum\": 0.9, \"weight_decay\": 0.5}"), overrides, 2);
    ck_assert_double_eq(e->optimizer.momentum, 0.4);
    ck_assert_double_eq(e->optimizer.weight_decay, 0.5);
    sl_experiment_close(&e);
}
END_TEST

START_TEST(an_override_reaches_into_a_group_given_as_text) {
    const char *const overrides[] = {"data=digits", "data.batch=5"};
    sl_experiment *e = with_override(WITH("\"model\": \"mlp\""), "model.hidden=[3]");
    ck_assert_uint_eq(e->model.hidden[0], 3);
    sl_experiment_close(&e);
    e = parse_set(SMALLEST, overrides, 2);
    ck_assert_uint_eq(e->data.batch, 5);
    sl_experiment_close(&e);
}
END_TEST

START_TEST(an_override_may_change_the_inline_topology) {
    sl_experiment *e = with_override(SMALLEST, "topology.nodes=16");
    ck_assert_uint_eq(sl_topology_nodes(e->topology), 16);
    sl_experiment_close(&e);
    e = with_override(SMALLEST, "topology={\"nodes\": 3, \"family\": \"complete\"}");
    ck_assert_uint_eq(sl_topology_nodes(e->topology), 3);
    sl_experiment_close(&e);
    refuse(SMALLEST, "topology.ndes=16", "ndes", "\"nodes\"");
    refuse("{\"rounds\": 1, \"topology\": \"ring.json\"}", "topology.nodes=16",
           "--set topology.nodes", "not an object");
}
END_TEST

START_TEST(a_path_in_an_override_starts_where_the_command_runs) {
    char other[128], here[PATH_MAX];
    snprintf(other, sizeof other, "%s/other", folder);
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(mkdir(other, 0700), 0);
    write_file("other/ring.json", "{\"nodes\": 9, \"family\": \"ring\"}");
    ck_assert_int_eq(mkdir(in_folder("other/2024"), 0700), 0);
    ck_assert_int_eq(chdir(other), 0);
    const char *const overrides[] = {"topology=ring.json", "data.path=2024", "data.name=mnist"};
    sl_experiment *e = parse_set(SMALLEST, overrides, 3);
    ck_assert_uint_eq(sl_topology_nodes(e->topology), 9);
    ck_assert_str_eq(e->data.path, in_folder("other/2024"));
    sl_experiment_close(&e);
    ck_assert_int_eq(chdir(here), 0);
}
END_TEST

START_TEST(a_path_in_the_file_starts_at_the_file) {
    ck_assert_int_eq(mkdir(in_folder("data"), 0700), 0);
    sl_experiment *e = parse(WITH("\"data\": {\"name\": \"mnist\", \"path\": \"data\"}"));
    ck_assert_str_eq(e->data.path, in_folder("data"));
    sl_experiment_close(&e);
}
END_TEST

START_TEST(a_malformed_override_is_refused) {
    refuse(SMALLEST, "optimizer.momentum", "--set optimizer.momentum", "key=value");
    refuse(SMALLEST, "=3", "--set =3", "key=value");
    refuse(SMALLEST, "", "--set", "key=value");
    refuse(SMALLEST, "optimizer=5", "optimizer: 5 is not allowed", "an object");
    refuse(SMALLEST, "rounds.x=5", "rounds.x", NULL);
    refuse(SMALLEST, "name=\xff", "--set name", "UTF-8");
    refuse(SMALLEST, "optimizer.momentum={\"a\": 1, \"a\": 2}", "optimizer.momentum", NULL);
    char longest[2000];
    memset(longest, 'k', sizeof longest - 1);
    memcpy(longest + sizeof longest - 3, "=1", 3);
    refuse(SMALLEST, longest, "--set kkk", NULL);
}
END_TEST

/* ---- hashes ---- */

/* One key changed: only its section's hash may differ, and it must, except for paths and what
 * agents need not share. */
START_TEST(a_hash_changes_exactly_with_the_keys_of_its_section) {
    write_file("some-file", "");
    sl_experiment *plain = parse(SMALLEST);
    for (size_t i = 0; i < sl_key_count; i++) {
        const sl_key *k = &sl_keys[i];
        sl_experiment *e = parse(SMALLEST);
        json_t *value = another_value(k);
        sl_error error = {0};
        if (strcmp(k->path, "epochs") == 0) {
            json_decref(value);
            value = json_real(2.5);
        }
        ck_assert_int_eq(sl_key_read(k, e, value, &error), 0);
        json_decref(value);
        bool shared = k->type != SL_KEY_PATH && strncmp(k->path, "record.", 7) != 0 &&
                      strncmp(k->path, "transport.", 10) != 0 && strcmp(k->path, "name") != 0 &&
                      strncmp(k->path, "device", 6) != 0; /* device_memory_gb too */
        const char *dot = strchr(k->path, '.');
        for (int s = 0; s < SL_SECTION_COUNT; s++) {
            const char *name = sl_section_name(s);
            bool mine = dot == NULL ? s == SL_SECTION_run
                                    : strncmp(k->path, name, (size_t)(dot - k->path)) == 0;
            bool same = sl_experiment_section_hash(e, s) == sl_experiment_section_hash(plain, s);
            ck_assert_msg(same == !(shared && mine), "%s, section %s: %s", k->path, name,
                          same ? "same" : "changed");
        }
        sl_experiment_close(&e);
    }
    sl_experiment_close(&plain);
}
END_TEST

START_TEST(the_spelling_of_a_number_does_not_change_the_hash) {
    sl_experiment *a = parse(WITH("\"optimizer\": {\"learning_rate\": 1, \"momentum\": 0.50}"));
    sl_experiment *b = parse(WITH("\"optimizer\": {\"learning_rate\": 10e-1, \"momentum\": 0.5}"));
    ck_assert_uint_eq(sl_experiment_section_hash(a, SL_SECTION_optimizer),
                      sl_experiment_section_hash(b, SL_SECTION_optimizer));
    sl_experiment_close(&a), sl_experiment_close(&b);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("experiment");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, make_folder, remove_folder);
    const TTest *with_folder[] = {the_smallest_experiment_gets_every_default,
                                  every_key_is_taken_and_printed_back,
                                  epochs_come_back_and_rounds_stay_out,
                                  numbers_print_as_they_were_written,
                                  a_number_that_needs_17_digits_comes_back_bit_for_bit,
                                  text_in_place_of_a_group_is_its_name,
                                  comments_are_allowed_anywhere,
                                  a_topology_may_be_a_file_beside_the_experiment,
                                  every_example_is_accepted,
                                  help_and_docs_name_every_key,
                                  an_unknown_key_gets_the_nearest_known_one,
                                  a_misspelt_group_gets_the_group,
                                  a_key_outside_of_its_group_gets_its_full_name,
                                  a_dotted_key_in_the_file_is_not_passed_over,
                                  a_wrong_type_is_refused_with_what_is_allowed,
                                  a_number_out_of_range_is_refused_with_the_range,
                                  numbers_that_are_none_are_refused,
                                  a_choice_that_is_none_gets_the_nearest,
                                  text_for_a_group_without_a_name_is_refused,
                                  a_key_without_effect_is_warned_of,
                                  a_resolved_experiment_has_no_warnings,
                                  what_uses_a_key_exists,
                                  keys_are_listed_with_what_they_allow,
                                  broken_text_is_refused_with_line_and_column,
                                  what_must_fit_together_is_checked,
                                  a_missing_file_is_named,
                                  a_pipe_is_refused_and_not_waited_for,
                                  text_that_is_too_long_is_refused,
                                  a_folder_that_json_cannot_name_is_refused,
                                  an_override_is_read_as_json_or_else_as_text,
                                  an_override_goes_over_the_file_and_the_last_one_wins,
                                  an_override_reaches_into_a_group_given_as_text,
                                  an_override_may_change_the_inline_topology,
                                  a_path_in_an_override_starts_where_the_command_runs,
                                  a_path_in_the_file_starts_at_the_file,
                                  a_malformed_override_is_refused,
                                  a_hash_changes_exactly_with_the_keys_of_its_section,
                                  the_spelling_of_a_number_does_not_change_the_hash};
    for (size_t i = 0; i < sizeof with_folder / sizeof *with_folder; i++)
        tcase_add_test(files, with_folder[i]);
    suite_add_tcase(suite, files);
    return run_suite(suite);
}
