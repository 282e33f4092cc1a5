/* test_rank.c - the ranking of topologies: what it promises of every number of nodes, and the order
 * along fast links. tests/parity/test_rank.py compares it with the simulator. */
#include "harness.h"
#include "starling/rank.h"
#include "starling/spectrum.h"
#include "topology/rank/candidates.h"

static sl_error error;

/* Links and rankings are closed behind the test. */
CLOSER(sl_links);
CLOSER(sl_ranking);

static sl_links *parse(const char *json) {
    sl_links *links = NULL;
    EXPECT_WELL(sl_links_parse(&links, json, "test", &error));
    return close_behind(links, close_sl_links);
}

static sl_links *alike(uint32_t nodes, double bandwidth_mbit, double latency_ms) {
    sl_links *links = NULL;
    EXPECT_WELL(sl_links_uniform(&links, nodes, (sl_link){bandwidth_mbit, latency_ms}, &error));
    return close_behind(links, close_sl_links);
}

static sl_rank_settings settings_of(uint32_t nodes, const sl_links *links) {
    sl_rank_settings s;
    sl_rank_defaults(&s);
    s.nodes = nodes;
    s.links = links;
    s.message_bytes = 4e6;
    return s;
}

static sl_ranking *rank(sl_rank_settings s) {
    sl_ranking *r = NULL;
    ck_assert_msg(sl_ranking_open(&r, &s, &error) == 0, "%u nodes: %s", s.nodes, error.text);
    return close_behind(r, close_sl_ranking);
}

static const sl_candidate *find(const sl_ranking *r, const char *name) {
    for (size_t i = 0; i < sl_ranking_count(r); i++)
        if (strcmp(sl_ranking_at(r, i)->name, name) == 0)
            return sl_ranking_at(r, i);
    return NULL;
}

static void expect_sound(const sl_ranking *r, uint32_t nodes) {
    double before = 0;
    for (size_t i = 0; i < sl_ranking_count(r); i++) {
        const sl_candidate *c = sl_ranking_at(r, i);
        ck_assert_msg(c->seconds >= before, "%u nodes: %s after %g s", nodes, c->name, before);
        before = c->seconds;
        ck_assert_uint_eq(sl_topology_nodes(c->topology), nodes);
        ck_assert_msg(c->rounds >= 1 && c->gap > 0 && c->gap <= 1 && c->degree_max >= 1 &&
                          c->degree_max < nodes,
                      "%u nodes: %s: %g rounds, gap %g, %u peers", nodes, c->name, c->rounds,
                      c->gap, c->degree_max);
        ck_assert_double_eq_tol(c->seconds, c->rounds * c->round_seconds, 1e-12 * c->seconds);
        sl_stochasticity s = sl_topology_stochasticity(c->topology);
        ck_assert_msg(s.row && s.column, "%u nodes: %s is not doubly stochastic", nodes, c->name);
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(sl_topology_hash(sl_ranking_at(r, j)->topology) !=
                              sl_topology_hash(c->topology),
                          "%u nodes: %s twice", nodes, c->name);
    }
}

START_TEST(every_number_of_nodes_has_a_ranking) {
    for (uint32_t n = 2; n <= 26; n++) {
        sl_ranking *r = rank(settings_of(n, alike(n, 1000, 0.1)));
        ck_assert_uint_ge(sl_ranking_count(r), n == 2 ? 2 : 5);
        expect_sound(r, n);
    }
}

/* What is wanted holds for all that is ranked; the same as without a wish, but for those that are
 * left out, each with a reason. */
START_TEST(what_is_not_wanted_is_left_out_with_a_reason) {
    static const struct {
        uint32_t degree_max;
        bool undirected, fixed;
        const char *name, *why; /* of one that is left out */
    } wishes[] = {
        {4, false, false, "complete", "a node sends 11 messages a round"},
        {0, true, false, "one-peer-exponential", "edges lead one way"},
        {0, false, true, "base-k 1", "a schedule of 5 rounds"},
        {4, true, true, "de-bruijn", "edges lead one way"},
    };
    sl_links *links = alike(12, 1000, 0.1);
    sl_ranking *all = rank(settings_of(12, links));
    const sl_left_out *left_out;
    ck_assert_uint_eq(sl_ranking_left_out(all, &left_out), 0);
    for (size_t w = 0; w < sizeof wishes / sizeof *wishes; w++) {
        sl_rank_settings s = settings_of(12, links);
        bool found = false;
        s.degree_max = wishes[w].degree_max;
        s.undirected = wishes[w].undirected;
        s.fixed = wishes[w].fixed;
        sl_ranking *r = rank(s);
        for (size_t i = 0; i < sl_ranking_count(r); i++) {
            const sl_candidate *c = sl_ranking_at(r, i);
            const bool symmetric = sl_topology_period(c->topology) == 1 &&
                                   sl_topology_stochasticity(c->topology).symmetric;
            ck_assert(s.degree_max == 0 || c->degree_max <= s.degree_max);
            ck_assert(!s.fixed || symmetric);
            for (uint32_t k = 1; s.undirected && k <= sl_topology_period(c->topology); k++)
                for (uint32_t node = 0; node < 12; node++)
                    ck_assert_mem_eq(sl_topology_in(c->topology, k, node).peers,
                                     sl_topology_out(c->topology, k, node).peers,
                                     sl_topology_in(c->topology, k, node).count * sizeof(uint32_t));
            ck_assert_ptr_nonnull(find(all, c->name));
        }
        const size_t count = sl_ranking_left_out(r, &left_out);
        for (size_t i = 0; i < count; i++)
            found = found || (strcmp(left_out[i].name, wishes[w].name) == 0 &&
                              strcmp(left_out[i].why, wishes[w].why) == 0);
        ck_assert_msg(found, "%s", wishes[w].name);
        ck_assert_uint_ge(sl_ranking_count(r) + count, sl_ranking_count(all));
    }
}

/* ---- links that differ ---- */

/* `racks` racks whose nodes take turns: fast within, slow between. */
static sl_links *racked(uint32_t nodes, uint32_t racks) {
    char json[16384];
    int used =
        snprintf(json, sizeof json,
                 "{\"nodes\": %u, \"bandwidth_mbit\": 10, \"latency_ms\": 5, \"links\": [", nodes);
    const char *comma = "";
    for (uint32_t i = 0; i < nodes; i++)
        for (uint32_t j = i + racks; j < nodes; j += racks, comma = ",")
            used += snprintf(json + used, sizeof json - (size_t)used, "%s[%u, %u, 1000, 0.1]",
                             comma, i, j);
    snprintf(json + used, sizeof json - (size_t)used, "]}");
    return parse(json);
}

/* The order leaves each rack once. Nodes that take turns are found in their racks, racks of racks
 * too, and equal links form none. */
START_TEST(racks_are_found_and_left_once) {
    for (uint32_t racks = 1; racks <= 4; racks++) {
        uint32_t n = 6 * racks, order[24], crossings = 0, seen = 0;
        clusterings found;
        sl_links *links = racked(n, racks);
        EXPECT_WELL(sl_links_order(order, links, 1e6, &error));
        for (uint32_t k = 0; k < n; k++) {
            seen |= 1u << order[k];
            crossings += order[k] % racks != order[(k + 1) % n] % racks;
        }
        ck_assert_uint_eq(seen, (1u << n) - 1);
        ck_assert_uint_eq(crossings, racks == 1 ? 0 : racks);
        EXPECT_WELL(sl_links_clusterings(&found, order, links, 1e6, &error));
        ck_assert_uint_eq(found.count, racks > 1);
        ck_assert(racks == 1 || found.clusters[0] == racks);
    }
    sl_links *sites =
        parse("{\"nodes\": 8, \"latency_ms\": 100, \"links\": [[0,2,0,1], [4,6,0,1], [1,3,0,1], "
              "[5,7,0,1], [0,4,0,10], [0,6,0,10], [2,4,0,10], [2,6,0,10], [1,5,0,10], [1,7,0,10], "
              "[3,5,0,10], [3,7,0,10]]}");
    uint32_t order[8];
    clusterings found;
    EXPECT_WELL(sl_links_order(order, sites, 1e6, &error));
    EXPECT_WELL(sl_links_clusterings(&found, order, sites, 1e6, &error));
    ck_assert_uint_eq(found.count, 2);
    ck_assert(found.clusters[0] == 2 && found.clusters[1] == 4);
}

START_TEST(settings_that_are_not_allowed) {
    const sl_rank_settings good = settings_of(8, alike(8, 100, 1));
    sl_rank_settings bad[5] = {good, good, good, good, good};
    bad[0].nodes = 1;
    bad[1].nodes = SL_RANK_NODES_MAX + 1;
    bad[2].nodes = 9;
    bad[3].epsilon = 1;
    bad[4].message_bytes = NAN;
    static const char *const words[] = {"nodes: 1", "10000", "links", "epsilon", "message_bytes"};
    for (int i = 0; i < 5; i++) {
        sl_ranking *r = NULL;
        EXPECT_ERROR(sl_ranking_open(&r, &bad[i], &error), SL_EINVAL, words[i]);
        ck_assert_ptr_null(r);
    }
}
