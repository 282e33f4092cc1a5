/* test_compress_sparse.c - top-k, random-k and random dropping: exact sizes, top-k against a sort;
 * and what all sparse ones have in common: parts, sources, weights, the same bytes everywhere. */
#include <float.h>

#include "sparse_wire.h"

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

/* ---- sizes ---- */

static const size_t dimensions[] = {1,  2,    3,    7,    8,    9,    63,   64,
                                    65, 1000, 1023, 1024, 1025, 4097, 5000, 100003};
enum { DIMENSIONS = sizeof dimensions / sizeof *dimensions };

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

/* Between a tiny and a huge element all others are close, and in odd cases 30 each are equal: the
 * class of the k-th holds more than are looked at apart, beside others of as many. */
START_TEST(a_crowd_around_the_last_one_is_told_apart) {
    enum { CROWD = 30000 };
    const float first = ldexpf(1, -100), last = ldexpf(1, _i - 20);
    float *v = vector_of(CROWD + 2);
    for (uint32_t i = 0; i < CROWD; i++) {
        const uint32_t bits = 0x3F800000u + i * 7919u % CROWD / (_i % 2 ? 30 : 1);
        memcpy(v + i, &bits, sizeof bits);
        v[i] *= i % 3 == 0 ? -1 : 1;
    }
    v[CROWD] = first;
    v[CROWD + 1] = last > 1 ? last : 1;
    uint32_t *order = ranking(v, CROWD + 2);
    for (size_t k = 1; k <= CROWD + 2; k += k / 4 + 1)
        expect_top_k(v, order, CROWD + 2, k, ONE_PART);
    free(order);
    release(v);
}
END_TEST

/* ---- what all have in common ---- */

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
        UINT64_C(0xae8f49126ed56b1b), UINT64_C(0x1571c11cffbb3291), UINT64_C(0xb3013e708e56bd64),
        UINT64_C(0x345290c5418d4d6a), UINT64_C(0xbff3cd79caeef403), UINT64_C(0x161981c57444d09d),
        UINT64_C(0xabc540b849c09906)};
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

int main(void) {
    Suite *suite = suite_create("compress_sparse");
    ADD_TESTS(suite, "sizes", random_dropping_sends_about_what_is_documented,
              random_dropping_keeps_the_elements_whose_half_words_are_small_enough,
              a_fraction_is_rounded_and_keeps_at_least_one_entry);
    ADD_TESTS(suite, "top-k", of_equal_magnitudes_the_lower_index_is_kept,
              a_sample_that_misleads_costs_time_only);
    TCase *shapes = tcase_create("shapes"), *each = tcase_create("each"),
          *once = tcase_create("once");
    tcase_set_timeout(shapes, 120);
    tcase_add_loop_test(shapes, top_k_is_what_a_sort_gives, 0, SHAPES);
    tcase_add_loop_test(shapes, a_crowd_around_the_last_one_is_told_apart, 0, 60);
    tcase_add_loop_test(shapes, top_k_of_a_long_vector_is_what_a_sort_gives, 0, SHAPES);
    tcase_set_timeout(each, 120);
    tcase_add_loop_test(each, a_decoded_message_encodes_to_itself, 0, CONFIGS);
    tcase_add_loop_test(each, bytes_are_the_same_on_every_processor, 0, CONFIGS);
    tcase_add_loop_test(once, top_k_reads_a_vector_once_and_a_sample, 0, 2);
    suite_add_tcase(suite, shapes);
    suite_add_tcase(suite, each);
    suite_add_tcase(suite, once);
    return run_suite(suite);
}
