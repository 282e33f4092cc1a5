/* test_experiment.c - the experiment file: what is accepted, what it becomes, overrides, hashes. */
#include <glob.h>
#include <limits.h>
#include <sys/stat.h>

#include <jansson.h>

#include "config/keys.h"
#include "config/tree.h"
#include "experiment_texts.h"
#include "starling/text.h"

/* ---- what is accepted ---- */

FIXTURES(make_base, remove_base);

/* A value that the key accepts and, where it has one, that is not its default. */
static json_t *another_value(const sl_key *k) {
    switch (k->type) {
    case SL_KEY_TEXT:
        return json_string(strcmp(k->path, "algorithm.name") == 0 ? "choco-sgd"
                           : strcmp(k->path, "device") == 0       ? "auto"
                                                                  : "another");
    case SL_KEY_PATH:
        return json_string(at("some-file"));
    case SL_KEY_CHOICE:
    case SL_KEY_CHOICE_OR_REALS:
        return json_string(
            k->choices[strcmp(k->path, "model.name") == 0 || strcmp(k->path, "optimizer.name") == 0
                           ? 2
                       : strcmp(k->path, "algorithm.variant") == 0 ||
                               strcmp(k->path, "security.mode") == 0 ||
                               strcmp(k->path, "algorithm.compressor.name") == 0
                           ? 3
                       : k->choices[1] == NULL || strcmp(k->path, "membership.restart") == 0
                           ? 0 /* others need on_loss "continue" */
                           : 1]);
    case SL_KEY_BOOL:
        return json_boolean(strcmp(k->fallback, "true") != 0);
    case SL_KEY_SWITCH:
        return json_true();
    case SL_KEY_SERVER:
        return json_string("sharded");
    case SL_KEY_U32:
    case SL_KEY_U64:
    case SL_KEY_U64_BY_RANK:
    case SL_KEY_COUNT:
        if (k->max < 9)
            return json_integer((json_int_t)k->max);
        return json_integer(k->min > 9 ? 8192 : 9);
    case SL_KEY_REAL:
    case SL_KEY_REAL_OR_SETS:
    case SL_KEY_PARAMETER:
        return json_real(strncmp(k->path, "transport.", 10) == 0 ? 7.25
                         : strcmp(k->path, "epochs") == 0        ? 0.0
                         : k->min > 0.3                          ? k->max
                                                                 : 0.3);
    case SL_KEY_REALS:
        return json_pack("[fff]", 0.1, 1.0 / 3, 0.75);
    case SL_KEY_FACTORS: /* one for each node of everything_different */
        return json_pack("[fffff]", 1.0, 0.5, fmin(k->max, 2.0), 1.0 / 3, 1.0);
    case SL_KEY_ROWS:
        if (strcmp(k->path, "network.links") == 0)
            return json_pack("[[fff][fff]]", 0.0, 1.0, 2.5, 3.0, 2.0, 1e9);
        if (strcmp(k->path, "network.compute_ms") == 0) /* a time for each node */
            return json_pack("[[fffff]]", 1.0, 0.5, 2.0, 1.0 / 3, 1.0);
        if (strcmp(k->path, "algorithm.compressor.schedule") == 0)
            return json_pack("[[ff][ff]]", 2.0, 1.0 / 3, 5.0, 1.0);
        return json_pack("[[ff][ff][ff]]", 1.0, 0.5, -1.0 / 3, 0.0, 2.0, 1.0);
    case SL_KEY_U32S:
        return k->length_max < 3 ? json_pack("[ii]", 30, 20) : json_pack("[iii]", 30, 20, 30);
    case SL_KEY_U64S:
        return json_pack("[iii]", 0, 1, 1000000);
    }
    return NULL;
}

static json_t *everything_different(void) {
    json_t *root = json_pack("{s{si ss}}", "topology", "nodes", 5, "family", "path");
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++)
        ck_assert_int_eq(sl_tree_set(root, keys.items[i]->path, another_value(keys.items[i])), 0);
    /* any file would be loaded; tests/parity/test_library.py has some that can be */
    ck_assert_int_eq(json_object_del(json_object_get(root, "algorithm"), "library"), 0);
    /* nodes at their own times have no checkpoints */
    ck_assert_int_eq(sl_tree_set(root, "algorithm.staleness", json_integer(0)), 0);
    /* messages that follow links have replicas of their own */
    ck_assert_int_eq(sl_tree_set(root, "algorithm.budget.round_ms", json_real(0)), 0);
    /* a warm-up sizes messages, too */
    ck_assert_int_eq(sl_tree_set(root, "algorithm.compressor.schedule", json_array()), 0);
    /* its algorithm needs the whole gradient */
    ck_assert_int_eq(sl_tree_set(root, "transport.overlap", json_string("none")), 0);
    /* nobody joins a run that ends with a loss */
    ck_assert_int_eq(sl_tree_set(root, "membership.joiners", json_integer(0)), 0);
    return root;
}

START_TEST(every_key_is_taken_and_printed_back) {
    put(at("some-file"), "");
    json_t *given = everything_different();
    char *text = json_dumps(given, JSON_REAL_PRECISION(17));
    sl_experiment *e = parse(text);
    const char *printed = json_of(text);
    json_t *back = json_loads(printed, 0, NULL);
    json_object_set_new(given, "topology", json_incref(json_object_get(back, "topology")));
    json_object_del(given, "epochs"); /* 0: not given */
    char *want = json_dumps(given, JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    char *got = json_dumps(back, JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    ck_assert_str_eq(got, want);

    sl_experiment *again = parse(printed);
    ck_assert_str_eq(json_of(printed), printed);
    for (int s = 0; s < SL_SECTION_COUNT; s++)
        ck_assert_uint_eq(sl_experiment_section_hash(e, s), sl_experiment_section_hash(again, s));
    ck_assert_uint_eq(sl_topology_hash(e->topology), sl_topology_hash(again->topology));
    free(text), free(want), free(got);
    json_decref(given), json_decref(back);
}

START_TEST(a_number_by_rank_comes_back) {
    const char *text = json_of(WITH("'algorithm': {'name': 'fedavg', 'local_steps': [1, 3, 2, 3], "
                                    "'clients': [[0, 1], [3]], 'client_weights': [1, 0, 2.5, 1]}"));
    json_t *back = json_loads(text, 0, NULL), *fedavg = json_object_get(back, "algorithm");
    json_t *want = json_pack("{s[iiii] s[[ii][i]] s[ffff]}", "local_steps", 1, 3, 2, 3, "clients",
                             0, 1, 3, "client_weights", 1.0, 0.0, 2.5, 1.0);
    const char *key;
    json_t *value;
    json_object_foreach(want, key, value) {
        ck_assert_msg(json_equal(json_object_get(fedavg, key), value), "%s in %s", key, text);
    }
    json_decref(want), json_decref(back);
}

START_TEST(comments_are_allowed_anywhere) {
    const char *json =
        "{'comment': 'why', 'rounds': 10, 'topology': {'comment': [1], 'nodes': 4, 'family': "
        "'ring'},'data': {'comment': {'deep': null}, 'partition': {'comment': 3}}}";
    ck_assert_str_eq(json_of(json), json_of(SMALLEST));
}

/* Run from the root of the sources. */
START_TEST(every_example_is_accepted) {
    glob_t found;
    ck_assert_int_eq(glob("examples/*.json", 0, NULL, &found), 0);
    int count = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i], *const here = "data.path=.";
        const bool holds_several = strstr(path, "compare") || strstr(path, "survey");
        if (strstr(path, "-problem") != NULL || holds_several) /* tests/parity/test_compare.py */
            continue;
        sl_experiment *e = NULL;
        bool has_data_elsewhere =
            strstr(path, "mnist") || strstr(path, "cifar10") || strstr(path, "shakespeare");
        const sl_session_reading peers = {.nodes = 4};
        int result = strstr(path, "session") != NULL
                         ? sl_experiment_load_session(&e, path, &peers, &error)
                         : sl_experiment_load(&e, path, &here, has_data_elsewhere, &error);
        ck_assert_msg(result == 0, "%s", error.text);
        ck_assert_msg(has_data_elsewhere || e->warnings[0] == '\0', "%s: %s", path, e->warnings);
        sl_experiment_close(&e);
        count++;
    }
    ck_assert_int_ge(count, 7);
    globfree(&found);
}

/* The row of docs/experiment.md. */
static void doc_row(const sl_key *k, char *out, size_t bytes) {
    char allowed[SL_ALLOWED_MAX], help[SL_HELP_MAX];
    sl_key_allowed(k, allowed, sizeof allowed);
    sl_key_help(k, help, sizeof help);
    snprintf(out, bytes, "| `%s` | %s | `%s` | %s |\n", k->path, allowed, k->fallback, help);
}

START_TEST(help_and_docs_have_every_key_as_its_rows_say) {
    char *help = sl_experiment_keys_help(), *docs = NULL;
    sl_key_list keys;
    sl_experiment_keys(&keys);
    ck_assert_int_eq(sl_text_read(&docs, "docs/experiment.md", 1 << 20, NULL), 0);
    ck_assert(strstr(help, "topology") && strstr(docs, "`topology`"));
    for (size_t i = 0; i < keys.count; i++) {
        char row[SL_ALLOWED_MAX + SL_HELP_MAX + 256];
        doc_row(keys.items[i], row, sizeof row);
        ck_assert_msg(strstr(help, keys.items[i]->path) != NULL, "%s is not in the help",
                      keys.items[i]->path);
        ck_assert_msg(strstr(docs, row) != NULL, "docs/experiment.md lacks the row\n%s", row);
    }
    free(help), free(docs);
}

/* What several algorithms say of a key differs in its meaning only. */
static void check_same(const sl_key *a, const sl_key *b) {
    ck_assert_int_eq(a->type, b->type);
    ck_assert_int_eq(a->owner, b->owner);
    ck_assert_uint_eq(a->offset, b->offset);
    ck_assert_uint_eq(a->count_offset, b->count_offset);
    ck_assert(a->min == b->min && a->max == b->max && a->length_max == b->length_max);
    ck_assert_ptr_eq(a->choices, b->choices);
    ck_assert_str_eq(a->fallback, b->fallback);
    ck_assert(a->is_later == b->is_later);
}

/* Returns how many rows there are. */
static size_t check_rows_of(const char *prefix, const sl_algorithm *a, sl_compressor_kind kind) {
    const sl_key *k;
    size_t i = 0;
    for (; (k = a != NULL ? sl_algorithm_key(a, i) : sl_compressor_key(kind, i)) != NULL; i++) {
        ck_assert(strncmp(k->path, prefix, strlen(prefix)) == 0);
        ck_assert_msg(sl_key_find(k->path) != NULL, "%s is not in the list", k->path);
        check_same(k, sl_key_find(k->path));
        ck_assert(a != NULL ? sl_algorithm_reads(a, kind, k->path + strlen(prefix))
                            : sl_compressor_reads(kind, k->path + strlen(prefix)));
    }
    return i;
}

START_TEST(rows_of_algorithms_and_compressors_agree) {
    const sl_algorithm *a;
    size_t rows = 0;
    for (size_t i = 0; (a = sl_algorithm_at(i)) != NULL; i++) {
        rows += check_rows_of("algorithm.", a, SL_COMPRESSOR_IDENTITY);
        ck_assert(!a->is_periodic || sl_algorithm_reads(a, SL_COMPRESSOR_IDENTITY, "period"));
        ck_assert(a->step_rule != SL_STEP_CONSENSUS ||
                  sl_algorithm_reads(a, SL_COMPRESSOR_IDENTITY, "consensus_step"));
        ck_assert(a->step_rule != SL_STEP_ETA ||
                  sl_algorithm_reads(a, SL_COMPRESSOR_IDENTITY, "eta"));
    }
    for (int kind = 0; kind < SL_COMPRESSOR_COUNT; kind++)
        rows += check_rows_of("algorithm.compressor.", NULL, (sl_compressor_kind)kind);
    ck_assert_uint_gt(rows, 200);
}

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
}

START_TEST(an_override_reaches_into_a_group_given_as_text) {
    const char *const overrides[] = {"data=digits", "data.batch=5"};
    sl_experiment *e = with_override(WITH("'model': 'mlp'"), "model.hidden=[3]");
    ck_assert_uint_eq(e->model.hidden[0], 3);
    e = parse_set(SMALLEST, overrides, 2);
    ck_assert_uint_eq(e->data.batch, 5);
}

START_TEST(an_override_may_change_the_inline_topology) {
    sl_experiment *e = with_override(SMALLEST, "topology.nodes=16");
    ck_assert_uint_eq(sl_topology_nodes(e->topology), 16);
    e = with_override(SMALLEST, "topology={'nodes': 3, 'family': 'complete'}");
    ck_assert_uint_eq(sl_topology_nodes(e->topology), 3);
    refuse_set("topology.ndes=16", "ndes", "'nodes'");
    refuse_both("{'rounds': 1, 'topology': 'ring.json'}", "topology.nodes=16",
                "--set topology.nodes", "not an object");
}

START_TEST(a_path_in_an_override_starts_where_the_command_runs) {
    const char *other = at("other");
    char here[PATH_MAX];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(mkdir(other, 0700), 0);
    put(at("other/ring.json"), "{\"nodes\": 9, \"family\": \"ring\"}");
    ck_assert_int_eq(mkdir(at("other/2024"), 0700), 0);
    ck_assert_int_eq(chdir(other), 0);
    const char *const overrides[] = {"topology=ring.json", "data.path=2024", "data.name=mnist"};
    sl_experiment *e = parse_set(SMALLEST, overrides, 3);
    ck_assert_uint_eq(sl_topology_nodes(e->topology), 9);
    ck_assert_str_eq(e->data.path, at("other/2024"));
    ck_assert_int_eq(chdir(here), 0);
}

START_TEST(a_path_in_the_file_starts_at_the_file) {
    ck_assert_int_eq(mkdir(at("data"), 0700), 0);
    sl_experiment *e = parse(WITH("'data': {'name': 'mnist', 'path': 'data'}"));
    ck_assert_str_eq(e->data.path, at("data"));
}

START_TEST(a_malformed_override_is_refused) {
    refuse_set("optimizer.momentum", "--set optimizer.momentum", "key=value");
    refuse_set("=3", "--set =3", "key=value");
    refuse_set("", "--set", "key=value");
    refuse_set("optimizer=5", "optimizer: 5 is not allowed", "an object");
    refuse_set("rounds.x=5", "rounds.x", NULL);
    refuse_set("name=\xff", "--set name", "UTF-8");
    refuse_set("optimizer.momentum={'a': 1, 'a': 2}", "optimizer.momentum", NULL);
    char longest[2000];
    memset(longest, 'k', sizeof longest - 1);
    memcpy(longest + sizeof longest - 3, "=1", 3);
    refuse_set(longest, "--set kkk", NULL);
}

/* ---- hashes ---- */

/* One key changed: only its section's hash may differ, and it must, except for paths and what
 * agents need not share. */
START_TEST(a_hash_changes_exactly_with_the_keys_of_its_section) {
    put(at("some-file"), "");
    sl_experiment *plain = parse(SMALLEST);
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++) {
        const sl_key *k = keys.items[i];
        sl_experiment *e = parse(SMALLEST);
        json_t *value = another_value(k);
        if (strcmp(k->path, "epochs") == 0) {
            json_decref(value);
            value = json_real(2.5);
        }
        EXPECT_WELL(sl_key_read(k, e, value, &error));
        json_decref(value);
        const bool ordered = strcmp(k->path, "transport.overlap") == 0 ||
                             strcmp(k->path, "transport.buckets") == 0 ||
                             strcmp(k->path, "transport.partition_bytes") == 0;
        bool shared = k->type != SL_KEY_PATH && strncmp(k->path, "record.", 7) != 0 &&
                      (strncmp(k->path, "transport.", 10) != 0 || ordered) &&
                      strcmp(k->path, "name") != 0 &&
                      strncmp(k->path, "device", 6) != 0; /* device_memory_gb too */
        const char *dot = strchr(k->path, '.');
        for (int s = 0; s < SL_SECTION_COUNT; s++) {
            const char *name = sl_section_name(s);
            const bool of_run = dot == NULL || ordered ||
                                strcmp(k->path, "membership.joiners") == 0 ||
                                strcmp(k->path, "data.on_change") == 0;
            bool mine =
                of_run ? s == SL_SECTION_run : strncmp(k->path, name, (size_t)(dot - k->path)) == 0;
            bool same = sl_experiment_section_hash(e, s) == sl_experiment_section_hash(plain, s);
            ck_assert_msg(same == !(shared && mine), "%s, section %s: %s", k->path, name,
                          same ? "same" : "changed");
        }
    }
}

/* Checkpoints hold these hashes: a run that was begun before goes on. */
START_TEST(hashes_stay_as_they_were) {
    static const uint64_t want[SL_SECTION_COUNT] = {0x3e07f7103e56df62, 0x5c76552f621714e1,
                                                    0x6a3df8d4c1ecf80c, 0x98d5de410190a43a,
                                                    0xb617a8491b2b18c4, 0x6c6235b49c10b45d};
    sl_experiment *e = parse(SMALLEST);
    for (int s = 0; s < SL_SECTION_COUNT; s++)
        ck_assert_msg(sl_experiment_section_hash(e, (sl_section)s) == want[s],
                      "section %s has another hash: a key of a field that is new says is_later",
                      sl_section_name((sl_section)s));
}

/* All must plan alike; who plans nothing may simulate other links. */
START_TEST(links_are_compared_where_an_order_follows_from_them) {
    static const char *const ways[] = {"layers", "merged"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        uint64_t hashes[2];
        for (int slow = 0; slow < 2; slow++) {
            const char *json = printed(WITH("'transport': {'overlap': '%s'},"
                                            " 'network': {'gradient_ms': 5, 'latency_ms': %d}"),
                                       ways[i], 1 + slow);
            hashes[slow] = sl_experiment_section_hash(parse(json), SL_SECTION_run);
        }
        ck_assert((hashes[0] == hashes[1]) == (i == 0));
    }
}

START_TEST(the_spelling_of_a_number_does_not_change_the_hash) {
    sl_experiment *a = parse(WITH("'optimizer': {'learning_rate': 1, 'momentum': 0.50}"));
    sl_experiment *b = parse(WITH("'optimizer': {'learning_rate': 10e-1, 'momentum': 0.5}"));
    ck_assert_uint_eq(sl_experiment_section_hash(a, SL_SECTION_optimizer),
                      sl_experiment_section_hash(b, SL_SECTION_optimizer));
}

/* ---- the memory it needs ---- */

static sl_run_memory memory_with(const char *section, const char *value) {
    sl_run_memory memory;
    sl_plan plan;
    sl_experiment *e = parse(printed(WITH("'%s': %s"), section, value));
    EXPECT_WELL(sl_algorithm_plan(&plan, &e->algorithm, e->topology, 1000, &error));
    sl_experiment_memory(&memory, e, &plan, 1000, 0);
    return memory;
}

static size_t buffers_with(const char *security) {
    return memory_with("security", security).buffers;
}

/* Of 4, who may all become neighbours, four for each and four for a visitor: also with the key that
 * `starling run` makes where nothing is said. */
START_TEST(what_may_be_sealed_needs_envelopes) {
    sl_experiment *e = parse(SMALLEST);
    const size_t without = buffers_with("{\"mode\": \"none\"}"),
                 envelopes = without + (size_t)4 * 4 * e->transport.chunk_bytes;
    ck_assert_uint_eq(buffers_with("{}"), without);
    ck_assert_uint_eq(buffers_with("{\"seal\": \"on\"}"), envelopes);
    ck_assert_uint_eq(buffers_with("{\"key\": \"run.key\"}"), envelopes);
    ck_assert_uint_eq(buffers_with("{\"key\": \"run.key\", \"seal\": \"handshake-only\"}"),
                      without);
    ck_assert_uint_eq(buffers_with("{\"key\": \"run.key\", \"seal\": \"off\"}"), without);
}

/* ---- weights that nobody names ---- */

#define MOMENTUM ", 'optimizer': {'momentum': 0.9}"
static const struct {
    const char *topology, *more;
    bool is_chosen;
} weights[] = {
    {"'nodes': 8, 'family': 'ring'", MOMENTUM, true},
    {"'nodes': 8, 'family': 'ring'", "", false},
    {"'nodes': 8, 'family': 'ring'", ", 'optimizer': {'name': 'adamw'}", true},
    {"'nodes': 8, 'family': 'ring'", MOMENTUM ", 'algorithm': 'choco-sgd'", false},
    {"'nodes': 8, 'family': 'ring'", MOMENTUM ", 'algorithm': 'all-reduce'", false},
    {"'nodes': 8, 'family': 'ring', 'weights': 'metropolis'", MOMENTUM, false},
    {"'nodes': 8, 'family': 'ring', 'weights': 'lazy'", MOMENTUM, false},
    {"'nodes': 4, 'edges': [[0, 1], [1, 2], [2, 3], [3, 0]]", MOMENTUM, true},
    {"'nodes': 2, 'edges': [[0, 1, 0.9], [1, 0, 0.9]]", MOMENTUM, false},
    {"'nodes': 8, 'family': 'complete'", MOMENTUM, false},
    {"'nodes': 8, 'family': 'star'", MOMENTUM, false},
    {"'nodes': 6, 'family': 'base-k', 'peers': 2", MOMENTUM, false},
    {"'nodes': 4, 'family': 'directed-ring'", MOMENTUM, false},
    {"'nodes': 4, 'schedule': [{'edges': [[0, 1], [2, 3]]}, {'edges': [[1, 2], [3, 0]]}]", MOMENTUM,
     false},
    {"'nodes': 4, 'schedule': [{'edges': [[0, 1], [1, 2], [2, 3]]}, {'edges': [[3, 0]]}]", MOMENTUM,
     true},
};

/* The resolved experiment names what was chosen, and so chooses nothing. */
START_LOOP_TEST(negative_eigenvalues_make_them_lazy, sizeof weights / sizeof *weights) {
    char text[512];
    snprintf(text, sizeof text, "{'rounds': 10, 'topology': {%s}%s}", weights[_i].topology,
             weights[_i].more);
    sl_experiment *e = parse(text);
    const sl_topology_spec *spec = sl_topology_description(e->topology);
    ck_assert_msg(e->chose_lazy == weights[_i].is_chosen, "%s", text);
    ck_assert(spec->lazy == (e->chose_lazy || strstr(text, "lazy") != NULL));
    sl_experiment *again = parse(json_of(text));
    ck_assert(!again->chose_lazy);
    ck_assert_uint_eq(sl_topology_hash(again->topology), sl_topology_hash(e->topology));
    const uint32_t left[] = {0, 1, 2};
    sl_topology *view = NULL;
    sl_regrouping how;
    if (e->chose_lazy) {
        ck_assert_int_eq(sl_topology_among(&view, &how, e->topology, left, 3, NULL), 0);
        ck_assert(sl_topology_description(view)->lazy);
    }
    sl_topology_close(&view);
}
