/* test_batches.c - a device combines many parts at once: the bits are those of one after the other,
 * whatever has come when, and where an exchange is cut in a batch's midst.
 *
 * The device is the emulated one; the host's node combines each part as it comes.
 */
#include "driven_node.h"
#include "harness.h"
#include "starling/device.h"

enum { DIMENSION = 1300001, PART_BYTES = 4096, ROUNDS = 3, CONTROL_EVERY = 7 };

static sl_topology *topology;
static float *found[2]; /* models of the host, and of the device */

static void open_all(void) {
    sl_error error;
    EXPECT_WELL(sl_topology_parse(&topology, "{\"nodes\": 4, \"family\": \"ring\"}", "", &error));
    for (int i = 0; i < 2; i++)
        found[i] = malloc(DIMENSION * sizeof(float));
}

static void close_all(void) {
    sl_topology_close(&topology);
    free(found[0]);
    free(found[1]);
}

static void fill(uint32_t rank, uint64_t exchange, uint32_t part, float *out, size_t count) {
    uint32_t state = rank + 5u * (uint32_t)exchange + 977u * part;
    for (size_t i = 0; i < count; i++) {
        state = 1664525u * state + 1013904223u;
        out[i] = (float)(state >> 8) / 16777216 - 0.5f;
    }
}

typedef struct way {
    uint32_t window, cut_after;
    unsigned frames_of_pass;
    sl_algorithm_config config;
} way;

/* The model goes to `model`. */
static driven_node train(const sl_vec_ops *vec, const way *w, float *model) {
    const sl_optimizer_config optimizer = {.learning_rate = 0.1};
    sl_plan plan;
    sl_error error;
    driven_node d;
    EXPECT_WELL(sl_algorithm_plan(&plan, &w->config, topology, DIMENSION, &error));
    driven_open(&d,
                (sl_node_settings){.rounds = ROUNDS,
                                   .dimension = DIMENSION,
                                   .part_bytes = PART_BYTES,
                                   .topology = topology,
                                   .plan = &plan,
                                   .vec = vec,
                                   .optimizer = &optimizer,
                                   .measure_every = 1},
                w->window);
    d.fill = fill;
    d.frames_of_pass = w->frames_of_pass;
    d.control_every = CONTROL_EVERY;
    d.cut_after = w->cut_after;
    vec->fill(sl_node_gradient_buffer(d.node), 0.25f, DIMENSION);
    driven_train(&d);
    vec->copy_out(model, sl_node_model(d.node), DIMENSION * sizeof(float));
    driven_close(&d);
    return d;
}

#define GOSSIP .config = {.name = "d-psgd"}
#define CHOCO(...)                                                                                 \
    .config = {.name = "choco-sgd", .consensus_step = 0.3, .compressor = {__VA_ARGS__}}

static const way ways[] = {
    {.window = 3, .frames_of_pass = 2, GOSSIP},
    {.window = 64, .frames_of_pass = 64, GOSSIP},
    {.window = 64, .frames_of_pass = 7, .cut_after = 32, GOSSIP},
    {.window = 16, .frames_of_pass = 3, .cut_after = 1269, GOSSIP},
    {.window = 64,
     .frames_of_pass = 64,
     CHOCO(.kind = SL_COMPRESSOR_QSGD, .levels = 127, .bucket = 512, .norm = SL_NORM_MAX)},
    {.window = 32, .frames_of_pass = 7, CHOCO(.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 3000)},
    {.window = 5, .frames_of_pass = 2, CHOCO(.kind = SL_COMPRESSOR_SCALED_SIGN)},
    {.window = 64,
     .frames_of_pass = 7,
     .cut_after = 40,
     CHOCO(.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.05)},
    {.window = 64,
     .frames_of_pass = 64,
     CHOCO(.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.3),
     .config.replicas = SL_REPLICAS_PER_NEIGHBOUR},
    {.window = 32, .frames_of_pass = 7, CHOCO(.kind = SL_COMPRESSOR_RANDOM_K, .fraction = 0.1)},
    {.window = 200,
     .frames_of_pass = 64,
     CHOCO(.kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = 0.6)},
    {.window = 64,
     .frames_of_pass = 7,
     CHOCO(.kind = SL_COMPRESSOR_MAGNITUDE_DROPPING, .fraction = 0.4, .contractive = true)},
    {.window = 200,
     .frames_of_pass = 64,
     .config = {.name = "naive-compression",
                .compressor = {.kind = SL_COMPRESSOR_STROM, .threshold = 0.2}}},
};

FIXTURES(open_all, close_all);

START_LOOP_TEST(a_device_has_the_bits_of_the_host, sizeof ways / sizeof *ways) {
    const sl_vec_ops *device;
    sl_error error;
    EXPECT_WELL(sl_device_open(&device, "cuda:0", 0, &error));
    const driven_node host = train(sl_vec_cpu(), &ways[_i], found[0]),
                      other = train(device, &ways[_i], found[1]);
    ck_assert_mem_eq(found[0], found[1], DIMENSION * sizeof(float));
    ck_assert_uint_eq(host.sent_sum, other.sent_sum);
    ck_assert(memcmp(&host.distance, &other.distance, sizeof host.distance) == 0);
}
