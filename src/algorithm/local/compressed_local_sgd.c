/* compressed_local_sgd.c - Qsparse-local-SGD: Basu, Data, Karakus, Diggavi, "Qsparse-local-SGD:
 * Distributed SGD with Quantization, Sparsification, and Local Computations", NeurIPS 2019,
 * Algorithm 1. local-sgd with a compressor; a is the last common model.
 *
 *   x_i <- x_i - gamma mom(g_i)
 *   every `period` rounds:  a <- a + s, or a + Q;  x_i <- a;  s, Q of squeeze.h with u_i = x_i - a
 *
 * The survey's "Local SGD TopK" and "FedAvg TopK" are taken to send the change of the model without
 * feedback; their pages do not print what they compress. With period 1 and a constant gamma, it is
 * error feedback on gradients. All nodes must start from the same model.
 *
 * Memory beside x, g, momentum: v, a, and with both ways s. Wire, each period: one compressed
 * message up, a dense or compressed one down.
 */
#include "algorithm/own_keys.h"
#include "algorithm/squeeze.h"

static size_t vectors(const sl_algorithm_config *config) {
    return sl_squeeze_vectors(config) + 1;
}

static float *common_model(const sl_state *s) {
    return s->extra[sl_squeeze_vectors(s->config)];
}

static void start(sl_state *s, size_t dimension) {
    sl_copy(s, common_model(s), s->x, dimension);
}

static void load_change(sl_state *s, size_t from, size_t count) {
    sl_local_step(s, from, count);
    sl_subtract(s, s->g + from, s->x + from, common_model(s) + from, count);
    sl_squeeze_load(s, from, count);
}

static void settle(sl_state *s, size_t from, size_t count) {
    float *a = common_model(s) + from;
    s->vec->combine(a, (const float *const[]){a, s->g + from}, (const float[]){1, 1}, 2, count);
    sl_copy(s, s->x + from, a, count);
}

static const sl_stage stages[] = {SL_SQUEEZE_STAGES(load_change, NULL)};

static const sl_key keys[] = {
    {SL_ROW_LOCAL_PERIOD},
    SL_ROWS_SQUEEZE,
    SL_KEYS_END,
};

const sl_algorithm sl_local_sgd_compressed = {
    .name = "local-sgd",
    .when = sl_is_compressed,
    .is_periodic = true,
    .route = SL_ROUTE_SERVER,
    .compressor = SL_TAKES_ANY,
    .keys = keys,
    .takes_momentum = true,
    .keeps_gradient = true,
    .vectors = vectors,
    .stages = stages,
    .stage_count = SL_SQUEEZE_STAGE_COUNT,
    .start = start,
    .local = sl_local_step,
    .settle = settle,
};
