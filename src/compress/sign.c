/* sign.c - one bit an element, and one or two scales a bucket. The bit says v_j < 0; zero counts as positive.
 *
 * scaled-sign: C(v) = ||v||_1 / B sign(v). Bernstein, Wang, Azizzadenesheli, Anandkumar: "signSGD", ICML 2018, with the scale of Karimireddy,
 *     Rebjock, Stich, Jaggi: "Error Feedback Fixes SignSGD", ICML 2019. d + 32 ceil(d / B) bits. delta = ||v||_1^2 / (B ||v||_2^2), which is at
 *     least 1 / B, and that is promised; for a Gaussian vector it is 2 / pi.
 * 1-bit: the mean of the elements >= 0, and the mean of those < 0. Seide, Fu, Droppo, Li, Yu: "1-Bit Stochastic Gradient Descent and its
 *     Application to Data-Parallel Distributed Training of Speech DNNs", Interspeech 2014. d + 64 ceil(d / B) bits. The two means are the best
 *     values for the two bits, and so the error is at most that of scaled-sign.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compress/dense.h"
#include "vec/for_each_cpu.h"

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    return (sl_quality){.omega = INFINITY, .is_contractive = true, .delta = 1 / (double)sl_dense_bucket(config, dimension)};
}

/* ---- scales ---- */

FOR_EACH_CPU static void add_magnitudes(double lanes[DENSE_LANES], const float *v, size_t at, size_t n) {
    double sums[DENSE_LANES];
    size_t i = 0;
    memcpy(sums, lanes, sizeof sums);
    for (; i < n && (at + i) % DENSE_LANES != 0; i++)
        sums[(at + i) % DENSE_LANES] += fabsf(v[i]);
    for (; i + DENSE_LANES <= n; i += DENSE_LANES)
        for (int l = 0; l < DENSE_LANES; l++)
            sums[l] += fabsf(v[i + l]);
    for (; i < n; i++)
        sums[(at + i) % DENSE_LANES] += fabsf(v[i]);
    memcpy(lanes, sums, sizeof sums);
}

static void see_magnitudes(dense_sums *sums, const float *v, size_t at, size_t n) {
    add_magnitudes(sums->lanes[0], v, at, n);
}

static bool mean_magnitude(const dense_sums *sums, size_t n, float *scale) {
    double mean = sl_dense_lane_sum(sums->lanes[0]) / (double)n;
    *scale = (float)mean;
    return mean <= FLT_MAX; /* false for NaN too */
}

/* NaN is not < 0, and so goes into the first sum. */
FOR_EACH_CPU static void add_sides(double lanes[2][DENSE_LANES], const float *v, size_t at, size_t n) {
    double up[DENSE_LANES], down[DENSE_LANES];
    size_t i = 0;
    memcpy(up, lanes[0], sizeof up);
    memcpy(down, lanes[1], sizeof down);
    for (; i < n && (at + i) % DENSE_LANES != 0; i++) {
        up[(at + i) % DENSE_LANES] += v[i] < 0 ? 0 : v[i];
        down[(at + i) % DENSE_LANES] += v[i] < 0 ? v[i] : 0;
    }
    for (; i + DENSE_LANES <= n; i += DENSE_LANES)
        for (int l = 0; l < DENSE_LANES; l++) {
            up[l] += v[i + l] < 0 ? 0 : v[i + l];
            down[l] += v[i + l] < 0 ? v[i + l] : 0;
        }
    for (; i < n; i++) {
        up[(at + i) % DENSE_LANES] += v[i] < 0 ? 0 : v[i];
        down[(at + i) % DENSE_LANES] += v[i] < 0 ? v[i] : 0;
    }
    memcpy(lanes[0], up, sizeof up);
    memcpy(lanes[1], down, sizeof down);
}

FOR_EACH_CPU static uint32_t count_negatives(const float *v, size_t n) {
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += v[i] < 0;
    return count;
}

static void see_sides(dense_sums *sums, const float *v, size_t at, size_t n) {
    add_sides(sums->lanes, v, at, n);
    sums->negatives += count_negatives(v, n);
}

static bool side_means(const dense_sums *sums, size_t n, float *scale) {
    uint64_t negatives = sums->negatives;
    double up = sl_dense_lane_sum(sums->lanes[0]), down = sl_dense_lane_sum(sums->lanes[1]);
    scale[0] = negatives < n ? (float)(up / (double)(n - negatives)) : 0;
    scale[1] = negatives > 0 ? (float)(down / (double)negatives) : 0;
    return isfinite(scale[0]) && isfinite(scale[1]);
}

static const dense_scale one_scale = {.floats = 1, .see = see_magnitudes, .result = mean_magnitude};
static const dense_scale two_scales = {.floats = 2, .negative = true, .see = see_sides, .result = side_means};

/* ---- codes ---- */

static dense_form form_of_scale(const sl_compressor_config *config, size_t dimension, const dense_scale *scale) {
    return (dense_form){.width = 1, .mask = 1, .max = 1, .bucket = sl_dense_bucket(config, dimension), .scale = scale};
}

static dense_form form_one(const sl_compressor_config *config, size_t dimension) {
    return form_of_scale(config, dimension, &one_scale);
}

static dense_form form_two(const sl_compressor_config *config, size_t dimension) {
    return form_of_scale(config, dimension, &two_scales);
}

FOR_EACH_CPU static void signs(const float *v, size_t n, uint16_t *codes) {
    for (size_t i = 0; i < n; i++)
        codes[i] = v[i] < 0;
}

static void encode(const sl_compressor_config *config, const float *scale, const float *v, const uint16_t *random, size_t n,
                   uint16_t *codes) {
    (void)config;
    (void)scale;
    (void)random;
    signs(v, n, codes);
}

FOR_EACH_CPU static void add_either(float up, float down, const uint16_t *codes, size_t n, float *acc) {
    for (size_t i = 0; i < n; i++)
        acc[i] += codes[i] ? down : up;
}

static void add_one(const sl_compressor_config *config, const float *scale, float weight, const uint16_t *codes, size_t n, float *acc) {
    (void)config;
    add_either(weight * scale[0], -(weight * scale[0]), codes, n, acc);
}

static void add_two(const sl_compressor_config *config, const float *scale, float weight, const uint16_t *codes, size_t n, float *acc) {
    (void)config;
    add_either(weight * scale[0], weight * scale[1], codes, n, acc);
}

const dense_coder sl_scaled_sign_coder = {.form = form_one, .early = true, .encode = encode, .add = add_one};
const dense_coder sl_one_bit_coder = {.form = form_two, .early = true, .encode = encode, .add = add_two};
const codec_ops sl_scaled_sign_codec = {.quality = quality, .check = sl_dense_check_bucket, DENSE_OPERATIONS};
const codec_ops sl_one_bit_codec = {.quality = quality, .check = sl_dense_check_bucket, DENSE_OPERATIONS};
