/* test_families.c - descriptions of graph families, and what mistakes are told.
 * tests/parity/test_families.py compares all edges and weights with a second implementation. */
#include "starling/analysis.h"
#include "topologies.h"

/* ---- descriptions ---- */

/* `example` is JSON without the family. */
static sl_topology *make_example(sl_family which, const char *example) {
    return make("{'family': '%s', %s", sl_family_describe(which)->name, example + 1);
}

static void expect_equal_after(const char *json, const sl_topology *t) {
    sl_topology *back = parse(json);
    ck_assert_uint_eq(sl_topology_hash(t), sl_topology_hash(back));
    ck_assert_str_eq(json, json_of(back));
}

static sl_bounds diameter_of(const sl_topology *t) {
    sl_structure s;
    EXPECT_WELL(sl_topology_structure(&s, t, &error));
    return s.diameter;
}

static void expect_promises(sl_family which, const char *example) {
    const sl_family_info *info = sl_family_describe(which);
    sl_topology *t = make_example(which, example);
    ck_assert_int_eq(sl_topology_description(t)->family, which);
    sl_stochasticity s = sl_topology_stochasticity(t);
    ck_assert_msg(s.row && s.column && s.symmetric == !info->directed, "%s %s", info->name,
                  example);
    ck_assert_msg((sl_topology_period(t) > 1) == info->schedule ||
                      sl_topology_description(t)->bridge_every > 1,
                  "%s %s", info->name, example);
    const char *expanded = close_behind(sl_topology_json_expanded(t), free);
    ck_assert_ptr_nonnull(strstr(expanded, info->name));
    ck_assert_ptr_nonnull(strstr(expanded, "\"provenance\":{\"family\":\""));
    if (strstr(json_of(t), "\"edges\"") == NULL)
        expect_equal_after(json_of(t), t);
    if (sl_topology_is_endless(t)) /* its first rounds are another topology */
        return;
    expect_equal_after(expanded, t);
    /* Where all nodes are said to be alike, one of them is looked at; of listed edges all are. */
    const sl_bounds found = diameter_of(t), listed = diameter_of(parse(expanded));
    ck_assert_msg(found.low == listed.low && found.high == listed.high, "%s %s", info->name,
                  example);
}

START_TEST(every_family_keeps_its_promises_and_comes_back_from_its_json) {
    for (sl_family which = SL_FAMILY_EDGES + 1; which < SL_FAMILIES; which++) {
        const char *const *example = sl_family_describe(which)->examples;
        ck_assert_ptr_nonnull(*example);
        for (; *example != NULL; example++)
            expect_promises(which, *example);
    }
}

static int describe(sl_topology_spec *spec, const char *json) {
    return sl_topology_spec_parse(spec, quoted(json), "test", &error);
}

START_TEST(a_description_is_read_without_drawing_it) {
    sl_topology_spec spec;
    EXPECT_WELL(
        describe(&spec, "{'nodes': 1000000000, 'family': 'torus', 'sides': [1000, 1000, 1000]}"));
    ck_assert(spec.nodes == 1000000000 && spec.family == SL_FAMILY_TORUS && spec.side_count == 3 &&
              spec.sides[2] == 1000);
    EXPECT_WELL(describe(&spec, "{'nodes': 999999999, 'family': 'grid'}"));
    ck_assert(spec.side_count == 2 && (uint64_t)spec.sides[0] * spec.sides[1] == 999999999);
    EXPECT_WELL(describe(&spec, "{'nodes': 12, 'family': 'hyper-cuboid'}"));
    ck_assert(spec.side_count == 3 && spec.weighting == SL_WEIGHTING_EXPLICIT);
    EXPECT_WELL(describe(&spec, "{'nodes': 3, 'edges': [[0, 1], [1, 2]]}"));
    ck_assert(spec.family == SL_FAMILY_EDGES && spec.slots == NULL && spec.nodes == 3);
    ck_assert_int_ne(describe(&spec, "{'nodes': 1000000001, 'family': 'ring'}"), 0);
    ck_assert_int_ne(describe(&spec, "{'nodes': 12, 'family': 'hypercube'}"), 0);
    expect_refusal("{'nodes': 1000001, 'family': 'ring'}",
                   "nodes: 1000001 is not allowed; it must be an integer from 1 to 1000000");
}

/* ---- mistakes ---- */

static const refusal mistakes[] = {
    {"'nodes': 5, 'family': 'random-regular', 'degree': 3",
     "degree: 5 nodes times degree 3 is odd, and every edge has two ends"},
    {"'nodes': 5, 'family': 'random-regular', 'degree': 0",
     "degree: 0 is not allowed; it must be an integer from 1"},
    {"'nodes': 5, 'family': 'random-regular'",
     "degree: missing; family \"random-regular\" needs it"},
    {"'nodes': 5, 'family': 'torus', 'sides': []",
     "sides: [] is not allowed; it must be a list of 1 to 32 integers"},
    {"'nodes': 5, 'family': 'torus', 'sides': [5, 0]",
     "sides[1]: 0 is not allowed; it must be an integer from 1"},
    {"'nodes': 5, 'family': 'grid', 'sides': [1000000000, 1000000000, 1000000000]",
     "sides: their product is at least 1000000000000000000, but nodes is 5"},
    {"'nodes': 5, 'family': 'torus', 'sides': [5], 'degree': 2",
     "degree: has no meaning for family \"torus\", which takes sides"},
    {"'nodes': 3, 'family': 'wheel'", "nodes: 3 is too few for family \"wheel\"; at least 4"},
    {"'nodes': 100000, 'family': 'complete'",
     "would have 9999900000 directed edges; at most 200000000 are kept"},
    {"'nodes': 5, 'family': 'complete-bipartite', 'part': 5",
     "part: 5 of 5 nodes leaves no other part"},
    {"'nodes': 9, 'family': 'barbell', 'clique': 5",
     "clique: 5 is not allowed for family \"barbell\" of 9 nodes; it must be from 2 to 4"},
    {"'nodes': 12, 'family': 'circulant', 'offsets': [2, 4]",
     "are multiples of 2, so that the graph falls into 2 parts"},
    {"'nodes': 12, 'family': 'circulant', 'offsets': [1, 7]",
     "offsets[1]: 7 is not allowed for 12 nodes; it must be from 1 to 6"},
    {"'nodes': 12, 'family': 'circulant', 'offsets': [5, 5]", "offsets[1]: 5 stands twice"},
    {"'nodes': 12, 'family': 'clusters', 'clusters': 5", "clusters: 5 is not allowed for 12 nodes"},
    {"'nodes': 12, 'family': 'clusters', 'clusters': 3, 'joined': 'rung'",
     "joined: \"rung\" is not known; did you mean \"ring\"?"},
    {"'nodes': 12, 'family': 'clusters', 'clusters': 3, 'joined': 'hypercube'",
     "joined: nodes: 3 is not a power of two"},
    {"'nodes': 12, 'family': 'clusters', 'clusters': 3, 'joined': 'torus'",
     "joined: \"torus\" is not allowed"},
    {"'nodes': 12, 'family': 'clusters', 'clusters': 3, 'bridges': 5",
     "bridges: 5 are more than the 4 nodes of a cluster"},
    {"'nodes': 12, 'family': 'clusters', 'clusters': 3, 'degree': 1",
     "degree: 1 leaves clusters of 4 nodes in pieces"},
    {"'nodes': 12, 'family': 'watts-strogatz', 'degree': 3, 'probability': 0.1",
     "degree: 3 is not allowed for 12 nodes; it must be even"},
    {"'nodes': 12, 'family': 'watts-strogatz', 'degree': 4", "probability: missing"},
    {"'nodes': 50, 'family': 'random-geometric', 'radius': 0.01",
     "none of 100 graphs from seed 1 was connected; raise the radius"},
    {"'nodes': 50, 'family': 'random-geometric', 'radius': -1",
     "radius: -1 is not allowed; it must be a number above 0 and at most 1"},
    {"'nodes': 50, 'family': 'random-regular', 'degree': 1",
     "none of 100 graphs from seed 1 was connected; raise the degree"},
    {"'nodes': 8, 'family': 'de-bruijn', 'arity': 9",
     "arity: 9 is not allowed for 8 nodes; it must be from 2 to 8"},
    {"'nodes': 8, 'family': 'd-equistatic', 'degree': 8",
     "degree: 8 is not allowed for 8 nodes; it must be from 1 to 7"},
    {"'nodes': 8, 'family': 'u-equistatic', 'degree': 3", "it must be even and from 2 to 6"},
    {"'nodes': 12, 'family': 'one-peer-hypercube'", "nodes: 12 is not a power of two"},
    {"'nodes': 9, 'family': 'alternating-matchings'", "nodes: 9 is odd"},
    {"'nodes': 9, 'family': 'base-k', 'peers': 9",
     "peers: 9 is not allowed for 9 nodes; it must be from 1 to 8"},
    {"'nodes': 9, 'family': 'base-k', 'weights': 'metropolis'",
     "weights: family \"base-k\" brings its own; leave them out"},
    {"'nodes': 9, 'family': 'od-equidyn', 'period': 5000",
     "period: 5000 is not allowed; it must be from 1 to 4096"},
    {"'nodes': 9, 'family': 'matcha'", "base: missing"},
    {"'nodes': 9, 'family': 'matcha', 'base': 'directed-ring'",
     "base: \"directed-ring\" is not allowed; it must be the family of one undirected graph"},
    {"'nodes': 9, 'family': 'matcha', 'base': 'matcha'", "base: \"matcha\" is not allowed"},
    {"'nodes': 9, 'family': 'matcha', 'base': 'ring', 'degree': 3",
     "base: degree: has no meaning for family \"ring\""},
    {"'nodes': 9, 'family': 'matcha', 'base': 'random-regular', 'degree': 3",
     "base: degree: 9 nodes times degree 3 is odd"},
    {"'nodes': 5000, 'family': 'matcha', 'base': 'ring'",
     "nodes: 5000 is too many for family \"matcha\"; at most 4096"},
    {"'nodes': 9, 'edges': [[0, 1]], 'seed': 3", "seed: has no meaning for edges that are listed"},
};

START_TEST(what_cannot_be_is_refused_by_name) {
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        expect_refusal(printed("{%s}", mistakes[i].text), mistakes[i].said);
}
