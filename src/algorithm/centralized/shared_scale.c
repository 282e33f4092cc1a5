/* shared_scale.c - C-SGD of ternary gradients whose scale is that of all nodes: the scaler sharing
 * of Wen, Xu, Yan, Wu, Wang, Chen, Li, "TernGrad: Ternary Gradients to Reduce Communication in
 * Distributed Deep Learning", NeurIPS 2017, section 3.3.
 *
 *   s <- max_i s_i, s_i the scale of v_i, of the vector or of each tensor;  q_i = C(v_i) with s
 *   x <- x - gamma mom(mean_i q_i), or both ways: all else as in compressed_c_sgd.c
 *
 * Sums of messages are multiples of s. Memory beside x, g, momentum: that of compressed_c_sgd.c,
 * and a vector that begins with the scales. Wire: 32 bits for each scale, each way, beforehand.
 */
#include "algorithm/squeeze.h"
#include "compress/quantization/scale.h"

static bool shares(const sl_algorithm_config *config) {
    return config->compressor.kind == SL_COMPRESSOR_TERNGRAD && config->compressor.share_scale;
}

static size_t vectors(const sl_algorithm_config *config) {
    return sl_squeeze_vectors(config) + 1;
}

static float *scales(const sl_state *s) {
    return s->extra[sl_squeeze_vectors(s->config)];
}

static const float *publish(const sl_state *s) {
    return scales(s);
}

static size_t count_of(const sl_algorithm_config *config, const sl_shapes *shapes) {
    return config->compressor.scope == SL_SCOPE_TENSOR && shapes->ends != NULL ? shapes->count : 1;
}

static void load(sl_state *s) {
    const size_t d = s->dimension, count = count_of(s->config, &s->shapes);
    const float *v = s->extra[SL_SQUEEZE_SENT];
    sl_squeeze_load(s, 0, d);
    for (size_t i = 0, from = 0, end; i < count; i++, from = end) {
        end = count > 1 ? s->shapes.ends[i] : d;
        scales(s)[i] = sl_terngrad_scale(&s->config->compressor, v + from, end - from);
    }
}

static void take_largest(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    float *own = scales(s) + from;
    for (size_t j = 0; j < mix->k; j++) {
        const float *theirs = mix->parts[j].payload.data;
        for (size_t i = 0; i < count; i++) {
            own[i] = fmaxf(own[i], theirs[i]);
            s->is_finite = s->is_finite && isfinite(theirs[i]);
        }
    }
}

#define AGREE .plain = true, .length = count_of, .vector = publish, .combine = take_largest

static const sl_stage through_servers[] = {
    {AGREE}, {AGREE, .gather = true}, SL_SQUEEZE_STAGES(NULL, publish)};

const sl_algorithm sl_parameter_server_shared = {
    .name = "parameter-server",
    .when = shares,
    .route = SL_ROUTE_SERVER,
    .host_only = true,
    .vectors = vectors,
    .stages = through_servers,
    .stage_count = 2 + SL_SQUEEZE_STAGE_COUNT,
    .take_gradient = load,
    SL_SQUEEZE_C_SGD,
};

static const sl_stage to_all[] = {{AGREE, .in_place = true},
                                  SL_SQUEEZE_STAGE_TO_ALL(NULL, publish)};

const sl_algorithm sl_all_reduce_shared = {
    .name = "all-reduce",
    .when = shares,
    .route = SL_ROUTE_ALL,
    .host_only = true,
    .vectors = vectors,
    .stages = to_all,
    .stage_count = 2,
    .take_gradient = load,
    SL_SQUEEZE_C_SGD,
};
