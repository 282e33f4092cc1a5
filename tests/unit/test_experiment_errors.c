/* test_experiment_errors.c - the experiment file: what each mistake is told, and what is warned of.
 */
#include <sys/stat.h>

#include "config/keys.h"
#include "experiment_texts.h"

FIXTURES(make_folder, remove_folder);

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
    refuse(WITH("\"network\": {\"lnks\": 1}"), NULL, "\"network.lnks\"",
           "did you mean \"network.links\""); /* the table's last */
    refuse(WITH("\"qqqqqqqqqqqqqqqqqqqqqq\": 3"), NULL, "unknown key", "docs/experiment.md");
}

START_TEST(a_misspelt_group_gets_the_group) {
    refuse(WITH("\"optimiser\": {\"momentum\": 0.5}"), NULL, "\"optimiser\"",
           "did you mean \"optimizer\"");
    refuse(WITH("\"algoritm\": \"d-psgd\""), NULL, "\"algoritm\"", "did you mean \"algorithm\"");
    refuse(WITH("\"data\": {\"partitions\": \"iid\"}"), NULL, "\"data.partitions\"",
           "did you mean \"data.partition\"");
}

START_TEST(a_key_outside_of_its_group_gets_its_full_name) {
    refuse(WITH("\"momentum\": 0.5"), NULL, "\"momentum\"", "did you mean \"optimizer.momentum\"");
    refuse(WITH("\"optimizer\": {\"batch\": 3}"), NULL, "\"optimizer.batch\"",
           "did you mean \"data.batch\"");
    refuse(SMALLEST, "learning_rate=0.5", "\"learning_rate\"",
           "did you mean \"optimizer.learning_rate\"");
}

START_TEST(a_group_outside_of_its_group_gets_its_full_name) {
    refuse(WITH("\"compressor\": \"top-k\""), NULL, "\"compressor\"",
           "did you mean \"algorithm.compressor\"");
    refuse(SMALLEST, "partition=iid", "\"partition\"", "did you mean \"data.partition\"");
}

START_TEST(a_dotted_key_in_the_file_is_not_passed_over) {
    refuse(WITH("\"optimizer.momentum\": 0.5"), NULL, "\"optimizer.momentum\"", "dot");
    refuse(WITH("\"data\": {\"partition.alpha\": 0.5}"), NULL, "\"partition.alpha\"", "dot");
}

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
    refuse("{\"rounds\": 1, \"topology\": 5}", NULL, "topology: 5", "must be an object");
    refuse("{\"rounds\": 1, \"topology\": \"\"}", NULL, "topology: \"\"", "or an object");
}

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
    refuse(WITH("\"algorithm\": {\"name\": \"all-reduce\", \"all_reduce\": \"torus-2d\", "
                "\"group\": 3}"),
           NULL, "algorithm.group: rows of 3", "a divisor of 4");
    refuse(WITH("\"algorithm\": {\"name\": \"local-sgd\", \"all_reduce\": \"hierarchical\", "
                "\"group\": 5}"),
           NULL, "algorithm.group: 5, but there are 4 nodes", "1..4");
    refuse(WITH("\"network\": {\"speeds\": [1, 2]}"), NULL, "network.speeds: has 2 speeds",
           "4 nodes");
    refuse(WITH("\"network\": {\"speeds\": [1, 2, 0, 1]}"), NULL, "network.speeds", "1e-06");
    refuse(WITH("\"network\": {\"links\": [[0, 1]]}"), NULL, "network.links[0]: has 2 numbers",
           "[i, j, bandwidth_mbit]");
    refuse(WITH("\"network\": {\"links\": [[0, 1, 5], [2, 4, 5]]}"), NULL,
           "network.links[1]: 2 and 4 are not two ranks", "4 nodes");
    refuse(WITH("\"network\": {\"links\": [[0, 1, 5], [1, 1, 5]]}"), NULL,
           "network.links[1]: 1 and 1 are not two ranks", "4 nodes");
    refuse(WITH("\"network\": {\"links\": [[0, 1, 5], [1, 0, 5]]}"), NULL,
           "network.links[1]: the pair 1, 0 has a link in row 0", "give it once");
    refuse(WITH("\"transport\": {\"timeout_s\": 0}"), NULL, "transport.timeout_s: 0", "from 0.5");
}

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

START_TEST(a_choice_that_is_none_gets_the_nearest) {
    refuse(WITH("\"model\": \"mlpp\""), NULL, "model.name: \"mlpp\"", "did you mean \"mlp\"");
    refuse(WITH("\"data\": \"minst\""), NULL, "data.name: \"minst\"", "did you mean \"mnist\"");
    refuse(WITH("\"algorithm\": {\"variant\": \"combine-while-adopt\"}"), NULL, "algorithm.variant",
           "did you mean \"combine-while-adapt\"");
    refuse(WITH("\"algorithm\": \"dpsgd\""), NULL, "algorithm.name: \"dpsgd\"", "\"d-psgd\"");
    refuse(WITH("\"algorithm\": {\"compressor\": \"topk\"}"), NULL,
           "algorithm.compressor.name: \"topk\"", "did you mean \"top-k\"?");
    refuse(WITH("\"optimizer\": \"adam\""), NULL, "optimizer.name: \"adam\"", "\"adamw\"?");
}

START_TEST(text_for_a_group_without_a_name_is_refused) {
    refuse(WITH("\"record\": \"often\""), NULL, "record: \"often\" is not allowed", "every");
    refuse(WITH("\"transport\": \"tcp\""), NULL, "transport: \"tcp\" is not allowed", "provider");
    refuse(SMALLEST, "checkpoint=often", "checkpoint: \"often\" is not allowed", "every, keep");
    refuse(SMALLEST, "record=5", "record: 5 is not allowed", "every");
    refuse(WITH("\"security\": \"none\""), NULL, "security: \"none\"", "trusted_network");
    refuse(WITH("\"security\": {\"mode\": \"key\"}"), NULL, "security.key: missing",
           "starling keys make");
    refuse(WITH("\"security\": {\"mode\": \"none\", \"key\": \"run.key\"}"), NULL,
           "security.key: ", "leave one of them out");
    refuse(WITH("\"security\": {\"mode\": \"none\", \"seal\": \"on\"}"), NULL,
           "security.seal: \"on\" needs a key", "leave one of them out");
    refuse(WITH("\"transport\": {\"provider\": \"libfabric-tcp\"}, \"security\": {\"key\": "
                "\"run.key\"}"),
           NULL, "transport.provider: \"libfabric-tcp\"", "security.trusted_network true");
    refuse(WITH("\"transport\": {\"provider\": \"net\"}, \"security\": {\"key\": "
                "\"run.key\"}"),
           NULL, "transport.provider: \"net\"", "security.trusted_network true");
    refuse(WITH("\"security\": {\"seal\": \"none\"}"), NULL, "security.seal: \"none\"",
           "one of \"auto\", \"on\", \"off\", \"handshake-only\"");
}

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
                   "algorithm.period has no effect with algorithm.name d-psgd; only noloco "
                   "local-sgd slowmo diloco easgd use it");
    expect_warning(SMALLEST, "algorithm.server=0",
                   "algorithm.server has no effect with algorithm.name d-psgd; only "
                   "parameter-server local-sgd ecq-sgd sign-vote ef21 lag-3pc clag lag-wk laq "
                   "diana fedavg easgd one-bit-adam double-squeeze cd-sgd use it");
    expect_warning(
        SMALLEST, "algorithm.all_reduce=tree",
        "algorithm.all_reduce has no effect with algorithm.name d-psgd; only "
        "gossip-pga all-reduce local-sgd gmc dgc powersgd fetch-sgd slowmo diloco use it");
    expect_warning(WITH("\"algorithm\": \"all-reduce\""), "algorithm.group=2",
                   "algorithm.group has no effect with algorithm.all_reduce ring; only "
                   "hierarchical torus-2d two-rings use it");
    expect_warning(SMALLEST, "algorithm.compressor.k=3",
                   "algorithm.compressor.k has no effect with algorithm.compressor.name identity; "
                   "only top-k random-k stc sbc pos-neg magnitude-dropping shared-mask use it");
    expect_warning(WITH("\"algorithm\": \"local-sgd\""), "algorithm.period=5", NULL);
    expect_warning(WITH("\"data\": {\"partition\": {\"alpha\": 3}}"), NULL, "data.partition.alpha");
    write_file("q.json", "{\"A\": [], \"b\": [], \"x0\": []}");
    expect_warning(WITH("\"model\": {\"name\": \"quadratic\", \"path\": \"q.json\"}, "
                        "\"data\": {\"partition\": {\"alpha\": 3}}"),
                   NULL, "data.partition.alpha has no effect with model.name quadratic");
}

START_TEST(a_resolved_experiment_has_no_warnings) {
    sl_experiment *e = parse_set(SMALLEST, &(const char *){"algorithm.period=5"}, 1), *again;
    char *text = sl_experiment_json(e);
    again = parse(text);
    ck_assert(e->warnings[0] != '\0' && again->warnings[0] == '\0');
    free(text);
    sl_experiment_close(&e), sl_experiment_close(&again);
}

/* Names in the table of keys are names that exist. */
START_TEST(what_uses_a_key_exists) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++) {
        if (keys.items[i]->user == NULL)
            continue;
        const sl_key *user = sl_key_find(keys.items[i]->user);
        ck_assert_ptr_nonnull(user);
        char users[256], *rest = users;
        snprintf(users, sizeof users, "%s",
                 keys.items[i]->users + (keys.items[i]->users[0] == '!'));
        for (char *name; (name = strsep(&rest, " ")) != NULL;) {
            size_t n = 0;
            while (sl_key_choice(user, n) != NULL && strcmp(sl_key_choice(user, n), name) != 0)
                n++;
            ck_assert_msg(sl_key_choice(user, n) != NULL, "%s: no %s", keys.items[i]->path, name);
        }
    }
}

START_TEST(keys_are_listed_with_what_they_allow) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    char allowed[SL_ALLOWED_MAX];
    ck_assert_uint_gt(keys.count, 60);
    ck_assert_str_eq(keys.items[0]->path, "name");
    for (size_t i = 0; i < keys.count; i++) {
        sl_key_allowed(keys.items[i], allowed, sizeof allowed);
        ck_assert_msg(strlen(allowed) + 1 < sizeof allowed, "%s: cut", keys.items[i]->path);
        ck_assert(allowed[0] != '\0' && keys.items[i]->help[0] != '\0' &&
                  keys.items[i]->fallback[0] != '\0');
        ck_assert_int_eq(keys.items[i]->type == SL_KEY_CHOICE ||
                             keys.items[i]->type == SL_KEY_CHOICE_OR_REALS,
                         keys.items[i]->choices != NULL && keys.items[i]->type != SL_KEY_TEXT &&
                             keys.items[i]->type != SL_KEY_PARAMETER);
        if (strcmp(keys.items[i]->path, "algorithm.name") == 0)
            ck_assert_str_eq(sl_key_choice(keys.items[i], 0), sl_algorithm_name(0));
        if (strcmp(keys.items[i]->path, "security.mode") == 0)
            ck_assert(strcmp(sl_key_choice(keys.items[i], 3), "certificates") == 0 &&
                      sl_key_choice(keys.items[i], 4) == NULL);
        if (strcmp(keys.items[i]->path, "seed") == 0)
            ck_assert_ptr_null(sl_key_choice(keys.items[i], 0));
    }
}

START_TEST(a_ca_stands_beside_certificates_only) {
    static const char *const others[] = {"none", "auto", "key"};
    char text[256], words[64];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(text, sizeof text, WITH("\"security\": {\"mode\": \"%s\", \"ca\": \"/ca.crt\"%s}"),
                 others[i], i > 0 ? ", \"key\": \"run.key\"" : "");
        snprintf(words, sizeof words, "security.mode is \"%s\"", others[i]);
        refuse(text, NULL, "security.ca: /ca.crt is given", words);
    }
    refuse(WITH("\"security\": {\"mode\": \"certificates\", \"key\": \"node\", \"revoked\": "
                "\"/list\"}"),
           NULL, "security.revoked: /list is given, and security.ca is not", "beside the CA");
    refuse(WITH("\"security\": {\"mode\": \"certificates\", \"ca\": \"/ca.crt\"}"), NULL,
           "security.key: missing", "keys make --node");
    refuse(WITH("\"security\": {\"ca\": 3}"), NULL, "security.ca: 3", "a path");
}

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

START_TEST(what_must_fit_together_is_checked) {
    refuse("{\"rounds\": 3}", NULL, "topology: missing", "\"family\": \"ring\"");
    refuse("{" TOPOLOGY "}", NULL, "rounds, epochs", "both are 0");
    refuse("{\"rounds\": 3, \"epochs\": 1.5, " TOPOLOGY "}", NULL, "rounds is 3", "epochs is 1.5");
    refuse("{\"rounds\": 0, " TOPOLOGY "}", NULL, "rounds, epochs", "both are 0");
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

int main(void) {
    return run_tests("experiment_errors");
}
