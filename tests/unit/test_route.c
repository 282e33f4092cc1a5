/* test_route.c - who sends what to whom, seen from both ends of every edge: whatever one node
 * publishes for another is what that one expects. */
#include <stdio.h>
#include <string.h>

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
        ck_assert_uint_lt(peers[i - 1], peers[i]);
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
                ck_assert_int_eq(holds(from.out, i), holds(to.in, j));
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
            ck_assert_uint_eq(held[i][e], all * factor);
}

static void check_route(const char *name, int64_t server) {
    for (uint32_t nodes = 1; nodes <= SERVED_MAX; nodes++)
        for (size_t dimension = 1; dimension <= 40; dimension += dimension < 12 ? 1 : 9) {
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
            ck_assert(!is_in(next.prepared, e) && (answered || !is_in(next.coming, e)));
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
    for (uint32_t nodes = 1; nodes <= NODES_MAX; nodes++)
        for (size_t dimension = 1; dimension <= 40; dimension += 39)
            check_forms(nodes, dimension);
}
END_TEST

static bool is_listed(const uint32_t *places, uint32_t count, uint32_t place) {
    while (count > 0 && places[count - 1] != place)
        count--;
    return count > 0;
}

/* What a place sends in the second half goes where it sent in the first. */
static void check_direction(const sl_form *form, uint32_t place) {
    uint32_t to[32], count = 0;
    for (uint32_t step = 0; step < sl_form_steps(form, false); step++)
        to[count++] = sl_form_move(form, false, place, step).to;
    for (uint32_t step = 0; step < sl_form_steps(form, true); step++)
        ck_assert(is_listed(to, count, sl_form_move(form, true, place, step).to));
}

START_TEST(rings_go_on_in_their_direction) {
    const sl_all_reduce_form rings[] = {SL_ALL_REDUCE_RING, SL_ALL_REDUCE_TORUS_2D,
                                        SL_ALL_REDUCE_TWO_RINGS};
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        const sl_form form = sl_form_of(rings[i], 3, 12, 50);
        for (uint32_t place = 0; place < 12; place++)
            check_direction(&form, place);
    }
}
END_TEST

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
END_TEST

/* The in-order trees of 7: in the first, root 4 has children 2, 6 and the leaf 0. */
START_TEST(no_place_is_inner_in_both_trees) {
    for (uint32_t n = 2; n <= 130; n++) {
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
END_TEST

/* What is published stays with whom it weighs 1, and is gone from the others; what comes is added.
 */
static void merge_step(uint32_t nodes, uint32_t number, uint64_t *held) {
    uint64_t next[NODES_MAX];
    for (uint32_t i = 0; i < nodes; i++) {
        const sl_exchange_step step = step_of(i, 1, number);
        const bool publishes = step.published.count > 0;
        ck_assert(publishes || step.out.count == 0);
        ck_assert_uint_eq(step.prepared.count, step.published.count);
        next[i] = !publishes || step.self_weight > 0 ? held[i] : 0;
        for (uint32_t k = 0; k < step.in.count; k++)
            next[i] += held[step.in.peers[k]];
    }
    memcpy(held, next, sizeof next);
}

START_TEST(messages_are_merged_up_a_tree_and_come_back) {
    static const uint32_t steps[] = {0, 3, 5, 5, 7, 7, 7, 7, 9};
    for (uint32_t nodes = 1; nodes <= NODES_MAX; nodes++) {
        uint64_t held[NODES_MAX], all = 0;
        open_routes("gtop-k", 0, nodes, 10);
        check_both_ends(nodes, 1);
        for (uint32_t i = 0; i < nodes; i++)
            all += held[i] = value_of(i);
        uint32_t number = 1; /* the step before is each node's message to itself */
        ck_assert(step_of(0, 1, 0).out.count == 0 && step_of(0, 1, 0).self_weight > 0);
        for (; has_step(0, 1, number); number++)
            merge_step(nodes, number, held);
        for (uint32_t i = 0; i < nodes; i++)
            ck_assert_uint_eq(held[i], all);
        if (nodes < sizeof steps / sizeof *steps)
            ck_assert_uint_eq(number, steps[nodes]);
        close_routes(nodes);
    }
}
END_TEST

START_TEST(a_stage_may_publish_less_than_the_dimension) {
    static const size_t ends[] = {24, 30}, rows[] = {6, 1};
    static const sl_algorithm_config config = {.name = "powersgd", .rank = 2};
    const sl_shapes shapes = {30, ends, rows, 2};
    open_with_shapes(&config, 5, &shapes);
    check_both_ends(5, 1);
    const size_t lengths[] = {30, 2 * 6 + 6, 2 * 4}; /* of a warm-up, P, Q */
    size_t sent[6] = {0};
    for (uint32_t number = 0; has_step(0, 1, number); number++)
        for (uint32_t i = 0; i < 5; i++) {
            const sl_exchange_step step = step_of(i, 1, number);
            const size_t stage = number / 4, length = lengths[stage / 2];
            ck_assert_uint_lt(stage, 6);
            ck_assert_uint_le(step.published.from + step.published.count, length);
            ck_assert_uint_le(step.prepared.from + step.prepared.count, length);
            sent[stage] += step.published.count;
        }
    for (int stage = 0; stage < 6; stage++) /* each of four steps moves the whole ring's */
        ck_assert_uint_eq(sent[stage], 4 * lengths[stage / 2]);
    close_routes(5);
}
END_TEST

static const char triangles[] =
    "{\"nodes\": 6, \"edges\": [[0, 1], [0, 2], [0, 3], [1, 2], [1, 4], "
    "[3, 4], [4, 5]]}";

START_TEST(neighbours_meet_edge_by_edge) {
    static const size_t ends[] = {24, 30}, rows[] = {6, 1};
    static const sl_algorithm_config config = {.name = "power-gossip", .rank = 2};
    const sl_shapes shapes = {30, ends, rows, 2};
    open_on(triangles, &config, &shapes);
    check_both_ends(6, 1);
    uint32_t steps = 0;
    while (has_step(0, 1, steps))
        steps++;
    ck_assert_uint_le(steps, 2 * 5); /* of each parity fewer than twice the degree, 3 */
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t met = 0;
        for (uint32_t number = 0; number < steps / 2; number++) {
            const sl_exchange_step step = step_of(i, 1, number);
            ck_assert_uint_le(step.in.count, 1);
            met += step.in.count;
            ck_assert_uint_eq(step.published.count, step.in.count * (2 * 6 + 6));
            if (step.in.count > 0)
                ck_assert_double_eq_tol(step.in.weights[0], 0.25, 0.09); /* W_ij: 1/3 or 1/4 */
        }
        ck_assert_uint_eq(met, sl_topology_in(topology, 1, i).count);
    }
    close_routes(6);
}
END_TEST

START_TEST(servers_sum_and_spread) {
    check_route("parameter-server", 0);
    check_route("parameter-server", 2);
    check_route("parameter-server", SL_SERVER_SHARDED);
}
END_TEST

START_TEST(shards_follow_each_other_and_cover_the_vector) {
    for (size_t dimension = 1; dimension < 50; dimension++) {
        size_t end = 0;
        for (uint32_t k = 0; k < 7; k++) {
            sl_range shard = sl_shard((sl_range){0, dimension}, k, 7);
            ck_assert_uint_eq(shard.from, end);
            ck_assert_uint_eq(shard.from, k * dimension / 7);
            end += shard.count;
        }
        ck_assert_uint_eq(end, dimension);
    }
}
END_TEST

START_TEST(gossip_follows_the_topology) {
    open_routes("d-psgd", 0, 5, 10);
    const sl_exchange_step step = step_of(2, 1, 0);
    ck_assert_uint_eq(step.in.count, 2);
    ck_assert(holds(step.out, 1) && holds(step.out, 3));
    ck_assert_uint_eq(step.published.count, 10);
    ck_assert_float_eq_tol(step.self_weight, 1.0f / 3, 1e-7f);
    ck_assert(!has_step(2, 1, 1));
    close_routes(5);
}
END_TEST

/* Where replicas are kept one by one: all edges of the schedule in every exchange, with the
 * exchange's weights. */
START_TEST(a_schedule_united) {
    const char *json = "{\"nodes\": 4, \"schedule\": [{\"edges\": [[0, 1], [2, 3]]}, {\"edges\": "
                       "[[1, 2], [3, 0]]}, {\"edges\": [[0, 1]]}]}";
    const sl_algorithm_config config = {.name = "choco-sgd", .replicas = SL_REPLICAS_PER_NEIGHBOUR};
    open_on(json, &config, &(sl_shapes){.dimension = 10});
    for (uint64_t exchange = 1; exchange <= 7; exchange++) {
        check_both_ends(4, exchange);
        for (uint32_t i = 0; i < 4; i++) {
            const sl_exchange_step step = step_of(i, exchange, 0);
            const sl_row row = sl_topology_in(topology, exchange, i);
            double sum = step.in.self;
            ck_assert_uint_eq(step.in.count, 2);
            ck_assert_uint_eq(sl_route_width(&routes[i]), 2);
            for (uint32_t k = 0; k < 2; k++)
                sum += step.in.weights[k];
            ck_assert_double_eq_tol(sum, 1, 1e-15);
            for (uint32_t k = 0; k < 2; k++)
                ck_assert(holds(row, step.in.peers[k]) == (step.in.weights[k] > 0));
        }
    }
    close_routes(4);
}
END_TEST

/* In cd-sgd the exchange of the first round after the warm-up has no steps. Who was sent the sum of
 * the one before may then be two ahead of a server that still sends it to others. */
START_TEST(a_worker_may_be_two_exchanges_ahead_of_its_server) {
    open_routes("cd-sgd", 0, 3, 10);
    ck_assert_uint_eq(sl_route_window(&routes[0]), 3);
    close_routes(3);
}
END_TEST

/* Its peers are those of the edges and of the ring; who is no neighbour may be a period ahead. */
START_TEST(averages_are_summed_beside_edges) {
    const char *json = "{\"nodes\": 5, \"edges\": [[0, 2], [2, 4], [4, 1], [1, 3]]}";
    const sl_algorithm_config config = {.name = "gossip-pga", .average_period = 7};
    open_on(json, &config, &(sl_shapes){.dimension = 10});
    check_both_ends(5, 1);
    const uint32_t expected[] = {0, 1, 3, 4}, *peers;
    ck_assert_uint_eq(sl_route_peers(&routes[2], &peers), 4);
    ck_assert_mem_eq(peers, expected, sizeof expected);
    ck_assert_uint_eq(sl_route_peers(&routes[0], &peers), 3);
    ck_assert_uint_eq(sl_route_width(&routes[2]), 2);
    ck_assert_uint_eq(sl_route_window(&routes[2]), 8);
    ck_assert(step_of(2, 1, 0).along_edges && !step_of(2, 1, 1).along_edges);
    ck_assert(!sl_route_varies(&routes[2]));
    close_routes(5);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("route");
    ADD_TESTS(suite, "routes", every_form_sums_and_spreads, rings_go_on_in_their_direction,
              forms_cost_what_the_table_says, no_place_is_inner_in_both_trees,
              messages_are_merged_up_a_tree_and_come_back, neighbours_meet_edge_by_edge,
              servers_sum_and_spread, a_stage_may_publish_less_than_the_dimension,
              shards_follow_each_other_and_cover_the_vector, gossip_follows_the_topology,
              a_schedule_united, averages_are_summed_beside_edges,
              a_worker_may_be_two_exchanges_ahead_of_its_server);
    return run_suite(suite);
}
