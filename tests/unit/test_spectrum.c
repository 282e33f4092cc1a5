/* test_spectrum.c - formulas against LAPACK, LAPACK against numpy where W is not normal, and what
 * iterations say of themselves. */
#include "starling/rng.h"
#include "starling/spectrum.h"
#include "topologies.h"
#include "topology/spectrum/spectral.h"

/* By what AUTO takes where there is no formula and the graph is large. */
static sl_spectrum iterate(const sl_topology *t) {
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    sl_spectrum s;
    EXPECT_WELL(sl_spectrum_symmetric(&s, &t->graph, &settings, &error));
    return s;
}

static sl_spectrum compute(const sl_topology *t, sl_spectrum_method method) {
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    settings.method = method;
    sl_spectrum s;
    EXPECT_WELL(sl_spectrum_compute(&s, t, &settings, &error));
    return s;
}

/* ---- formulas ---- */

static sl_spectrum formula(sl_topology_spec *spec, sl_family family, sl_weighting weighting,
                           uint32_t nodes) {
    spec->family = family;
    spec->weighting = weighting;
    spec->nodes = nodes;
    sl_spectrum s;
    ck_assert(sl_spectrum_closed_form(&s, spec));
    ck_assert(s.converged && s.symmetric && s.method == SL_SPECTRUM_CLOSED_FORM &&
              s.nodes == nodes);
    return s;
}

/* NaN equals NaN. */
static bool is_near(double a, double b, double near) {
    return (isnan(a) && isnan(b)) || fabs(a - b) < near;
}

/* Returns 1 if there is a formula. */
static int expect_dense(const sl_topology_spec *spec) {
    sl_spectrum known, computed;
    if (!sl_spectrum_closed_form(&known, spec))
        return 0;
    sl_topology *t = NULL;
    EXPECT_WELL(sl_topology_open(&t, spec, &error));
    computed = compute(t, SL_SPECTRUM_DENSE);
    sl_topology_close(&t);
    double near =
        spec->weighting == SL_WEIGHTING_BEST_CONSTANT ? 1e-9 : 1e-13; /* that constant is rounded */
    ck_assert_msg(
        is_near(known.lambda_2, computed.lambda_2, near) &&
            is_near(known.lambda_n, computed.lambda_n, near) &&
            is_near(known.gap, computed.gap, near) && is_near(known.rho, computed.rho, near) &&
            is_near(known.singular_2, computed.singular_2, near) &&
            known.multiplicity == computed.multiplicity,
        "family %d, weights %d, %u nodes: %.17g %.17g %.17g x%u, by LAPACK %.17g %.17g %.17g x%u",
        spec->family, spec->weighting, spec->nodes, known.lambda_2, known.lambda_n, known.rho,
        known.multiplicity, computed.lambda_2, computed.lambda_n, computed.rho,
        computed.multiplicity);
    return 1;
}

/* Under all weights, lazy and not; returns for how many there is a formula. */
static int expect_dense_weighted(sl_topology_spec *spec) {
    int formulas = 0;
    for (int lazy = 0; lazy <= 1; lazy++)
        for (spec->weighting = SL_WEIGHTING_METROPOLIS; spec->weighting < SL_WEIGHTING_EXPLICIT;
             spec->weighting++) {
            spec->lazy = lazy;
            formulas += expect_dense(spec);
        }
    return formulas;
}

START_TEST(formulas_are_lapacks_eigenvalues) {
    static const sl_family families[] = {SL_FAMILY_RING,         SL_FAMILY_PATH,
                                         SL_FAMILY_STAR,         SL_FAMILY_COMPLETE,
                                         SL_FAMILY_HYPERCUBE,    SL_FAMILY_SYMMETRIC_EXPONENTIAL,
                                         SL_FAMILY_DIRECTED_RING};
    sl_topology_spec spec;
    sl_topology_spec_defaults(&spec);
    int formulas = 0;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (spec.nodes = 2; spec.nodes <= 34; spec.nodes++) {
            spec.family = families[f];
            formulas += expect_dense_weighted(&spec);
        }
    ck_assert_int_gt(formulas, 1000);
    static const uint32_t sides[][4] = {{2, 3},    {2, 2},    {4, 2}, {1, 7},       {5, 4},
                                        {3, 3, 3}, {2, 4, 5}, {6, 6}, {2, 2, 2, 4}, {2, 3, 4, 5}};
    for (size_t k = 0; k < 2 * sizeof sides / sizeof *sides; k++) {
        spec.family = k % 2 ? SL_FAMILY_TORUS : SL_FAMILY_GRID;
        spec.nodes = 1;
        for (spec.side_count = 0; spec.side_count < 4 && sides[k / 2][spec.side_count] > 0;
             spec.side_count++)
            spec.nodes *= spec.sides[spec.side_count] = sides[k / 2][spec.side_count];
        ck_assert_int_ge(expect_dense_weighted(&spec), 6);
    }
    spec.side_count = 0;
    spec.family = SL_FAMILY_COMPLETE_BIPARTITE;
    for (spec.nodes = 2; spec.nodes <= 12; spec.nodes++)
        for (spec.part = 1; spec.part < spec.nodes; spec.part++)
            ck_assert_int_ge(expect_dense_weighted(&spec), 8);
}

START_TEST(circulants_are_searched_to_the_end) {
    sl_rng rng = sl_rng_open(5, 0, 0, SL_PURPOSE_INIT);
    sl_topology_spec spec;
    sl_topology_spec_defaults(&spec);
    spec.family = SL_FAMILY_CIRCULANT;
    for (int i = 0; i < 150; i++) {
        spec.nodes = 5 + sl_rng_below(&rng, 120);
        spec.offsets[0] = 1;
        spec.offset_count = 1 + sl_rng_below(&rng, 6);
        for (uint32_t k = 1; k < spec.offset_count; k++) { /* without repetition */
            uint32_t step = 1 + sl_rng_below(&rng, 9);
            spec.offsets[k] = spec.offsets[k - 1] + step;
            if (spec.offsets[k] > spec.nodes / 2)
                spec.offset_count = k;
        }
        ck_assert_int_ge(expect_dense_weighted(&spec), 10);
    }
    spec.lazy = false;
    sl_spectrum s =
        formula(&spec, SL_FAMILY_SYMMETRIC_EXPONENTIAL, SL_WEIGHTING_METROPOLIS, 1u << 20);
    ck_assert_double_eq_tol(s.gap_lambda2, 4. / 40, 1e-15);
    /* All k tried by numpy, the smallest evaluated by mpmath */
    static const uint32_t offsets[] = {1, 1000, 1000000};
    memcpy(spec.offsets, offsets, sizeof offsets);
    spec.offset_count = 3;
    s = formula(&spec, SL_FAMILY_CIRCULANT, SL_WEIGHTING_METROPOLIS, 10000019);
    ck_assert_double_eq_tol(s.gap_lambda2 / 5.6397599577116574e-6, 1, 1e-13);
    ck_assert_double_eq_tol(s.gap_lambda_n / 0.28877083086340242, 1, 1e-13);
}

START_TEST(gaps_keep_their_digits_up_to_a_billion_nodes) {
    sl_topology_spec spec;
    sl_topology_spec_defaults(&spec);
    sl_spectrum s = formula(&spec, SL_FAMILY_RING, SL_WEIGHTING_METROPOLIS, 1000000);
    ck_assert_double_eq_tol(s.gap / 1.3159472534742519e-11, 1, 1e-14);
    /* 4/3 sin^2(pi/10^9), by mpmath with 40 digits */
    s = formula(&spec, SL_FAMILY_RING, SL_WEIGHTING_METROPOLIS, 1000000000);
    ck_assert_double_eq_tol(s.gap / 1.3159472534785811e-17, 1, 1e-14);
    spec.lazy = true;
    s = formula(&spec, SL_FAMILY_PATH, SL_WEIGHTING_METROPOLIS, 1000000000);
    spec.lazy = false;
    ck_assert_double_eq_tol(s.gap / (1.3159472534785811e-17 / 8), 1, 1e-14);
    s = formula(&spec, SL_FAMILY_STAR, SL_WEIGHTING_METROPOLIS, 1000000000);
    ck_assert_double_eq_tol(s.gap, 1e-9, 1e-23);
    ck_assert_uint_eq(s.multiplicity, 999999998);
    s = formula(&spec, SL_FAMILY_HYPERCUBE, SL_WEIGHTING_METROPOLIS, 1u << 29);
    ck_assert_double_eq_tol(s.gap, 2. / 30, 1e-15);
    s = formula(&spec, SL_FAMILY_COMPLETE, SL_WEIGHTING_METROPOLIS, 1000000000);
    ck_assert_double_eq_tol(s.rho, 0, 1e-15);
}

/* ---- LAPACK ---- */

START_TEST(a_matrix_that_is_not_normal_can_shrink_later_than_its_eigenvalues_say) {
    /* Everybody but node 0 listens to its predecessor: W - J has a larger norm than spectral
     * radius. */
    sl_topology *t = parse(
        "{'nodes': 3, 'directed': true, 'edges': [[0,1],[1,2],[2,0],[2,1]], 'weights': 'uniform'}");
    sl_spectrum s = compute(t, SL_SPECTRUM_AUTO);
    ck_assert(!s.symmetric && isnan(s.lambda_2) && isnan(s.gap_lambda2));
    /* W = [[1/2 0 1/2] [1/3 1/3 1/3] [0 1/2 1/2]]: numpy.linalg.eigvals and svd(W - 1/3) */
    ck_assert_double_eq_tol(s.rho, sqrt(1. / 12), 1e-14);
    ck_assert_double_gt(s.singular_2, s.rho + 0.1);
}

START_TEST(without_symmetry_iterations_find_what_lapack_finds) {
    static const char *const graphs[] = {
        "{'nodes': 3, 'family': 'directed-ring'}",
        "{'nodes': 100, 'family': 'static-exponential'}",
        "{'nodes': 101, 'family': 'd-equistatic', 'degree': 4}",
        "{'nodes': 37, 'family': 'one-peer-exponential'}",
        "{'nodes': 40, 'family': 'star', 'weights': 'uniform'}",
        "{'nodes': 60, 'family': 'erdos-renyi', 'probability': 0.2, 'weights': 'push-sum'}",
        "{'nodes': 24, 'family': 'alternating-matchings'}"};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        sl_topology *t = parse(graphs[i]);
        sl_spectrum dense = compute(t, SL_SPECTRUM_DENSE),
                    arnoldi = compute(t, SL_SPECTRUM_ARNOLDI);
        ck_assert_msg(fabs(dense.rho - arnoldi.rho) < 1e-10 &&
                          fabs(dense.singular_2 - arnoldi.singular_2) < 1e-10 && arnoldi.converged,
                      "%s: %.17g, by LAPACK %.17g", graphs[i], arnoldi.rho, dense.rho);
    }
}

/* ---- iterations ---- */

static void expect_equal(const char *json, const sl_spectrum *a, const sl_spectrum *b,
                         double tolerance) {
    ck_assert_msg(
        fabs(a->lambda_2 - b->lambda_2) < tolerance && fabs(a->lambda_n - b->lambda_n) < tolerance,
        "%s: %s %.17g %.17g, %s %.17g %.17g", json, sl_spectrum_method_name(a->method), a->lambda_2,
        a->lambda_n, sl_spectrum_method_name(b->method), b->lambda_2, b->lambda_n);
    ck_assert_msg(a->converged && a->residual < 1e-9, "%s: %s leaves %g", json,
                  sl_spectrum_method_name(a->method), a->residual);
}

START_TEST(iterations_find_what_lapack_finds) {
    static const char *const graphs[] = {
        "{'nodes': 2, 'family': 'path'}",
        "{'nodes': 3, 'family': 'path'}",
        "{'nodes': 50, 'family': 'star'}",
        "{'nodes': 90, 'family': 'torus'}",
        "{'nodes': 301, 'family': 'erdos-renyi', 'probability': 0.05}",
        "{'nodes': 4, 'family': 'ring', 'weights': 'metropolis0'}",
        "{'nodes': 5, 'family': 'ring', 'weights': 'metropolis0'}",
        "{'nodes': 64, 'family': 'hypercube'}",
        "{'nodes': 96, 'family': 'grid', 'weights': 'lazy'}",
        "{'nodes': 85, 'family': 'k-ary-tree', 'arity': 4}",
        "{'nodes': 700, 'family': 'barbell', 'clique': 50}",
        "{'nodes': 800, 'family': 'lollipop', 'clique': 60}",
        "{'nodes': 300, 'family': 'random-regular', 'degree': 3}",
        "{'nodes': 30, 'family': 'complete-bipartite', 'weights': 'metropolis0'}",
        "{'nodes': 3, 'edges': [[0,1,0.9],[1,0,0.9],[1,2,0.9],[2,1,0.9],[1,1,-0.8]]}"};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        sl_topology *t = parse(graphs[i]);
        sl_spectrum dense = compute(t, SL_SPECTRUM_DENSE),
                    lanczos = compute(t, SL_SPECTRUM_LANCZOS),
                    inverse = compute(t, SL_SPECTRUM_INVERSE);
        expect_equal(graphs[i], &lanczos, &dense, 1e-13);
        expect_equal(graphs[i], &inverse, &dense, 1e-13);
    }
}

START_TEST(small_gaps_keep_their_digits) {
    static const char *const graphs[] = {
        "{'nodes': 40000, 'family': 'ring'}",
        "{'nodes': 20001, 'family': 'ring', 'weights': 'metropolis0'}",
        "{'nodes': 20000, 'family': 'path', 'weights': 'lazy'}",
        "{'nodes': 12100, 'family': 'torus'}",
        "{'nodes': 13000, 'family': 'grid', 'weights': 'max-degree'}",
        "{'nodes': 8000, 'family': 'grid', 'sides': [2, 4000], 'weights': 'max-degree0'}",
        "{'nodes': 50000, 'family': 'star'}"};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        sl_topology *t = parse(graphs[i]);
        sl_spectrum known, s = iterate(t);
        ck_assert_msg(sl_spectrum_closed_form(&known, sl_topology_description(t)), "%s", graphs[i]);
        ck_assert_msg(fabs(s.gap_lambda2 / known.gap_lambda2 - 1) < 1e-12 &&
                          fabs(s.gap_lambda_n - known.gap_lambda_n) <= 1e-12 * known.gap_lambda_n &&
                          s.converged && s.residual < 1e-9 &&
                          fabs(s.gap - known.gap) <= s.gap_error * known.gap + 1e-300,
                      "%s: %.17g %.17g, by formula %.17g %.17g, residual %g", graphs[i],
                      s.gap_lambda2, s.gap_lambda_n, known.gap_lambda2, known.gap_lambda_n,
                      s.residual);
    }
}

/* ---- does it converge? ---- */

static double contraction(const char *json) {
    sl_topology *t = parse(json);
    double rho = -1;
    EXPECT_WELL(sl_topology_contraction(t, &rho, &error));
    return rho;
}

START_TEST(what_must_converge_is_not_computed) {
    static const char *const known[] = {
        "{'nodes': 1, 'family': 'ring'}",
        "{'nodes': 100000, 'family': 'ring'}",
        "{'nodes': 5, 'family': 'ring', 'weights': 'metropolis0'}",
        "{'nodes': 6, 'family': 'ring', 'weights': 'lazy-metropolis0'}",
        "{'nodes': 9, 'family': 'star', 'weights': 'best-constant'}",
        "{'nodes': 9, 'family': 'star', 'weights': 'fdla'}",
        "{'nodes': 16, 'family': 'de-bruijn'}",
        "{'nodes': 12, 'family': 'base-k'}"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        ck_assert_msg(isnan(contraction(known[i])), "%s", known[i]);
}

START_TEST(cycles_of_one_common_length_go_round_for_ever) {
    ck_assert_double_eq(contraction("{'nodes': 4, 'family': 'ring', 'weights': 'metropolis0'}"), 1);
    ck_assert_double_eq(contraction("{'nodes': 3, 'directed': true, 'edges': [[0, 1, 1], [1, 2, "
                                    "1], [2, 0, 1], [0, 0, 0], [1, 1, 0], [2, 2, 0]]}"),
                        1);
    ck_assert_double_eq(
        contraction("{'nodes': 4, 'family': 'alternating-matchings', 'weights': 'metropolis0'}"),
        1);
    /* cycles of 2 and of 3 nodes: no common divisor */
    ck_assert(isnan(contraction("{'nodes': 3, 'directed': true, 'edges': [[1, 0, 1], [0, 1, 0.5], "
                                "[2, 1, 0.5], [0, 2, 1], [0, 0, 0], [1, 1, 0], [2, 2, 0]]}")));
}

START_TEST(negative_weights_are_computed) {
    double rho = contraction("{'nodes': 3, 'edges': [[0, 0, 0.5], [0, 1, 0.6], [1, 0, 0.6], [0, 2, "
                             "-0.1], [2, 0, -0.1], [1, 1, 0.4], [2, 2, 1.1]]}");
    ck_assert_double_eq_tol(rho, 1.156, 1e-3);
    rho = contraction("{'nodes': 3, 'edges': [[0, 1, 0.5], [1, 0, 0.5], [1, 2, 0.6], [2, 1, 0.6], "
                      "[0, 2, 0.1], [2, 0, 0.1], [1, 1, -0.1]]}");
    ck_assert(rho > 0 && rho < 1);
}

typedef struct heard {
    double last;
    unsigned times, falls; /* falls: how often another part began */
} heard;

static void hear(void *context, double share) {
    heard *h = context;
    ck_assert(share >= 0 && share <= 1);
    h->falls += share < h->last;
    h->last = share;
    h->times++;
}

START_TEST(who_watches_hears_how_far_it_is) {
    heard h = {0};
    const sl_watch watch = {hear, &h};
    sl_spectrum_settings settings;
    sl_spectrum s, alone;
    sl_topology *t = make("{'nodes': 3000, 'family': 'random-regular', 'degree': 3}");
    sl_spectrum_defaults(&settings);
    ck_assert_int_eq(sl_spectrum_compute(&alone, t, &settings, &error), 0);
    settings.watch = &watch;
    ck_assert_int_eq(sl_spectrum_compute(&s, t, &settings, &error), 0);
    ck_assert(h.times >= 3 && h.falls == 1); /* its vectors are the other part */
    ck_assert_double_eq(s.rho, alone.rho);
}
