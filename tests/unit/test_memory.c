/* test_memory.c - the vectors that each algorithm keeps are those that docs/algorithms.md says, at
 * any degree. With them counts, where it is as long as a vector, the buffer that encoded messages
 * leave from. */
#include "harness.h"
#include "starling/node.h"

enum { D = 1 << 17, ROWS = 1 << 10 };

typedef struct expected {
    sl_algorithm_config config;
    unsigned vectors; /* beside x and g; there is no momentum */
} expected;

#define TOP_K .compressor = {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.01}

static const expected all[] = {
    {{.name = "d-psgd"}, 0},
    {{.name = "d-psgd", .variant = SL_VARIANT_COMBINE_WHILE_ADAPT}, 1},
    {{.name = "dcd-psgd", TOP_K}, 1},
    {{.name = "d-psgd", .compressor = {.kind = SL_COMPRESSOR_SHARED_MASK, .k = 4}}, 0},
    {{.name = "ecd-psgd", TOP_K}, 1},
    {{.name = "choco-sgd", TOP_K}, 2},
    {{.name = "choco-sgd", .variant = SL_VARIANT_MIX_THEN_COMPRESS, TOP_K}, 2},
    {{.name = "deep-squeeze", TOP_K}, 1},
    {{.name = "sgp"}, 1},
    {{.name = "gradient-tracking"}, 2},
    {{.name = "gradient-tracking", .variant = SL_VARIANT_COMBINE_WHILE_ADAPT}, 2},
    {{.name = "exact-diffusion"}, 1},
    {{.name = "qgm"}, 2},
    {{.name = "decentlam"}, 2},
    {{.name = "clipped-gossip", .clip = 1}, 1}, /* of two nodes */
    {{.name = "clipped-gossip", .variant = SL_VARIANT_MEDIAN}, 0},
    {{.name = "beer", TOP_K}, 6},
    {{.name = "lead", TOP_K}, 3},
    {{.name = "gossip-pga", .average_period = 6}, 0},
    {{.name = "noloco"}, 2},
    {{.name = "moniqua", .bits = 8, .theta = 2}, 1},
    {{.name = "relaysum"}, 3}, /* of two nodes, with the buffer of its message */
    {{.name = "d-adam"}, 2},
    {{.name = "d-amsgrad"}, 4},
    {{.name = "all-reduce"}, 0},
    {{.name = "parameter-server"}, 0},
    {{.name = "local-sgd", .period = 10}, 0},
    {{.name = "local-sgd", .period = 10, .switch_round = 5}, 0},
    {{.name = "local-sgd", .period = 10, .period_schedule = SL_PERIOD_ADAPTIVE}, 0},
    {{.name = "local-sgd", .period = 10, .period_schedule = SL_PERIOD_GROWING}, 0},
    {{.name = "parameter-server", TOP_K}, 1},
    {{.name = "parameter-server", .directions = SL_DIRECTIONS_BOTH, TOP_K}, 2},
    {{.name = "all-reduce", TOP_K}, 1},
    {{.name = "all-reduce", .compressor = {.kind = SL_COMPRESSOR_TERNGRAD, .share_scale = true}},
     2},
    {{.name = "all-reduce", .delay = 3}, 3},
    {{.name = "local-sgd", .period = 10, TOP_K}, 2},
    {{.name = "ecq-sgd", TOP_K}, 2},
    {{.name = "gmc", TOP_K}, 1},
    {{.name = "dgc", TOP_K}, 1},
    {{.name = "gtop-k", TOP_K}, 3},
    {{.name = "powersgd", .rank = 2}, 2},
    {{.name = "power-gossip", .rank = 2}, 1},
    {{.name = "fetch-sgd", .sketch = {.rows = 5}}, 1},
    {{.name = "sign-vote"}, 2},
    {{.name = "sign-vote", .beta = 0.9}, 3},
    {{.name = "ef21", TOP_K}, 2},
    {{.name = "lag-3pc"}, 4}, /* one of its message */
    {{.name = "clag", TOP_K}, 3},
    {{.name = "lag-wk", .depth = 10}, 4},
    {{.name = "laq", .depth = 10, .bits = 4, .clock = 100}, 3},
    {{.name = "diana", TOP_K}, 3},
    {{.name = "diana", .beta = 0.9, TOP_K}, 4},
    {{.name = "slowmo", .period = 10}, 2},
    {{.name = "slowmo", .period = 10, .base = SL_BASE_D_PSGD}, 2},
    {{.name = "slowmo", .period = 10, .base = SL_BASE_SGP}, 3},
    {{.name = "diloco", .period = 10}, 2},
    {{.name = "fedavg", .local_steps = 10, .clients = 1}, 1},
    {{.name = "fedavg", .local_steps = 10, .clients = 1, TOP_K}, 2},
    {{.name = "fedavg", .clients = 1, .directions = SL_DIRECTIONS_BOTH, TOP_K}, 3},
    {{.name = "easgd", .period = 10}, 2},
    {{.name = "one-bit-adam", TOP_K}, 4},
    {{.name = "double-squeeze", TOP_K}, 2},
    {{.name = "cd-sgd", .correction_period = 5, .threshold = 0.1}, 3},
    {{.name = "naive-compression", TOP_K}, 1},
};

static unsigned vectors_with(const sl_algorithm_config *config, const char *graph, uint32_t rank,
                             sl_optimizer_kind kind) {
    sl_error error = {0};
    sl_topology *topology;
    sl_plan plan;
    sl_node *node;
    sl_optimizer_config optimizer = {.kind = kind, .learning_rate = 0.1};
    EXPECT_WELL(sl_topology_parse(&topology, graph, "graph", &error));
    EXPECT_WELL(sl_algorithm_plan(&plan, config, topology, D, &error));
    static const size_t end = D, rows = ROWS;
    sl_node_settings settings = {.rank = rank,
                                 .rounds = 1,
                                 .dimension = D,
                                 .tensor_ends = &end,
                                 .tensor_rows = &rows,
                                 .tensor_count = 1,
                                 .part_bytes = 4096,
                                 .inbox_parts = 4,
                                 .topology = topology,
                                 .plan = &plan,
                                 .vec = sl_vec_cpu(),
                                 .optimizer = &optimizer};
    EXPECT_WELL(sl_node_open(&node, &settings, &error));
    const size_t bytes = sl_node_memory(node), forecast = sl_node_vector_bytes(&settings);
    /* Beside the vectors there is at most one buffer, of encoded messages. */
    ck_assert_msg(forecast <= bytes && bytes < forecast + 2 * D * sizeof(float), "%s: %zu, %zu",
                  config->name, forecast, bytes);
    sl_node_close(&node);
    sl_topology_close(&topology);
    return (unsigned)(bytes / (D * sizeof(float)));
}

static unsigned vectors(const sl_algorithm_config *config, const char *graph, uint32_t rank) {
    return vectors_with(config, graph, rank, SL_OPTIMIZER_SGD);
}

START_LOOP_TEST(as_documented, sizeof all / sizeof *all) {
    const unsigned leaf = vectors(&all[_i].config, "{\"nodes\": 9, \"family\": \"star\"}", 5);
    const unsigned hub = vectors(&all[_i].config, "{\"nodes\": 9, \"family\": \"star\"}", 1);
    const unsigned want = 2 + all[_i].vectors;
    ck_assert_msg(leaf == want && hub == want, "%s: %u and %u, not %u", all[_i].config.name, leaf,
                  hub, want);
}

START_TEST(one_replica_for_each_neighbour_where_a_run_asks) {
    static const char star[] = "{\"nodes\": 9, \"family\": \"star\"}",
                      schedule[] =
                          "{\"nodes\": 8, \"family\": \"hyper-cuboid\", \"sides\": [2, 2, 2]}";
    const sl_algorithm_config choco = {
        .name = "choco-sgd", .replicas = SL_REPLICAS_PER_NEIGHBOUR, TOP_K};
    const sl_algorithm_config dcd = {
        .name = "dcd-psgd", .replicas = SL_REPLICAS_PER_NEIGHBOUR, TOP_K};
    ck_assert_uint_eq(vectors(&choco, star, 0), 2 + 8 + 1);
    ck_assert_uint_eq(vectors(&choco, star, 5), 2 + 1 + 1);
    ck_assert_uint_eq(vectors(&choco, schedule, 5), 2 + 3 + 1);
    ck_assert_uint_eq(vectors(&dcd, star, 0), 2 + 8);
    ck_assert_uint_eq(vectors(&dcd, schedule, 0), 2 + 3);
}

START_TEST(two_moments_of_an_optimizer_that_has_them) {
    static const char ring[] = "{\"nodes\": 9, \"family\": \"ring\"}";
    const sl_algorithm_config plain = {.name = "d-psgd"};
    ck_assert_uint_eq(vectors_with(&plain, ring, 0, SL_OPTIMIZER_ADAMW), 2 + 2);
    ck_assert_uint_eq(vectors_with(&plain, ring, 0, SL_OPTIMIZER_LAMB), 2 + 2);
    ck_assert_uint_eq(vectors_with(&plain, ring, 0, SL_OPTIMIZER_LARS), 2);
}
