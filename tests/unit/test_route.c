/* test_route.c - who sends what to whom, seen from both ends of every edge: whatever one node
 * publishes for another is what that one expects. */
#include "harness.h"
#include "node/double_tree.h"
#include "node/route.h"

enum { NODES_MAX = 17, SERVED_MAX = 9, DIMENSION_MAX = 64 };

static sl_route routes[NODES_MAX];
static sl_topology *topology;
static sl_error error;

static void open_on(const char *json, const sl_algorithm_config *config, const sl_shapes *shapes) {
    ck_assert_msg(sl_topology_parse(&topology, json, "test", &error) == 0, "%s", error.text);
    const sl_algorithm *algorithm = sl_algorithm_find(config->name, SL_VARIANT_DEFAULT, &error);
    for (uint32_t i = 0; i < sl_topology_nodes(topology); i++)
        ck_assert_int_eq(
            sl_route_open(&routes[i], algorithm, config, topology, NULL, i, shapes, &error), 0);
}

static void open_with_shapes(const sl_algorithm_config *config, uint32_t nodes,
                             const sl_shapes *shapes) {
    char json[128];
    snprintf(json, sizeof json, "{\"nodes\": %u, \"family\": \"%s\"}", nodes,
             nodes > 1 ? "ring" : "complete");
    open_on(json, config, shapes);
}

static void open_with(const sl_algorithm_config *config, uint32_t nodes, size_t dimension) {
    open_with_shapes(config, nodes, &(sl_shapes){.dimension = dimension});
}

static void open_routes(const char *name, int64_t server, uint32_t nodes, size_t dimension) {
    sl_algorithm_config config = {.server = server};
    snprintf(config.name, sizeof config.name, "%s", name);
    open_with(&config, nodes, dimension);
}

static void close_routes(uint32_t nodes) {
    for (uint32_t i = 0; i < nodes; i++)
        sl_route_close(&routes[i]);
    sl_topology_close(&topology);
}

static bool holds(sl_row row, uint32_t peer) {
    for (uint32_t i = 0; i < row.count; i++)
        if (row.peers[i] == peer)
            return true;
    return false;
}

static bool is_peer(uint32_t rank, uint32_t other) {
    const uint32_t *peers;
    uint32_t count = sl_route_peers(&routes[rank], &peers);
    for (uint32_t i = 1; i < count; i++)
        if (peers[i - 1] >= peers[i])
            ck_abort_msg("peers of %u do not rise", rank);
    return holds((sl_row){.count = count, .peers = peers}, other);
}

/* Of the algorithm's own, before those that a later view begins with. */
static bool has_step(uint32_t rank, uint64_t exchange, uint32_t number) {
    sl_exchange_step step;
    return sl_route_step(&routes[rank], exchange, number, &step) && !step.stage->restates;
}

static sl_exchange_step step_of(uint32_t rank, uint64_t exchange, uint32_t number) {
    sl_exchange_step step;
    ck_assert(sl_route_step(&routes[rank], exchange, number, &step));
    return step;
}

/* In every step of an exchange, and of one that begins a later view. */
static void check_both_ends(uint32_t nodes, uint64_t exchange) {
    sl_exchange_step any;
    for (uint32_t k = 0; sl_route_step(&routes[0], exchange, k, &any); k++)
        for (uint32_t i = 0; i < nodes; i++)
            for (uint32_t j = 0; j < nodes; j++) {
                const sl_exchange_step from = step_of(j, exchange, k), to = step_of(i, exchange, k);
                if (holds(from.out, i) != holds(to.in, j)) /* Check's own are slow */
                    ck_abort_msg("exchange %d, step %u: %u to %u", (int)exchange, k, j, i);
                if (!holds(from.out, i))
                    continue;
                sl_range expected = sl_route_range(&routes[i], &to, j);
                ck_assert_uint_eq(from.published.from, expected.from);
                ck_assert_uint_eq(from.published.count, expected.count);
                ck_assert(is_peer(i, j) && is_peer(j, i));
            }
}

/* What node i begins with; no other sum of such numbers is the sum of all. */
static uint64_t value_of(uint32_t i) {
    return (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0x5851f42d4c957f2d) << i;
}

/* After both halves everybody has everybody's number once, and the sum was prepared once. */
static void check_sums(uint32_t nodes, size_t dimension) {
    static uint64_t held[NODES_MAX][DIMENSION_MAX], next[NODES_MAX][DIMENSION_MAX];
    static const uint64_t factor = 3;
    for (uint32_t i = 0; i < nodes; i++)
        for (size_t e = 0; e < dimension; e++)
            held[i][e] = value_of(i);
    /* Stages that only some exchanges want come last. */
    for (uint32_t number = 0; has_step(0, 1, number) && step_of(0, 1, number).stage->wanted == NULL;
         number++) {
        for (uint32_t i = 0; i < nodes; i++) {
            const sl_exchange_step step = step_of(i, 1, number);
            const sl_range range = step.prepared;
            for (size_t e = range.from; step.stage->gather && e < range.from + range.count; e++)
                held[i][e] *= factor;
        }
        memcpy(next, held, sizeof held);
        for (uint32_t i = 0; i < nodes; i++) {
            const sl_exchange_step step = step_of(i, 1, number);
            for (uint32_t k = 0; k < step.in.count; k++) {
                uint32_t j = step.in.peers[k];
                sl_range range = sl_route_range(&routes[i], &step, j);
                for (size_t e = range.from; e < range.from + range.count; e++)
                    next[i][e] = step.stage->gather ? held[j][e] : next[i][e] + held[j][e];
            }
        }
        memcpy(held, next, sizeof held);
    }
    uint64_t all = 0;
    for (uint32_t i = 0; i < nodes; i++)
        all += value_of(i);
    for (uint32_t i = 0; i < nodes; i++)
        for (size_t e = 0; e < dimension; e++)
            if (held[i][e] != all * factor)
                ck_abort_msg("node %u of %u, element %zu", i, nodes, e);
}

static void check_route(const char *name, int64_t server) {
    for (uint32_t nodes = 1; nodes <= SERVED_MAX; nodes++)
        for (size_t dimension = 1; dimension <= 40; dimension += dimension < 4 ? 1 : 9) {
            if (server >= (int64_t)nodes)
                continue;
            open_routes(name, server, nodes, dimension);
            check_both_ends(nodes, 1);
            check_sums(nodes, dimension);
            close_routes(nodes);
        }
}

static bool has_groups(sl_all_reduce_form form) {
    return form == SL_ALL_REDUCE_HIERARCHICAL || form == SL_ALL_REDUCE_TORUS_2D ||
           form == SL_ALL_REDUCE_TWO_RINGS;
}

static bool is_in(sl_range range, size_t e) {
    return e - range.from < range.count;
}

/* Does its only receiver send in this step? */
static bool answers(const sl_exchange_step *step, const sl_exchange_step *later) {
    return step->out.count == 1 && later->in.count == 1 && later->in.peers[0] == step->out.peers[0];
}

/* What is said to stay is not touched by the next step, or by none before its receiver's answer. */
static void check_untouched(uint32_t rank, uint32_t number, sl_stay stays) {
    const sl_exchange_step step = step_of(rank, 1, number);
    bool answered = false;
    for (uint32_t k = number + 1; !answered; k++) {
        ck_assert(has_step(rank, 1, k));
        const sl_exchange_step next = step_of(rank, 1, k);
        answered = answers(&step, &next);
        for (size_t e = step.published.from; e < step.published.from + step.published.count; e++)
            if (is_in(next.prepared, e) || (!answered && is_in(next.coming, e)))
                ck_abort_msg("step %u of %u touches element %zu", k, rank, e);
        if (stays == SL_STAY_STEP) {
            ck_assert_uint_gt(next.published.count, 0);
            return;
        }
    }
}

/* Steps whose messages stay; *answered: of these, until the receivers' messages. */
static uint32_t count_staying(uint32_t rank, uint32_t *answered) {
    uint32_t count = 0;
    *answered = 0;
    for (uint32_t k = 0; has_step(rank, 1, k); k++) {
        const sl_exchange_step step = step_of(rank, 1, k);
        const sl_stay stays = sl_route_stays(&routes[rank], 1, k, &step);
        if (step.stage->wanted != NULL || stays == SL_STAY_NONE)
            continue;
        check_untouched(rank, k, stays);
        *answered += stays == SL_STAY_ANSWER;
        count++;
    }
    return count;
}

/* Of a ring's steps, all but the last of an exchange; of halving and doubling, each that halves is
 * answered; who only sends to the middle of a star is, too. */
static void check_staying(const sl_algorithm_config *config, uint32_t nodes, size_t dimension) {
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t answered;
        const uint32_t count = count_staying(i, &answered);
        if (config->all_reduce == SL_ALL_REDUCE_RING && dimension >= nodes)
            ck_assert_uint_eq(count, nodes < 2 ? 0 : 2 * (nodes - 1) - 1);
        if (config->all_reduce == SL_ALL_REDUCE_HALVING_DOUBLING && nodes == 8 &&
            dimension >= nodes)
            ck_assert_uint_eq(answered, 3);
        if (config->all_reduce == SL_ALL_REDUCE_STAR)
            ck_assert_uint_eq(answered, i > 0);
    }
}

static void check_forms(uint32_t nodes, size_t dimension) {
    for (sl_all_reduce_form form = SL_ALL_REDUCE_RING; form <= SL_ALL_REDUCE_STAR; form++)
        for (uint32_t group = 0; group <= (has_groups(form) ? 4 : 0); group += 2) {
            const sl_algorithm_config config = {
                .name = "all-reduce", .all_reduce = form, .group = group};
            open_with(&config, nodes, dimension);
            check_both_ends(nodes, 1);
            check_sums(nodes, dimension);
            check_staying(&config, nodes, dimension);
            close_routes(nodes);
        }
}

START_TEST(every_form_sums_and_spreads) {
    for (uint32_t nodes = 1; nodes <= NODES_MAX; nodes += nodes < 9 ? 1 : 4)
        for (size_t dimension = 1; dimension <= 40; dimension += 39)
            check_forms(nodes, dimension);
}

/* Steps of both halves, and elements that the busiest sends, of 2^12 times 9: each cut is even. */
START_TEST(forms_cost_what_the_table_says) {
    enum { D = 36864 };
    static const struct {
        sl_all_reduce_form form;
        uint32_t nodes, group, steps;
        double sent; /* vectors */
    } rows[] = {
        {SL_ALL_REDUCE_RING, 8, 0, 14, 14.0 / 8},
        {SL_ALL_REDUCE_TREE, 8, 0, 6, 3},
        {SL_ALL_REDUCE_TREE, 9, 0, 8, 4},
        {SL_ALL_REDUCE_RECURSIVE_DOUBLING, 8, 0, 5, 3},
        {SL_ALL_REDUCE_RECURSIVE_DOUBLING, 12, 0, 5, 4},
        {SL_ALL_REDUCE_HALVING_DOUBLING, 8, 0, 8, 14.0 / 8},
        {SL_ALL_REDUCE_HALVING_DOUBLING, 12, 0, 8, 14.0 / 8 + 1},
        {SL_ALL_REDUCE_HIERARCHICAL, 12, 4, 10, 3 + 4.0 / 3},
        {SL_ALL_REDUCE_TORUS_2D, 12, 4, 10, 22.0 / 12},
        {SL_ALL_REDUCE_TWO_RINGS, 12, 4, 20, 22.0 / 12},
        {SL_ALL_REDUCE_DOUBLE_TREE, 8, 0, 24, 2},
        {SL_ALL_REDUCE_STAR, 8, 0, 2, 7},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const sl_form form = sl_form_of(rows[k].form, rows[k].group, rows[k].nodes, D);
        const uint32_t halves[] = {sl_form_steps(&form, false), sl_form_steps(&form, true)};
        size_t busiest = 0;
        for (uint32_t i = 0; i < rows[k].nodes; i++) {
            size_t sent = 0;
            for (uint32_t step = 0; step < halves[0] + halves[1]; step++) {
                const bool gather = step >= halves[0];
                const sl_move m = sl_form_move(&form, gather, i, step - gather * halves[0]);
                sent += m.leaves.count * (m.to == SL_EVERYWHERE ? rows[k].nodes - 1 : 1);
            }
            busiest = sent > busiest ? sent : busiest;
        }
        ck_assert_uint_eq(halves[0] + halves[1], rows[k].steps);
        ck_assert_double_eq_tol((double)busiest / D, rows[k].sent, 1e-12);
    }
}

/* The in-order trees of 7: in the first, root 4 has children 2, 6 and the leaf 0. */
START_TEST(no_place_is_inner_in_both_trees) {
    for (uint32_t n = 2; n <= 130; n += n < 20 ? 1 : 10) {
        const sl_form form = sl_form_of(SL_ALL_REDUCE_DOUBLE_TREE, 0, n, n);
        for (uint32_t place = 0; place < n; place++) {
            uint32_t children[2] = {0, 0}, parents[2] = {0, 0};
            for (uint32_t step = 0; step < sl_form_steps(&form, false); step++) {
                const sl_move m = sl_form_move(&form, false, place, step);
                children[step % 2] += m.comes.count > 0;
                parents[step % 2] += m.leaves.count > 0;
                if (n == 7 && place == 4 && step % 2 == 0 && m.comes.count > 0)
                    ck_assert(m.from == 2 || m.from == 6 || m.from == 0);
            }
            if (n > 3) {
                ck_assert(children[0] == 0 || children[1] == 0);
                ck_assert_uint_eq(parents[0] + parents[1],
                                  2 - (sl_double_tree_root(&form, 0) == place) -
                                      (sl_double_tree_root(&form, 1) == place));
            }
            if (n == 7 && place == 4)
                ck_assert_uint_eq(children[0], 3);
        }
    }
}

START_TEST(servers_sum_and_spread) {
    check_route("parameter-server", 0);
    check_route("parameter-server", 2);
    check_route("parameter-server", SL_SERVER_SHARDED);
}

/* In cd-sgd the exchange of the first round after the warm-up has no steps. Who was sent the sum of
 * the one before may then be two ahead of a server that still sends it to others. */
START_TEST(a_worker_may_be_two_exchanges_ahead_of_its_server) {
    open_routes("cd-sgd", 0, 3, 10);
    ck_assert_uint_eq(sl_route_window(&routes[0]), 3);
    close_routes(3);
}

int main(void) {
    return run_tests("route");
}
