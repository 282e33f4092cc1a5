/* test_compress_sparse.c - top-k, random-k and random dropping: exact sizes, top-k against a sort,
 * the subsets of the random ones at both ends, what theory promises by Monte Carlo, and that
 * nothing malformed gets past sl_decoder_check. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compress/codec.h"
#include "harness.h"
#include "starling/rng.h"

enum { ONE_PART = 1 << 30, SMALL_PART = 4096 };

static const sl_message a_message = {.seed = 7, .exchange = 3, .sender = 2, .stage = 1};

/* ---- vectors ---- */

static float *vector_of(size_t d) {
    return sl_vec_cpu()->allocate(d);
}

static float *gaussian(size_t d, uint32_t stream) {
    sl_rng rng = sl_rng_open(11, stream, d, SL_PURPOSE_INIT);
    float *v = vector_of(d);
    for (size_t i = 0; i < d; i++)
        v[i] = (float)sl_rng_normal(&rng);
    return v;
}

typedef enum shape {
    GAUSSIAN,
    EQUAL,
    ZERO,
    RISING,
    FALLING,
    TINY,
    HEAVY,
    FEW_VALUES,
    EXTREME,
    BURST,
    SHAPES
} shape;

static float *shaped(size_t d, shape s) {
    static const float extremes[] = {0.0f,    -0.0f,    FLT_MIN / 8,  -FLT_MIN / 8,
                                     FLT_MAX, -FLT_MAX, FLT_TRUE_MIN, 1.0f};
    float *v = gaussian(d, 1);
    for (size_t i = 0; i < d; i++)
        switch (s) {
        case GAUSSIAN:
            break;
        case EQUAL:
            v[i] = v[i] < 0 ? -0.5f : 0.5f;
            break;
        case ZERO:
            v[i] = i % 3 == 0 ? -0.0f : 0.0f;
            break;
        case RISING:
            v[i] = (float)i;
            break;
        case FALLING:
            v[i] = (float)(d - i);
            break;
        case TINY:
            v[i] *= FLT_MIN / 64;
            break;
        case HEAVY:
            v[i] = 1 / (v[i] * v[i] * v[i] + 1e-6f);
            break;
        case FEW_VALUES:
            v[i] = roundf(v[i]);
            break;
        case EXTREME:
            v[i] = extremes[(uint32_t)(fabsf(v[i]) * 1e4f) % 8];
            break;
        case BURST:
            v[i] = i < d - d / 64 ? v[i] * 1e-3f : v[i];
            break; /* a sample overestimates or misses what is at the end */
        case SHAPES:
            break;
        }
    return v;
}

static void release(float *v) {
    sl_vec_cpu()->release(v);
}

/* ---- messages ---- */

typedef struct pair {
    sl_codec *codec;
    sl_encoder *encoder;
    sl_decoder *decoder;
    uint8_t *buffer; /* (parts, part_bytes_max rounded up to 64) */
    sl_payload *payloads;
} pair;

static pair open_pair(sl_compressor_config config, size_t d, size_t part_bytes) {
    pair p = {0};
    sl_error error = {0};
    ck_assert_msg(sl_codec_open(&p.codec, &config, d, part_bytes, &error) == 0, "%s", error.text);
    ck_assert_uint_le(sl_codec_part_bytes_max(p.codec), part_bytes);
    ck_assert_int_eq(sl_encoder_open(&p.encoder, p.codec, sl_vec_cpu(), &error), 0);
    ck_assert_int_eq(sl_decoder_open(&p.decoder, p.codec, sl_vec_cpu(), &error), 0);
    size_t stride = (sl_codec_part_bytes_max(p.codec) + 63) / 64 * 64,
           parts = sl_codec_parts(p.codec);
    p.buffer = aligned_alloc(64, stride * parts);
    p.payloads = calloc(parts, sizeof *p.payloads);
    ck_assert(p.buffer != NULL && p.payloads != NULL);
    return p;
}

static void close_pair(pair *p) {
    sl_decoder_close(&p->decoder);
    sl_encoder_close(&p->encoder);
    sl_codec_close(&p->codec);
    free(p->buffer);
    free(p->payloads);
}

static int encode(pair *p, const sl_message *message, const sl_source *source) {
    size_t stride = (sl_codec_part_bytes_max(p->codec) + 63) / 64 * 64;
    int result = sl_encoder_begin(p->encoder, message, source);
    for (uint32_t part = 0; result == 0 && part < sl_codec_parts(p->codec); part++) {
        result = sl_encoder_part(p->encoder, part, source, p->buffer + part * stride,
                                 &p->payloads[part]);
        ck_assert(result != 0 || p->payloads[part].bytes <= sl_codec_part_bytes_max(p->codec));
    }
    return result;
}

static int encode_vector(pair *p, const sl_message *message, const float *v) {
    return encode(p, message, &(sl_source){.vector = v});
}

static void decode(pair *p, const sl_message *message, float weight, float *acc) {
    for (uint32_t part = sl_codec_parts(p->codec); part-- > 0;) {
        ck_assert_int_eq(sl_decoder_check(p->decoder, message, part, p->payloads[part]), 0);
        sl_decoder_add(p->decoder, message, part, p->payloads[part], weight, acc);
    }
}

static size_t message_bytes(const pair *p) {
    size_t bytes = 0;
    for (uint32_t part = 0; part < sl_codec_parts(p->codec); part++)
        bytes += p->payloads[part].bytes;
    return bytes;
}

/* decode(encode(v)), all zeros before. */
static float *round_trip(sl_compressor_config config, const float *v, size_t d, size_t part_bytes) {
    pair p = open_pair(config, d, part_bytes);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    float *decoded = vector_of(d);
    decode(&p, &a_message, 1, decoded);
    close_pair(&p);
    return decoded;
}

static void expect_equal(const float *got, const float *expected, size_t d) {
    for (size_t i = 0; i < d; i++)
        if (got[i] != expected[i]) /* an assertion for each of a million elements takes a minute */
            ck_abort_msg("element %zu of %zu: %g instead of %g", i, d, (double)got[i],
                         (double)expected[i]);
}

static sl_compressor_config top_k(size_t k) {
    return (sl_compressor_config){.kind = SL_COMPRESSOR_TOP_K, .k = k};
}

static sl_compressor_config random_k(size_t k, bool scaled) {
    return (sl_compressor_config){.kind = SL_COMPRESSOR_RANDOM_K, .k = k, .scaled = scaled};
}

static sl_compressor_config dropping(double p, bool scaled) {
    return (sl_compressor_config){
        .kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = p, .scaled = scaled};
}

/* ---- sizes ---- */

static size_t log2_up(size_t d) {
    size_t bits = 0;
    while (((size_t)1 << bits) < d)
        bits++;
    return bits;
}

static const size_t dimensions[] = {1,  2,    3,    7,    8,    9,    63,   64,
                                    65, 1000, 1023, 1024, 1025, 4097, 5000, 100003};
enum { DIMENSIONS = sizeof dimensions / sizeof *dimensions };

START_TEST(a_top_k_message_is_as_long_as_documented) {
    for (size_t at = 0; at < DIMENSIONS; at++)
        for (size_t k = 1; k <= dimensions[at]; k = k * 3 / 2 + 1) {
            size_t d = dimensions[at], as_indices = k * (32 + log2_up(d)), as_bitmap = d + 32 * k;
            size_t expected = as_indices < as_bitmap ? as_indices : as_bitmap;
            sl_compressor_config config = top_k(k);
            ck_assert_double_eq(sl_compressor_bits(&config, d), (double)expected);
            float *v = gaussian(d, 2);
            for (int parts = 0; parts < 2; parts++) {
                pair p = open_pair(config, d, parts ? SMALL_PART : ONE_PART);
                ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
                ck_assert_msg(message_bytes(&p) == (expected + 7) / 8, "d %zu, k %zu: %zu bytes", d,
                              k, message_bytes(&p));
                close_pair(&p);
            }
            release(v);
        }
}
END_TEST

START_TEST(a_random_k_message_is_as_long_as_documented) {
    for (size_t at = 0; at < DIMENSIONS; at++)
        for (size_t k = 1; k <= dimensions[at]; k = k * 3 / 2 + 1) {
            size_t d = dimensions[at];
            sl_compressor_config config = random_k(k, false);
            ck_assert_double_eq(sl_compressor_bits(&config, d), 32.0 * (double)k);
            float *v = gaussian(d, 2);
            pair p = open_pair(config, d, SMALL_PART);
            ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
            ck_assert_uint_eq(message_bytes(&p), 4 * k);
            close_pair(&p);
            release(v);
        }
}
END_TEST

START_TEST(random_dropping_sends_about_what_is_documented) {
    static const double probabilities[] = {1e-9, 0.001, 0.1, 0.5, 0.99, 1};
    size_t d = 300001;
    float *v = gaussian(d, 2);
    for (int i = 0; i < 6; i++) {
        sl_compressor_config config = dropping(probabilities[i], false);
        pair p = open_pair(config, d, 8 * SMALL_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        double expected = sl_compressor_bits(&config, d), kept = expected / 32;
        ck_assert_double_eq_tol(8 * (double)message_bytes(&p), expected,
                                32 * 5 * sqrt(kept * (1 - kept / (double)d)) + 1e-6);
        close_pair(&p);
    }
    release(v);
}
END_TEST

START_TEST(random_dropping_keeps_the_elements_whose_half_words_are_small_enough) {
    size_t d = 2999;
    float *v = gaussian(d, 3), *decoded = round_trip(dropping(0.25, false), v, d, SMALL_PART);
    const sl_rng_key key = {a_message.seed, a_message.exchange, a_message.sender,
                            SL_PURPOSE_COMPRESS | a_message.stage << 8};
    for (size_t i = 0; i < d; i++) {
        uint32_t block[4];
        sl_rng_quick_block(&key, (uint32_t)(i / 8), block);
        uint32_t half = block[i % 8 / 2] >> i % 2 * 16 & 0xFFFF;
        ck_assert_float_eq(decoded[i], half < 65536 / 4 ? v[i] : 0);
    }
    release(v);
    release(decoded);
}
END_TEST

START_TEST(a_fraction_is_rounded_and_keeps_at_least_one_entry) {
    static const struct {
        double fraction;
        size_t d, k;
    } cases[] = {{0.01, 1000, 10}, {0.01, 1049, 10}, {0.01, 1050, 11}, {1e-9, 5, 1},
                 {1, 5, 5},        {0.29, 100, 29},  {0.5, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sl_compressor_config config = {.kind = SL_COMPRESSOR_RANDOM_K,
                                       .fraction = cases[i].fraction};
        ck_assert_double_eq(sl_compressor_bits(&config, cases[i].d), 32.0 * (double)cases[i].k);
    }
}
END_TEST

/* ---- top-k ---- */

static const float *sorted_by;

static int by_magnitude(const void *a, const void *b) {
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    float x = fabsf(sorted_by[i]), y = fabsf(sorted_by[j]);
    return x > y ? -1 : x < y ? 1 : (i > j) - (i < j);
}

/* Every element, the largest first. */
static uint32_t *ranking(const float *v, size_t d) {
    uint32_t *order = calloc(d, sizeof *order);
    for (size_t i = 0; i < d; i++)
        order[i] = (uint32_t)i;
    sorted_by = v;
    qsort(order, d, sizeof *order, by_magnitude);
    return order;
}

static void expect_top_k(const float *v, const uint32_t *order, size_t d, size_t k,
                         size_t part_bytes) {
    float *expected = vector_of(d), *decoded = round_trip(top_k(k), v, d, part_bytes);
    for (size_t i = 0; i < k; i++)
        expected[order[i]] = v[order[i]];
    expect_equal(decoded, expected, d);
    release(expected);
    release(decoded);
}

START_TEST(top_k_is_what_a_sort_gives) {
    shape s = (shape)_i;
    for (size_t d = 1; d <= 5000; d += d < 70 ? 1 : d / 5) {
        float *v = shaped(d, s);
        uint32_t *order = ranking(v, d);
        for (size_t k = 1; k <= d; k += k / 2 + 1)
            expect_top_k(v, order, d, k, SMALL_PART);
        free(order);
        release(v);
    }
}
END_TEST

START_TEST(top_k_of_a_long_vector_is_what_a_sort_gives) {
    static const size_t kept[] = {1, 5, 777, 10486, 200000, 900000};
    size_t d = (1 << 20) + 3;
    float *v = shaped(d, (shape)_i);
    uint32_t *order = ranking(v, d);
    for (int i = 0; i < 6; i++)
        expect_top_k(v, order, d, kept[i], 16 * SMALL_PART);
    free(order);
    release(v);
}
END_TEST

START_TEST(of_equal_magnitudes_the_lower_index_is_kept) {
    float v[] = {1, -2, 2, 0.5f, -2, 2, -1}, expected[] = {0, -2, 2, 0, -2, 0, 0};
    float *decoded = round_trip(top_k(3), v, 7, ONE_PART);
    expect_equal(decoded, expected, 7);
    release(decoded);
}
END_TEST

/* A sample of this vector finds only large elements: the guess is too high, and the vector is read
 * again. */
START_TEST(a_sample_that_misleads_costs_time_only) {
    size_t d = 1 << 20;
    float *v = gaussian(d, 4);
    for (size_t block = 0; block < d / SL_BLOCK; block += 8)
        for (size_t i = 0; i < SL_BLOCK; i++)
            v[block * SL_BLOCK + i] *= 1e6f;
    uint32_t *order = ranking(v, d);
    expect_top_k(v, order, d, 300000, ONE_PART);
    expect_top_k(v, order, d, 200000, ONE_PART);
    free(order);
    release(v);
}
END_TEST

/* ---- what all have in common ---- */

static sl_compressor_config any_config(int i, size_t d) {
    switch (i) {
    case 0:
        return top_k(d / 100 + 1);
    case 1:
        return top_k(d / 3 + 1);
    case 2:
        return random_k(d / 100 + 1, true);
    case 3:
        return random_k(d * 2 / 3 + 1, false);
    case 4:
        return dropping(0.02, true);
    default:
        return dropping(0.7, false);
    }
}
enum { CONFIGS = 6 };

START_TEST(small_parts_decode_to_the_same_vector) {
    static const size_t sizes[] = {1, 63, 1024, 20000, 100003};
    for (int s = 0; s < 5; s++) {
        float *v = gaussian(sizes[s], 5);
        sl_compressor_config config = any_config(_i, sizes[s]);
        float *one = round_trip(config, v, sizes[s], ONE_PART),
              *many = round_trip(config, v, sizes[s], SMALL_PART);
        expect_equal(many, one, sizes[s]);
        release(one);
        release(many);
        release(v);
    }
}
END_TEST

typedef struct reads {
    const float *vector;
    size_t dimension, count;
} reads;

static void read_block(void *context, size_t from, size_t count, float *out) {
    reads *r = context;
    ck_assert(from % SL_BLOCK == 0 && count <= SL_BLOCK && from + count <= r->dimension);
    memcpy(out, r->vector + from, count * sizeof(float));
    r->count++;
}

START_TEST(a_source_that_is_read_gives_the_same_bytes_as_memory) {
    static const size_t sizes[] = {1, 1023, 100003, (1 << 20) + 77};
    for (int s = 0; s < 4; s++) {
        size_t d = sizes[s];
        float *v = gaussian(d, 6);
        reads r = {v, d, 0};
        pair p = open_pair(any_config(_i, d), d, 4 * SMALL_PART),
             q = open_pair(any_config(_i, d), d, 4 * SMALL_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        ck_assert_int_eq(encode(&q, &a_message, &(sl_source){.read = read_block, .context = &r}),
                         0);
        ck_assert_uint_eq(message_bytes(&p), message_bytes(&q));
        for (uint32_t part = 0; part < sl_codec_parts(p.codec); part++)
            ck_assert_mem_eq(p.payloads[part].data, q.payloads[part].data, p.payloads[part].bytes);
        close_pair(&p);
        close_pair(&q);
        release(v);
    }
}
END_TEST

START_TEST(top_k_reads_a_vector_once_and_a_sample) {
    size_t d = 1 << 20;
    float *v = gaussian(d, 6);
    reads r = {v, d, 0};
    pair p = open_pair(any_config(_i, d), d, ONE_PART);
    ck_assert_int_eq(encode(&p, &a_message, &(sl_source){.read = read_block, .context = &r}), 0);
    ck_assert_uint_le(r.count, d / SL_BLOCK * 9 / 8);
    close_pair(&p);
    release(v);
}
END_TEST

START_TEST(weights_and_factors_multiply_what_is_added) {
    size_t d = 5000;
    float *v = gaussian(d, 7), *acc = gaussian(d, 8), *before = gaussian(d, 8);
    sl_compressor_config config = any_config(_i, d);
    float *plain = round_trip(config, v, d, ONE_PART);
    pair p = open_pair(config, d, SMALL_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    decode(&p, &a_message, 0.25f, acc);
    for (size_t i = 0; i < d; i++)
        ck_assert_float_eq_tol(acc[i], before[i] + 0.25f * plain[i], 1e-5f * (1 + fabsf(plain[i])));
    config.contractive = true;
    sl_quality q = sl_compressor_quality(&config, d);
    ck_assert(q.is_contractive && q.delta > 0 && q.delta <= 1);
    float *divided = round_trip(config, v, d, ONE_PART);
    double factor = config.scaled ? q.delta : 1;
    for (size_t i = 0; i < d; i++)
        ck_assert_float_eq_tol(divided[i], (float)factor * plain[i], 1e-5f * (1 + fabsf(plain[i])));
    close_pair(&p);
    release(v);
    release(acc);
    release(before);
    release(plain);
    release(divided);
}
END_TEST

/* What was decoded, encoded as the same message again, is the same message: the selection does not
 * change what it selects. */
START_TEST(a_decoded_message_encodes_to_itself) {
    size_t d = 30011;
    sl_compressor_config config = any_config(_i, d);
    config.scaled = false;
    float *v = gaussian(d, 9), *once = round_trip(config, v, d, SMALL_PART),
          *twice = round_trip(config, once, d, SMALL_PART);
    expect_equal(twice, once, d);
    release(v);
    release(once);
    release(twice);
}
END_TEST

static uint64_t hash(uint64_t h, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        h = (h ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return h;
}

/* Written down once: whatever kernels the processor gets, and at whatever time, messages and sums
 * are these. */
START_TEST(bytes_are_the_same_on_every_processor) {
    static const uint64_t expected[CONFIGS] = {
        UINT64_C(0x7f83cd6136240db1), UINT64_C(0x587b22e01cf2ef47), UINT64_C(0xbf1da9803a3c01e4),
        UINT64_C(0xae8f49126ed56b1b), UINT64_C(0x1571c11cffbb3291), UINT64_C(0xb3013e708e56bd64)};
    size_t d = 200003;
    float *v = vector_of(d), *acc = vector_of(d);
    sl_rng rng = sl_rng_open(3, 1, 4, SL_PURPOSE_INIT);
    for (size_t i = 0; i < d; i++)
        v[i] = (float)((int32_t)sl_rng_u32(&rng) >> 8);
    pair p = open_pair(any_config(_i, d), d, 2 * SMALL_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    decode(&p, &a_message, 0.3f, acc);
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (uint32_t part = 0; part < sl_codec_parts(p.codec); part++)
        h = hash(h, p.payloads[part].data, p.payloads[part].bytes);
    h = hash(h, acc, d * sizeof(float));
    ck_assert_msg(h == expected[_i], "0x%016llx", (unsigned long long)h);
    close_pair(&p);
    release(v);
    release(acc);
}
END_TEST

START_TEST(nan_and_infinity_are_never_sent) {
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    static const size_t sizes[] = {1, 1000, (1 << 20) + 5};
    for (int s = 0; s < 3; s++)
        for (int b = 0; b < 4; b++)
            for (size_t many = 0; many < 2; many++) {
                size_t d = sizes[s];
                float *v = gaussian(d, 10);
                for (size_t i = many ? 0 : d - 1; i < d; i++)
                    v[i] = bad[b];
                pair p = open_pair(top_k((d + 50) / 100 + 1 < d ? (d + 50) / 100 + 1 : 1), d,
                                   SMALL_PART);
                ck_assert_int_eq(encode_vector(&p, &a_message, v), SL_EDIVERGED);
                close_pair(&p);
                p = open_pair(random_k(d, false), d, SMALL_PART);
                ck_assert_int_eq(encode_vector(&p, &a_message, v), SL_EDIVERGED);
                close_pair(&p);
                p = open_pair(dropping(1, true), d, SMALL_PART);
                ck_assert_int_eq(encode_vector(&p, &a_message, v), SL_EDIVERGED);
                close_pair(&p);
                release(v);
            }
}
END_TEST

/* ---- random subsets ---- */

/* Which elements a message of ones brings. */
static float *chosen(pair *p, size_t d, uint64_t exchange) {
    sl_message message = a_message;
    message.exchange = exchange;
    float *ones = vector_of(d), *decoded = vector_of(d);
    for (size_t i = 0; i < d; i++)
        ones[i] = 1;
    ck_assert_int_eq(encode_vector(p, &message, ones), 0);
    decode(p, &message, 1, decoded);
    release(ones);
    return decoded;
}

static double chi_square(const double *counts, size_t n, double expected, double p) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / (expected * (1 - p));
    return sum;
}

/* Each element is kept with the same probability: chi-square within five deviations, for subsets
 * small and large. Of a subset of fixed size, n - 1 counts are free. */
START_TEST(elements_are_kept_with_equal_probability) {
    static const size_t kept[] = {10, 31, 50, 90};
    size_t d = 100, trials = 20000;
    for (int c = 0; c < 8; c++) {
        double probability = (double)kept[c % 4] / (double)d;
        sl_compressor_config config =
            c < 4 ? random_k(kept[c], false) : dropping(probability, false);
        pair p = open_pair(config, d, SMALL_PART);
        double counts[100] = {0};
        for (size_t t = 1; t <= trials; t++) {
            float *mask = chosen(&p, d, t);
            size_t total = 0;
            for (size_t i = 0; i < d; i++) {
                counts[i] += mask[i];
                total += mask[i] != 0;
            }
            ck_assert(c >= 4 || total == kept[c]);
            release(mask);
        }
        double exact = c < 4 ? probability : round(probability * 65536) / 65536;
        double statistic = chi_square(counts, d, exact * (double)trials, exact),
               free_counts = c < 4 ? (double)d - 1 : (double)d;
        statistic *= c < 4 ? ((double)d - 1) / (double)d : 1; /* E of the sum is then d - 1 */
        ck_assert_msg(fabs(statistic - free_counts) < 5 * sqrt(2 * free_counts),
                      "config %d: chi-square %g", c, statistic);
        close_pair(&p);
    }
}
END_TEST

/* Pairs of elements, too: that any two of 6 are both among 3 has probability 1/5. */
START_TEST(random_k_draws_every_subset_alike) {
    size_t trials = 20000;
    double counts[64] = {0}, sum = 0;
    pair p = open_pair(random_k(3, false), 6, SMALL_PART);
    for (size_t t = 1; t <= trials; t++) {
        float *mask = chosen(&p, 6, t);
        unsigned subset = 0;
        for (unsigned i = 0; i < 6; i++)
            subset |= (unsigned)(mask[i] != 0) << i;
        counts[subset]++;
        release(mask);
    }
    for (unsigned subset = 0; subset < 64; subset++) {
        double expected = __builtin_popcount(subset) == 3 ? (double)trials / 20 : 0;
        ck_assert(expected > 0 || counts[subset] == 0);
        sum +=
            expected > 0 ? (counts[subset] - expected) * (counts[subset] - expected) / expected : 0;
    }
    ck_assert_msg(fabs(sum - 19) < 5 * sqrt(2 * 19.0), "chi-square %g", sum);
    close_pair(&p);
}
END_TEST

/* The draws are sl_rng_below's, with the numbers that it rejects: a few dozen of these. */
START_TEST(random_k_takes_the_first_different_draws) {
    size_t d = 1000003, k = 100000;
    float *expected = vector_of(d);
    sl_message message = a_message;
    message.exchange = 5;
    sl_rng rng = {.key = sl_message_key(&message)};
    for (size_t drawn = 0; drawn < k;) {
        uint32_t i = sl_rng_below(&rng, (uint32_t)d);
        drawn += expected[i] == 0;
        expected[i] = 1;
    }
    pair p = open_pair(random_k(k, false), d, SMALL_PART);
    float *decoded = chosen(&p, d, 5);
    expect_equal(decoded, expected, d);
    close_pair(&p);
    release(decoded);
    release(expected);
}
END_TEST

START_TEST(messages_differ_in_what_they_keep) {
    size_t d = 10000;
    pair p = open_pair(any_config(_i, d), d, SMALL_PART);
    sl_message others[] = {a_message, a_message, a_message, a_message, a_message};
    others[1].seed++;
    others[2].exchange++;
    others[3].sender++;
    others[4].stage++;
    float *ones = vector_of(d), *kept[5];
    for (size_t i = 0; i < d; i++)
        ones[i] = 1;
    for (int m = 0; m < 5; m++) {
        kept[m] = vector_of(d);
        ck_assert_int_eq(encode_vector(&p, &others[m], ones), 0);
        decode(&p, &others[m], 1, kept[m]);
        for (int n = 0; n < m; n++)
            ck_assert(memcmp(kept[m], kept[n], d * sizeof(float)) != 0);
    }
    for (int m = 0; m < 5; m++)
        release(kept[m]);
    release(ones);
    close_pair(&p);
}
END_TEST

/* A receiver that sees parts of two messages in turn decodes both as one that sees them in order.
 */
START_TEST(parts_of_two_messages_may_come_in_turns) {
    size_t d = 50021;
    sl_message second = a_message;
    second.stage++;
    sl_compressor_config config = any_config(_i, d);
    float *v = gaussian(d, 12), *w = gaussian(d, 13), *in_turns = vector_of(d),
          *in_order = vector_of(d);
    pair p = open_pair(config, d, SMALL_PART), q = open_pair(config, d, SMALL_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    ck_assert_int_eq(encode_vector(&q, &second, w), 0);
    decode(&p, &a_message, 1, in_order);
    decode(&q, &second, 1, in_order);
    for (uint32_t part = 0; part < sl_codec_parts(p.codec); part++) {
        ck_assert_int_eq(sl_decoder_check(p.decoder, &a_message, part, p.payloads[part]), 0);
        ck_assert_int_eq(sl_decoder_check(p.decoder, &second, part, q.payloads[part]), 0);
        sl_decoder_add(p.decoder, &a_message, part, p.payloads[part], 1, in_turns);
        sl_decoder_add(p.decoder, &second, part, q.payloads[part], 1, in_turns);
    }
    expect_equal(in_turns, in_order, d);
    close_pair(&p);
    close_pair(&q);
    release(v);
    release(w);
    release(in_turns);
    release(in_order);
}
END_TEST

/* ---- what theory promises ---- */

static double squared_distance(const float *x, const float *y, size_t d) {
    return sl_vec_cpu()->distance_squared(x, y, d);
}

/* Mean of C(v) and of ||C(v) - v||^2 / ||v||^2 over messages, each within five standard errors of
 * what quality() says. */
static void expect_quality(sl_compressor_config config, const float *v, size_t d) {
    enum { TRIALS = 4000 };
    pair p = open_pair(config, d, SMALL_PART);
    sl_quality q = sl_compressor_quality(&config, d);
    double *mean = calloc(d, sizeof *mean), *square = calloc(d, sizeof *square), errors = 0,
           errors_squared = 0;
    for (uint64_t t = 1; t <= TRIALS; t++) {
        sl_message message = a_message;
        message.exchange = t;
        float *decoded = vector_of(d);
        ck_assert_int_eq(encode_vector(&p, &message, v), 0);
        decode(&p, &message, 1, decoded);
        for (size_t i = 0; i < d; i++) {
            mean[i] += (double)decoded[i] / TRIALS;
            square[i] += (double)decoded[i] * decoded[i] / TRIALS;
        }
        double error = squared_distance(decoded, v, d) / sl_vec_cpu()->norm2_squared(v, d);
        errors += error / TRIALS;
        errors_squared += error * error / TRIALS;
        release(decoded);
    }
    double bar = 5 * sqrt(fmax(0, errors_squared - errors * errors) / TRIALS) + 1e-6;
    if (q.unbiased) {
        for (size_t i = 0; i < d; i++)
            ck_assert_double_le(fabs(mean[i] - v[i]),
                                5 * sqrt(fmax(0, square[i] - mean[i] * mean[i]) / TRIALS) + 1e-6);
        ck_assert_double_eq_tol(errors, q.omega, bar);
    }
    if (q.is_contractive)
        ck_assert_double_le(errors, 1 - q.delta + bar);
    free(mean);
    free(square);
    close_pair(&p);
}

START_TEST(quality_is_as_promised) {
    size_t d = 60;
    float *v = gaussian(d, 14);
    for (int contractive = 0; contractive < 2; contractive++)
        for (size_t k = 1; k <= d; k += 19)
            for (int scaled = 0; scaled < 2; scaled++) {
                sl_compressor_config configs[] = {top_k(k), random_k(k, scaled),
                                                  dropping((double)k / (double)d, scaled)};
                for (int c = 0; c < 3; c++) {
                    configs[c].contractive = contractive;
                    expect_quality(configs[c], v, d);
                }
            }
    release(v);
}
END_TEST

START_TEST(quality_in_numbers) {
    sl_compressor_config config = random_k(25, true);
    sl_quality q = sl_compressor_quality(&config, 100);
    ck_assert(q.unbiased && q.omega == 3 && !q.is_contractive && q.delta == 0);
    config.k = 80;
    q = sl_compressor_quality(&config, 100);
    ck_assert(q.unbiased && q.omega == 0.25 && q.is_contractive && q.delta == 0.75);
    config.scaled = false;
    q = sl_compressor_quality(&config, 100);
    ck_assert(!q.unbiased && isinf(q.omega) && q.is_contractive && q.delta == 0.8);
    config = top_k(25);
    q = sl_compressor_quality(&config, 100);
    ck_assert(!q.unbiased && isinf(q.omega) && q.is_contractive && q.delta == 0.25);
    config = dropping(0.3, true);
    q = sl_compressor_quality(&config, 100);
    ck_assert(q.unbiased && !q.is_contractive);
    ck_assert_double_eq(q.omega, 65536.0 / 19661 - 1);
    config = top_k(100);
    q = sl_compressor_quality(&config, 100);
    ck_assert(q.unbiased && q.omega == 0 && q.delta == 1);
}
END_TEST

/* ---- wrong parameters ---- */

static void expect_refused(sl_compressor_config config, size_t d, const char *key) {
    sl_error error = {0};
    sl_codec *codec = NULL;
    ck_assert_int_eq(sl_codec_open(&codec, &config, d, SMALL_PART, &error), SL_EINVAL);
    ck_assert_msg(strncmp(error.text, key, strlen(key)) == 0, "%s", error.text);
    ck_assert_ptr_null(codec);
}

START_TEST(impossible_parameters_are_named) {
    static const double fractions[] = {0, -0.1, 1.0001, NAN};
    for (int kind = 0; kind < 2; kind++) {
        sl_compressor_config config = {.kind = kind ? SL_COMPRESSOR_TOP_K : SL_COMPRESSOR_RANDOM_K,
                                       .k = 11};
        expect_refused(config, 10, "algorithm.compressor.k: 11 ");
        config.k = 0;
        for (int f = 0; f < 4; f++) {
            config.fraction = fractions[f];
            expect_refused(config, 10, "algorithm.compressor.fraction: ");
        }
    }
    for (int f = 0; f < 4; f++)
        expect_refused(dropping(fractions[f], true), 10, "algorithm.compressor.probability: ");
}
END_TEST

/* ---- a peer's bytes ---- */

/* A payload of one's own to spoil, in exactly as much memory as it says, so that a sanitizer sees
 * every byte too many. */
static sl_payload copy_of(sl_payload payload, size_t bytes) {
    uint8_t *copy = aligned_alloc(8, (bytes + 8) / 8 * 8);
    memset(copy, 0, (bytes + 8) / 8 * 8);
    memcpy(copy, payload.data, payload.bytes < bytes ? payload.bytes : bytes);
    return (sl_payload){copy, bytes};
}

static void expect_malformed(pair *p, uint32_t part, sl_payload payload) {
    ck_assert_int_eq(sl_decoder_check(p->decoder, &a_message, part, payload), SL_EPROTO);
}

/* For a sanitizer: each payload lies in just as much memory as it has bytes. */
START_TEST(decoders_keep_to_the_payload) {
    static const size_t sizes[] = {1, 9, 64, 100, 1031, 30011};
    for (int s = 0; s < 6; s++) {
        size_t d = sizes[s];
        float *v = gaussian(d, 19), *expected = round_trip(any_config(_i, d), v, d, SMALL_PART),
              *decoded = vector_of(d);
        pair p = open_pair(any_config(_i, d), d, SMALL_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        for (uint32_t part = 0; part < sl_codec_parts(p.codec); part++) {
            sl_payload exact = {malloc(p.payloads[part].bytes), p.payloads[part].bytes};
            memcpy((void *)exact.data, p.payloads[part].data, exact.bytes);
            ck_assert_int_eq(sl_decoder_check(p.decoder, &a_message, part, exact), 0);
            sl_decoder_add(p.decoder, &a_message, part, exact, 1, decoded);
            free((void *)exact.data);
        }
        expect_equal(decoded, expected, d);
        close_pair(&p);
        release(v);
        release(expected);
        release(decoded);
    }
}
END_TEST

START_TEST(a_wrong_length_or_value_is_refused) {
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    size_t d = 30011;
    float *v = gaussian(d, 15);
    for (int parts = 0; parts < 2; parts++) {
        pair p = open_pair(any_config(_i, d), d, parts ? SMALL_PART : ONE_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        for (uint32_t part = 0; part < sl_codec_parts(p.codec); part++) {
            sl_payload good = p.payloads[part];
            ck_assert_int_eq(sl_decoder_check(p.decoder, &a_message, part, good), 0);
            for (size_t bytes = 0; bytes < good.bytes + 9;
                 bytes += bytes + 9 < good.bytes ? good.bytes / 7 + 1 : 1) {
                sl_payload cut = copy_of(good, bytes);
                if (bytes != good.bytes)
                    expect_malformed(&p, part, cut);
                free((void *)cut.data);
            }
            for (int b = 0; b < 3 && good.bytes >= 4; b++) {
                sl_payload spoiled = copy_of(good, good.bytes);
                memcpy((void *)spoiled.data, &bad[b], sizeof bad[b]);
                expect_malformed(&p, part, spoiled);
                free((void *)spoiled.data);
            }
        }
        expect_malformed(&p, sl_codec_parts(p.codec), p.payloads[0]);
        close_pair(&p);
    }
    release(v);
}
END_TEST

/* Index i of `count` packed behind as many values. */
static uint32_t get_packed(sl_payload payload, size_t count, size_t width, size_t i) {
    uint32_t index = 0;
    const uint8_t *packed = (const uint8_t *)payload.data + 4 * count;
    for (size_t b = 0; b < width; b++)
        index |= (uint32_t)(packed[(i * width + b) / 8] >> (i * width + b) % 8 & 1) << b;
    return index;
}

static void set_packed(sl_payload payload, size_t count, size_t width, size_t i, uint32_t index) {
    uint8_t *packed = (uint8_t *)payload.data + 4 * count;
    for (size_t b = 0; b < width; b++) {
        size_t bit = i * width + b;
        packed[bit / 8] =
            (uint8_t)((packed[bit / 8] & ~(1u << bit % 8)) | (index >> b & 1) << bit % 8);
    }
}

static void expect_index_refused(pair *p, uint32_t part, size_t count, size_t width, size_t i,
                                 uint32_t index) {
    sl_payload spoiled = copy_of(p->payloads[part], p->payloads[part].bytes);
    set_packed(spoiled, count, width, i, index);
    expect_malformed(p, part, spoiled);
    free((void *)spoiled.data);
}

START_TEST(indices_out_of_order_or_range_are_refused) {
    enum { D = 30011, K = 1003, WIDTH = 15 };
    float *v = gaussian(D, 16);
    pair p = open_pair(top_k(K), D, SMALL_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    ck_assert_uint_eq(sl_codec_parts(p.codec), 2);
    size_t counts[2] = {SMALL_PART * 8 / (32 + WIDTH) / 8 * 8};
    counts[1] = K - counts[0];
    for (uint32_t part = 0; part < 2; part++) {
        size_t n = counts[part];
        ck_assert_uint_eq(p.payloads[part].bytes, 4 * n + (WIDTH * n + 7) / 8);
        for (size_t i = 1; i < n; i++) {
            expect_index_refused(&p, part, n, WIDTH, i,
                                 get_packed(p.payloads[part], n, WIDTH, i - 1));
            expect_index_refused(&p, part, n, WIDTH, i, 0);
        }
        expect_index_refused(&p, part, n, WIDTH, n - 1, D);
        expect_index_refused(&p, part, n, WIDTH, n - 1, (1 << WIDTH) - 1);
    }
    expect_index_refused(&p, 0, counts[0], WIDTH, counts[0] - 1,
                         (uint32_t)(D - counts[1])); /* no room for those that follow */
    expect_index_refused(&p, 1, counts[1], WIDTH, 0,
                         (uint32_t)counts[0] - 1); /* nor for those before */
    ck_assert_uint_ne(WIDTH * counts[1] % 8, 0);
    sl_payload spoiled = copy_of(p.payloads[1], p.payloads[1].bytes);
    ((uint8_t *)spoiled.data)[spoiled.bytes - 1] |= 0x80;
    expect_malformed(&p, 1, spoiled);
    free((void *)spoiled.data);
    close_pair(&p);
    release(v);
}
END_TEST

START_TEST(bitmaps_that_contradict_the_length_are_refused) {
    enum { D = 30011, K = 10000 };
    float *v = gaussian(D, 17);
    for (int parts = 0; parts < 2; parts++) {
        pair p = open_pair(top_k(K), D, parts ? SMALL_PART : ONE_PART);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        uint32_t last = sl_codec_parts(p.codec) - 1;
        size_t from, elements;
        sl_codec_part_range(p.codec, last, &from, &elements);
        for (size_t bit = 0; bit < (elements + 7) / 8 * 8;
             bit++) { /* the bits behind the last element as well */
            sl_payload spoiled = copy_of(p.payloads[last], p.payloads[last].bytes);
            ((uint8_t *)spoiled.data)[spoiled.bytes - (elements + 7) / 8 + bit / 8] ^=
                (uint8_t)(1u << bit % 8);
            expect_malformed(&p, last, spoiled);
            free((void *)spoiled.data);
        }
        sl_payload moved =
            copy_of(p.payloads[last],
                    p.payloads[last].bytes); /* a bit moved behind the end: the count is right */
        uint8_t *bitmap = (uint8_t *)moved.data + moved.bytes - (elements + 7) / 8;
        for (size_t bit = 0;; bit++)
            if (bitmap[bit / 8] >> bit % 8 & 1) {
                bitmap[bit / 8] = (uint8_t)(bitmap[bit / 8] & ~(1u << bit % 8));
                break;
            }
        bitmap[(elements - 1) / 8] |= 0x80;
        expect_malformed(&p, last, moved);
        free((void *)moved.data);
        close_pair(&p);
    }
    release(v);
}
END_TEST

/* A message of one part has all k entries, not one less. */
START_TEST(a_bitmap_with_too_few_entries_is_refused) {
    enum { D = 64, K = 32 };
    float *v = gaussian(D, 18);
    pair fewer = open_pair(top_k(K - 1), D, ONE_PART), p = open_pair(top_k(K), D, ONE_PART);
    ck_assert_int_eq(encode_vector(&fewer, &a_message, v), 0);
    expect_malformed(&p, 0, fewer.payloads[0]);
    close_pair(&fewer);
    close_pair(&p);
    release(v);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_sparse");
    ADD_TESTS(suite, "sizes", a_top_k_message_is_as_long_as_documented,
              a_random_k_message_is_as_long_as_documented,
              random_dropping_sends_about_what_is_documented,
              random_dropping_keeps_the_elements_whose_half_words_are_small_enough,
              a_fraction_is_rounded_and_keeps_at_least_one_entry);
    ADD_TESTS(suite, "top-k", of_equal_magnitudes_the_lower_index_is_kept,
              a_sample_that_misleads_costs_time_only);
    TCase *shapes = tcase_create("shapes"), *each = tcase_create("each"),
          *drawn = tcase_create("drawn"), *once = tcase_create("once");
    tcase_set_timeout(shapes, 120);
    tcase_add_loop_test(shapes, top_k_is_what_a_sort_gives, 0, SHAPES);
    tcase_add_loop_test(shapes, top_k_of_a_long_vector_is_what_a_sort_gives, 0, SHAPES);
    tcase_set_timeout(each, 120);
    tcase_add_loop_test(each, small_parts_decode_to_the_same_vector, 0, CONFIGS);
    tcase_add_loop_test(each, a_source_that_is_read_gives_the_same_bytes_as_memory, 0, CONFIGS);
    tcase_add_loop_test(each, weights_and_factors_multiply_what_is_added, 0, CONFIGS);
    tcase_add_loop_test(each, a_decoded_message_encodes_to_itself, 0, CONFIGS);
    tcase_add_loop_test(each, parts_of_two_messages_may_come_in_turns, 0, CONFIGS);
    tcase_add_loop_test(each, decoders_keep_to_the_payload, 0, CONFIGS);
    tcase_add_loop_test(each, a_wrong_length_or_value_is_refused, 0, CONFIGS);
    tcase_add_loop_test(each, bytes_are_the_same_on_every_processor, 0, CONFIGS);
    tcase_add_loop_test(drawn, messages_differ_in_what_they_keep, 2, CONFIGS);
    tcase_add_loop_test(once, top_k_reads_a_vector_once_and_a_sample, 0, 2);
    suite_add_tcase(suite, shapes);
    suite_add_tcase(suite, each);
    suite_add_tcase(suite, drawn);
    suite_add_tcase(suite, once);
    ADD_TESTS(suite, "random", elements_are_kept_with_equal_probability,
              random_k_draws_every_subset_alike, random_k_takes_the_first_different_draws);
    ADD_TESTS(suite, "quality", quality_is_as_promised, quality_in_numbers);
    ADD_TESTS(suite, "refused", nan_and_infinity_are_never_sent, impossible_parameters_are_named,
              indices_out_of_order_or_range_are_refused,
              bitmaps_that_contradict_the_length_are_refused,
              a_bitmap_with_too_few_entries_is_refused);
    return run_suite(suite);
}
