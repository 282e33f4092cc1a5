/* test_topology.c - files, schedules, weights that are listed, the window, and what each mistake is
 * told; test_families.c has the families. */
#include "starling/analysis.h"
#include "starling/rng.h"
#include "topologies.h"

/* ---- spectra ---- */

START_TEST(a_report_counts_edges_and_one_node_agrees_with_itself) {
    sl_topology_report r;
    EXPECT_WELL(sl_topology_analyse(parse("{'nodes': 1, 'family': 'ring'}"), &r, NULL, &error));
    ck_assert_double_eq(r.gap, 1);
    ck_assert_uint_eq(r.edges, 0);
    EXPECT_WELL(sl_topology_analyse(parse("{'nodes': 8, 'family': 'star'}"), &r, NULL, &error));
    ck_assert(r.edges == 7 && r.degree_min == 1 && r.degree_max == 7 && r.connected);
}

/* ---- shapes ---- */

START_TEST(listed_weights_are_taken_and_self_weights_completed) {
    sl_topology *t = parse("{'nodes': 3, 'edges': [[0,1,0.5],[1,0,0.5],[1,2,0.25],[2,1,0.25]]}");
    ck_assert_double_eq(sl_topology_in(t, 1, 0).self, 0.5);
    ck_assert_double_eq(sl_topology_in(t, 1, 1).self, 0.25);
    ck_assert_double_eq(sl_topology_in(t, 1, 2).self, 0.75);
    ck_assert(sl_topology_stochasticity(t).symmetric);
    sl_topology *same =
        parse("{'nodes': 3, 'edges': "
              "[[0,0,0.5],[0,1,0.5],[1,0,0.5],[1,1,0.25],[1,2,0.25],[2,1,0.25],[2,2,0.75]]}");
    ck_assert_uint_eq(sl_topology_hash(t), sl_topology_hash(same));
    /* Under push-sum the column is completed: node 0 gives 0.4 away in all. */
    t = parse("{'nodes': 3, 'directed': true, 'edges': [[0,1,0.3],[0,2,0.1],[1,0,0.5],[2,0,0.5]], "
              "'weights': 'push-sum'}");
    ck_assert_double_eq_tol(sl_topology_in(t, 1, 0).self, 0.6, 1e-15);
    ck_assert(sl_topology_stochasticity(t).column && !sl_topology_stochasticity(t).row);
}

/* ---- mistakes ---- */

static const refusal mistakes[] = {
    {"{'nodes': 8, 'famly': 'ring'}", "unknown key \"famly\"; did you mean \"family\"?"},
    {"{'nodes': 8, 'family': 'rnig'}", "family: \"rnig\" is not known; did you mean \"ring\"?"},
    {"{'nodes': 8, 'zzz': 1}", "unknown key \"zzz\"; it must be one of nodes, family, weights"},
    {"{'nodes': 7, 'family': 'torus'}", "7 is prime, so that a torus would be 1 x 7, a ring"},
    {"{'nodes': 7, 'family': 'matcha', 'base': 'grid'}", "a grid would be 1 x 7, a path"},
    {"{'W': [[0.5, 0.5], [0.5]]}", "W[1]: must be a row of 2 numbers"},
    {"{'W': [[0.5, 0.5], [0.5, '0.5']]}", "W[1][1]: must be a number"},
    {"{'W': 'W.npy'}", "W: \"W.npy\" is not allowed; it must be rows of numbers"},
    {"{'W': []}", "W: has 0 rows"},
    {"{'W': [[0.5, 0.5], [0.5, 0.5]], 'family': 'ring'}", "family: stands beside \"W\""},
    {"{'W': [[0.5, 0.5], [0.5, 0.5]], 'nodes': 3}", "W: has 2 rows, and nodes"},
    {"{'W': [[0.5, 0.5], [0.5, 0.5]], 'weights': 3}", "weights: 3 is not allowed"},
    {"{'W': [[0.5, 0.6], [0.5, 0.5]]}", "W: these are no mixing weights: what node 0 gives"},
    {"{'family': 'ring'}", "nodes: missing"},
    {"{'nodes': 0, 'family': 'ring'}",
     "nodes: 0 is not allowed; it must be an integer from 1 to 1000000"},
    {"{'nodes': '8', 'family': 'ring'}", "nodes: \"8\" is not allowed"},
    {"{'nodes': 2, 'family': 'ring', 'weights': [0.6, -0.1]}",
     "weights: [0.6,-0.1] is not allowed"},
    {"{'nodes': 8}", "exactly one of \"family\", \"edges\", \"schedule\" and \"W\""},
    {"{'nodes': 8, 'family': 'ring', 'edges': []}", "exactly one of"},
    {"{'nodes': 8, 'family': 'ring',}", "test:1:"},
    {"{'nodes': 8, 'nodes': 9, 'family': 'ring'}", "duplicate"},
    {"[1]", "must be an object"},
    {"{'nodes': 12, 'family': 'torus', 'sides': [3, 5]}",
     "sides: their product is 15, but nodes is 12"},
    {"{'nodes': 5, 'family': 'ring', 'degree': 3}",
     "degree: has no meaning for family \"ring\", which takes no parameters"},
    {"{'nodes': 4, 'edges': [[0,1],[2,3]]}",
     "the graph is not connected: 2 parts: 2 nodes with node 0 and 2 nodes with node 2; add edges"},
    {"{'nodes': 8, 'edges': [[0,1],[1,2],[2,3],[3,4],[4,5],[5,6]]}",
     "the graph is not connected: node 7 has no edge; add edges"},
    {"{'nodes': 6, 'edges': [[1,4],[5,1]]}", "nodes 0, 2 and 3 have no edge"},
    {"{'nodes': 12, 'edges': [[11,2]]}", "nodes 0, 1, 3, 4, 5, 6 and 4 others have no edge"},
    {"{'nodes': 6, 'edges': [[0,2],[2,3],[1,5]]}",
     "2 parts: 3 nodes with node 0 and 2 nodes with node 1; node 4 has no edge"},
    {"{'nodes': 5, 'schedule': [{'edges': [[0,1]]}, {'edges': [[1,3],[3,4]]}]}",
     "edges' direction): node 2 has no edge"},
    {"{'nodes': 3, 'directed': true, 'edges': [[0,1],[1,0],[2,1]]}", "no edge leads to node 2"},
    {"{'nodes': 3, 'directed': true, 'edges': [[0,1],[1,0],[1,2]]}",
     "no edge leads away from node 2"},
    {"{'nodes': 4, 'directed': true, 'edges': [[0,1],[1,0],[1,2],[2,3],[3,2]]}",
     "no way leads from node 2 to node 0"},
    {"{'nodes': 4, 'directed': true, 'edges': [[0,1],[1,0],[2,1],[2,3],[3,2]]}",
     "no way leads from node 0 to node 2"},
    {"{'nodes': 6, 'edges': [[0,1],[2,3]], 'weights': 'fdla'}",
     "2 parts: 2 nodes with node 0 and 2 nodes with node 2; nodes 4 and 5 have no edge"},
    {"{'nodes': 3, 'directed': true, 'edges': [[0,1],[1,2]]}",
     "the graph is not connected (every node must reach"},
    {"{'nodes': 2, 'edges': [[0,1],[1,0]]}", "edges[1]: [1, 0] stands twice: edges[0] is [0, 1];"},
    {"{'nodes': 3, 'directed': true, 'edges': [[0,1],[1,2],[2,0],[1,0],[1,2]]}",
     "edges[4]: [1, 2] stands twice: edges[1] is [1, 2];"},
    {"{'nodes': 2, 'edges': [[0,0,0.5],[0,1,0.5],[1,0,0.5],[0,0,0.5]]}",
     "edges[3]: [0, 0] stands twice: edges[0] is [0, 0];"},
    {"{'nodes': 2, 'schedule': [{'edges': [[0,1]]}, {'edges': [[1,0],[1,0]]}]}",
     "schedule[1]: edges[1]: [1, 0] stands twice: edges[0] is [1, 0];"},
    {"{'nodes': 2, 'edges': [[0,2]]}", "edges[0]: [0, 2] names a node that is not in 0..1"},
    {"{'nodes': 2, 'edges': [[0,0],[0,1]]}", "self-loop [0, 0] has no weight"},
    {"{'nodes': 2, 'edges': [[0,1,0.5],[1,0]]}", "some edges have a weight and some have none"},
    {"{'nodes': 2, 'edges': [[0]]}", "edges[0]: must be [from, to] or [from, to, weight]"},
    {"{'nodes': 2, 'edges': [[0,1,0.5],[1,0,0.5]], 'weights': 'metropolis'}",
     "would replace the weights"},
    {"{'nodes': 3, 'directed': true, 'edges': [[0,1],[1,2],[2,0]], 'weights': 'metropolis'}",
     "needs undirected edges"},
    {"{'nodes': 2, 'edges': [[0,0,0.5],[0,1,0.4],[1,0,0.5],[1,1,0.5]]}",
     "row 1 sums to 0.9 (off by 0.1)"},
    {"{'nodes': 2, 'edges': [[0,1,0.5],[1,0,0.50001],[0,0,0.5],[1,1,0.5]]}", "(off by 1e-05)"},
    {"{'nodes': 2, 'edges': [[0,1,0.5],[1,0,0.50001],[0,0,0.5],[1,1,0.5]]}",
     "leave the self-weights [i, i, weight] out: they are then 1 minus the rest"},
    {"{'nodes': 2, 'edges': [[0,1,1.5],[1,0,1.5]]}", "node 0's own weight W[0][0] is -0.5"},
    {"{'nodes': 8, 'family': 'ring', 'hash': '0123456789abcdef'}",
     "hash: 0123456789abcdef is written, but this topology has "},
    {"{'nodes': 8, 'family': 'ring', 'hash': 'abc'}",
     "hash: \"abc\" is not allowed; it must be text of 16 hexadecimal digits"},
    {"{'nodes': 8, 'family': 'ring', 'provenance': {}}",
     "provenance: {} is not allowed; it must be an object that says where listed edges came from"},
    {"{'nodes': 8, 'family': 3}", "family: 3 is not allowed; it must be one of ring"},
    {"{'nodes': 8, 'family': 'ring', 'weights': [1]}",
     "weights: [1] is not allowed; it must be the name of a scheme"},
    {"0.5", "0.5 is not allowed; it must be an object"},
    {"{'nodes': 2, 'schedule': []}", "schedule: [] is not allowed; it must be a list"},
    {"{'nodes': 2, 'schedule': [{'edges': [[0,1]]}, {'edge': []}]}",
     "schedule[1]: unknown key \"edge\"; it must be one of edges, comment"},
};

/* W (3, 3) as numbers of float32, or of six digits; as rows, or as edges. */
static sl_topology *parse_matrix(const double w[9], bool digits, bool rows) {
    char json[1024];
    strcpy(json, rows ? "{'W': [" : "{'nodes': 3, 'edges': [");
    for (int i = 0; i < 9; i++) {
        char number[32];
        snprintf(number, sizeof number, digits ? "%.6f" : "%.17g",
                 digits ? w[i] : (double)(float)w[i]);
        const size_t at = strlen(json);
        if (rows)
            snprintf(json + at, sizeof json - at, "%s%s%s", i % 3 == 0 ? "[" : "", number,
                     i % 3 < 2 ? ", "
                     : i < 8   ? "], "
                               : "]");
        else if (w[i] != 0 || i % 4 == 0)
            snprintf(json + at, sizeof json - at, "%s[%d, %d, %s]", i > 0 ? ", " : "", i % 3, i / 3,
                     number);
    }
    return parse(strcat(json, "]}"));
}

static const struct {
    double w[9];
    bool row, column, symmetric;
} rounded_matrices[] = {
    {{1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3}, true, true, true},
    {{0, 1. / 3, 2. / 3, 1. / 3, 1. / 3, 1. / 3, 2. / 3, 1. / 3, 0}, true, true, true},
    {{.5, .2, .3, .2 + 4e-7, .6, .2, .3 - 4e-7, .2, .5}, true, true, true},
    {{.1, .2, .7, .6, .1, .3, .3, .7, 0}, true, true, false}, /* directed, and both were meant to */
    {{.1 / 3, 2.9 / 3, 0, 0, .7, .3, .4, 0, .6}, true, false, false},
    {{.1 / 3, 0, .4, 2.9 / 3, .7, 0, 0, .3, .6}, false, true, false},
};

START_LOOP_TEST(weights_that_were_rounded_sum_to_1,
                sizeof rounded_matrices / sizeof *rounded_matrices) {
    char text[256];
    for (int form = 0; form < 4; form++) {
        sl_topology *t = parse_matrix(rounded_matrices[_i].w, form / 2, form % 2);
        const sl_stochasticity s = sl_topology_stochasticity(t);
        ck_assert(s.row == rounded_matrices[_i].row && s.column == rounded_matrices[_i].column);
        ck_assert(s.nonnegative && s.symmetric == rounded_matrices[_i].symmetric);
        if (s.row)
            ck_assert_double_le(s.row_residual, 1e-15);
        if (s.column)
            ck_assert_double_le(s.column_residual, 1e-15);
        if (_i < 2)
            ck_assert(sl_topology_mended(text, sizeof text, t));
        for (uint32_t i = 0; i < 3; i++) {
            const sl_row row = sl_topology_in(t, 1, i);
            ck_assert_double_eq_tol(row.self, rounded_matrices[_i].w[4 * i], 2e-6);
            for (uint32_t k = 0; k < row.count; k++)
                ck_assert_double_eq_tol(row.weights[k],
                                        rounded_matrices[_i].w[3 * i + row.peers[k]], 2e-6);
        }
    }
}

/* Nothing that is right changes, whatever its last digits are; nothing beyond rounding passes. */
START_TEST(weights_that_were_not_rounded_stay) {
    char text[256];
    sl_topology *t = parse("{'W': [[0.25, 0.75], [0.75, 0.25000000000001]]}");
    ck_assert(!sl_topology_mended(text, sizeof text, t));
    ck_assert(sl_topology_in(t, 1, 1).self == 0.25000000000001);
    t = parse("{'W': [[0.25, 0.75], [0.75, 0.2500019]]}");
    ck_assert(sl_topology_mended(text, sizeof text, t));
    ck_assert_ptr_nonnull(strstr(text, "1.9e-06"));
    expect_refusal("{'W': [[0.25, 0.75], [0.75, 0.250005]]}", "a diagonal of 0");
    expect_refusal("{'nodes': 2, 'edges': [[0,1,0.75],[1,0,0.75],[0,0,0.250005],[1,1,0.250005]]}",
                   "within 1e-06 for each weight; leave the self-weights");
}

START_TEST(every_mistake_is_named) {
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        expect_refusal(mistakes[i].text, mistakes[i].said);
    sl_topology *t = NULL;
    ck_assert_int_eq(sl_topology_load(&t, "/nowhere/ring.json", &error), SL_EFILE);
    ck_assert_str_eq(error.text, "/nowhere/ring.json: No such file or directory");
}
