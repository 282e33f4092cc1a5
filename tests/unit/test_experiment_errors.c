/* test_experiment_errors.c - the experiment file: what each mistake is told, and what is warned of.
 */
#include <sys/stat.h>

#include "config/keys.h"
#include "experiment_texts.h"

FIXTURES(make_base, remove_base);

START_TEST(an_unknown_key_gets_the_nearest_with_its_group) {
    refuse(WITH("'variants': []"), "variants", "starling compare");
    refuse(WITH("'optimizer': {'learning_rte': 1}"), "'optimizer.learning_rte'",
           "did you mean 'optimizer.learning_rate'");
    refuse(WITH("'data': {'partition': {'aplha': 1}}"), "'data.partition.aplha'",
           "did you mean 'data.partition.alpha'");
    refuse("{'rounds': 1, 'topolgy': {}}", "'topolgy'", "did you mean 'topology'");
    refuse_set("optimizer.momentun=0.5", "--set: unknown key 'optimizer.momentun'",
               "did you mean 'optimizer.momentum'");
    refuse(WITH("'network': {'lnks': 1}"), "'network.lnks'",
           "did you mean 'network.links'"); /* the table's last */
    refuse(WITH("'qqqqqqqqqqqqqqqqqqqqqq': 3"), "unknown key", "docs/experiment.md");

    refuse(WITH("'optimizer': {'lr': 0.5}"), "'optimizer.lr'",
           "did you mean 'optimizer.learning_rate'");
    refuse_set("optimizer.zzz=1", "'optimizer.zzz'", "docs/experiment.md");

    refuse(WITH("'optimiser': {'momentum': 0.5}"), "'optimiser'", "did you mean 'optimizer'");
    refuse(WITH("'data': {'partitions': 'iid'}"), "'data.partitions'",
           "did you mean 'data.partition'");

    refuse(WITH("'momentum': 0.5"), "'momentum'", "did you mean 'optimizer.momentum'");
    refuse(WITH("'optimizer': {'batch': 3}"), "'optimizer.batch'", "did you mean 'data.batch'");

    refuse(WITH("'compressor': 'top-k'"), "'compressor'", "did you mean 'algorithm.compressor'");

    refuse(WITH("'optimizer.momentum': 0.5"), "'optimizer.momentum'", "dot");
    refuse(WITH("'data': {'partition.alpha': 0.5}"), "'partition.alpha'", "dot");
}

START_TEST(a_wrong_type_is_refused_with_what_is_allowed) {
    refuse(WITH("'seed': '3'"), "seed: '3' is not allowed", "an integer from 0");
    refuse(WITH("'seed': 1.5"), "seed: 1.5", "an integer");
    refuse(WITH("'name': 3"), "name: 3", "text");
    refuse(WITH("'optimizer': {'nesterov': 1}"), "optimizer.nesterov: 1 ", "true or false");
    refuse(WITH("'optimizer': 5"), "optimizer: 5 is not allowed", "an object");
    refuse(WITH("'model': 5"), "model: 5 is not allowed", "the text of its name");
    refuse(WITH("'optimizer': {'learning_rate': null}"), "optimizer.learning_rate: null",
           "a number");
    refuse(WITH("'optimizer': {'learning_rate': true}"), "optimizer.learning_rate: true",
           "a number");
    refuse(WITH("'model': {'hidden': 5}"), "model.hidden: 5", "a list of integers");
    refuse(WITH("'model': {'hidden': [5, '6']}"), "model.hidden: [5,'6']", NULL);
    refuse(WITH("'data': {'path': []}"), "data.path: []", "a path");
    refuse("[1, 2]", "must be a JSON object", NULL);
    refuse("{'rounds': 1, 'topology': 5}", "topology: 5", "must be an object");
    refuse("{'rounds': 1, 'topology': ''}", "topology: ''", "or an object");
}

START_TEST(a_number_out_of_range_is_refused_with_the_range) {
    refuse(WITH("'optimizer': {'learning_rate': -0.1}"), "optimizer.learning_rate: -0.1",
           "from 0 to 1000000");
    refuse(WITH("'optimizer': {'momentum': 1}"), "optimizer.momentum: 1 ", "from 0 to 0.99999999");
    refuse(WITH("'data': {'batch': 0}"), "data.batch: 0", "from 1 to 1000000");
    refuse(WITH("'data': {'batch': 4294967328}"), "data.batch: 4294967328", NULL);
    refuse(WITH("'seed': -1"), "seed: -1", NULL);
    refuse("{'rounds': -5, " TOPOLOGY "}", "rounds: -5", NULL);
    refuse(WITH("'model': {'hidden': [0]}"), "model.hidden: [0]", NULL);
    refuse(WITH("'model': {'hidden': [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}"), "model.hidden", NULL);
    refuse(WITH("'record': {'parameters_at': [5, 5]}"), "record.parameters_at: [5,5]", "rising");
    refuse(WITH("'optimizer': {'schedule': {'milestones': [0.5, 0.2]}}"),
           "optimizer.schedule.milestones", "rising");
    refuse(WITH("'transport': {'chunk_bytes': 5000}"), "transport.chunk_bytes: 5000", "4096");
    refuse(WITH("'algorithm': {'name': 'all-reduce', 'all_reduce': 'torus-2d', 'group': 3}"),
           "algorithm.group: rows of 3", "a divisor of 4");
    refuse(WITH("'algorithm': {'name': 'local-sgd', 'all_reduce': 'hierarchical', 'group': 5}"),
           "algorithm.group: 5, but there are 4 nodes", "1..4");
    refuse(WITH("'network': {'speeds': [1, 2]}"), "network.speeds: has 2 speeds", "4 nodes");
    refuse(WITH("'network': {'speeds': [1, 2, 0, 1]}"), "network.speeds", "1e-06");
    refuse(WITH("'network': {'links': [[0, 1]]}"), "network.links[0]: has 2 numbers",
           "[i, j, bandwidth_mbit]");
    refuse(WITH("'network': {'links': [[0, 1, 5], [2, 4, 5]]}"),
           "network.links[1]: 2 and 4 are not two ranks", "4 nodes");
    refuse(WITH("'network': {'links': [[0, 1, 5], [1, 1, 5]]}"),
           "network.links[1]: 1 and 1 are not two ranks", "4 nodes");
    refuse(WITH("'network': {'links': [[0, 1, 5], [1, 0, 5]]}"),
           "network.links[1]: the pair 1, 0 has a link in row 0", "give it once");
    refuse(WITH("'transport': {'timeout_s': 0}"), "transport.timeout_s: 0", "from 0.5");
}

START_TEST(numbers_that_are_none_are_refused) {
    refuse(WITH("'optimizer': {'learning_rate': 1e999}"), "test.json:1:", NULL);
    refuse(WITH("'optimizer': {'learning_rate': NaN}"), "test.json:1:", NULL);
    refuse(WITH("'seed': 99999999999999999999999"), "test.json:1:", NULL);
    refuse_set("optimizer.learning_rate=1e999", "optimizer.learning_rate: '1e999'", "a number");
    refuse_set("optimizer.learning_rate=NaN", "optimizer.learning_rate: 'NaN'", "a number");
    refuse_set("optimizer.learning_rate=-inf", "optimizer.learning_rate: '-inf'", "a number");
}

START_TEST(a_choice_that_is_none_gets_the_nearest) {
    refuse(WITH("'model': 'mlpp'"), "model.name: 'mlpp'", "did you mean 'mlp'");
    refuse(WITH("'data': 'minst'"), "data.name: 'minst'", "did you mean 'mnist'");
    refuse(WITH("'algorithm': {'variant': 'combine-while-adopt'}"), "algorithm.variant",
           "did you mean 'combine-while-adapt'");
    refuse(WITH("'algorithm': 'dpsgd'"), "algorithm.name: 'dpsgd'", "'d-psgd'");
    refuse(WITH("'algorithm': {'compressor': 'topk'}"), "algorithm.compressor.name: 'topk'",
           "did you mean 'top-k'?");
    refuse(WITH("'optimizer': 'adam'"), "optimizer.name: 'adam'", "'adamw'?");
}

START_TEST(text_for_a_group_without_a_name_is_refused) {
    refuse(WITH("'record': 'often'"), "record: 'often' is not allowed", "every");
    refuse(WITH("'transport': 'tcp'"), "transport: 'tcp' is not allowed", "provider");
    refuse_set("checkpoint=often", "checkpoint: 'often' is not allowed", "every, keep");
    refuse_set("record=5", "record: 5 is not allowed", "every");
    refuse(WITH("'security': 'none'"), "security: 'none'", "trusted_network");
    refuse(WITH("'security': {'mode': 'key'}"), "security.key: missing", "starling keys make");
    refuse(WITH("'security': {'mode': 'none', 'key': 'run.key'}"),
           "security.key: ", "leave one of them out");
    refuse(WITH("'security': {'mode': 'none', 'seal': 'on'}"), "security.seal: 'on' needs a key",
           "leave one of them out");
    refuse(WITH("'transport': {'provider': 'libfabric-tcp'}, 'security': {'key': 'run.key'}"),
           "transport.provider: 'libfabric-tcp'", "security.trusted_network true");
    refuse(WITH("'transport': {'provider': 'net'}, 'security': {'key': 'run.key'}"),
           "transport.provider: 'net'", "security.trusted_network true");
    refuse(WITH("'security': {'seal': 'none'}"), "security.seal: 'none'",
           "one of 'auto', 'on', 'off', 'handshake-only'");
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
}

START_TEST(a_key_without_effect_is_warned_of) {
    expect_warning(SMALLEST, NULL, NULL);
    expect_warning(WITH("'algorithm': {'compressor': {'fraction': 0.1}}"), NULL,
                   "algorithm.compressor.fraction has no effect");
    expect_warning(WITH("'model': {'name': 'softmax', 'hidden': [3]}"), NULL,
                   "model.hidden has no effect with model.name softmax; only mlp uses it");
    expect_warning(WITH("'optimizer': {'schedule': {'name': 'cosine', 'milestones': [0.5]}}"), NULL,
                   "optimizer.schedule.milestones has no effect");
    expect_warning(SMALLEST, "algorithm.period=5",
                   "algorithm.period has no effect with algorithm.name d-psgd; only noloco, "
                   "local-sgd, slowmo, diloco and easgd use it");
    expect_warning(SMALLEST, "algorithm.all_reduce=tree",
                   "algorithm.all_reduce has no effect with algorithm.name d-psgd; only "
                   "gossip-pga, all-reduce, local-sgd, gmc, dgc, powersgd, fetch-sgd, slowmo and "
                   "diloco use it");
    expect_warning(WITH("'algorithm': 'all-reduce'"), "algorithm.group=2",
                   "algorithm.group has no effect with algorithm.all_reduce ring; only "
                   "hierarchical, torus-2d and two-rings use it");
    expect_warning(SMALLEST, "algorithm.compressor.k=3",
                   "algorithm.compressor.k has no effect with algorithm.compressor.name identity; "
                   "only top-k, random-k, stc, sbc, pos-neg, magnitude-dropping and shared-mask "
                   "use it");
    expect_warning(WITH("'algorithm': 'local-sgd'"), "algorithm.period=5", NULL);
    expect_warning(WITH("'data': {'partition': {'alpha': 3}}"), NULL, "data.partition.alpha");
    put(at("q.json"), "{\"A\": [], \"b\": [], \"x0\": []}");
    expect_warning(WITH("'model': {'name': 'quadratic', 'path': 'q.json'}, 'data': {'partition': "
                        "{'alpha': 3}}"),
                   NULL, "data.partition.alpha has no effect with model.name quadratic");
}

START_TEST(a_resolved_experiment_has_no_warnings) {
    sl_experiment *e = parse_set(SMALLEST, &(const char *){"algorithm.period=5"}, 1), *again;
    again = parse(close_behind(sl_experiment_json(e), free));
    ck_assert(e->warnings[0] != '\0' && again->warnings[0] == '\0');
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
        ck_assert_int_eq(
            keys.items[i]->type == SL_KEY_CHOICE || keys.items[i]->type == SL_KEY_CHOICE_OR_REALS,
            keys.items[i]->choices != NULL && keys.items[i]->type != SL_KEY_TEXT &&
                keys.items[i]->type != SL_KEY_PARAMETER && keys.items[i]->type != SL_KEY_COUNT);
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
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        refuse(printed(WITH("'security': {'mode': '%s', 'ca': '/ca.crt'%s}"), others[i],
                       i > 0 ? ", 'key': 'run.key'" : ""),
               "security.ca: /ca.crt is given", printed("security.mode is \"%s\"", others[i]));
    refuse(WITH("'security': {'mode': 'certificates', 'key': 'node', 'revoked': '/list'}"),
           "security.revoked: /list is given, and security.ca is not", "beside the CA");
    refuse(WITH("'security': {'mode': 'certificates', 'ca': '/ca.crt'}"), "security.key: missing",
           "keys make --node");
    refuse(WITH("'security': {'ca': 3}"), "security.ca: 3", "a path");
}

START_TEST(broken_text_is_refused_with_line_and_column) {
    refuse("{\n  'rounds': 3,\n  oops\n}", "test.json:3:", NULL);
    refuse("", "test.json:", NULL);
    refuse("{'rounds': 3, 'rounds': 4, " TOPOLOGY "}", "test.json:1:", "duplicate");
    refuse("{'rounds': 3} trailing", "test.json:1:", NULL);
    refuse("{'name': '\xff\xfe'}", "test.json:1:", NULL);
    refuse("{'name': 'a\\u0000b'}", "test.json:1:", NULL);
    static char deep[100000];
    memset(deep, '[', sizeof deep - 1);
    refuse(deep, "test.json:1:", "depth");
}

START_TEST(what_must_fit_together_is_checked) {
    refuse("{'rounds': 3}", "topology: missing", "'family': 'ring'");
    refuse("{" TOPOLOGY "}", "rounds, epochs", "both are 0");
    refuse("{'rounds': 3, 'epochs': 1.5, " TOPOLOGY "}", "rounds is 3", "epochs is 1.5");
    refuse("{'rounds': 0, " TOPOLOGY "}", "rounds, epochs", "both are 0");
    refuse(WITH("'data': 'mnist'"), "data.path: missing", NULL);
    refuse(WITH("'model': 'quadratic'"), "model.path: missing", NULL);
    refuse(WITH("'model': {'name': 'mlp', 'hidden': []}"), "model.hidden: is empty", NULL);
    refuse(WITH("'optimizer': {'nesterov': true}"), "optimizer.nesterov",
           "optimizer.momentum above 0");
    refuse(WITH("'optimizer': {'schedule': 'step'}"), "optimizer.schedule.milestones: is empty",
           NULL);
    refuse("{'rounds': 3, 'topology': {'nodes': 3, 'directed': true, 'edges': "
           "[[0,1],[1,2],[2,0],[0,2]], 'weights': 'push-sum'}}",
           "test.json", "stochastic");
}

START_TEST(a_missing_file_is_named) {
    refuse(WITH("'data': {'name': 'mnist', 'path': 'nowhere'}"),
           "data.path: ", "/nowhere: No such file");
    refuse(WITH("'model': {'name': 'quadratic', 'path': 'none.json'}"),
           "model.path: ", "/none.json: No such file");
    refuse("{'rounds': 3, 'topology': 'none.json'}", "topology: ", "/none.json: No such file");
    sl_experiment *e = NULL;
    EXPECT_ERROR(sl_experiment_load(&e, at("gone.json"), NULL, 0, &error), SL_EFILE,
                 "gone.json: No such file");
    EXPECT_ERROR(sl_experiment_load(&e, base, NULL, 0, &error), SL_EFILE, "not a regular file");
}

START_TEST(a_folder_that_json_cannot_name_is_refused) {
    const char *odd = at("caf\xe9");
    ck_assert_int_eq(mkdir(odd, 0700), 0);
    sl_experiment *e = NULL;
    int result = sl_experiment_parse(&e, quoted(WITH("'data': {'name': 'mnist', 'path': '.'}")),
                                     "test.json", odd, NULL, 0, &error);
    EXPECT_ERROR(result, SL_EINVAL, "not valid UTF-8");
}

START_TEST(text_that_is_too_long_is_refused) {
    char name[2048];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    refuse(printed(WITH("'name': '%s'"), name), "name: ", "not allowed");
    refuse(printed(WITH("'data': {'path': '%s'}"), name), "data.path: ", "not allowed");
    refuse(printed("{'rounds': 1, 'topology': '%s'}", name), "topology: ", "longer than");
    refuse(printed(WITH("'%s': 1"), name), "unknown key 'nnnn", NULL);
}
