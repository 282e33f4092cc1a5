/* qsgd.c - Alistarh, Grubic, Li, Tomioka, Vojnovic: "QSGD: Communication-Efficient SGD via Gradient
 * Quantization and Encoding", NeurIPS 2017.
 *
 * Per bucket of B elements, with s levels: C(v)_j = ||v|| sign(v_j) xi_j / s, where xi_j = floor(s
 * |v_j| / ||v||) + Bernoulli(the rest): E C(v) = v. The norm is the Euclidean one, or the largest
 * magnitude. A bucket of zeros stays zero.
 *
 * A code is the level xi_j in its ceil(log2(s + 1)) lowest bits, then the sign: d (1 + ceil(log2(s
 * + 1))) + 32 ceil(d / B) bits. E||C(v) - v||^2 <= min(B / s^2, sqrt(B) / s) ||v||^2 (Lemma 3.1).
 * With the largest magnitude M, which is itself a level, the others err by f (1 - f) (M / s)^2
 * each, f the fraction; the worst are B - 1 equal ones, and omega is (sqrt(1 + (B - 1) / s^2) - 1)
 * / 2.
 */
#include <float.h>
#include <math.h>

#include "base/kernels.h"
#include "compress/lossless/huffman.h"
#include "compress/own_keys.h"
#include "compress/quantization/dense.h"
#include "compress/quantization/rotated.h"
#include "compress/quantization/rounding.h"

enum { HUFFMAN_LEVELS_MAX = (1 << (HUFFMAN_SYMBOL_BITS - 1)) - 1 };

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    double b = (double)sl_dense_bucket(config, dimension), s = config->levels;
    double omega = config->norm == SL_NORM_MAX ? (sqrt(1 + (b - 1) / (s * s)) - 1) / 2
                                               : fmin(b / (s * s), sqrt(b) / s);
    return (sl_quality){.unbiased = true,
                        .omega = omega,
                        .is_contractive = omega < 1,
                        .delta = omega < 1 ? 1 - omega : 0};
}

static int check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    if (config->levels < 1 || config->levels > ROUNDING_LEVELS_MAX)
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.compressor.levels: %u: allowed are 1 to %d; 7 make 4 bits an element",
            config->levels, ROUNDING_LEVELS_MAX);
    if (config->coding == SL_ENTROPY_HUFFMAN && config->levels > HUFFMAN_LEVELS_MAX)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.levels: %u: \"huffman\" codes at most %d; take fewer, "
                       "or \"elias\"",
                       config->levels, HUFFMAN_LEVELS_MAX);
    return sl_dense_check_bucket(config, dimension, error);
}

/* ---- the scale: a bucket's Euclidean norm ---- */

static bool euclidean(bucket_sums *sums, size_t n, float *scale) {
    (void)n;
    double squares;
    sl_sum_take(sums, &squares, 1);
    const double norm = sqrt(squares);
    *scale = (float)norm;
    return norm <= FLT_MAX; /* false for NaN too */
}

static const dense_scale l2_norm = {
    .kind = SCALE_L2, .floats = 1, .see = sl_sum_squares, .result = euclidean};

/* ---- codes ---- */

static dense_form form(const sl_compressor_config *config, size_t dimension) {
    unsigned bits = sl_level_bits(config->levels);
    return (dense_form){.width = bits + 1,
                        .mask = (1u << bits) - 1,
                        .max = config->levels,
                        .bucket = sl_dense_bucket(config, dimension),
                        .scale = config->norm == SL_NORM_MAX ? &sl_dense_max_norm : &l2_norm,
                        .code = CODE_LEVELS};
}

static void encode(const sl_compressor_config *config, const float *scale, const float *v,
                   windows random, size_t n, uint16_t *codes) {
    const rounding r = sl_rounding(config->levels, *scale);
    sl_round(&r, sl_level_bits(config->levels), v, random, n, codes);
}

FOR_EACH_CPU(void, add_levels,
             (float unit, unsigned sign_at, const uint16_t *codes, size_t n, float *acc),
             (unit, sign_at, codes, n, acc)) {
    for (size_t i = 0; i < n; i++)
        acc[i] += unit * level_value(codes[i], sign_at);
}

static void add(const sl_compressor_config *config, const float *scale, float weight,
                const uint16_t *codes, size_t n, float *acc) {
    add_levels(weight * (*scale / (float)config->levels), sl_level_bits(config->levels), codes, n,
               acc);
}

static const dense_coder coder = {.form = form, .encode = encode, .add = add};
static const sl_key keys[] = {
    {SL_ROW_LEVELS},      {SL_ROW_BUCKET},           {SL_ROW_NORM},
    {SL_ROW_CONTRACTIVE}, {SL_ROW_CODING_OF_LEVELS}, SL_KEYS_END,
};

const codec_ops sl_qsgd_codec = {.keys = keys,
                                 .codings = "elias huffman",
                                 .quality = quality,
                                 .check = check,
                                 .numbers = sl_dense_numbers,
                                 DENSE_OPERATIONS(coder)};
const codec_ops sl_rotated_qsgd_codec = {.keys = keys,
                                         .codings = "elias huffman",
                                         .quality = quality,
                                         .check = check,
                                         .numbers = sl_dense_numbers,
                                         ROTATED_OPERATIONS(coder)};
