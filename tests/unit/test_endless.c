/* test_endless.c - schedules that never repeat: W of any round, their rate, and what is left of
 * them when nodes are lost. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "starling/spectrum.h"
#include "topologies.h"

enum { ENDLESS_NODES = 40 };

/* W of a round, by sl_topology_row(). */
static void fill_matrix(double w[ENDLESS_NODES][ENDLESS_NODES], const sl_topology *t,
                        uint64_t round) {
    uint32_t peers[ENDLESS_NODES];
    double weights[ENDLESS_NODES];
    memset(w, 0, sizeof(double[ENDLESS_NODES][ENDLESS_NODES]));
    for (uint32_t i = 0; i < sl_topology_nodes(t); i++) {
        const sl_row row = sl_topology_row(t, round, i, peers, weights);
        ck_assert_uint_le(row.count, sl_topology_degree_max(t));
        for (uint32_t k = 0; k < row.count; k++) {
            ck_assert(k == 0 || row.peers[k] > row.peers[k - 1]);
            w[i][row.peers[k]] = row.weights[k];
        }
        ck_assert(w[i][i] == 0);
        w[i][i] = row.self;
    }
}

static void assert_doubly_stochastic(double w[ENDLESS_NODES][ENDLESS_NODES], uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t j = 0; j < n; j++) {
            ck_assert(w[i][j] == w[j][i] && w[i][j] >= 0);
            sum += w[i][j];
        }
        ck_assert_double_eq_tol(sum, 1, 1e-14);
    }
}

static const struct {
    uint32_t nodes, degree;
    const char *weights;
} endless[] = {{2, 1, "metropolis"}, {3, 1, "metropolis"}, {8, 1, "lazy"},  {9, 3, "metropolis"},
               {9, 8, "metropolis"}, {12, 5, "lazy"},      {40, 4, "lazy"}, {37, 7, "metropolis"}};

enum { CASES = sizeof endless / sizeof *endless };

/* Those that are kept are the same; of large rounds, too, each is another one. */
static bool is_repeated(double w[ENDLESS_NODES][ENDLESS_NODES], const sl_topology *t,
                        uint64_t round) {
    static double before[ENDLESS_NODES][ENDLESS_NODES];
    memcpy(before, w, sizeof before);
    fill_matrix(w, t, round * (round < 900 ? 1 : 1000000007));
    assert_doubly_stochastic(w, sl_topology_nodes(t));
    for (uint32_t i = 0; i < sl_topology_nodes(t) && round <= sl_topology_period(t); i++) {
        const sl_row row = sl_topology_in(t, round, i);
        ck_assert(row.self == w[i][i]);
        for (uint32_t k = 0; k < row.count; k++)
            ck_assert(row.weights[k] == w[i][row.peers[k]]);
    }
    return memcmp(before, w, sizeof before) == 0;
}

/* |(W - J) x|^2 / |(I - J) x|^2 over many rounds, from a few x, against the closed form. */
START_LOOP_TEST(each_round_has_another_w_and_rho_is_the_root_mean_square, CASES) {
    const uint32_t n = endless[_i].nodes, rounds = 1000;
    static double w[ENDLESS_NODES][ENDLESS_NODES];
    sl_topology *t = make("{'nodes': %u, 'family': 'epidemic', 'degree': %u, 'weights': '%s'}", n,
                          endless[_i].degree, endless[_i].weights);
    double sum = 0;
    uint32_t repeated = 0;
    for (uint64_t round = 1; round <= rounds; round++) {
        double before = 0, after = 0, x[ENDLESS_NODES], mean = 0;
        for (uint32_t i = 0; i < n; i++)
            mean += (x[i] = sin(3.0 * i * i + (double)round)) / n;
        repeated += is_repeated(w, t, round);
        for (uint32_t i = 0; i < n; i++) {
            double y = 0;
            for (uint32_t j = 0; j < n; j++)
                y += w[i][j] * (x[j] - mean);
            before += (x[i] - mean) * (x[i] - mean);
            after += y * y;
        }
        sum += after / before;
    }
    ck_assert(endless[_i].degree + 1 >= n || repeated < rounds / (n <= 3 ? 2 : 20));
    sl_spectrum s;
    EXPECT_WELL(sl_spectrum_compute(&s, t, NULL, &error));
    const double rho = pow(s.rho, 1.0 / sl_topology_period(t));
    ck_assert_msg(fabs(sqrt(sum / rounds) - rho) < 0.02, "%u nodes: %g, expected %g", n,
                  sqrt(sum / rounds), rho);
}

/* Of those who are left, in ranks: the graph of their number, with their names. */
START_TEST(an_endless_schedule_goes_on_without_the_lost) {
    const uint32_t members[] = {0, 2, 3, 7, 9}, count = 5;
    sl_topology *t = make("{'nodes': 8, 'family': 'epidemic', 'degree': 6, 'seed': 3}"), *among,
                *ranks, *same = make("{'nodes': 5, 'family': 'epidemic', 'degree': 4, 'seed': 3}");
    sl_regrouping how;
    EXPECT_WELL(sl_topology_among(&among, &how, t, members, count, &error));
    ck_assert(how.is_family);
    EXPECT_WELL(sl_topology_in_ranks(&ranks, among, members, 10, &error));
    ck_assert(sl_topology_is_endless(ranks));
    for (uint64_t round = 1; round < 100; round++)
        for (uint32_t k = 0; k < count; k++) {
            uint32_t a[8], b[8];
            double wa[8], wb[8];
            const sl_row row = sl_topology_row(ranks, round, members[k], a, wa),
                         of = sl_topology_row(same, round, k, b, wb);
            ck_assert_uint_eq(row.count, of.count);
            ck_assert(row.self == of.self);
            for (uint32_t e = 0; e < row.count; e++)
                ck_assert(row.peers[e] == members[of.peers[e]] && row.weights[e] == of.weights[e]);
            ck_assert_uint_eq(sl_topology_row(ranks, round, 4, a, wa).count, 0);
        }
    const uint32_t *peers;
    ck_assert_uint_eq(sl_topology_peers(ranks, 2, &peers), 4);
    ck_assert_uint_eq(peers[3], 9);
    ck_assert_uint_eq(sl_topology_peers(ranks, 4, &peers), 0);
    sl_topology_close(&ranks);
    sl_topology_close(&among);
}
