/* ssp.c - a server's model that nodes change one by one, without rounds that all share.
 *
 *   ssp:          Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel
 *                 Parameter Server", NeurIPS 2013
 *   ssp with staleness_max:  Zhao, An, Liu, Chen, "Dynamic Stale Synchronous Parallel Distributed
 *                 Training for Deep Learning", ICDCS 2019 (DSSP)
 *   parameter-server with backup b:  Chen, Pan, Monga, Bengio, Jozefowicz, "Revisiting Distributed
 *                 Synchronous SGD", 2016
 *   round-robin:  Chen, Wang, Li, "Round-Robin Synchronization: Mitigating Communication
 *                 Bottlenecks in Parameter Servers", INFOCOM 2019
 *
 *   node i commits g_i(xhat_i):  x <- x - (gamma/n) g_i;  then it gets xhat_i <- x, and begins
 *
 * ssp: at once, and node i gets the model when no node's commits are more than `staleness` fewer
 * than its own. 0 is C-SGD to rounding (BSP); "unbounded": Hogwild's order (ASP).
 *
 * staleness_max above staleness (DSSP): a commit comes of a node that is further ahead than
 * `staleness`, and nobody is further. The server supposes that it and the slowest go on to commit
 * as far apart as each one's last two commits were, and lets it begin r gradients more: of 0, ...,
 * staleness_max - lead + 1 the r whose last commit is nearest to one of the slowest's, the least
 * such r. With r = 0, and when they are used up, the same is asked again of the next commit; who
 * waits waits for `staleness`. The intervals, the nearest commits and that only the fastest gets
 * more are the paper's. Ours: nobody is ever more than staleness_max ahead as it begins; of several
 * slowest nodes the one counts that is expected last; without two commits under this view nothing
 * is known of a node, and r is 0. Times are of the server's clock, virtual in the simulator. A
 * run's log says whom the server gave its model when, so that a replay needs no clock.
 *
 * round-robin: node 0, 1, ..., n - 1, 0, ... commit in turn, so that each gradient is n - 1 commits
 * old. gamma/n: the staleness does not change the rate. With local_steps H a node takes H steps
 * from the model that it got, and commits the way that they went, 1/n of it (Downpour SGD: Dean et
 * al., "Large Scale Distributed Deep Networks", NeurIPS 2012). A node's learning rate is that of
 * its own round.
 *
 * backup b: of each round's gradients the first n - b are taken, x <- x - gamma mean; a later one
 * of that round comes to nothing, and its node gets the model as it is then. Those that come at one
 * instant are taken by rank. Of the nodes that have gradients left b are not waited for, as long as
 * there are more; the rate stays gamma/(n - b).
 *
 * With a compressor what is committed goes through squeeze.h: q_i = C(g_i (+ e_i)), and what it
 * could not say, e_i, is in the next commit. Of a commit that comes to nothing the whole message
 * does, and what it said of earlier ones with it. The model comes back as it is.
 *
 * Sharded, ssp only: each node is the server of its part of the vector, with clocks of its own. A
 * node commits each part to its server, and goes on when all have given it theirs, so Ho's bound
 * holds for each part by itself.
 *
 * Memory beside x, g: the server's model, there; with local steps the model that a node got; with a
 * compressor e_i. Wire: 32 d bits each way with a gradient, or those of C(g) up.
 */
#include <stdio.h>

#include "algorithm/algorithms.h"
#include "algorithm/centralized/served.h"
#include "algorithm/squeeze.h"
#include "vec/finite.h"

/* Of several local steps, the way that they went. */
static void take_gradient(sl_state *s) {
    if (s->config->local_steps <= 1) {
        sl_regularize(s, s->x, 0, s->dimension);
        return;
    }
    sl_local_step(s, 0, s->dimension);
    sl_subtract(s, s->g, s->extra[SL_PULLED], s->x, s->dimension);
}

/* ---- commits: a gradient, or a way, as it is or through squeeze.h ---- */

static size_t vectors(const sl_algorithm_config *config) {
    return sl_is_compressed(config) ? sl_squeeze_vectors(config) : 0;
}

static void prepare(sl_state *s, size_t from, size_t count) {
    if (sl_is_compressed(s->config))
        sl_squeeze_load(s, from, count);
}

static const float *sent(const sl_state *s) {
    return sl_is_compressed(s->config) ? sl_squeeze_sent(s) : s->g;
}

static void send(sl_state *s, const sl_part *mine) {
    if (sl_is_compressed(s->config))
        sl_squeeze_send(s, mine);
}

/* A part of a gradient, with the weight -gamma/n; or of a way, with -1/n. */
static void commit(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    sl_mix_add(mix, 1, s->extra[SL_SERVED]);
    if (s->vec->on_host && !sl_vec_is_finite(s->extra[SL_SERVED] + from, count))
        s->is_finite = false;
}

/* ---- who goes on when ---- */

/* By so many commits this node is ahead of the slowest. */
static uint64_t lead_of(const sl_clocks *c, uint32_t rank) {
    uint64_t least = c->commits[0];
    for (uint32_t i = 1; i < c->ranks; i++)
        least = c->commits[i] < least ? c->commits[i] : least;
    return c->commits[rank] - least;
}

/* The upper end of the range; "auto": its lower one. */
static uint64_t most_of(const sl_algorithm_config *config) {
    return config->staleness_max != SL_COUNT_AUTO ? config->staleness_max : config->staleness;
}

static bool is_near(const sl_state *s, const sl_clocks *clocks, uint32_t rank) {
    const uint64_t lead = lead_of(clocks, rank);
    return lead <= s->config->staleness || (clocks->extra[rank] > 0 && lead <= most_of(s->config));
}

static bool is_fastest(const sl_clocks *c, uint32_t rank) {
    for (uint32_t i = 0; i < c->ranks; i++)
        if (c->commits[i] != UINT64_MAX && c->commits[i] > c->commits[rank])
            return false;
    return true;
}

/* Of those that are `lead` behind this node, the one that is expected last. */
static uint32_t slowest_of(const sl_clocks *c, uint32_t rank, uint64_t lead) {
    uint32_t slowest = rank;
    uint64_t latest = 0;
    for (uint32_t i = 0; i < c->ranks; i++) {
        const uint64_t expected =
            c->interval_ns[i] > 0 ? c->last_ns[i] + c->interval_ns[i] : UINT64_MAX;
        if (c->commits[i] + lead != c->commits[rank] || expected < latest)
            continue;
        slowest = i;
        latest = expected;
    }
    return slowest;
}

/* From `at` to the nearest of the next `count` commits of that rank, if they come as the last ones
 * did. */
static uint64_t apart(const sl_clocks *c, uint32_t rank, uint64_t count, uint64_t at) {
    const uint64_t last = c->last_ns[rank], each = c->interval_ns[rank];
    uint64_t k = at > last ? (at - last + each / 2) / each : 0;
    k = k < 1 ? 1 : k > count ? count : k;
    const uint64_t then = last + k * each;
    return then > at ? then - at : at - then;
}

/* Zhao et al., Algorithm 2: so many that the node then waits least for the slowest. */
static uint64_t extra(const sl_state *s, const sl_clocks *c, uint32_t rank) {
    const uint64_t lead = lead_of(c, rank), most = most_of(s->config);
    if (lead <= s->config->staleness || lead > most || !is_fastest(c, rank))
        return 0;
    const uint32_t slowest = slowest_of(c, rank, lead);
    if (c->interval_ns[rank] == 0 || c->interval_ns[slowest] == 0)
        return 0;
    const uint64_t all = most - lead + 1;
    uint64_t best = 0, least = UINT64_MAX;
    for (uint64_t r = 0; r <= all; r++) {
        const uint64_t wait =
            apart(c, slowest, all + 1, c->last_ns[rank] + r * c->interval_ns[rank]);
        if (wait < least) {
            best = r;
            least = wait;
        }
    }
    return best;
}

static bool always(const sl_state *s, const sl_clocks *clocks, uint32_t rank) {
    (void)s, (void)clocks, (void)rank;
    return true;
}

static int check_server(const sl_algorithm_config *config, const sl_topology *topology,
                        sl_error *error) {
    (void)topology;
    return config->server != SL_SERVER_SHARDED
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "algorithm.server: \"sharded\", but %s has one server; give its rank",
                         config->name);
}

static void bound(const sl_algorithm_config *config, char *out, size_t bytes) {
    if (config->staleness == SL_COUNT_AUTO)
        snprintf(out, bytes, "the server's model, whatever others have committed");
    else if (most_of(config) > config->staleness)
        snprintf(out, bytes,
                 "nodes that have committed more than %llu to %llu gradients less, by when the "
                 "slowest is expected",
                 (unsigned long long)config->staleness, (unsigned long long)config->staleness_max);
    else
        snprintf(out, bytes, "nodes that have committed more than %llu gradients less",
                 (unsigned long long)config->staleness);
}

static int check_range(const sl_algorithm_config *config, const sl_topology *topology,
                       sl_error *error) {
    (void)topology;
    if (config->staleness_max == SL_COUNT_AUTO || config->staleness_max >= config->staleness)
        return 0;
    if (config->staleness == SL_COUNT_AUTO)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.staleness_max: %llu, but algorithm.staleness is \"unbounded\": a "
                       "range has two numbers; leave one of the keys out",
                       (unsigned long long)config->staleness_max);
    return sl_fail(error, SL_EINVAL,
                   "algorithm.staleness_max: %llu, but algorithm.staleness is %llu; at least that "
                   "is allowed",
                   (unsigned long long)config->staleness_max,
                   (unsigned long long)config->staleness);
}

static void turn(const sl_algorithm_config *config, char *out, size_t bytes) {
    (void)config;
    snprintf(out, bytes, "its turn; a gradient is as many commits old as there are other nodes");
}

static bool has_backup(const sl_algorithm_config *config) {
    return config->backup > 0;
}

static uint32_t without_backup(const sl_algorithm_config *config, uint32_t nodes) {
    return nodes > config->backup ? nodes - config->backup : nodes > 0 ? 1 : 0;
}

static int check_backup(const sl_algorithm_config *config, const sl_topology *topology,
                        sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(topology);
    if (config->directions == SL_DIRECTIONS_BOTH)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.directions: \"both\", but with backup the model comes back as it "
                       "is; set it to \"up\"");
    if (config->server == SL_SERVER_SHARDED)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.backup: %u with algorithm.server \"sharded\", where each shard "
                       "would take the gradients of other nodes; set algorithm.server to a rank",
                       config->backup);
    return config->backup < nodes
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "algorithm.backup: %u of %u nodes; at least one has to be waited for",
                         config->backup, nodes);
}

static void first_ones(const sl_algorithm_config *config, char *out, size_t bytes) {
    snprintf(out, bytes,
             "the first gradients of a round, of all nodes but %u; a later one comes to nothing",
             config->backup);
}

static const sl_stage gradients[] = {{.prepare = prepare,
                                      .vector = sent,
                                      .fresh = sl_squeeze_fresh,
                                      .own = send,
                                      .combine = commit}};
static const sl_async_rule bounded = {.pattern = SL_PATTERN_COMMITS,
                                      .may_begin = is_near,
                                      .extra = extra,
                                      .waits_for = bound},
                           by_turns = {.pattern = SL_PATTERN_COMMITS,
                                       .may_begin = always,
                                       .in_turn = true,
                                       .waits_for = turn},
                           by_batches = {.pattern = SL_PATTERN_COMMITS,
                                         .may_begin = always,
                                         .together = without_backup,
                                         .waits_for = first_ones};
static const sl_key range_keys[] = {
    {SL_ROW_STALENESS, .help = "gradients that a node may be ahead of the slowest"},
    {SL_OWN_COUNT(staleness_max, 0, 1e6), .is_later = true,
     .help = "the most of them, by when the slowest is expected (DSSP), auto = staleness"},
    {SL_ROW_ERROR_FEEDBACK},
    SL_KEYS_END,
};

#define SERVER                                                                                     \
    .route = SL_ROUTE_SERVER, .stable_by = SL_STABLE_UNKNOWN, .compressor = SL_TAKES_ANY,          \
    .take_gradient = take_gradient, .vectors = vectors, .stages = gradients, .stage_count = 1

static const sl_key backup_key[] = {
    {SL_OWN_U32(backup, 0, SL_NODES_MAX), .is_later = true, .fallback = "0",
     .help = "gradients of a round that are not waited for, 0 = all are; needs a server"},
    {SL_ROW_ERROR_FEEDBACK},
    SL_KEYS_END,
};

/* Of parameter-server, before the form that waits for all. */
const sl_algorithm sl_backup = {.name = "parameter-server",
                                .when = has_backup,
                                SERVER,
                                .local = sl_local_step,
                                .check = check_backup,
                                .keys = backup_key,
                                .async = &by_batches};

const sl_algorithm sl_ssp = {.name = "ssp",
                             SERVER,
                             .takes_local_steps = true,
                             .local = sl_local_step,
                             .check = check_range,
                             .keys = range_keys,
                             .async = &bounded};

static const sl_key feedback_key[] = {
    {SL_ROW_ERROR_FEEDBACK},
    SL_KEYS_END,
};

const sl_algorithm sl_round_robin = {.name = "round-robin",
                                     SERVER,
                                     .takes_local_steps = true,
                                     .local = sl_local_step,
                                     .check = check_server,
                                     .keys = feedback_key,
                                     .async = &by_turns};
