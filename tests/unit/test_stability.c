/* test_stability.c - the steps that two nodes find stable, against closed forms, and against whole
 * networks whose models' largest number is watched. */
#include "experiments.h"
#include "starling/starling.h"

/* Of curvatures 1 and 1/2. */
enum { D = 2, ROUNDS = 1600 };
static const double near = 0.03;
static sl_error error;
#define METROPOLIS ", 'weights': 'metropolis'"
static const char *const topologies[] = {
    "'nodes': 8, 'family': 'ring'" METROPOLIS,  "'nodes': 8, 'family': 'hypercube'" METROPOLIS,
    "'nodes': 9, 'family': 'torus'" METROPOLIS, "'nodes': 6, 'family': 'star'" METROPOLIS,
    "'nodes': 5, 'family': 'path'" METROPOLIS,  "'nodes': 7, 'family': 'complete'" METROPOLIS};
enum { TOPOLOGIES = sizeof topologies / sizeof *topologies };

static const struct {
    const char *algorithm;
    bool takes_momentum;
} forms[] = {
    {"'name': 'd-psgd'", true},
    {"'name': 'd-psgd', 'variant': 'combine-while-adapt'", true},
    {"'name': 'gradient-tracking'", false},
    {"'name': 'gradient-tracking', 'variant': 'combine-while-adapt'", false},
    {"'name': 'd-psgd', 'local_steps': 3", true},
    {"'name': 'sgp'", true},
    {"'name': 'naive-compression'", true},
    {"'name': 'gossip-pga', 'average_period': 7", true},
    {"'name': 'exact-diffusion'", false},
    {"'name': 'qgm'", false},
    {"'name': 'decentlam'", false},
    {"'name': 'lead'", false},
    {"'name': 'choco-sgd'", true},
    {"'name': 'dcd-psgd'", true},
    {"'name': 'ecd-psgd'", true},
    {"'name': 'beer', 'consensus_step': 0.7", false},
    {"'name': 'noloco', 'period': 3", true},
    {"'name': 'deep-squeeze'", true},
};
enum { FORMS = sizeof forms / sizeof *forms };

static bool is_quick(void) {
    return getenv("STARLING_QUICK") != NULL;
}

typedef struct course {
    double early, late;
    int stop;
} course;

static void initial(void *context, uint32_t rank, float *x) {
    for (int i = 0; i < D; i++)
        x[i] = (float)(1 + 0.3 * sin(7.0 * rank + 3 * i));
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    g[0] = x[0];
    g[1] = x[1] / 2;
    return 1;
}

static sl_evaluation evaluate(void *context, const float *x) {
    return (sl_evaluation){0};
}

static int record(void *context, const sl_record *r, const float *x) {
    course *c = context;
    const double size = fmax(fabs((double)x[0]), fabs((double)x[1]));
    double *part = r->round.round > 3 * ROUNDS / 4   ? &c->late
                   : r->round.round > ROUNDS / 2     ? NULL
                   : r->round.round > 1 * ROUNDS / 4 ? &c->early
                                                     : NULL;
    if (part != NULL)
        *part = fmax(*part, size);
    c->stop = !(size < 1e12);
    return 0;
}

static sl_experiment *open_experiment(const char *topology, const char *algorithm, double momentum,
                                      double rate) {
    return experiment_of("{'rounds': %d, 'topology': {%s}, 'algorithm': {%s}, 'optimizer': "
                         "{'learning_rate': %.17g, 'momentum': %g}, 'record': {'every': 1}}",
                         ROUNDS, topology, algorithm, rate, momentum);
}

/* Do all models of the network stay where they began, or come closer to 0? */
static bool stays(const char *topology, const char *algorithm, double momentum, double rate) {
    sl_experiment *e = open_experiment(topology, algorithm, momentum, rate);
    course c = {0};
    const sl_task task = {.context = &c,
                          .dimension = D,
                          .rounds = ROUNDS,
                          .initial = initial,
                          .gradient = gradient,
                          .evaluate = evaluate};
    const sl_observer observer = {.context = &c, .record = record};
    const int result = sl_sim_run(e, &task, &observer, NULL, NULL, &c.stop, &error);
    ck_assert(result == 0 || result == SL_ESTOPPED || result == SL_EDIVERGED);
    return result == 0 && c.late <= fmax(c.early, 1e-4);
}

static double largest_stable(const char *topology, const char *algorithm, double momentum) {
    sl_experiment *e = open_experiment(topology, algorithm, momentum, 0.1);
    sl_spectrum s;
    sl_stability out;
    sl_plan plan;
    EXPECT_WELL(sl_algorithm_plan(&plan, &e->algorithm, e->topology, D, &error));
    EXPECT_WELL(sl_spectrum_compute(&s, e->topology, NULL, &error));
    EXPECT_WELL(sl_stability_find(&out, e, &plan, s.lambda_2, s.lambda_n, &error));
    return out.most;
}

/* A network holds a little below the limit, and does not a little above. */
static void expect_agreement(const char *topology, const char *algorithm, double momentum) {
    const double most = largest_stable(topology, algorithm, momentum);
    ck_assert_msg(stays(topology, algorithm, momentum, (1 - near) * most) &&
                      !stays(topology, algorithm, momentum, (1 + near) * most),
                  "%s of %s, %g: %g", algorithm, topology, momentum, most);
}

/* Each form on two topologies. */
START_LOOP_TEST(networks_agree, TOPOLOGIES *FORMS) {
    const int form = _i / TOPOLOGIES, on = _i % TOPOLOGIES;
    const double momenta[] = {0.9, 0.5, 0};
    if (on != form % TOPOLOGIES && (is_quick() || on != (form + 3) % TOPOLOGIES))
        return;
    if (is_quick() && form % 2 != 0)
        return;
    for (int i = forms[form].takes_momentum ? 0 : 2; i < 3; i += is_quick() ? 3 : 1)
        expect_agreement(topologies[on], forms[form].algorithm, momenta[i]);
}

/* Where the network itself is run: other algorithms, directed edges, schedules. */
static const struct {
    const char *topology, *algorithm;
    double momentum;
} whole[] = {
    {"'nodes': 7, 'family': 'k-ary-tree'", "'name': 'relaysum'", 0},
    {"'nodes': 5, 'family': 'path'", "'name': 'relaysum'", 0.9},
    {"'nodes': 6, 'family': 'ring'", "'name': 'easgd', 'period': 2", 0.5},
    {"'nodes': 5, 'family': 'directed-ring'", "'name': 'd-psgd'", 0.9},
    {"'nodes': 8, 'family': 'static-exponential'", "'name': 'sgp'", 0.9},
    {"'nodes': 8, 'family': 'one-peer-exponential'", "'name': 'd-psgd'", 0.9},
    {"'nodes': 6, 'family': 'base-k', 'peers': 1", "'name': 'gradient-tracking'", 0},
};

START_LOOP_TEST(whole_networks_agree, sizeof whole / sizeof *whole) {
    if (!is_quick() || _i % 4 == 0)
        expect_agreement(whole[_i].topology, whole[_i].algorithm, whole[_i].momentum);
}

static double bowl(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    g[0] = (float)(1 + rank) * x[0];
    g[1] = 0.25f * x[1];
    return 1;
}

START_TEST(curvature_is_the_largest_of_a_few_nodes) {
    const sl_task task = {.dimension = D, .initial = initial, .gradient = bowl};
    ck_assert_double_eq_tol(sl_stability_curvature(&task, 4), 4, 1e-3);
    ck_assert_double_eq_tol(sl_stability_curvature(&task, 1), 1, 1e-3);
}
