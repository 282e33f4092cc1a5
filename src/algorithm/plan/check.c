/* check.c - do algorithm, topology and configuration suit each other? See sl_algorithm_check. */
#include <math.h>

#include "algorithm/algorithms.h"
#include "algorithm/plan/phases.h"
#include "starling/spectrum.h"

static const double spectrum_work_max = 1e9; /* about a second */

static bool is_servers(const sl_algorithm *a) {
    return a->route == SL_ROUTE_SERVER;
}

/* With neighbours alone? */
static bool is_gossip(const sl_algorithm *a) {
    return a->route == SL_ROUTE_TOPOLOGY || a->route == SL_ROUTE_EDGES;
}

/* ---- the matrix ---- */

static int refuse_sums(const sl_algorithm *a, sl_stochasticity w, sl_error *error) {
    return sl_fail(error, SL_EINVAL,
                   "algorithm '%s' needs a doubly stochastic W, but this topology's %s sum to 1 "
                   "only within %.3g; use weights "
                   "\"metropolis\", correct the listed weights, or take sgp, which works on "
                   "column-stochastic ones",
                   a->name, w.row ? "columns" : "rows", w.row ? w.column_residual : w.row_residual);
}

/* Refuses a W, or a schedule's period, with rho >= 1. Alternating values (lambda_n = -1) agree if
 * the algorithm keeps a part of each model when it mixes; with a step, check_step of plan.c
 * decides. */
static int check_contraction(const sl_algorithm *a, const sl_topology *topology, sl_error *error) {
    const bool keeps = a->keeps_self || a->step_rule != SL_STEP_NONE;
    if (!is_gossip(a) || (keeps && sl_topology_alternates(topology)))
        return 0;
    double rho;
    int result = sl_topology_contraction(topology, &rho, error);
    if (result != 0 || !(rho >= 1))
        return result;
    const sl_topology_spec *spec = sl_topology_description(topology);
    if (!sl_topology_alternates(topology))
        return sl_fail(
            error, SL_EINVAL,
            "topology.weights: rho is %.6g, and algorithm '%s' mixes with W: rho must be "
            "below 1, or models drift apart; change the weights (`starling topology "
            "analyse` explains them), or take \"metropolis\"",
            rho, a->name);
    return sl_fail(
        error, SL_EINVAL,
        "topology.weights: rho is 1 (lambda_n = -1), and algorithm '%s' mixes with W: rho "
        "must be below 1, or models of the two sides of a bipartite graph change places "
        "for ever; take %s%s%s",
        a->name,
        spec->weighting == SL_WEIGHTING_EXPLICIT ? "(I + W)/2 in place of the listed W"
                                                 : "the lazy form, \"",
        spec->weighting == SL_WEIGHTING_EXPLICIT ? "" : sl_weighting_name(spec->weighting, true),
        spec->weighting == SL_WEIGHTING_EXPLICIT ? "" : "\"");
}

static int check_matrix(const sl_algorithm *a, sl_replicas replicas, const sl_topology *topology,
                        sl_error *error) {
    sl_stochasticity w = sl_topology_stochasticity(topology);
    if (a->matrix == SL_MATRIX_COLUMN && !w.column)
        return sl_fail(error, SL_EINVAL,
                       "algorithm '%s' needs a column-stochastic P, but this topology's columns "
                       "sum to 1 only within %.3g; use weights "
                       "\"push-sum\"",
                       a->name, w.column_residual);
    if (a->matrix >= SL_MATRIX_DOUBLY && !(w.row && w.column))
        return refuse_sums(a, w, error);
    if (a->matrix == SL_MATRIX_SYMMETRIC && !w.symmetric)
        return sl_fail(error, SL_EINVAL,
                       "algorithm '%s' needs a symmetric W, and this topology is directed; take an "
                       "undirected one, or sgp or d-psgd",
                       a->name);
    if (a->fixed_matrix && replicas == SL_REPLICAS_SUM && sl_topology_period(topology) > 1)
        return sl_fail(error, SL_EINVAL,
                       "algorithm '%s' keeps sums over its neighbours and needs the same W in "
                       "every round, but this topology is a schedule of "
                       "%u; take a fixed one, or deep-squeeze%s",
                       a->name, sl_topology_period(topology),
                       a->keeps_replicas ? ", or set algorithm.replicas to \"per-neighbour\": a "
                                           "vector for each neighbour of the whole schedule, "
                                           "and every message to all of them"
                                         : "");
    if (a->route == SL_ROUTE_EDGES && sl_topology_is_endless(topology))
        return sl_fail(error, SL_EINVAL,
                       "algorithm '%s' keeps something for each edge, and this topology has other "
                       "edges in every round for ever; take a fixed one, or a schedule",
                       a->name);
    if (a->keeps_received && a->route != SL_ROUTE_EDGES && sl_topology_period(topology) > 1)
        return sl_fail(error, SL_EINVAL,
                       "algorithm '%s' keeps a message of each neighbour and needs the same edges "
                       "in every round, but this topology is a schedule of %u; take a fixed one",
                       a->name, sl_topology_period(topology));
    return 0;
}

/* lambda_n, as far as it is found in about a second; beyond, an upper bound of it. */
static int check_eigenvalue(const sl_algorithm *a, const sl_algorithm_config *c,
                            const sl_topology *topology, sl_error *error) {
    const double least = a->lambda_min != NULL ? a->lambda_min(c) : -INFINITY;
    if (least == -INFINITY)
        return 0;
    if (sl_topology_period(topology) > 1)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.matrix: \"plain\" needs the same W in every round, but this "
                       "topology is a schedule of %u; take a fixed one, or \"lazy\"",
                       sl_topology_period(topology));
    sl_spectrum_settings settings;
    sl_spectrum spectrum;
    sl_spectrum_defaults(&settings);
    settings.work_max = spectrum_work_max;
    int result = sl_spectrum_compute(&spectrum, topology, &settings, error);
    if (result != 0 || spectrum.lambda_n > least + 1e-9)
        return result;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.matrix: \"plain\" diverges unless lambda_n is above %.4g, and this "
                   "W's is %.4g; take \"lazy\", which mixes with (I + W)/2, or other weights",
                   least, spectrum.lambda_n);
}

/* ---- parameters ---- */

static int check_server(const sl_algorithm *a, const sl_algorithm_config *c, uint32_t nodes,
                        sl_error *error) {
    if (is_servers(a) && c->server >= (int64_t)nodes)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.server: %lld is not a rank; allowed are 0..%u, or \"sharded\"",
                       (long long)c->server, nodes - 1);
    return 0;
}

/* More than what is cut off must be left, wherever a node has fewest in-neighbours. */
static int check_trim(const sl_algorithm *a, const sl_algorithm_config *c,
                      const sl_topology *topology, sl_error *error) {
    for (uint64_t r = 1; a->trims && r <= sl_topology_period(topology); r++)
        for (uint32_t i = 0; i < sl_topology_nodes(topology); i++) {
            const uint32_t values = sl_topology_in(topology, r, i).count + 1;
            if (2 * (uint64_t)c->trim >= values)
                return sl_fail(error, SL_EINVAL,
                               "algorithm.trim: %u at each end leaves nothing of the %u models "
                               "that node %u has; set it to %u or less",
                               c->trim, values, i, (values - 1) / 2);
        }
    return 0;
}

/* Rows of a torus are equally long, and groups hold some of the nodes. */
static int check_group(const sl_algorithm *a, const sl_algorithm_config *c, uint32_t nodes,
                       sl_error *error) {
    const bool rows =
        c->all_reduce == SL_ALL_REDUCE_TORUS_2D || c->all_reduce == SL_ALL_REDUCE_TWO_RINGS;
    if (a->route != SL_ROUTE_ALL_REDUCE && c->all_reduce != SL_ALL_REDUCE_RING &&
        c->compressor.kind != SL_COMPRESSOR_IDENTITY && !is_gossip(a))
        return sl_fail(error, SL_EINVAL,
                       "algorithm.all_reduce: forms sum vectors as they are; with a compressor, "
                       "algorithm '%s' has a route of its own: leave the key out",
                       a->name);
    if (!sl_algorithm_reduces(a) || c->group == 0 ||
        (!rows && c->all_reduce != SL_ALL_REDUCE_HIERARCHICAL))
        return 0;
    if (c->group > nodes)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.group: %u, but there are %u nodes; allowed are "
                       "1..%u, or 0 for about the square root",
                       c->group, nodes, nodes);
    if (rows && nodes % c->group != 0)
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.group: rows of %u do not fill a torus of %u nodes; take a divisor "
            "of %u, or 0 for the one nearest to a square",
            c->group, nodes, nodes);
    return 0;
}

static int check_optimizer(const sl_algorithm *a, const sl_optimizer_config *o, sl_error *error) {
    if (o->momentum > 0 && !a->takes_momentum)
        return sl_fail(error, SL_EINVAL, "optimizer.momentum: algorithm '%s' %s; set it to 0",
                       a->name,
                       sl_reads(a, "beta") ? "has a momentum of its own, algorithm.beta"
                                           : "is defined without momentum");
    if (o->momentum > 0 && o->nesterov && a->heavy_ball)
        return sl_fail(
            error, SL_EINVAL,
            "optimizer.nesterov: true, but the momentum of algorithm '%s' is heavy ball; "
            "set it to false",
            a->name);
    if (o->kind != SL_OPTIMIZER_SGD && (!a->takes_momentum || a->takes_sgd_only))
        return sl_fail(
            error, SL_EINVAL,
            "optimizer.name: \"%s\", but algorithm '%s' is defined on gradients here and "
            "takes \"sgd\" only",
            sl_optimizer_name(o->kind), a->name);
    return 0;
}

static int check_buffers(const sl_algorithm *a, const sl_algorithm_config *c,
                         const sl_optimizer_config *o, sl_error *error) {
    static const char *const names[] = {"local", "average", "reset"};
    if (c->buffers == SL_BUFFERS_LOCAL || !sl_reads(a, "buffers") || o->momentum > 0)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.buffers: \"%s\" is for those of optimizer.momentum, which is 0; take "
                   "\"local\", or set optimizer.momentum",
                   names[c->buffers]);
}

static int check_parameters(const sl_algorithm *a, const sl_algorithm_config *c, sl_error *error) {
    if (c->staleness > 0 && a->keeps_replicas)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.staleness: algorithm '%s' keeps replicas of its neighbours' "
                       "models, which take each message in its round; leave it out, or take "
                       "d-psgd, which may mix older models",
                       a->name);
    if (c->replicas != SL_REPLICAS_SUM && !a->keeps_replicas)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.replicas: \"per-neighbour\", but algorithm '%s' keeps none that "
                       "could be told apart; leave the key out",
                       a->name);
    if (c->steps_of.count > 0 && !sl_reads(a, "local_epochs"))
        return sl_fail(error, SL_EINVAL,
                       "algorithm.local_steps: is a list, but the nodes of algorithm '%s' exchange "
                       "together; give one number, or take fedavg",
                       a->name);
    if (c->local_steps > 1 && !a->takes_local_steps)
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.local_steps: %llu, but algorithm '%s' cannot take local steps: its messages "
            "follow the model from exchange to "
            "exchange; use d-psgd, choco-sgd, deep-squeeze or sgp, or local-sgd with `period`",
            (unsigned long long)c->local_steps, a->name);
    return 0;
}

static int check_directions(const sl_algorithm *a, const sl_algorithm_config *c, sl_error *error) {
    if (c->directions == SL_DIRECTIONS_BOTH &&
        (a->route == SL_ROUTE_ALL || a->route == SL_ROUTE_ALL_REDUCE))
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.directions: \"both\", but %s with a compressor has no server that "
            "would send messages back; set it to \"up\", or take parameter-server",
            a->name);
    if (c->delay > 0 && sl_reads(a, "delay") && c->compressor.kind != SL_COMPRESSOR_IDENTITY)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.delay: %llu, but late gradients are not compressed, and the "
                       "compressor is %s; set delay to 0, or leave the compressor out",
                       (unsigned long long)c->delay, sl_compressor_name(c->compressor.kind));
    return 0;
}

/* ---- the compressor ---- */

static int check_scope(const sl_algorithm *a, const sl_algorithm_config *c, sl_error *error) {
    if (c->compressor.scope == SL_SCOPE_TENSOR && is_servers(a) && c->server == SL_SERVER_SHARDED)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.per: \"tensor\" and algorithm.server: \"sharded\" cut "
                       "the vector in two ways; take one of them");
    return 0;
}

static int check_own_compressor(const sl_algorithm *a, sl_compressor_kind kind, sl_error *error) {
    if (a->own_compressor != SL_COMPRESSOR_IDENTITY && kind != a->own_compressor &&
        kind != SL_COMPRESSOR_IDENTITY)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.name: \"%s\"; %s has a compressor of its own (%s): "
                       "leave the key out",
                       sl_compressor_name(kind), a->name, sl_compressor_name(a->own_compressor));
    return 0;
}

static int check_largest(const sl_algorithm *a, sl_compressor_kind kind, sl_error *error) {
    if (a->compressor == SL_TAKES_LARGEST && kind != SL_COMPRESSOR_TOP_K &&
        kind != SL_COMPRESSOR_IDENTITY)
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.compressor.name: \"%s\", but %s sends the largest entries: set it "
            "to \"top-k\"",
            sl_compressor_name(kind), a->name);
    return 0;
}

static int check_identity(const sl_algorithm *a, sl_compressor_kind kind, sl_error *error) {
    if (a->compressor == SL_TAKES_IDENTITY && kind != SL_COMPRESSOR_IDENTITY)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.name: \"%s\", but algorithm '%s' sends vectors as "
                       "they are, and would stall at an error floor otherwise; use choco-sgd, "
                       "deep-squeeze or dcd-psgd (or naive-compression, to see it stall)",
                       sl_compressor_name(kind), a->name);
    return 0;
}

/* A compressor of two inputs needs the vector and what is new of it. Servers have one vector. */
static int check_fresh(const sl_algorithm *a, const sl_algorithm_config *c, sl_error *error) {
    bool keeps = false;
    for (size_t i = 0; i < a->stage_count; i++)
        keeps = keeps || a->stages[i].fresh != NULL;
    if (!sl_compressor_reads_fresh(c->compressor.kind))
        return 0;
    if (!keeps)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.name: \"%s\" reads what is new beside what is left of "
                       "earlier messages, and algorithm '%s' keeps no two such vectors; take "
                       "parameter-server, all-reduce, local-sgd or fedavg",
                       sl_compressor_name(c->compressor.kind), a->name);
    if (c->directions == SL_DIRECTIONS_BOTH)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.directions: \"both\", but servers have no vector of what is new, "
                       "which %s reads; set it to \"up\"",
                       sl_compressor_name(c->compressor.kind));
    return 0;
}

/* Agreeing on a scale is a stage of its own. */
static int check_shared_scale(const sl_algorithm *a, const sl_algorithm_config *c,
                              sl_error *error) {
    bool agrees = false;
    for (size_t i = 0; i < a->stage_count; i++)
        agrees = agrees || a->stages[i].scale != NULL;
    return agrees || !c->compressor.share_scale || c->compressor.kind != SL_COMPRESSOR_TERNGRAD
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "algorithm.compressor.share_scale: true, but the nodes of algorithm '%s' "
                         "do not agree on one; set it to false, or take parameter-server or "
                         "all-reduce",
                         a->name);
}

int sl_algorithm_check(const sl_algorithm_config *config, const sl_topology *topology,
                       const sl_optimizer_config *optimizer, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(config, error);
    int result = a == NULL ? SL_EINVAL : check_matrix(a, config->replicas, topology, error);
    if (result == 0)
        result = check_server(a, config, sl_topology_nodes(topology), error);
    if (result == 0)
        result = check_group(a, config, sl_topology_nodes(topology), error);
    if (result == 0)
        result = check_optimizer(a, optimizer, error);
    if (result == 0)
        result = check_buffers(a, config, optimizer, error);
    if (result == 0)
        result = check_parameters(a, config, error);
    if (result == 0)
        result = check_trim(a, config, topology, error);
    if (result == 0)
        result = check_directions(a, config, error);
    if (result == 0)
        result = check_own_compressor(a, config->compressor.kind, error);
    if (result == 0)
        result = check_identity(a, config->compressor.kind, error);
    if (result == 0)
        result = check_largest(a, config->compressor.kind, error);
    if (result == 0)
        result = check_fresh(a, config, error);
    if (result == 0)
        result = check_shared_scale(a, config, error);
    if (result == 0)
        result = check_scope(a, config, error);
    if (result == 0)
        result = sl_schedule_check(a, config, error);
    if (result == 0)
        result = check_contraction(a, topology, error);
    if (result == 0)
        result = check_eigenvalue(a, config, topology, error);
    return result != 0 || a->check == NULL ? result : a->check(config, topology, error);
}

int sl_algorithm_check_shapes(const sl_algorithm_config *config, const sl_shapes *shapes,
                              sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(config, error);
    if (a == NULL)
        return SL_EINVAL;
    return a->check_shapes != NULL ? a->check_shapes(config, shapes, error) : 0;
}
