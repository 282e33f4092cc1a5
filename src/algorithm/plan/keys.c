/* keys.c - the keys that an algorithm reads: its own rows, and those that follow from what it is.
 */
#include <string.h>

#include "algorithm/algorithms.h"
#include "algorithm/own_keys.h"

static const char *const replicas[] = {"sum", "per-neighbour", NULL};
static const char *const all_reduces[] = {
#define FORM_NAME(form, name) name,
    SL_ALL_REDUCES(FORM_NAME)
#undef FORM_NAME
        NULL};

static bool keeps_replicas(const sl_algorithm *a) {
    return a->keeps_replicas;
}

static bool takes_local_steps(const sl_algorithm *a) {
    return a->takes_local_steps;
}

static bool has_servers(const sl_algorithm *a) {
    return a->route == SL_ROUTE_SERVER;
}

/* Keys that whoever is so reads. */
static const struct trait {
    bool (*has)(const sl_algorithm *algorithm);
    sl_key key;
} traits[] = {
    {keeps_replicas,
     {SL_OWN_CHOICE(replicas, replicas), .fallback = "\"sum\"",
      .help = "store the weighted sum of the neighbours' replicas, or each replica "
              "(per-neighbour), which schedules need"}},
    {takes_local_steps,
     {SL_OWN_LIST(local_steps, steps_of), .type = SL_KEY_U64_BY_RANK, SL_KEY_BETWEEN(1, 1e9),
      .length_max = SL_COUNTS_MAX, .fallback = "1", .readers = "gossip algorithms, ssp, fedavg",
      .help = "gradient steps per exchange; fedavg: or a list by rank"}},
    {sl_algorithm_reduces,
     {SL_OWN_CHOICE(all_reduce, all_reduces), .fallback = "\"ring\"",
      .help = "who sends what to whom, all nodes get the same average; with a compressor: ring "
              "stands for each message to everybody, another form for sums of messages"}},
    {sl_algorithm_reduces,
     {SL_OWN_U32(group, 0, SL_NODES_MAX), .fallback = "0", .readers = "",
      .help = "torus-2d, two-rings: nodes in a row, a divisor of their number; hierarchical: nodes "
              "in a group; 0 = about the square root",
      SL_KEY_USED_BY("algorithm.all_reduce", "hierarchical torus-2d two-rings")}},
    {has_servers,
     {SL_OWN(server), .type = SL_KEY_SERVER, SL_KEY_BETWEEN(0, SL_NODES_MAX - 1), .fallback = "0",
      .readers = "algorithms with servers",
      .help = "rank of the server; sharded = each rank serves its shard"}},
};
enum { TRAIT_COUNT = sizeof traits / sizeof *traits };

const sl_key *sl_algorithm_key(const sl_algorithm *a, size_t index) {
    for (const sl_key *k = a->keys; k != NULL && k->path != NULL; k++)
        if (index-- == 0)
            return k;
    for (size_t i = 0; i < TRAIT_COUNT; i++)
        if (traits[i].has(a) && index-- == 0)
            return &traits[i].key;
    return NULL;
}

static bool reads_compressor(const sl_algorithm *a, sl_compressor_kind kind, const char *key) {
    if (a->compressor == SL_TAKES_IDENTITY || a->own_compressor != SL_COMPRESSOR_IDENTITY)
        return false;
    return strcmp(key, "name") == 0 || strcmp(key, "per") == 0 || sl_compressor_reads(kind, key);
}

bool sl_algorithm_reads(const sl_algorithm *a, sl_compressor_kind compressor, const char *key) {
    static const char inner[] = "compressor.";
    const sl_key *own;
    if (strcmp(key, "name") == 0 || strcmp(key, "library") == 0)
        return true;
    if (strcmp(key, "variant") == 0)
        return a->variant != SL_VARIANT_DEFAULT;
    if (strncmp(key, inner, strlen(inner)) == 0)
        return reads_compressor(a, compressor, key + strlen(inner));
    for (size_t i = 0; (own = sl_algorithm_key(a, i)) != NULL; i++)
        if (strcmp(own->path + strlen("algorithm."), key) == 0)
            return true;
    return false;
}

bool sl_algorithm_is_reader(const sl_algorithm_config *config, const char *key) {
    const sl_algorithm *a;
    for (size_t i = 0; (a = sl_algorithm_form(config->library, i)) != NULL; i++)
        if (strcmp(a->name, config->name) == 0 &&
            sl_algorithm_reads(a, SL_COMPRESSOR_IDENTITY, key))
            return true;
    return false;
}

bool sl_algorithm_has_budget(const sl_algorithm_config *config) {
    const sl_algorithm *a = sl_algorithm_of(config, NULL);
    return a != NULL && sl_reads(a, "budget.round_ms");
}

uint64_t sl_algorithm_average_period(const sl_algorithm *a, const sl_algorithm_config *config) {
    return sl_reads(a, "average_period") ? config->average_period : config->period;
}
