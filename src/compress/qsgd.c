/* qsgd.c - Alistarh, Grubic, Li, Tomioka, Vojnovic: "QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding", NeurIPS 2017.
 *
 * Per bucket of B elements, with s levels: C(v)_j = ||v|| sign(v_j) xi_j / s, where xi_j = floor(s |v_j| / ||v||) + Bernoulli(the rest): E C(v) = v.
 * The norm is the Euclidean one, or the largest magnitude. A bucket of zeros stays zero.
 *
 * A code is the level xi_j in its ceil(log2(s + 1)) lowest bits, then the sign: d (1 + ceil(log2(s + 1))) + 32 ceil(d / B) bits.
 * E||C(v) - v||^2 <= min(B / s^2, sqrt(B) / s) ||v||^2 (Lemma 3.1). With the largest magnitude M, which is itself a level, the others err by
 * f (1 - f) (M / s)^2 each, f the fraction; the worst are B - 1 equal ones, and omega is (sqrt(1 + (B - 1) / s^2) - 1) / 2.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compress/dense.h"
#include "vec/for_each_cpu.h"

enum { LEVELS_MAX = 32767 };

static unsigned level_bits(uint32_t levels) {
    return 32 - (unsigned)__builtin_clz(levels);
}

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    double b = (double)sl_dense_bucket(config, dimension), s = config->levels;
    double omega = config->norm == SL_NORM_MAX ? (sqrt(1 + (b - 1) / (s * s)) - 1) / 2 : fmin(b / (s * s), sqrt(b) / s);
    return (sl_quality){.unbiased = true, .omega = omega, .is_contractive = omega < 1, .delta = omega < 1 ? 1 - omega : 0};
}

static int check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    if (config->levels < 1 || config->levels > LEVELS_MAX)
        return sl_fail(error, SL_EINVAL, "algorithm.compressor.levels: %u: allowed are 1 to %d; 7 make 4 bits an element", config->levels, LEVELS_MAX);
    return sl_dense_check_bucket(config, dimension, error);
}

/* ---- the scale: a bucket's Euclidean norm ---- */

FOR_EACH_CPU static void add_squares(double lanes[DENSE_LANES], const float *v, size_t at, size_t n) {
    double sums[DENSE_LANES];
    size_t i = 0;
    memcpy(sums, lanes, sizeof sums);
    for (; i < n && (at + i) % DENSE_LANES != 0; i++)
        sums[(at + i) % DENSE_LANES] += (double)v[i] * v[i];
    for (; i + DENSE_LANES <= n; i += DENSE_LANES)
        for (int l = 0; l < DENSE_LANES; l++)
            sums[l] += (double)v[i + l] * v[i + l];
    for (; i < n; i++)
        sums[(at + i) % DENSE_LANES] += (double)v[i] * v[i];
    memcpy(lanes, sums, sizeof sums);
}

static void see_squares(dense_sums *sums, const float *v, size_t at, size_t n) {
    add_squares(sums->lanes[0], v, at, n);
}

static bool euclidean(const dense_sums *sums, size_t n, float *scale) {
    (void)n;
    double norm = sqrt(sl_dense_lane_sum(sums->lanes[0]));
    *scale = (float)norm;
    return norm <= FLT_MAX; /* false for NaN too */
}

static const dense_scale l2_norm = {.floats = 1, .see = see_squares, .result = euclidean};

/* ---- codes ---- */

static dense_form form(const sl_compressor_config *config, size_t dimension) {
    unsigned bits = level_bits(config->levels);
    return (dense_form){.width = bits + 1,
                        .mask = (1u << bits) - 1,
                        .max = config->levels,
                        .bucket = sl_dense_bucket(config, dimension),
                        .scale = config->norm == SL_NORM_MAX ? &sl_dense_max_norm : &l2_norm};
}

FOR_EACH_CPU static void quantize(dense_rounding r, unsigned sign_at, const float *v, const uint16_t *random, size_t n, uint16_t *codes) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        codes[i] = (uint16_t)(sl_dense_round(r, bits & 0x7FFFFFFF, random[i]) | bits >> 31 << sign_at);
    }
}

static void encode(const sl_compressor_config *config, const float *scale, const float *v, const uint16_t *random, size_t n,
                   uint16_t *codes) {
    unsigned bits = level_bits(config->levels);
    quantize(sl_dense_rounding(config->levels, bits, *scale), bits, v, random, n, codes);
}

FOR_EACH_CPU static void add_levels(float unit, unsigned sign_at, const uint16_t *codes, size_t n, float *acc) {
    const int32_t mask = (1 << sign_at) - 1;
    for (size_t i = 0; i < n; i++) {
        int32_t level = codes[i] & mask, negative = -(codes[i] >> sign_at);
        acc[i] += unit * (float)((level ^ negative) - negative);
    }
}

static void add(const sl_compressor_config *config, const float *scale, float weight, const uint16_t *codes, size_t n, float *acc) {
    add_levels(weight * (*scale / (float)config->levels), level_bits(config->levels), codes, n, acc);
}

const dense_coder sl_qsgd_coder = {.form = form, .random = true, .encode = encode, .add = add};
const codec_ops sl_qsgd_codec = {.quality = quality, .check = check, DENSE_OPERATIONS};
