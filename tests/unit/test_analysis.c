/* test_analysis.c - structure, agreement and cost of topologies: against what trying everything
 * finds (numpy), formulas, and what is too large to be tried. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reference_analysis.h"
#include "starling/analysis.h"
#include "starling/links.h"
#include "topologies.h"

enum { ANALYSES = sizeof analyses / sizeof *analyses };
static sl_structure structure_of(const char *json) {
    sl_topology *t = parse(json);
    sl_structure s;
    ck_assert_msg(sl_topology_structure(&s, t, &error) == 0, "%s: %s", json, error.text);
    sl_topology_close(&t);
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

START_TEST(structure_is_what_trying_everything_finds) {
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
END_TEST

static void expect_within(const char *json, const char *what, sl_bounds found, sl_bounds known) {
    ck_assert_msg(found.low == found.high && known.low <= found.low && found.high <= known.high,
                  "%s: %s %llu is not in %llu .. %llu", json, what, (unsigned long long)found.low,
                  (unsigned long long)known.low, (unsigned long long)known.high);
}

static void compare_closed_form(const char *json) {
    sl_topology_spec spec;
    sl_structure known, found = structure_of(json);
    ck_assert_int_eq(sl_topology_spec_parse(&spec, json, "test", &error), 0);
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
    char json[160];
    for (unsigned n = 1; n <= 300; n += n < 12 ? 1 : 96)
        for (size_t i = 0; i < 4; i++) {
            snprintf(json, sizeof json, "{\"nodes\": %u, \"family\": \"%s\"}", n, line[i]);
            compare_closed_form(json);
        }
    for (unsigned a = 1; a <= 5; a++)
        for (unsigned b = 1; b <= 4; b++)
            for (unsigned c = 1; c <= 3; c++)
                for (int wraps = 0; wraps < 2; wraps++) {
                    snprintf(json, sizeof json,
                             "{\"nodes\": %u, \"family\": \"%s\", \"sides\": [%u, %u, %u]}",
                             a * b * c, wraps ? "torus" : "grid", a, b, c);
                    compare_closed_form(json);
                }
    for (unsigned n = 2; n <= 64; n *= 2) {
        snprintf(json, sizeof json, "{\"nodes\": %u, \"family\": \"hypercube\"}", n);
        compare_closed_form(json);
    }
    for (unsigned n = 6; n <= 14; n++)
        for (unsigned offset = 2; offset <= n / 2; offset++) {
            snprintf(json, sizeof json,
                     "{\"nodes\": %u, \"family\": \"circulant\", \"offsets\": [1, %u]}", n, offset);
            compare_closed_form(json);
        }
}
END_TEST

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
END_TEST

/* How many hops it takes from `source` to all. */
static uint32_t eccentricity(const sl_topology *t, uint32_t source, uint32_t *queue,
                             uint32_t *seen) {
    uint32_t head = 0, tail = 1, hops = 0;
    queue[0] = source;
    seen[source] = source + 1;
    for (; head < tail; hops++)
        for (uint32_t end = tail; head < end; head++) {
            const uint32_t *peers;
            uint32_t count = sl_topology_peers(t, queue[head], &peers);
            for (uint32_t k = 0; k < count; k++)
                if (seen[peers[k]] != source + 1) {
                    seen[peers[k]] = source + 1;
                    queue[tail++] = peers[k];
                }
        }
    return hops - 1;
}

/* Too many nodes for a search from each within the limit of work, which is made here. */
START_TEST(a_diameter_is_within_its_bounds) {
    enum { NODES = 6000 };
    static uint32_t queue[NODES], seen[NODES];
    sl_topology *t = parse("{'nodes': 6000, 'family': 'random-regular', 'degree': 4, 'seed': 3}");
    sl_structure s;
    ck_assert_int_eq(sl_topology_structure(&s, t, &error), 0);
    uint32_t diameter = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        uint32_t hops = eccentricity(t, i, queue, seen);
        diameter = hops > diameter ? hops : diameter;
    }
    sl_topology_close(&t);
    ck_assert_msg(s.diameter.low < s.diameter.high && s.diameter.low <= diameter &&
                      diameter <= s.diameter.high,
                  "%u is not within %llu .. %llu", diameter, (unsigned long long)s.diameter.low,
                  (unsigned long long)s.diameter.high);
}
END_TEST

/* ---- agreement ---- */

START_TEST(agreement_is_numpys) {
    const char *json = analyses[_i].json;
    sl_topology *t = parse(json);
    double errors[ROUNDS], shares[8], residual, neighbours;
    sl_bounds mixing;
    ck_assert_int_eq(sl_topology_product_errors(errors, ROUNDS, t, &error), 0);
    for (int k = 0; k < ROUNDS; k++)
        EXPECT_CLOSE(json, errors[k], analyses[_i].errors[k],
                     1e-8 * analyses[_i].errors[k] + 1e-14);
    ck_assert_int_eq(sl_topology_perron(shares, &residual, t, &error), 0);
    ck_assert_double_lt(residual, 1e-15);
    for (uint32_t i = 0; i < sl_topology_nodes(t); i++)
        EXPECT_CLOSE(json, shares[i], analyses[_i].perron[i], 1e-12);
    ck_assert_int_eq(sl_topology_mixing_time(&mixing, t, NAN, &error), 0);
    if (analyses[_i].mixing_time > 0)
        EXPECT_BOUNDS(json, mixing, analyses[_i].mixing_time);
    ck_assert_int_eq(sl_topology_effective_neighbours(&neighbours, t, DECAY, &error), 0);
    ck_assert_int_eq(isnan(neighbours), isnan(analyses[_i].effective_neighbours));
    if (!isnan(neighbours))
        EXPECT_CLOSE(json, neighbours, analyses[_i].effective_neighbours, 1e-10);
    sl_topology_close(&t);
}
END_TEST

START_TEST(the_worst_loss_is_numpys) {
    sl_topology *t = parse(analyses[_i].json);
    sl_node_loss loss;
    ck_assert_msg(sl_topology_worst_loss(&loss, t, &error) == 0, "%s: %s", analyses[_i].json,
                  error.text);
    /* Of a product with a defective eigenvalue 0 only a root of the rounding error is known. */
    EXPECT_CLOSE(analyses[_i].json, loss.rho, analyses[_i].worst_loss,
                 analyses[_i].worst_loss < 1e-3 ? 1e-3 : 1e-8);
    sl_topology_close(&t);
}
END_TEST

static uint32_t exact_after(const char *json) {
    sl_topology *t = parse(json);
    uint32_t rounds;
    ck_assert_int_eq(sl_topology_exact_after(&rounds, t, 64, &error), 0);
    sl_topology_close(&t);
    return rounds;
}

START_TEST(exact_schedules_are_recognised) {
    ck_assert_uint_eq(exact_after("{'nodes': 16, 'family': 'one-peer-exponential'}"), 4);
    ck_assert_uint_eq(exact_after("{'nodes': 65536, 'family': 'one-peer-exponential'}"), 16);
    ck_assert_uint_eq(exact_after("{'nodes': 12, 'family': 'one-peer-exponential'}"), 0);
    ck_assert_uint_eq(exact_after("{'nodes': 9, 'family': 'complete'}"), 1);
    ck_assert_uint_eq(exact_after("{'nodes': 9, 'family': 'ring'}"), 0);
    /* Contracts by 1/81 a round, below 1e-12 in the end, but never at once. */
    ck_assert_uint_eq(exact_after("{'nodes': 2, 'edges': [[0, 1, 0.49], [1, 0, 0.49]]}"), 0);
    ck_assert_uint_eq(exact_after("{'nodes': 1, 'family': 'ring'}"), 1);
}
END_TEST

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
END_TEST

START_TEST(mixing_times_lie_between_their_bounds) {
    sl_topology *t = parse("{'nodes': 100, 'family': 'ring'}");
    sl_bounds exact, bounds = sl_mixing_bounds(100, 2. / 3 * (1 - cos(2 * M_PI / 100)));
    ck_assert_int_eq(sl_topology_mixing_time(&exact, t, NAN, &error), 0);
    ck_assert(exact.low == exact.high && bounds.low <= exact.low && exact.high <= bounds.high);
    sl_topology_close(&t);
}
END_TEST

/* ---- cost ---- */

START_TEST(rounds_cost_what_their_slowest_edge_or_port_does) {
    sl_topology *t = parse("{'nodes': 5, 'family': 'star'}");
    sl_links *links = NULL, *brisk = NULL;
    ck_assert_int_eq(sl_links_parse(&links,
                                    "{\"nodes\": 5, \"bandwidth_mbit\": 100, \"latency_ms\": 2, "
                                    "\"links\": [[0, 3, 10, 7]]}",
                                    "test", &error),
                     0);
    ck_assert_int_eq(sl_links_parse(&brisk,
                                    "{\"nodes\": 5, \"bandwidth_mbit\": 50, \"latency_ms\": 2, "
                                    "\"links\": [[0, 3, 100, 7]]}",
                                    "test", &error),
                     0);
    sl_traffic traffic = sl_topology_traffic(t);
    ck_assert_double_eq(traffic.messages, 8);
    ck_assert_double_eq(traffic.sent_max, 4);
    ck_assert_double_eq(traffic.sent_mean, 1.6);
    /* 10^6 bytes: 0.08 s over 100 Mbit/s, 0.8 s over 10, beside the others */
    EXPECT_CLOSE("serial", sl_topology_round_seconds(t, links, 1e6, SL_PORT_SERIAL), 0.8 + 0.007,
                 1e-12);
    EXPECT_CLOSE("port", sl_topology_round_seconds(t, brisk, 1e6, SL_PORT_SERIAL), 4 * 0.08 + 0.007,
                 1e-12);
    EXPECT_CLOSE("parallel", sl_topology_round_seconds(t, links, 1e6, SL_PORT_PARALLEL),
                 0.8 + 0.007, 1e-12);
    sl_links_close(&brisk);
    sl_links_close(&links);
    sl_topology_close(&t);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("analysis");
    add_loop(suite, structure_is_what_trying_everything_finds, 0, ANALYSES);
    add_loop(suite, agreement_is_numpys, 0, ANALYSES);
    add_loop(suite, the_worst_loss_is_numpys, 0, ANALYSES);
    ADD_TESTS(suite, "structure", formulas_are_what_is_found, a_diameter_is_within_its_bounds,
              large_graphs_are_bounded);
    ADD_TESTS(suite, "agreement", exact_schedules_are_recognised, rounds_follow_from_the_gap,
              mixing_times_lie_between_their_bounds);
    ADD_TESTS(suite, "cost", rounds_cost_what_their_slowest_edge_or_port_does);
    return run_suite(suite);
}
