/* node_transcript.h - the vocabulary of a node's transcripts: events in, updates out.
 *
 * Node 1 of a path 0 - 1 - 2 with four parameters in two parts. W by metropolis: 1/3 from each
 * neighbour, 1/3 self. Learning rate 0 unless said. */
#ifndef STARLING_TEST_NODE_TRANSCRIPT_H
#define STARLING_TEST_NODE_TRANSCRIPT_H

#include "../unit/harness.h"
#include "starling/node.h"

enum { D = 4, PART = 2, CREDIT = 4 };

static sl_optimizer_config optimizer;
static sl_plan plan;
static sl_topology *topology;
static sl_node *node;
static sl_update update;
static sl_error error;
static _Alignas(64) float vectors[16][16]; /* payloads stay readable until released */
static int next_vector;
static bool turns;
static const sl_ranges *leaves;

static inline void open_on(const char *graph, const sl_algorithm_config *config,
                           double learning_rate, uint64_t rounds) {
    optimizer = (sl_optimizer_config){.learning_rate = learning_rate};
    ck_assert_int_eq(sl_topology_parse(&topology, graph, "graph", &error), 0);
    ck_assert_int_eq(sl_algorithm_plan(&plan, config, topology, D, &error), 0);
    sl_node_settings settings = {
        .rank = 1,
        .rounds = rounds,
        .dimension = D,
        .part_bytes = PART * sizeof(float),
        .inbox_parts = CREDIT,
        .topology = topology,
        .plan = &plan,
        .vec = sl_vec_cpu(),
        .optimizer = &optimizer,
        .measure_every = 1,
        .turns = turns,
        .leaves = leaves,
    };
    ck_assert_msg(sl_node_open(&node, &settings, &error) == 0, "%s", error.text);
    for (int i = 0; i < D; i++)
        sl_node_model(node)[i] = 3;
    next_vector = 0;
}

static inline void open_algorithm(const sl_algorithm_config *config, double learning_rate,
                                  uint64_t rounds) {
    open_on("{\"nodes\": 3, \"family\": \"path\"}", config, learning_rate, rounds);
}

static inline void open_node(sl_variant variant, double learning_rate, uint64_t rounds) {
    open_algorithm(&(sl_algorithm_config){.name = "d-psgd", .variant = variant}, learning_rate,
                   rounds);
}

static inline void close_node(void) {
    sl_node_close(&node);
    sl_topology_close(&topology);
}

static inline int step(sl_event event) {
    return sl_node_step(node, &event, &update, &error);
}

static inline void start(void) {
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_START}), 0);
    ck_assert(update.compute && update.round == 1);
}

/* Of a node that exchanges after its gradient, which moves nothing. */
static inline void begin_rounds(uint64_t rounds) {
    open_node(SL_VARIANT_ADAPT_THEN_COMBINE, 0, rounds);
    start();
}

static inline void gradient(float g) {
    for (int i = 0; i < D; i++)
        sl_node_gradient_buffer(node)[i] = g;
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_GRADIENT, .loss = 1}), 0);
}

/* All g are `g`, of which those from `from` on are final. */
static inline void part_of_gradient(size_t from, float g) {
    for (size_t i = from; i < D; i++)
        sl_node_gradient_buffer(node)[i] = g;
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_FINAL, .loss = 1, .from = from}), 0);
}

static inline int receive_elements(uint32_t peer, uint64_t round, uint32_t part, float value,
                                   size_t elements) {
    float *v = vectors[next_vector++ % 16];
    for (size_t i = 0; i < elements; i++)
        v[i] = value;
    return step((sl_event){.type = SL_EVENT_RECEIVED,
                           .peer = peer,
                           .exchange = round,
                           .part = part,
                           .token = v,
                           .payload = {v, elements * sizeof(float)}});
}

static inline void receive(uint32_t peer, uint64_t round, uint32_t part, float value) {
    ck_assert_msg(receive_elements(peer, round, part, value, PART) == 0, "%s", error.text);
}

static inline void publish(uint32_t part) {
    sl_payload payload;
    ck_assert_int_eq(sl_node_payload(node, part, &payload, &error), 0);
    ck_assert_uint_eq(payload.bytes, PART * sizeof(float));
}

static inline void sent(uint32_t part) {
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_SENT, .part = part}), 0);
}

static inline void expect_released(size_t count) {
    ck_assert_uint_eq(update.released_count, count);
}

static inline void expect_model(float first, float second) {
    const float *x = sl_node_model(node);
    ck_assert_float_eq_tol(x[0], first, 1e-6f);
    ck_assert_float_eq_tol(x[PART], second, 1e-6f);
}

#endif
