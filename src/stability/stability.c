/* stability.c - see starling/stability.h.
 *
 * Where all nodes have the same curvature, most linear algorithms treat each eigenvector of a fixed
 * symmetric W by itself, and know of it no more than the eigenvalue. So two nodes show each
 * eigenvalue lambda: with W = [1 + lambda, 1 - lambda; 1 - lambda, 1 + lambda] / 2 and models x and
 * -x their difference goes as that eigenvector does, and with models x and x as the mean of all.
 * Of other algorithms and other W a small network is run whole, from models that have a part of
 * everything. The simulator runs the algorithm's own code; the limit is found by bisection.
 */
#include "starling/stability.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "starling/analysis.h"
#include "starling/sim.h"

/* A course of ROUNDS shows a growth of a few thousandths a round. */
enum { ROUNDS = 1200, QUARTER = ROUNDS / 4, LOOK = 150, HALVINGS = 7, PROOF_ROUNDS = 12 };
static const double least = 1.0 / 64, most = 64, escaped = 1e12;
/* Steps are tried so far apart: above some that diverge there may be others that do not. */
static const double apart = 1.15, nearly = 0.002;
static const double scattered = 0; /* a sign of none */
static const double gone = 1e-4;   /* what is smaller is rounding */
/* What stays as it is may come there from below: easgd's nodes keep their first centres apart. */
static const double level = 1.02;

/* Of a network that is run whole, its nodes and messages of a round; of any, the rounds until what
 * it does is done again. */
enum { NETWORK_MAX = 200, REPEATS_MAX = 50 };

/* One number at each node. */
typedef struct course {
    uint32_t nodes;
    double first, sign; /* of two nodes the first model; the second one by it; `scattered`: of any
                           others */
    double early, late; /* the largest of the second and of the last quarter */
    double here;        /* of the rounds since the last whole LOOK */
    double last;        /* of rank 0 */
    bool vanished;
    int stop;
} course;

/* Scattered models have a part of everything. */
static void initial(void *context, uint32_t rank, float *x) {
    const course *c = context;
    const double any = (double)((rank + 1) * 2654435761u >> 8) / (1 << 24) + 0.25;
    x[0] = (float)(c->first * (c->sign == scattered ? any : rank == 0 ? 1 : c->sign));
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    (void)context, (void)rank, (void)round;
    g[0] = x[0];
    return 1;
}

static sl_evaluation evaluate(void *context, const float *x) {
    (void)context, (void)x;
    return (sl_evaluation){0};
}

static int record(void *context, const sl_record *r, const float *x) {
    course *c = context;
    const uint64_t round = r->round.round;
    const double size = fabs((double)x[0]);
    const bool is_look = round % LOOK == 0 && r->rank == c->nodes - 1;
    if (r->rank == 0)
        c->last = x[0];
    if (round > QUARTER && round <= 2 * QUARTER)
        c->early = fmax(c->early, size);
    else if (round > 3 * QUARTER)
        c->late = fmax(c->late, size);
    c->here = fmax(c->here, size);
    c->vanished = c->vanished || (is_look && c->here < gone);
    c->stop = c->stop || !(size < escaped) || c->vanished;
    c->here = is_look ? 0 : c->here;
    return 0;
}

/* Without what a quadratic of one number does not need. */
static sl_experiment *copy_of(const sl_experiment *e, const sl_plan *plan) {
    sl_experiment *two = malloc(sizeof *two);
    if (two == NULL)
        return NULL;
    *two = *e;
    two->algorithm = plan->config;
    two->algorithm.compressor = (sl_compressor_config){.kind = SL_COMPRESSOR_IDENTITY};
    if (plan->step_size_derived)
        two->algorithm.consensus_step = two->algorithm.eta = plan->step_size;
    two->optimizer.schedule = (sl_schedule){.kind = SL_SCHEDULE_CONSTANT};
    two->optimizer.weight_decay = two->optimizer.clip_norm = 0;
    two->record = (sl_record_config){.every = 1};
    two->checkpoint = (sl_checkpoint_config){0};
    two->network = (sl_network_config){0};
    two->membership.on_loss = SL_ON_LOSS_STOP;
    two->faults = (sl_faults){0};
    two->final_average = false;
    two->loss_limit = INFINITY;
    two->topology = NULL;
    return two;
}

/* The experiment with two nodes that show lambda. */
static int pair_of(sl_experiment *two, double lambda, sl_error *error) {
    char text[128];
    const double w = (1 - lambda) / 2;
    sl_topology_close(&two->topology);
    snprintf(text, sizeof text, "{\"nodes\": 2, \"edges\": [[0, 1, %.17g], [1, 0, %.17g]]}", w, w);
    return sl_topology_parse(&two->topology, text, "two nodes", error);
}

static int run(sl_experiment *two, double step, uint64_t rounds, course *c, sl_error *error) {
    const sl_task task = {.context = c,
                          .dimension = 1,
                          .rounds = rounds,
                          .initial = initial,
                          .gradient = gradient,
                          .evaluate = evaluate};
    const sl_observer observer = {.context = c, .record = record};
    two->rounds = rounds;
    two->optimizer.learning_rate = step;
    const int result = sl_sim_run(two, &task, &observer, NULL, NULL, &c->stop, error);
    const bool ends = result == SL_ESTOPPED || result == SL_EDIVERGED;
    if (ends && !c->vanished)
        c->late = INFINITY;
    return ends ? 0 : result;
}

static int is_stable(bool *stable, sl_experiment *two, double step, double sign, sl_error *error) {
    course c = {.nodes = sl_topology_nodes(two->topology), .first = 1, .sign = sign};
    const int result = run(two, step, ROUNDS, &c, error);
    *stable = c.late <= fmax(level * c.early, gone);
    return result;
}

/* Between the first step below `cap` that diverges and the one before it; INFINITY: none does. */
static int bisect(double *limit, sl_experiment *two, double sign, double cap, sl_error *error) {
    const double last = cap * (1 - nearly);
    double low = 0, high = least;
    bool stable = true;
    int result = is_stable(&stable, two, high, sign, error);
    while (result == 0 && stable && high < last) {
        low = high;
        high = fmin(high * apart, last);
        result = is_stable(&stable, two, high, sign, error);
    }
    const bool found = !stable;
    for (int i = 0; i < HALVINGS && result == 0 && found; i++) {
        const double middle = (low + high) / 2;
        result = is_stable(&stable, two, middle, sign, error);
        *(stable ? &low : &high) = middle;
    }
    *limit = found ? low : INFINITY;
    return result;
}

/* Twice the start gives twice the course, to the bit. */
static int check_linear(sl_experiment *two, sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(two->topology);
    course one = {.nodes = nodes, .first = 1, .sign = 0.5}, twice = one;
    twice.first = 2;
    int result = run(two, 0.03125, PROOF_ROUNDS, &one, error);
    if (result == 0)
        result = run(two, 0.03125, PROOF_ROUNDS, &twice, error);
    return result != 0 || twice.last == 2 * one.last
               ? result
               : sl_fail(error, SL_EINVAL, "algorithm '%s' is not linear", two->algorithm.name);
}

/* Below the mean's limit: INFINITY if that comes first. */
static int find_apart(double *limit, double *at, sl_experiment *two, const double *lambdas,
                      double mean, sl_error *error) {
    int result = 0;
    *limit = INFINITY;
    *at = lambdas[0];
    for (int i = 0; i < 2 && result == 0; i++) {
        double of_one;
        result = pair_of(two, lambdas[i], error);
        if (result == 0)
            result = bisect(&of_one, two, -1, fmin(*limit, mean), error);
        if (result == 0 && of_one < *limit) {
            *limit = of_one;
            *at = lambdas[i];
        }
    }
    return result;
}

static int find(sl_stability *out, sl_experiment *two, const double lambdas[2], sl_error *error) {
    const double lazy[] = {(1 + lambdas[0]) / 2, (1 + lambdas[1]) / 2};
    double at;
    int result = pair_of(two, 0.5, error);
    if (result == 0)
        result = check_linear(two, error);
    if (result == 0)
        result = bisect(&out->mean, two, 1, most, error);
    if (result == 0)
        result = find_apart(&out->apart, &out->lambda, two, lambdas, out->mean, error);
    out->lazy = out->apart;
    if (result == 0 && out->apart < out->mean)
        result = find_apart(&out->lazy, &at, two, lazy, out->mean, error);
    out->most = fmin(out->mean, out->apart);
    out->lazy = fmin(out->mean, out->lazy);
    return result;
}

/* Of the network itself, which is lent. */
static int find_whole(sl_stability *out, sl_experiment *copy, sl_topology *network,
                      sl_error *error) {
    copy->topology = network;
    int result = check_linear(copy, error);
    if (result == 0)
        result = bisect(&out->most, copy, scattered, most, error);
    out->mean = out->lazy = out->most;
    out->apart = INFINITY;
    copy->topology = NULL;
    return result;
}

static bool is_small(const sl_topology *t) {
    return sl_topology_nodes(t) + sl_topology_traffic(t).messages <= NETWORK_MAX;
}

/* Does W matter, and more of it than its eigenvalues? */
static bool needs_network(const sl_experiment *e, const sl_algorithm *algorithm, double lambda_n) {
    return algorithm->stable_by == SL_STABLE_BY_NETWORK ||
           (algorithm->matrix != SL_MATRIX_NONE &&
            (sl_topology_period(e->topology) > 1 || isnan(lambda_n)));
}

static int refuse(const sl_experiment *e, const sl_algorithm *algorithm, bool whole,
                  sl_error *error) {
    if (e->optimizer.kind != SL_OPTIMIZER_SGD)
        return sl_fail(error, SL_EINVAL, "steps of %s do not follow from the curvature",
                       sl_optimizer_name(e->optimizer.kind));
    if (algorithm->stable_by == SL_STABLE_UNKNOWN ||
        algorithm->own_compressor != SL_COMPRESSOR_IDENTITY)
        return sl_fail(error, SL_EINVAL,
                       algorithm->async != NULL ? "nodes of '%s' go at their own times here"
                                                : "algorithm '%s' is not linear",
                       algorithm->name);
    const uint64_t slots =
        algorithm->matrix != SL_MATRIX_NONE ? sl_topology_period(e->topology) : 1;
    if (slots * sl_algorithm_interval(algorithm, &e->algorithm) > REPEATS_MAX)
        return sl_fail(error, SL_EINVAL, "it is more than %d rounds until W comes again",
                       REPEATS_MAX);
    if (whole && !is_small(e->topology))
        return sl_fail(error, SL_EINVAL,
                       "more of the network counts than W's eigenvalues, and it is not small");
    return 0;
}

int sl_stability_find(sl_stability *out, const sl_experiment *e, const sl_plan *plan,
                      double lambda_2, double lambda_n, sl_error *error) {
    const sl_algorithm *algorithm = sl_algorithm_of(&plan->config, error);
    if (algorithm == NULL)
        return SL_EINVAL;
    const bool whole = needs_network(e, algorithm, lambda_n);
    int result = refuse(e, algorithm, whole, error);
    if (result != 0)
        return result;
    sl_experiment *copy = copy_of(e, plan);
    if (copy == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for an experiment");
    sl_stability found = {0};
    const double lambdas[] = {isnan(lambda_2) ? 0 : lambda_2, isnan(lambda_n) ? 0 : lambda_n};
    result =
        whole ? find_whole(&found, copy, e->topology, error) : find(&found, copy, lambdas, error);
    if (result == 0)
        *out = found;
    sl_topology_close(&copy->topology);
    free(copy);
    return result;
}
