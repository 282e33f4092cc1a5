/* print.c - an experiment back to JSON, its hashes, and the help text of its keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "config/keys.h"
#include "config/overlap.h"
#include "config/tree.h"
#include "starling/layer_budget.h"

/* Leaves out rounds, epochs and paths that were not given, as the reader demands. */
static bool is_absent(const sl_key *k, json_t *value) {
    bool length = strcmp(k->path, "rounds") == 0 || strcmp(k->path, "epochs") == 0;
    return (length && json_number_value(value) == 0) ||
           (k->type == SL_KEY_PATH && json_string_length(value) == 0);
}

static char *print_keys(const sl_experiment *experiment,
                        bool (*is_wanted)(const sl_key *key, const sl_experiment *experiment)) {
    json_t *root = json_object();
    bool good = root != NULL;
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++) {
        if (!is_wanted(keys.items[i], experiment))
            continue;
        json_t *value = sl_key_write(keys.items[i], experiment);
        if (value != NULL && is_absent(keys.items[i], value))
            json_decref(value);
        else
            good = sl_tree_set(root, keys.items[i]->path, value) == 0 && good;
    }
    char *topology = sl_topology_json(experiment->topology);
    json_t *graph = topology ? json_loads(topology, 0, NULL) : NULL;
    free(topology);
    good = json_object_set_new(root, "topology", graph) == 0 && good;
    if (experiment->faults.text != NULL)
        good = json_object_set_new(root, "faults", json_loads(experiment->faults.text, 0, NULL)) ==
                   0 &&
               good;
    char *text = good ? sl_json_text(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return text;
}

static bool is_any(const sl_key *k, const sl_experiment *e) {
    (void)k;
    (void)e;
    return true;
}

char *sl_experiment_json(const sl_experiment *experiment) {
    return print_keys(experiment, is_any);
}

char *sl_experiment_resolved(const sl_experiment *experiment) {
    return print_keys(experiment, sl_key_is_read);
}

const char *sl_section_name(sl_section section) {
    static const char *const names[] = {
#define SECTION_NAME(name) #name,
        SL_SECTIONS(SECTION_NAME)
#undef SECTION_NAME
    };
    return names[section];
}

static bool is_of_links(const sl_key *k) {
    static const char *const paths[] = {"network.bandwidth_mbit", "network.latency_ms",
                                        "network.gradient_ms", "network.links"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(k->path, paths[i]) == 0)
            return true;
    return false;
}

/* Of the run as a whole, also where who joins has data of its own. */
static bool is_of_run(const sl_key *k) {
    static const char *const paths[] = {"seed",
                                        "loss_limit",
                                        "rounds",
                                        "epochs",
                                        "final_average",
                                        "membership.joiners",
                                        "data.on_change",
                                        "transport.overlap",
                                        "transport.buckets",
                                        "transport.partition_bytes"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(k->path, paths[i]) == 0)
            return true;
    return is_of_links(k);
}

static sl_section usual_section(const sl_key *k) {
    if (is_of_run(k))
        return SL_SECTION_run;
    for (int s = SL_SECTION_algorithm; s < SL_SECTION_COUNT; s++) {
        const char *name = sl_section_name((sl_section)s);
        if (strncmp(k->path, name, strlen(name)) == 0)
            return (sl_section)s;
    }
    return SL_SECTION_COUNT;
}

/* Budgets of edges go by links, those of layers by times, too. */
static bool sizes_messages(const sl_key *k, const sl_experiment *e) {
    return is_of_links(k) &&
           (sl_has_layer_budget(&e->algorithm.compressor) ||
            (e->algorithm.budget.round_ms != 0 && strcmp(k->path, "network.gradient_ms") != 0));
}

sl_section sl_key_section(const sl_key *k, const sl_experiment *e) {
    return sizes_messages(k, e) ? SL_SECTION_algorithm : usual_section(k);
}

bool sl_key_may_be_of(const sl_key *k, const char *section) {
    const sl_section usual = usual_section(k);
    const bool is_usual = usual < SL_SECTION_COUNT && strcmp(sl_section_name(usual), section) == 0,
               by_budget =
                   is_of_links(k) && strcmp(sl_section_name(SL_SECTION_algorithm), section) == 0;
    return k->type != SL_KEY_PATH && (is_usual || by_budget);
}

bool sl_key_is_compared(const sl_key *k, const sl_experiment *e) {
    return k->type != SL_KEY_PATH && sl_key_section(k, e) < SL_SECTION_COUNT &&
           (!is_of_links(k) || sl_key_section(k, e) == SL_SECTION_algorithm ||
            sl_sending_is_planned(e));
}

static bool is_like(json_t *value, json_t *usual) {
    return json_is_number(value) && json_is_number(usual)
               ? json_number_value(value) == json_number_value(usual)
               : json_equal(value, usual);
}

int sl_key_is_default(const sl_key *k, json_t *value) {
    json_t *usual = json_loads(k->fallback, JSON_DECODE_ANY, NULL);
    const int same = usual == NULL ? SL_ENOMEM : is_like(value, usual);
    json_decref(usual);
    return same;
}

/* A run has the hash that it had before there were keys which it leaves as they are. */
static bool is_hashed(const sl_key *k, const sl_experiment *e, json_t *value, json_t *usual) {
    return sl_key_is_compared(k, e) && !(k->is_later && is_like(value, usual));
}

static uint64_t hash_value(uint64_t hash, const sl_key *k, json_t *value) {
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (text == NULL)
        return 0;
    hash = sl_hash(hash, k->path, strlen(k->path));
    hash = sl_hash(hash, text, strlen(text));
    free(text);
    return hash;
}

uint64_t sl_experiment_section_hash(const sl_experiment *experiment, sl_section section) {
    uint64_t hash = SL_HASH_START;
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count && hash != 0; i++) {
        if (sl_key_section(keys.items[i], experiment) != section)
            continue;
        const sl_key *k = keys.items[i];
        json_t *value = sl_key_write(k, experiment),
               *usual = k->is_later ? json_loads(k->fallback, JSON_DECODE_ANY, NULL) : NULL;
        if (value == NULL || (k->is_later && usual == NULL))
            hash = 0;
        else if (is_hashed(k, experiment, value, usual))
            hash = hash_value(hash, k, value);
        json_decref(value);
        json_decref(usual);
    }
    return hash;
}

uint64_t sl_experiment_hash(const sl_experiment *e) {
    uint64_t hash = sl_topology_hash(e->topology);
    for (int i = 0; i < SL_SECTION_COUNT; i++)
        hash = sl_hash_word(hash, sl_experiment_section_hash(e, (sl_section)i));
    return hash;
}

char *sl_experiment_keys_help(void) {
    char *text = NULL;
    size_t bytes;
    sl_key_list keys;
    sl_experiment_keys(&keys);
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    fprintf(
        out,
        "%-34s a topology file, or an object {\"nodes\": 8, \"family\": \"ring\"}; no default\n",
        "topology");
    fprintf(out,
            "%-34s a list of events such as {\"round\": 100, \"kill\": [3]}, which `starling sim` "
            "plays; default []; docs/experiment.md\n",
            "faults");
    for (size_t i = 0; i < keys.count; i++) {
        char allowed[SL_ALLOWED_MAX], help[SL_HELP_MAX];
        sl_key_allowed(keys.items[i], allowed, sizeof allowed);
        sl_key_help(keys.items[i], help, sizeof help);
        fprintf(out, "%-34s %s; default %s; %s\n", keys.items[i]->path, allowed,
                keys.items[i]->fallback, help);
    }
    fclose(out);
    return text;
}
