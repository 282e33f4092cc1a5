/* test_weights.c - weight schemes: against published values and closed forms, and what every one
 * promises on hundreds of graphs. */
#include "starling/links.h"
#include "starling/optimal.h"
#include "starling/rng.h"
#include "starling/spectrum.h"
#include "topologies.h"

static sl_spectrum spectrum(const sl_topology *t) {
    sl_spectrum s;
    EXPECT_WELL(sl_spectrum_compute(&s, t, NULL, &error));
    return s;
}

/* `format` says where the name of the weights goes. */
static void expect_rho(const char *format, const char *weights, double rho, double within) {
    sl_topology *t = make(format, weights);
    sl_spectrum s = spectrum(t);
    ck_assert_msg(fabs(s.rho - rho) <= within, "%s of %s: rho %.12g, not %.12g", weights, format,
                  s.rho, rho);
    sl_optimum o;
    if (sl_topology_optimum(&o, t)) {
        ck_assert_msg(o.converged, "%s of %s: bound %.12g, rho %.12g after %u", weights, format,
                      o.lower_bound, o.rho, o.iterations);
        ck_assert(fabs(o.rho - s.rho) < 1e-13 && o.lower_bound <= rho + within &&
                  o.lower_bound >= rho - within - 1e-8);
    }
}

/* ---- published ---- */

/* Boyd and Mutapcic's example of 8 nodes and 13 edges for "Convex optimization of graph Laplacian
 * eigenvalues", ICM 2006; four digits are given. */
START_TEST(eight_nodes_have_the_published_rho) {
    static const char graph[] =
        "{'nodes': 8, 'weights': '%s', 'edges': [[0,1], [1,2], [2,3], [0,4], [1,7], [1,3], [4,5], "
        "[4,6], [2,6], [3,7], [5,6], [6,7], [1,6]]}";
    expect_rho(graph, "fdla", 0.6433, 5e-5);
    expect_rho(graph, "fmmc", 0.6810, 5e-5);
    expect_rho(graph, "metropolis0", 0.7743, 5e-5);
    expect_rho(graph, "max-degree0", 0.7793, 5e-5);
    expect_rho(graph, "best-constant", 0.7119, 5e-5);
}

START_TEST(optimal_weights_are_the_closed_forms) {
    for (uint32_t n = 3; n <= 30; n += 3) /* Boyd, Diaconis, Sun, Xiao 2006 */
        expect_rho(printed("{'nodes': %u, 'family': 'path', 'weights': '%%s'}", n), "fmmc",
                   cos(M_PI / n), 1e-8);
    for (uint32_t d = 2; d <= 5; d++) {
        const char *cube =
            printed("{'nodes': %u, 'family': 'hypercube', 'weights': '%%s'}", 1u << d);
        expect_rho(cube, "fmmc", (d - 1.0) / (d + 1.0), 1e-8);
        expect_rho(cube, "fdla", (d - 1.0) / (d + 1.0), 1e-8);
        expect_rho(cube, "best-constant", (d - 1.0) / (d + 1.0), 1e-9);
    }
    static const char petersen[] =
        "{'nodes': 10, 'weights': '%s', 'edges': [[0,1], [1,2], [2,3], [3,4], [4,0], [5,7], [7,9], "
        "[9,6], [6,8], [8,5], [0,5], [1,6], [2,7], [3,8], [4,9]]}";
    expect_rho(petersen, "fmmc", 3. / 7, 1e-8);
    expect_rho(petersen, "fdla", 3. / 7, 1e-8);
    expect_rho("{'nodes': 9, 'family': 'complete', 'weights': '%s'}", "fmmc", 0, 1e-8);
    expect_rho("{'nodes': 2, 'family': 'path', 'weights': '%s'}", "fmmc", 0, 1e-8);
}

/* ---- properties ---- */

enum { NODES_MAX = 24, EDGES_MAX = NODES_MAX * (NODES_MAX - 1) / 2 };

typedef struct random_graph {
    uint32_t nodes;
    size_t edge_count;
    sl_edge edges[EDGES_MAX];
} random_graph;

/* A random tree and some more edges: connected, and from path-like to nearly complete. */
static random_graph draw(uint64_t seed) {
    sl_rng random = sl_rng_open(seed, 0, 0, SL_PURPOSE_TOPOLOGY);
    random_graph g = {.nodes = 2 + sl_rng_below(&random, NODES_MAX - 1)};
    double density = sl_rng_uniform(&random) * sl_rng_uniform(&random);
    for (uint32_t i = 1; i < g.nodes; i++) {
        uint32_t parent = sl_rng_below(&random, i);
        for (uint32_t j = 0; j < i; j++)
            if (j == parent || sl_rng_uniform(&random) < density)
                g.edges[g.edge_count++] = (sl_edge){j, i, 0};
    }
    return g;
}

static sl_topology *weigh(const random_graph *g, sl_weighting weighting) {
    sl_slot_spec slot = {g->edges, g->edge_count};
    sl_topology_spec spec;
    sl_topology_spec_defaults(&spec);
    spec.nodes = g->nodes;
    spec.family = SL_FAMILY_EDGES;
    spec.weighting = weighting;
    spec.slots = &slot;
    spec.slot_count = 1;
    sl_topology *t = NULL;
    EXPECT_WELL(sl_topology_open(&t, &spec, &error));
    return t;
}

static double smallest_weight(const sl_topology *t) {
    double smallest = 1;
    for (uint32_t i = 0; i < sl_topology_nodes(t); i++) {
        sl_row row = sl_topology_in(t, 1, i);
        smallest = fmin(smallest, row.self);
        for (uint32_t e = 0; e < row.count; e++)
            smallest = fmin(smallest, row.weights[e]);
    }
    return smallest;
}

static double rho_of(const random_graph *g, sl_weighting weighting, uint64_t seed) {
    sl_topology *t = weigh(g, weighting);
    sl_stochasticity s = sl_topology_stochasticity(t);
    ck_assert_msg(s.symmetric && s.row && s.column && s.row_residual < 1e-13, "seed %llu, %s",
                  (unsigned long long)seed, sl_weighting_name(weighting, false));
    if (weighting != SL_WEIGHTING_FDLA && weighting != SL_WEIGHTING_BEST_CONSTANT)
        ck_assert_double_ge(smallest_weight(t), -1e-15);
    sl_optimum o;
    double rho = spectrum(t).rho;
    if (sl_topology_optimum(&o, t))
        ck_assert_msg(o.converged && o.lower_bound <= o.rho && fabs(o.rho - rho) < 1e-12,
                      "seed %llu: %.12g, at least %.12g after %u", (unsigned long long)seed, o.rho,
                      o.lower_bound, o.iterations);
    sl_topology_close(&t);
    return rho;
}

START_TEST(on_every_graph_the_optima_are_below_the_others) {
    static const sl_weighting nonnegative[] = {SL_WEIGHTING_METROPOLIS, SL_WEIGHTING_METROPOLIS0,
                                               SL_WEIGHTING_MAX_DEGREE, SL_WEIGHTING_MAX_DEGREE0};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_graph g = draw(seed);
        double fdla = rho_of(&g, SL_WEIGHTING_FDLA, seed),
               fmmc = rho_of(&g, SL_WEIGHTING_FMMC, seed);
        bool ordered = fdla <= fmmc + 1e-8 &&
                       fdla <= rho_of(&g, SL_WEIGHTING_BEST_CONSTANT, seed) + 1e-8 && fdla < 1;
        for (size_t k = 0; k < sizeof nonnegative / sizeof *nonnegative; k++)
            ordered = ordered && fmmc <= rho_of(&g, nonnegative[k], seed) + 1e-8;
        ck_assert_msg(ordered, "seed %llu: fdla %.9g, fmmc %.9g", (unsigned long long)seed, fdla,
                      fmmc);
    }
}

/* No tolerance is met: the interior-point method has no way on, and must say so. */
START_TEST(an_optimisation_ends_and_says_how_far_it_came) {
    random_graph g = draw(7);
    double weights[EDGES_MAX];
    sl_optimum_settings settings;
    sl_optimum_defaults(&settings);
    settings.tolerance = 1e-300;
    sl_optimum o;
    EXPECT_WELL(sl_optimal_weights(&o, weights, g.nodes, g.edges, g.edge_count, SL_SIGN_NONNEGATIVE,
                                   &settings, &error));
    ck_assert(!o.converged && o.rho - o.lower_bound < 1e-8 && o.lower_bound <= o.rho);
    settings.tolerance = 1e-8;
    settings.work_max = 0;
    EXPECT_WELL(sl_optimal_weights(&o, weights, g.nodes, g.edges, g.edge_count, SL_SIGN_NONNEGATIVE,
                                   &settings, &error));
    ck_assert(!o.converged && o.iterations == 1);
    settings.tolerance = 0;
    ck_assert_int_eq(sl_optimal_weights(&o, weights, g.nodes, g.edges, g.edge_count, SL_SIGN_ANY,
                                        &settings, &error),
                     SL_EINVAL);
    g.edges[0] = g.edges[1]; /* no longer connected, or twice the same edge */
    ck_assert_int_eq(
        sl_optimal_weights(&o, weights, g.nodes, g.edges, g.edge_count, SL_SIGN_ANY, NULL, &error),
        SL_EINVAL);
}

/* Beyond the interior-point method, and all edges alike, so that a constant is the optimum: known
 * from the Laplacian's smallest and largest eigenvalue. */
START_TEST(large_graphs_come_near_the_optimum_under_an_honest_bound) {
    const double smallest = 2 - 2 * cos(2 * M_PI / 21), largest = 4 - 4 * cos(20 * M_PI / 21),
                 best = (largest - smallest) / (largest + smallest), metropolis = 1 - smallest / 5;
    sl_topology *t = parse("{'nodes': 441, 'family': 'torus', 'weights': 'fmmc'}");
    sl_optimum o;
    ck_assert(sl_topology_optimum(&o, t) && smallest_weight(t) >= 0);
    ck_assert_msg(best - 0.05 * (1 - best) < o.lower_bound && o.lower_bound <= best &&
                      best - 1e-12 <= o.rho && o.rho < best + 0.2 * (metropolis - best),
                  "%.9g <= %.9g <= %.9g", o.lower_bound, best, o.rho);
}

/* Whoever reads the file can see how good its weights are. */
START_TEST(files_of_optimal_weights_say_how_near_they_are) {
    const char *text = json_of(parse("{'nodes': 9, 'family': 'path', 'weights': 'fmmc'}"));
    double rho, bound;
    const char *at = strstr(text, "\"optimum\":");
    ck_assert_msg(at != NULL && sscanf(at, "\"optimum\":{\"rho\":%lf,\"lower_bound\":%lf}", &rho,
                                       &bound) == 2,
                  "%s", text);
    ck_assert(fabs(rho - cos(M_PI / 9)) < 1e-8 && bound <= rho && bound > rho - 1e-8);
    ck_assert_str_eq(json_of(parse(text)), text);
}

/* ---- links ---- */

#define LINKED(links)                                                                              \
    "{'nodes': 4, 'weights': '%s', 'links': " links                                                \
    ", 'edges': [[0,1], [1,2], [2,3], [3,0], [0,2]]}"

START_TEST(weights_follow_bandwidth) {
    sl_topology *t =
        make(LINKED("{'nodes': 4, 'bandwidth_mbit': 100, 'links': [[2, 0, 300], [2, 3, 10]]}"),
             "bandwidth");
    /* 100, 300, 100: 500 in all; node 2: 100 + 300 + 10; nodes 1 and 3: 200 and 110 */
    sl_row zero = sl_topology_in(t, 1, 0);
    ck_assert_double_eq_tol(zero.weights[0], 100. / 600, 1e-15);
    ck_assert_double_eq_tol(zero.weights[1], 300. / 800, 1e-15);
    ck_assert_double_eq_tol(zero.weights[2], 100. / 600, 1e-15);
    ck_assert_double_eq_tol(sl_topology_in(t, 1, 3).weights[1], 10. / 420, 1e-15);
    sl_stochasticity s = sl_topology_stochasticity(t);
    ck_assert(s.symmetric && s.row && s.column && smallest_weight(t) > 0);
    ck_assert_uint_eq(sl_topology_hash(parse(json_of(t))), sl_topology_hash(t));
}

START_TEST(mistakes_with_links_are_told) {
    static const struct {
        const char *format, *weights, *told;
    } mistakes[] = {
        {"{'nodes': 4, 'family': 'ring', 'weights': '%s'}", "bandwidth", "links: missing"},
        {LINKED("{'nodes': 5, 'bandwidth_mbit': 7}"), "bandwidth",
         "links: are of 5 nodes, and the topology has 4"},
        {LINKED("{'nodes': 4, 'links': [[0, 1, 5]]}"), "lazy-bandwidth",
         "links: the link between 0 and 2 has no bandwidth_mbit"},
        {LINKED("\"nowhere.json\""), "bandwidth", "nowhere.json"},
        {LINKED("{'nodes': 4, 'bandwidth_mbit': 7}"), "metropolis",
         "links: have no meaning for weights \"metropolis\""},
    };
    for (size_t k = 0; k < sizeof mistakes / sizeof *mistakes; k++)
        expect_refusal(printed(mistakes[k].format, mistakes[k].weights), mistakes[k].told);
}

/* ---- names ---- */

START_TEST(every_scheme_and_its_lazy_form_has_a_name) {
    for (int w = 0; w < SL_WEIGHTINGS; w++)
        for (int l = 0; l < 2; l++) {
            sl_weighting weighting = SL_WEIGHTING_EXPLICIT;
            bool lazy = !l;
            EXPECT_WELL(sl_weighting_parse(&weighting, &lazy, sl_weighting_name((sl_weighting)w, l),
                                           &error));
            ck_assert(weighting == (sl_weighting)w && lazy == (bool)l);
            ck_assert_uint_gt(strlen(sl_weighting_meaning(weighting)), 10);
        }
    sl_weighting weighting;
    bool lazy;
    EXPECT_WELL(sl_weighting_parse(&weighting, &lazy, "lazy", &error));
    ck_assert(weighting == SL_WEIGHTING_METROPOLIS && lazy);
    ck_assert_int_eq(sl_weighting_parse(&weighting, &lazy, "metropolys", &error), SL_EINVAL);
    ck_assert_str_eq(error.text, "weights: \"metropolys\" is not known; did you mean "
                                 "\"metropolis\"?");
    ck_assert_int_eq(sl_weighting_parse(&weighting, &lazy, "?", &error), SL_EINVAL);
    ck_assert_str_eq(error.text, "weights: \"?\" is not known; it must be one of metropolis, "
                                 "metropolis0, "
                                 "max-degree, max-degree0, uniform, best-constant, fmmc, fdla, "
                                 "push-sum, bandwidth, or lazy- and one of them");
}
