/* test_weights.c - weight schemes: against published values and closed forms, and what every one promises on hundreds of graphs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "starling/optimal.h"
#include "starling/spectrum.h"

static sl_error error;

static sl_topology *parse(const char *format, const char *weights) {
    char json[1024];
    sl_topology *t = NULL;
    snprintf(json, sizeof json, format, weights);
    ck_assert_msg(sl_topology_parse(&t, json, "test", &error) == 0, "%s: %s", json, error.text);
    return t;
}

static sl_spectrum spectrum(const sl_topology *t) {
    sl_spectrum s;
    ck_assert_msg(sl_spectrum_compute(&s, t, NULL, &error) == 0, "%s", error.text);
    return s;
}

static void expect_rho(const char *format, const char *weights, double rho, double within) {
    sl_topology *t = parse(format, weights);
    sl_spectrum s = spectrum(t);
    ck_assert_msg(fabs(s.rho - rho) <= within, "%s of %s: rho %.12g, not %.12g", weights, format, s.rho, rho);
    sl_optimum o;
    if (sl_topology_optimum(&o, t)) {
        ck_assert_msg(o.converged, "%s of %s: bound %.12g, rho %.12g after %u", weights, format, o.lower_bound, o.rho, o.iterations);
        ck_assert(fabs(o.rho - s.rho) < 1e-13 && o.lower_bound <= rho + within && o.lower_bound >= rho - within - 1e-7);
    }
    sl_topology_close(&t);
}

/* ---- published ---- */

/* Boyd and Mutapcic's example of 8 nodes and 13 edges for "Convex optimization of graph Laplacian eigenvalues", ICM 2006; four digits are given. */
START_TEST(eight_nodes_have_the_published_rho) {
    static const char graph[] = "{\"nodes\": 8, \"weights\": \"%s\", \"edges\": [[0,1], [1,2], [2,3], [0,4], [1,7], [1,3], [4,5], [4,6], [2,6], [3,7],"
                                " [5,6], [6,7], [1,6]]}";
    expect_rho(graph, "fdla", 0.6433, 5e-5);
    expect_rho(graph, "fmmc", 0.6810, 5e-5);
    expect_rho(graph, "metropolis0", 0.7743, 5e-5);
    expect_rho(graph, "max-degree0", 0.7793, 5e-5);
    expect_rho(graph, "best-constant", 0.7119, 5e-5);
}
END_TEST

START_TEST(optimal_weights_are_the_closed_forms) {
    for (uint32_t n = 3; n <= 30; n += 3) { /* Boyd, Diaconis, Sun, Xiao 2006 */
        char path[64];
        snprintf(path, sizeof path, "{\"nodes\": %u, \"family\": \"path\", \"weights\": \"%%s\"}", n);
        expect_rho(path, "fmmc", cos(M_PI / n), 1e-7);
    }
    for (uint32_t d = 2; d <= 5; d++) {
        char cube[64];
        snprintf(cube, sizeof cube, "{\"nodes\": %u, \"family\": \"hypercube\", \"weights\": \"%%s\"}", 1u << d);
        expect_rho(cube, "fmmc", (d - 1.0) / (d + 1.0), 1e-7);
        expect_rho(cube, "fdla", (d - 1.0) / (d + 1.0), 1e-7);
        expect_rho(cube, "best-constant", (d - 1.0) / (d + 1.0), 1e-9);
    }
    static const char petersen[] = "{\"nodes\": 10, \"weights\": \"%s\", \"edges\": [[0,1], [1,2], [2,3], [3,4], [4,0], [5,7], [7,9], [9,6], [6,8],"
                                   " [8,5], [0,5], [1,6], [2,7], [3,8], [4,9]]}";
    expect_rho(petersen, "fmmc", 3. / 7, 1e-7);
    expect_rho(petersen, "fdla", 3. / 7, 1e-7);
    expect_rho("{\"nodes\": 9, \"family\": \"complete\", \"weights\": \"%s\"}", "fmmc", 0, 1e-7);
    expect_rho("{\"nodes\": 2, \"family\": \"path\", \"weights\": \"%s\"}", "fmmc", 0, 1e-7);
}
END_TEST

/* ---- names ---- */

START_TEST(every_scheme_and_its_lazy_form_has_a_name) {
    for (int w = 0; w < SL_WEIGHTINGS; w++)
        for (int l = 0; l < 2; l++) {
            sl_weighting weighting = SL_WEIGHTING_EXPLICIT;
            bool lazy = !l;
            ck_assert_int_eq(sl_weighting_parse(&weighting, &lazy, sl_weighting_name((sl_weighting)w, l), &error), 0);
            ck_assert(weighting == (sl_weighting)w && lazy == (bool)l);
            ck_assert_uint_gt(strlen(sl_weighting_meaning(weighting)), 10);
        }
    sl_weighting weighting;
    bool lazy;
    ck_assert_int_eq(sl_weighting_parse(&weighting, &lazy, "lazy", &error), 0);
    ck_assert(weighting == SL_WEIGHTING_METROPOLIS && lazy);
    ck_assert_int_eq(sl_weighting_parse(&weighting, &lazy, "metropolys", &error), SL_EINVAL);
    ck_assert_str_eq(error.text, "weights: \"metropolys\" is not known; did you mean \"metropolis\"?; it must be one of metropolis, metropolis0, "
                                 "max-degree, max-degree0, uniform, best-constant, fmmc, fdla, push-sum, bandwidth, or lazy- and one of them");
}
END_TEST

START_TEST(a_lazy_form_is_half_the_identity) {
    static const char *const names[] = {"metropolis", "metropolis0", "max-degree", "uniform", "best-constant", "fmmc", "fdla", "push-sum"};
    static const char graph[] = "{\"nodes\": 5, \"weights\": \"%s\", \"edges\": [[0,1], [1,2], [0,2], [0,3], [1,4]]}";
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char lazy[64];
        snprintf(lazy, sizeof lazy, "lazy-%s", names[k]);
        sl_topology *whole = parse(graph, names[k]), *half = parse(graph, lazy);
        for (uint32_t i = 0; i < 5; i++) {
            sl_row a = sl_topology_in(whole, 1, i), b = sl_topology_in(half, 1, i);
            ck_assert_double_eq_tol(b.self, (1 + a.self) / 2, 1e-15);
            for (uint32_t e = 0; e < a.count; e++)
                ck_assert_double_eq(b.weights[e], a.weights[e] / 2);
        }
        sl_topology_close(&whole);
        sl_topology_close(&half);
    }
}
END_TEST

START_TEST(without_own_weights_a_bipartite_graph_alternates) {
    static const struct {
        const char *format, *weights;
        bool alternates;
    } cases[] = {
        {"{\"nodes\": 8, \"family\": \"ring\", \"weights\": \"%s\"}", "metropolis0", true},
        {"{\"nodes\": 8, \"family\": \"ring\", \"weights\": \"%s\"}", "max-degree0", true},
        {"{\"nodes\": 8, \"family\": \"ring\", \"weights\": \"%s\"}", "lazy-max-degree0", false},
        {"{\"nodes\": 8, \"family\": \"ring\", \"weights\": \"%s\"}", "metropolis", false},
        {"{\"nodes\": 7, \"family\": \"ring\", \"weights\": \"%s\"}", "metropolis0", false},
        {"{\"nodes\": 16, \"family\": \"hypercube\", \"weights\": \"%s\"}", "metropolis0", true},
        {"{\"nodes\": 5, \"family\": \"path\", \"weights\": \"%s\"}", "metropolis0", false},
        {"{\"nodes\": 2, \"family\": \"path\", \"weights\": \"%s\"}", "metropolis0", true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        sl_topology *t = parse(cases[k].format, cases[k].weights);
        ck_assert_msg(sl_topology_alternates(t) == cases[k].alternates, "%s of %s", cases[k].weights, cases[k].format);
        ck_assert((fabs(spectrum(t).lambda_n + 1) < 1e-12) == cases[k].alternates);
        sl_topology_close(&t);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("weights");
    ADD_TESTS(suite, "published", eight_nodes_have_the_published_rho, optimal_weights_are_the_closed_forms);
    ADD_TESTS(suite, "schemes", every_scheme_and_its_lazy_form_has_a_name, a_lazy_form_is_half_the_identity,
              without_own_weights_a_bipartite_graph_alternates);
    return run_suite(suite);
}
