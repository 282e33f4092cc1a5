/* sign.c - one bit an element, and one or two scales a bucket. The bit says v_j < 0; zero counts as
 * positive.
 *
 * scaled-sign: C(v) = ||v||_1 / B sign(v). Bernstein, Wang, Azizzadenesheli, Anandkumar: "signSGD",
 * ICML 2018, with the scale of Karimireddy,
 *     Rebjock, Stich, Jaggi: "Error Feedback Fixes SignSGD", ICML 2019. d + 32 ceil(d / B) bits.
 *       delta = ||v||_1^2 / (B ||v||_2^2), which is at
 *     least 1 / B, and that is promised; for a Gaussian vector it is 2 / pi.
 * 1-bit: the mean of the elements >= 0, and the mean of those < 0. Seide, Fu, Droppo, Li, Yu:
 * "1-Bit Stochastic Gradient Descent and its
 *     Application to Data-Parallel Distributed Training of Speech DNNs", Interspeech 2014. d + 64
 *       ceil(d / B) bits. The two means are the best
 *     values for the two bits, and so the error is at most that of scaled-sign.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compress/own_keys.h"
#include "compress/quantization/dense.h"
#include "compress/quantization/lanes.h"

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    return (sl_quality){.omega = INFINITY,
                        .is_contractive = true,
                        .delta = 1 / (double)sl_dense_bucket(config, dimension),
                        .usual_delta = 0.5}; /* of a normal vector 2 / pi */
}

/* ---- scales ---- */

static bool mean_magnitude(bucket_sums *sums, size_t n, float *scale) {
    double sum;
    sl_sum_take(sums, &sum, 1);
    const double mean = sum / (double)n;
    *scale = (float)mean;
    return mean <= FLT_MAX; /* false for NaN too */
}

static bool side_means(bucket_sums *sums, size_t n, float *scale) {
    const uint64_t negatives = sums->negatives;
    double sides[2];
    sl_sum_take(sums, sides, 2);
    sums->negatives = 0;
    scale[0] = negatives < n ? (float)(sides[0] / (double)(n - negatives)) : 0;
    scale[1] = negatives > 0 ? (float)(sides[1] / (double)negatives) : 0;
    return isfinite(scale[0]) && isfinite(scale[1]);
}

static const dense_scale one_scale = {
    .kind = SCALE_MEAN, .floats = 1, .see = sl_sum_magnitudes, .result = mean_magnitude};
static const dense_scale two_scales = {
    .kind = SCALE_SIDES, .floats = 2, .negative = true, .see = sl_sum_sides, .result = side_means};

/* ---- codes ---- */

static dense_form form_of_scale(const sl_compressor_config *config, size_t dimension,
                                const dense_scale *scale) {
    return (dense_form){.width = 1,
                        .mask = 1,
                        .max = 1,
                        .bucket = sl_dense_bucket(config, dimension),
                        .scale = scale,
                        .code = CODE_SIGN};
}

static dense_form form_one(const sl_compressor_config *config, size_t dimension) {
    return form_of_scale(config, dimension, &one_scale);
}

static dense_form form_two(const sl_compressor_config *config, size_t dimension) {
    return form_of_scale(config, dimension, &two_scales);
}

#ifdef SL_AVX2
/* Of 32 elements. Packing a mask keeps it all ones or zeros, and interleaves the halves of the
 * registers. */
SL_AVX2 static inline void signs_32(const float *v, uint8_t *out) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i below[4];
    for (int g = 0; g < 4; g++)
        below[g] = _mm256_castps_si256(
            _mm256_cmp_ps(_mm256_loadu_ps(v + 8 * g), _mm256_setzero_ps(), _CMP_LT_OQ));
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(below[0], below[1]),
                                       _mm256_packs_epi32(below[2], below[3]));
    int32_t bits = _mm256_movemask_epi8(_mm256_permutevar8x32_epi32(bytes, order));
    memcpy(out, &bits, sizeof bits);
}

/* Returns how many it did. */
SL_AVX2 static size_t signs_avx2(const float *v, size_t n, uint8_t *out) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        signs_32(v + i, out + i / 8);
    return i;
}

enum { STREAMS = 4, STREAM_TILES = 16, STREAM = STREAM_TILES * SUM_TILE, SWEEP = STREAMS * STREAM };
_Static_assert(STREAMS *STREAM_TILES <= SUM_FOLDS,
               "no two tiles of a sweep share a fold, so that they may come in any order");

/* Tile `tile` of each stream: magnitudes to folds, signs to bits. A step is two groups. */
SL_AVX2 static void sweep_tiles(bucket_sums *sums, size_t tile, const float *v, uint8_t *signs) {
    double lanes[STREAMS][SUM_LANES] = {0};
    for (size_t i = tile * SUM_TILE; i < (tile + 1) * SUM_TILE; i += 2 * SUM_GROUP)
        for (size_t s = 0; s < STREAMS; s++) {
            const size_t at = s * STREAM + i;
            __m256d sum[4];
            lanes_load(lanes[s], sum);
            for (size_t group = at; group < at + 2 * SUM_GROUP; group += SUM_GROUP) {
                lanes_add_magnitudes(sum, v + group);
                for (size_t half = group; half < group + SUM_GROUP; half += 32)
                    signs_32(v + half, signs + half / 8);
            }
            lanes_store(lanes[s], sum);
        }
    for (size_t s = 0; s < STREAMS; s++)
        sum_fold(sums->folds[0], sums->tiles + s * STREAM_TILES + tile, sum_lanes(lanes[s]));
}
#endif

/* Four distant places by turns: a core fetches more of the memory at a time than from one. */
static size_t sweep(bucket_sums *sums, const float *v, size_t n, uint8_t *signs) {
#ifdef SL_AVX2
    if (n >= SWEEP && sl_has_avx2()) {
        for (size_t tile = 0; tile < STREAM_TILES; tile++)
            sweep_tiles(sums, tile, v, signs);
        sums->tiles += STREAMS * STREAM_TILES;
        return SWEEP;
    }
#else
    (void)sums, (void)v, (void)n, (void)signs;
#endif
    return 0;
}

static void pack(const sl_compressor_config *config, const float *v, size_t n, uint8_t *out) {
    size_t i = 0;
    (void)config;
#ifdef SL_AVX2
    i = sl_has_avx2() ? signs_avx2(v, n, out) : 0;
#endif
    for (; i < n; i += 8) {
        unsigned byte = 0;
        for (size_t b = 0; b < 8 && i + b < n; b++)
            byte |= (unsigned)(v[i + b] < 0) << b;
        out[i / 8] = (uint8_t)byte;
    }
}

static void table_one(const sl_compressor_config *config, const float *scale, float weight,
                      float out[TABLE_CODES]) {
    (void)config;
    out[0] = weight * scale[0];
    out[1] = -out[0];
}

static void table_two(const sl_compressor_config *config, const float *scale, float weight,
                      float out[TABLE_CODES]) {
    (void)config;
    out[0] = weight * scale[0];
    out[1] = weight * scale[1];
}

static const dense_coder scaled_sign_coder = {
    .form = form_one, .sweep = sweep, .pack = pack, .table = table_one};
static const dense_coder one_bit_coder = {.form = form_two, .pack = pack, .table = table_two};
static const sl_key keys[] = {
    {SL_ROW_BUCKET},
    SL_KEYS_END,
};

const codec_ops sl_scaled_sign_codec = {.keys = keys,
                                        .quality = quality,
                                        .check = sl_dense_check_bucket,
                                        DENSE_OPERATIONS(scaled_sign_coder)};
const codec_ops sl_one_bit_codec = {.keys = keys,
                                    .quality = quality,
                                    .check = sl_dense_check_bucket,
                                    DENSE_OPERATIONS(one_bit_coder)};
