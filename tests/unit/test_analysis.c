/* test_analysis.c - structure, agreement and cost of topologies: against what trying everything
 * finds (numpy), formulas, and what is too large to be tried. */
#include <math.h>

#include "reference_analysis.h"
#include "starling/analysis.h"
#include "starling/links.h"
#include "topologies.h"

enum { ANALYSES = sizeof analyses / sizeof *analyses };
static sl_structure structure_of(const char *json) {
    sl_topology *t = parse(json);
    sl_structure s;
    ck_assert_msg(sl_topology_structure(&s, t, &error) == 0, "%s: %s", json, error.text);
    close_now(t);
    return s;
}

#define EXPECT_BOUNDS(json, found, expected)                                                       \
    ck_assert_msg((found).low == (expected) && (found).high == (expected),                         \
                  "%s: " #found " %llu .. %llu, not %llu", json, (unsigned long long)(found).low,  \
                  (unsigned long long)(found).high, (unsigned long long)(expected))
#define EXPECT_CLOSE(json, found, expected, tolerance)                                             \
    ck_assert_msg(fabs((found) - (expected)) <= (tolerance), "%s: " #found " %.17g, not %.17g",    \
                  json, (double)(found), (double)(expected))

/* ---- structure ---- */

START_LOOP_TEST(structure_is_what_trying_everything_finds, ANALYSES) {
    const char *json = analyses[_i].json;
    sl_structure s = structure_of(json);
    ck_assert_uint_eq(s.edges, analyses[_i].edges);
    ck_assert_uint_eq(s.directed, analyses[_i].directed);
    ck_assert_uint_eq(s.components, analyses[_i].components);
    ck_assert_uint_eq(s.bipartite, analyses[_i].bipartite);
    ck_assert_uint_eq(s.bridges, analyses[_i].bridges);
    ck_assert_uint_eq(s.cut_nodes, analyses[_i].cut_nodes);
    EXPECT_BOUNDS(json, s.diameter, analyses[_i].diameter);
    EXPECT_BOUNDS(json, s.edge_connectivity, analyses[_i].edge_connectivity);
    EXPECT_BOUNDS(json, s.node_connectivity, analyses[_i].node_connectivity);
}

static void expect_within(const char *json, const char *what, sl_bounds found, sl_bounds known) {
    ck_assert_msg(found.low == found.high && known.low <= found.low && found.high <= known.high,
                  "%s: %s %llu is not in %llu .. %llu", json, what, (unsigned long long)found.low,
                  (unsigned long long)known.low, (unsigned long long)known.high);
}

static void compare_closed_form(const char *json) {
    sl_topology_spec spec;
    sl_structure known, found = structure_of(json);
    EXPECT_WELL(sl_topology_spec_parse(&spec, quoted(json), "test", &error));
    ck_assert_msg(sl_structure_closed_form(&known, &spec), "%s", json);
    expect_within(json, "diameter", found.diameter, known.diameter);
    expect_within(json, "edge connectivity", found.edge_connectivity, known.edge_connectivity);
    expect_within(json, "node connectivity", found.node_connectivity, known.node_connectivity);
    ck_assert_msg(strstr(json, "circulant") ||
                      (known.diameter.low == known.diameter.high &&
                       known.node_connectivity.low == known.node_connectivity.high),
                  "%s", json);
    found.diameter = known.diameter;
    found.node_connectivity = known.node_connectivity;
    found.edge_connectivity = known.edge_connectivity;
    ck_assert_double_eq_tol(found.degree_mean, known.degree_mean, 1e-12);
    found.degree_mean = known.degree_mean;
#define SAME(field)                                                                                \
    ck_assert_msg(found.field == known.field, "%s: " #field " %llu, by formula %llu", json,        \
                  (unsigned long long)found.field, (unsigned long long)known.field)
    SAME(edges);
    SAME(directed);
    SAME(components);
    SAME(component_nodes_max);
    SAME(connected);
    SAME(bipartite);
    SAME(degree_min);
    SAME(degree_max);
    SAME(in_degree_min);
    SAME(in_degree_max);
    SAME(bridges);
    SAME(cut_nodes);
#undef SAME
}

START_TEST(formulas_are_what_is_found) {
    static const char *const line[] = {"ring", "path", "star", "complete"};
    for (unsigned n = 1; n <= 300; n += n < 12 ? 1 : 96)
        for (size_t i = 0; i < 4; i++)
            compare_closed_form(printed("{'nodes': %u, 'family': '%s'}", n, line[i]));
    for (unsigned a = 1; a <= 5; a++)
        for (unsigned b = 1; b <= 4; b++)
            for (unsigned c = 1; c <= 3; c++)
                for (int wraps = 0; wraps < 2; wraps++)
                    compare_closed_form(
                        printed("{'nodes': %u, 'family': '%s', 'sides': [%u, %u, %u]}", a * b * c,
                                wraps ? "torus" : "grid", a, b, c));
    for (unsigned n = 2; n <= 64; n *= 2)
        compare_closed_form(printed("{'nodes': %u, 'family': 'hypercube'}", n));
    for (unsigned n = 6; n <= 14; n++)
        for (unsigned offset = 2; offset <= n / 2; offset++)
            compare_closed_form(
                printed("{'nodes': %u, 'family': 'circulant', 'offsets': [1, %u]}", n, offset));
}

/* What would take too long is bounded, and the bounds hold: 20,000 random nodes of degree 4. */
START_TEST(large_graphs_are_bounded) {
    sl_structure s = structure_of("{'nodes': 20000, 'family': 'random-regular', 'degree': 4}");
    ck_assert(s.connected && s.bridges == 0 && !s.bipartite);
    ck_assert_uint_eq(s.edges, 40000);
    ck_assert(s.diameter.low >= 10 && s.diameter.low <= s.diameter.high &&
              s.diameter.high <= 2 * s.diameter.low);
    ck_assert(s.edge_connectivity.low >= 2 && s.edge_connectivity.high <= 4 &&
              s.node_connectivity.high <= s.edge_connectivity.high);
    s = structure_of("{'nodes': 1000000, 'family': 'ring'}");
    EXPECT_BOUNDS("ring", s.diameter, 500000);
    EXPECT_BOUNDS("ring", s.node_connectivity, 2);
    s = structure_of("{'nodes': 1000000, 'family': 'path'}");
    EXPECT_BOUNDS("path", s.diameter, 999999);
    ck_assert_uint_eq(s.bridges, 999999);
    ck_assert_uint_eq(s.cut_nodes, 999998);
}

/* ---- agreement ---- */

START_LOOP_TEST(the_worst_loss_is_numpys, ANALYSES) {
    sl_topology *t = parse(analyses[_i].json);
    sl_node_loss loss;
    ck_assert_msg(sl_topology_worst_loss(&loss, t, &error) == 0, "%s: %s", analyses[_i].json,
                  error.text);
    /* Of a product with a defective eigenvalue 0 only a root of the rounding error is known. */
    EXPECT_CLOSE(analyses[_i].json, loss.rho, analyses[_i].worst_loss,
                 analyses[_i].worst_loss < 1e-3 ? 1e-3 : 1e-8);
}

START_TEST(rounds_follow_from_the_gap) {
    ck_assert_double_eq(sl_rounds_to(0.9, 1e-3), 3);
    ck_assert_double_eq(sl_rounds_to(0.5, 0.3), 2);
    ck_assert_double_eq(sl_rounds_to(1, 1e-9), 1);
    ck_assert_double_eq(sl_rounds_to(0, 1e-9), INFINITY);
    EXPECT_CLOSE("ring of 10^9", sl_rounds_to(1.3e-17, 1e-3), log(1e3) / 1.3e-17, 1e7);
    double errors[] = {0.9, 0.5, 0.2};
    ck_assert_double_eq(sl_rounds_along(errors, 3, 1, 0.5, 0.5), 2);
    ck_assert_double_eq(sl_rounds_along(errors, 3, 1, 0.5, 0.1), 4);
    ck_assert_double_eq(sl_rounds_along(errors, 3, 1, 0.5, 0.04), 6);
    double uneven[] = {0.9, 0.4, 0.36, 0.16}; /* every second round does most: 0.4 a period */
    ck_assert_double_eq(sl_rounds_along(uneven, 4, 2, 1 - sqrt(0.4), 0.1), 6);
    ck_assert_double_eq(sl_rounds_along(uneven, 4, 2, 1 - sqrt(0.4), 0.15), 5);
    ck_assert_double_eq(sl_rounds_along(uneven, 1, 2, 1 - sqrt(0.4), 0.36),
                        3); /* less than a period is known */
    EXPECT_CLOSE("transient", sl_transient_rounds(16, 0.1, true), 409600, 1e-6);
    EXPECT_CLOSE("transient", sl_transient_rounds(16, 0.1, false), 40960000, 1e-3);
}
