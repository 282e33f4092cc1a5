/* faults.c - reads `faults` of an experiment, and plays them once to check them; see
 * starling/faults.h. */
#include "config/faults.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "config/buffers.h"

enum { FAULTS_MAX = 4096 };

static const struct {
    const char *name;
    sl_fault_kind kind;
    bool comes_back; /* "rounds" later */
} kinds[] = {
    {"kill", SL_FAULT_KILL, false},          {"restart", SL_FAULT_KILL, true},
    {"leave", SL_FAULT_LEAVE, false},        {"join", SL_FAULT_JOIN, false},
    {"partition", SL_FAULT_PARTITION, true}, {"nonfinite", SL_FAULT_NONFINITE, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* One element of the list while it is read. */
typedef struct reading {
    sl_experiment *e;
    size_t at; /* in the list */
    json_t *object;
} reading;

static uint32_t nodes_of(const reading *r) {
    return sl_experiment_ranks(r->e);
}

/* ---- fields ---- */

static int refuse_value(const reading *r, const char *field, json_t *value, const char *allowed,
                        sl_error *error) {
    char *text = sl_json_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const int result =
        sl_fail(error, SL_EINVAL, "faults[%zu].%s: %.80s is not allowed; it must be %s", r->at,
                field, text != NULL ? text : "?", allowed);
    free(text);
    return result;
}

static int refuse_field(const reading *r, const char *name, sl_error *error) {
    if (strcmp(name, "epoch_after") == 0)
        return sl_fail(error, SL_EINVAL,
                       "faults[%zu].epoch_after: is no key any more: a view begins with the round "
                       "of the loss; leave it out",
                       r->at);
    return sl_fail(error, SL_EINVAL,
                   "faults[%zu]: unknown key \"%.60s\"; an event has round, one of kill, restart, "
                   "leave, join, partition and nonfinite, and perhaps rounds",
                   r->at, name);
}

/* `fallback` where it is not given. */
static int read_number(const reading *r, const char *field, uint64_t least, uint64_t fallback,
                       uint64_t *out, sl_error *error) {
    json_t *value = json_object_get(r->object, field);
    *out = fallback;
    if (value == NULL)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)least ||
        json_integer_value(value) > 1000000000000)
        return refuse_value(r, field, value,
                            least > 1   ? "an integer from 2 to 1000000000000: in round 1 all begin"
                            : least > 0 ? "an integer from 1 to 1000000000000"
                                        : "an integer from 0 to 1000000000000",
                            error);
    *out = (uint64_t)json_integer_value(value);
    return 0;
}

static int by_rank(const void *x, const void *y) {
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

static int add_ranks(const reading *r, const char *field, json_t *list, uint32_t side,
                     sl_fault *out, sl_error *error) {
    size_t i;
    json_t *item;
    char allowed[128];
    snprintf(allowed, sizeof allowed,
             "a list of ranks, 0 to %u, each once; membership.joiners lets more ranks join",
             nodes_of(r) - 1);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return refuse_value(r, field, list, allowed, error);
    json_array_foreach(list, i, item) {
        const json_int_t rank = json_is_integer(item) ? json_integer_value(item) : -1;
        bool twice = out->count == nodes_of(r);
        for (size_t k = 0; k < out->count; k++)
            twice = twice || out->ranks[k] == (uint64_t)rank;
        if (rank < 0 || rank >= nodes_of(r) || twice)
            return refuse_value(r, field, list, allowed, error);
        out->ranks[out->count] = (uint32_t)rank;
        out->sides[out->count++] = side;
    }
    return 0;
}

static int read_sides(const reading *r, json_t *lists, sl_fault *out, sl_error *error) {
    size_t side;
    json_t *list;
    int result = 0;
    if (json_array_size(lists) < 2)
        return refuse_value(r, "partition", lists, "a list of two sides or more, lists of ranks",
                            error);
    json_array_foreach(lists, side, list) {
        if (result == 0)
            result = add_ranks(r, "partition", list, (uint32_t)side, out, error);
    }
    return result;
}

/* ---- events ---- */

static int add(const reading *r, const sl_fault *like, const char *field, json_t *ranks,
               sl_error *error) {
    sl_faults *all = &r->e->faults;
    sl_fault *f = &all->items[all->count++];
    *f = *like;
    if (f->kind == SL_FAULT_HEAL)
        return 0;
    f->ranks = calloc(nodes_of(r), sizeof *f->ranks);
    f->sides = calloc(nodes_of(r), sizeof *f->sides);
    if (f->ranks == NULL || f->sides == NULL)
        return sl_fail(error, SL_ENOMEM, "faults: out of memory");
    if (f->kind == SL_FAULT_PARTITION)
        return read_sides(r, ranks, f, error);
    int result = add_ranks(r, field, ranks, 0, f, error);
    qsort(f->ranks, f->count, sizeof *f->ranks, by_rank);
    return result;
}

/* Which kind of event is it? KINDS with an error: none, or several. */
static size_t find_kind(const reading *r, sl_error *error) {
    const char *name;
    json_t *value;
    size_t found = KINDS, given = 0;
    json_object_foreach(r->object, name, value) {
        size_t k = 0;
        while (k < KINDS && strcmp(kinds[k].name, name) != 0)
            k++;
        found = k < KINDS ? k : found;
        given += k < KINDS;
        if (k == KINDS && strcmp(name, "round") != 0 && strcmp(name, "rounds") != 0 &&
            strcmp(name, "comment") != 0) {
            refuse_field(r, name, error);
            return KINDS;
        }
    }
    if (given == 1)
        return found;
    sl_fail(error, SL_EINVAL,
            "faults[%zu]: has %zu of kill, restart, leave, join, partition and nonfinite; it must "
            "have one",
            r->at, given);
    return KINDS;
}

static int check_length(const reading *r, size_t kind, sl_error *error) {
    const bool given = json_object_get(r->object, "rounds") != NULL;
    if (kinds[kind].comes_back)
        return given ? 0
                     : sl_fail(error, SL_EINVAL,
                               "faults[%zu].rounds: missing; it says after how many rounds a %s "
                               "ends",
                               r->at, kinds[kind].name);
    return given ? sl_fail(error, SL_EINVAL,
                           "faults[%zu].rounds: is of restart and partition; a %s has none", r->at,
                           kinds[kind].name)
                 : 0;
}

/* At their own times nodes end where they would step aside. */
static int check_kind(const reading *r, size_t kind, sl_error *error) {
    if (kinds[kind].kind == SL_FAULT_NONFINITE && sl_experiment_is_asynchronous(r->e))
        return sl_fail(error, SL_EINVAL,
                       "faults[%zu].nonfinite: algorithm '%s' lets nodes go at their own times "
                       "here, and one whose numbers are not finite ends; take kill",
                       r->at, r->e->algorithm.name);
    return check_length(r, kind, error);
}

static int read_event(const reading *r, sl_error *error) {
    uint64_t round = 0, rounds = 0;
    if (!json_is_object(r->object))
        return sl_fail(error, SL_EINVAL,
                       "faults[%zu]: must be an object such as {\"round\": 100, \"kill\": [3]}",
                       r->at);
    const size_t kind = find_kind(r, error);
    if (kind == KINDS)
        return SL_EINVAL;
    if (json_object_get(r->object, "round") == NULL)
        return sl_fail(error, SL_EINVAL, "faults[%zu].round: missing", r->at);
    int result = read_number(r, "round", 2, 2, &round, error);
    if (result == 0)
        result = read_number(r, "rounds", 1, 0, &rounds, error);
    if (result == 0)
        result = check_kind(r, kind, error);
    const sl_fault begins = {.kind = kinds[kind].kind, .round = round};
    const sl_fault ends = {.kind = kinds[kind].kind == SL_FAULT_PARTITION ? SL_FAULT_HEAL
                                                                          : SL_FAULT_JOIN,
                           .round = round + rounds};
    json_t *ranks = json_object_get(r->object, kinds[kind].name);
    if (result == 0)
        result = add(r, &begins, kinds[kind].name, ranks, error);
    if (result == 0 && kinds[kind].comes_back)
        result = add(r, &ends, kinds[kind].name, ranks, error);
    return result;
}

/* Stable: events of one round stay in their order. */
static void sort(sl_faults *f) {
    for (size_t i = 1; i < f->count; i++) {
        const sl_fault moving = f->items[i];
        size_t at = i;
        for (; at > 0 && f->items[at - 1].round > moving.round; at--)
            f->items[at] = f->items[at - 1];
        f->items[at] = moving;
    }
}

static int read_list(sl_experiment *e, json_t *list, sl_error *error) {
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > FAULTS_MAX)
        return sl_fail(error, SL_EINVAL, "faults: must be a list of at most %d events", FAULTS_MAX);
    if (count == 0)
        return 0;
    e->faults.items = calloc(2 * count, sizeof *e->faults.items);
    e->faults.text = json_dumps(list, JSON_COMPACT);
    int result = e->faults.items != NULL && e->faults.text != NULL
                     ? 0
                     : sl_fail(error, SL_ENOMEM, "faults: out of memory");
    for (size_t i = 0; i < count && result == 0; i++)
        result = read_event(&(reading){e, i, json_array_get(list, i)}, error);
    sort(&e->faults);
    return result;
}

/* ---- what happens on a loss ---- */

const char *sl_experiment_why_stop(const sl_experiment *e) {
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, NULL);
    return a->needs_all != NULL ? a->needs_all(&e->algorithm) : NULL;
}

bool sl_experiment_recovers(const sl_experiment *e) {
    return e->faults.count > 0;
}

/* Who is started again joins those who go on. */
static int check_restart(const sl_membership_config *m, sl_error *error) {
    return m->restart == SL_RESTART_NEVER || m->on_loss == SL_ON_LOSS_CONTINUE
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "membership.restart: \"%s\" starts an agent again that is lost, but "
                         "membership.on_loss \"stop\" ends the run then; take \"continue\", or "
                         "restart \"never\"",
                         m->restart == SL_RESTART_ALWAYS ? "always" : "on-failure");
}

static int resolve_on_loss(sl_experiment *e, sl_error *error) {
    const bool scenario = e->faults.count > 0;
    const char *why = sl_experiment_why_stop(e);
    if (e->membership.on_loss == SL_ON_LOSS_AUTO)
        e->membership.on_loss = scenario || why == NULL ? SL_ON_LOSS_CONTINUE : SL_ON_LOSS_STOP;
    if (e->membership.on_loss == SL_ON_LOSS_STOP)
        return scenario ? sl_fail(error, SL_EINVAL,
                                  "membership.on_loss: \"stop\" ends a run at the first loss, but "
                                  "faults has %zu events; take \"continue\", or leave faults out",
                                  e->faults.count)
                        : 0;
    if (why != NULL)
        return sl_fail(error, SL_EINVAL,
                       "membership.on_loss: \"continue\", but algorithm '%s' %s; take \"stop\", or "
                       "leave that out",
                       e->algorithm.name, why);
    return 0;
}

static int try_one_more(const sl_experiment *e, sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(e->topology);
    sl_topology *among = NULL;
    sl_regrouping how;
    uint32_t *ranks = malloc((nodes + 1u) * sizeof *ranks);
    for (uint32_t i = 0; ranks != NULL && i <= nodes; i++)
        ranks[i] = i;
    const int result = ranks != NULL
                           ? sl_topology_among(&among, &how, e->topology, ranks, nodes + 1, error)
                           : sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", nodes + 1);
    free(ranks);
    sl_topology_close(&among);
    return result == 0 || error == NULL
               ? result
               : sl_fail_prefix(error, result, "membership.joiners: %u", e->membership.joiners);
}

/* Who has no place in the first topology. */
static int check_joiners(const sl_experiment *e, sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(e->topology), joiners = e->membership.joiners;
    if (joiners == 0)
        return 0;
    if (e->membership.on_loss != SL_ON_LOSS_CONTINUE)
        return sl_fail(error, SL_EINVAL,
                       "membership.joiners: %u, but nobody joins where membership.on_loss is "
                       "\"stop\"; take \"continue\", or 0",
                       joiners);
    if (joiners > SL_NODES_MAX - nodes)
        return sl_fail(error, SL_EINVAL,
                       "membership.joiners: %u beside %u nodes; together at most %d are allowed",
                       joiners, nodes, SL_NODES_MAX);
    return try_one_more(e, error);
}

int sl_faults_read(sl_experiment *e, json_t *list, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, error);
    int result = a == NULL ? SL_EINVAL : list == NULL ? 0 : read_list(e, list, error);
    if (result == 0)
        result = resolve_on_loss(e, error);
    if (result == 0)
        result = check_restart(&e->membership, error);
    return result == 0 ? check_joiners(e, error) : result;
}

/* ---- playing ---- */

static int check_presence(const sl_cast *cast, const sl_fault *f, sl_error *error) {
    const bool joins = f->kind == SL_FAULT_JOIN;
    for (size_t i = 0; i < f->count; i++)
        if ((cast->of[f->ranks[i]] == SL_ABSENT) != joins ||
            (f->kind == SL_FAULT_NONFINITE && cast->of[f->ranks[i]] == SL_RESTS))
            return sl_fail(error, SL_EINVAL, "faults: in round %llu node %u %s, but it is %s then",
                           (unsigned long long)f->round, f->ranks[i],
                           joins                           ? "joins"
                           : f->kind == SL_FAULT_LEAVE     ? "leaves"
                           : f->kind == SL_FAULT_PARTITION ? "is on a side of a partition"
                           : f->kind == SL_FAULT_NONFINITE ? "has a loss that is not finite"
                                                           : "is killed",
                           joins ? "there" : "not there");
    return 0;
}

static uint32_t count_present(const sl_cast *cast) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < cast->nodes; i++)
        count += cast->of[i] == SL_THERE;
    return count;
}

static bool is_parted(const sl_cast *cast) {
    for (uint32_t i = 0; i < cast->nodes; i++)
        if (cast->of[i] == SL_RESTS)
            return true;
    return false;
}

static int check_event(const sl_cast *cast, const sl_fault *f, sl_error *error) {
    const uint32_t present = count_present(cast);
    int result = check_presence(cast, f, error);
    if (result != 0)
        return result;
    uint32_t ending = 0;
    for (size_t i = 0; i < f->count; i++)
        ending += cast->of[f->ranks[i]] == SL_THERE;
    if (f->kind <= SL_FAULT_LEAVE && ending == present)
        return sl_fail(error, SL_EINVAL, "faults: from round %llu on nobody is left",
                       (unsigned long long)f->round);
    if ((f->kind == SL_FAULT_JOIN || f->kind == SL_FAULT_PARTITION) && is_parted(cast))
        return sl_fail(error, SL_EINVAL,
                       "faults: in round %llu the network is in parts; let nodes join, or part it "
                       "anew, after it has healed",
                       (unsigned long long)f->round);
    if (f->kind == SL_FAULT_PARTITION && f->count != present)
        return sl_fail(error, SL_EINVAL,
                       "faults: the partition of round %llu names %zu nodes, and %u are there; "
                       "each must be on one side",
                       (unsigned long long)f->round, f->count, present);
    if (f->kind == SL_FAULT_PARTITION && sl_cast_side(f) == SIZE_MAX)
        return sl_fail(error, SL_EINVAL,
                       "faults: no side of the partition of round %llu has more than half of the "
                       "%u nodes; nobody would train on",
                       (unsigned long long)f->round, present);
    return 0;
}

static int check_members(const sl_experiment *e, const sl_cast *cast, uint32_t *ranks,
                         sl_error *error) {
    sl_topology *among = NULL;
    sl_regrouping how;
    const uint32_t count = sl_cast_members(cast, ranks);
    sl_algorithm_config config = e->algorithm;
    if (config.server > 0)
        config.server = 0; /* a rank, which need not be a place */
    int result = sl_topology_among(&among, &how, e->topology, ranks, count, error);
    if (result == 0)
        result = sl_algorithm_check(&config, among, &e->optimizer, error);
    sl_topology_close(&among);
    return result;
}

static int play(const sl_experiment *e, sl_cast *cast, uint32_t *ranks, uint64_t round,
                sl_error *error) {
    int result = 0;
    for (size_t i = 0; i < e->faults.count && result == 0; i++)
        if (e->faults.items[i].round == round) {
            const sl_faults one = {.items = &e->faults.items[i], .count = 1};
            result = check_event(cast, &e->faults.items[i], error);
            if (result == 0)
                sl_cast_play(cast, &one, round);
        }
    if (result != 0 || !sl_faults_turn(&e->faults, round))
        return result;
    result = check_members(e, cast, ranks, error);
    return result == 0 || error == NULL
               ? result
               : sl_fail_prefix(error, result, "faults: the members from round %llu on",
                                (unsigned long long)round);
}

static int check_setting(const sl_experiment *e, sl_error *error) {
    if (e->checkpoint.every > 0)
        return sl_fail(error, SL_EINVAL,
                       "checkpoint.every: a run with faults cannot go on from a checkpoint yet; "
                       "leave it 0");
    const sl_fault *last = &e->faults.items[e->faults.count - 1];
    if (e->rounds > 0 && last->kind != SL_FAULT_HEAL && last->round > e->rounds)
        return sl_fail(error, SL_EINVAL,
                       "faults: the event of round %llu comes after the last round, %llu",
                       (unsigned long long)last->round, (unsigned long long)e->rounds);
    return 0;
}

int sl_faults_check(const sl_experiment *e, sl_error *error) {
    sl_cast cast = {0};
    if (e->faults.count == 0)
        return 0;
    uint32_t *ranks = malloc(sl_experiment_ranks(e) * sizeof *ranks);
    int result = ranks == NULL ? sl_fail(error, SL_ENOMEM, "faults: out of memory")
                               : check_setting(e, error);
    if (result == 0)
        result = sl_cast_open(&cast, sl_experiment_ranks(e), sl_topology_nodes(e->topology), error);
    for (uint64_t round = sl_faults_next(&e->faults, 0); round > 0 && result == 0;
         round = sl_faults_next(&e->faults, round))
        result = play(e, &cast, ranks, round, error);
    sl_cast_close(&cast);
    free(ranks);
    return result;
}
