/* test_compress_sparse.c - top-k against a sort, how often a vector is read, and masks that take
 * turns. */
#include <float.h>

#include "messages.h"

enum { GAUSSIAN, EQUAL, ZERO, RISING, FALLING, TINY, HEAVY, FEW, EXTREME, BURST, SAMPLED, SHAPES };

/* Element i of d, from a normal number. Of SAMPLED a sample finds the large ones only: the vector
 * is read again. */
static float shape(int s, float x, size_t i, size_t d) {
    static const float extremes[] = {0.0f,    -0.0f,    FLT_MIN / 8,  -FLT_MIN / 8,
                                     FLT_MAX, -FLT_MAX, FLT_TRUE_MIN, 1.0f};
    return s == EQUAL     ? copysignf(0.5f, x)
           : s == ZERO    ? (i % 3 == 0 ? -0.0f : 0.0f)
           : s == RISING  ? (float)i
           : s == FALLING ? (float)(d - i)
           : s == TINY    ? x * FLT_MIN / 64
           : s == HEAVY   ? 1 / (x * x * x + 1e-6f)
           : s == FEW     ? roundf(x)
           : s == EXTREME ? extremes[(uint32_t)(fabsf(x) * 1e4f) % 8]
           : s == BURST   ? (i < d - d / 64 ? x * 1e-3f : x) /* a sample overestimates or misses
                                                                what is at the end */
           : s == SAMPLED ? (i / SL_BLOCK % 8 == 0 ? 1e6f * x : x)
                          : x;
}

static float *shaped(size_t d, int s) {
    float *v = gaussian(d, 1);
    for (size_t i = 0; i < d; i++)
        v[i] = shape(s, v[i], i, d);
    return v;
}

/* ---- top-k ---- */

static const float *sorted_by;

static int by_magnitude(const void *a, const void *b) {
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    float x = fabsf(sorted_by[i]), y = fabsf(sorted_by[j]);
    return x > y ? -1 : x < y ? 1 : (i > j) - (i < j);
}

/* Every element, the largest first. */
static uint32_t *ranking(const float *v, size_t d) {
    uint32_t *order = close_behind(calloc(d, sizeof *order), free);
    for (size_t i = 0; i < d; i++)
        order[i] = (uint32_t)i;
    sorted_by = v;
    qsort(order, d, sizeof *order, by_magnitude);
    return order;
}

static void expect_top_k(const float *v, const uint32_t *order, size_t d, size_t k,
                         size_t part_bytes) {
    float *expected = floats(d), *decoded = through(&CONFIG(TOP_K, .k = k), v, d, part_bytes);
    for (size_t i = 0; i < k; i++)
        expected[order[i]] = v[order[i]];
    expect_equal(decoded, expected, d);
}

START_LOOP_TEST(top_k_is_what_a_sort_gives, SHAPES) {
    for (size_t d = 1; d <= 5000; d += d < 20 ? 1 : d / 3) {
        float *v = shaped(d, _i);
        uint32_t *order = ranking(v, d);
        for (size_t k = 1; k <= d; k += k / 2 + 1)
            expect_top_k(v, order, d, k, PART_SMALL);
    }
}

START_LOOP_TEST(top_k_of_a_long_vector_is_what_a_sort_gives, SHAPES) {
    static const size_t kept[] = {5, 1311, 50000};
    size_t d = (1 << 17) + 3;
    float *v = shaped(d, _i);
    uint32_t *order = ranking(v, d);
    for (int i = 0; i < 3; i++)
        expect_top_k(v, order, d, kept[i], 16 * PART_SMALL);
}

/* Between a tiny and a huge element all others are close, and in odd cases 30 each are equal: the
 * class of the k-th holds more than are looked at apart, beside others of as many. */
START_LOOP_TEST(a_crowd_around_the_last_one_is_told_apart, 60) {
    enum { CROWD = 30000 };
    const float first = ldexpf(1, -100), last = ldexpf(1, _i - 20);
    float *v = floats(CROWD + 2);
    for (uint32_t i = 0; i < CROWD; i++) {
        const uint32_t bits = 0x3F800000u + i * 7919u % CROWD / (_i % 2 ? 30 : 1);
        memcpy(v + i, &bits, sizeof bits);
        v[i] *= i % 3 == 0 ? -1 : 1;
    }
    v[CROWD] = first;
    v[CROWD + 1] = last > 1 ? last : 1;
    uint32_t *order = ranking(v, CROWD + 2);
    for (size_t k = 1; k <= CROWD + 2; k += k / 4 + 1)
        expect_top_k(v, order, CROWD + 2, k, PART_ALL);
}

/* ---- how often it is read ---- */

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

START_LOOP_TEST(top_k_reads_a_vector_once_and_a_sample, 2) {
    const size_t d = 1 << 18;
    const sl_compressor_config config = KIND(TOP_K, .fraction = _i == 0 ? 0.01 : 0.34);
    float *v = gaussian(d, 6);
    reads r = {v, d, 0};
    wire p = open_wire(&config, d, PART_ALL);
    ck_assert_int_eq(send_from(&p, &message, &(sl_source){.read = read_block, .context = &r}), 0);
    ck_assert_uint_le(r.count, d / SL_BLOCK * 9 / 8);
}

/* ---- random subsets ---- */

/* 2049 elements in two blocks: the first one fills a part, and leaves an empty one. */
START_TEST(blocks_take_turns) {
    enum { D = 2049, HALF = 1024 };
    wire p =
        open_wire(&CONFIG(SHARED_MASK, .fraction = 0.5, .order = SL_ORDER_CYCLIC), D, PART_SMALL);
    float *v = gaussian(D, 3), *zero = floats(D), *decoded = floats(D);
    sl_message m = message;
    ck_assert_uint_eq(sl_codec_parts(p.codec), 2);
    for (uint64_t exchange = 1; exchange <= 3; exchange++) {
        const size_t from = exchange % 2 ? 0 : HALF, end = exchange % 2 ? HALF : D;
        m.exchange = exchange;
        memset(decoded, 0, D * sizeof *decoded);
        ck_assert_int_eq(send_vector(&p, &m, v), 0);
        ck_assert_uint_eq(message_bytes(&p), (end - from) * sizeof *v);
        for (uint32_t part = 0; part < 2; part++)
            ck_assert_int_eq(sl_decoder_check(p.decoder, &m, part, p.parts[part]), 0);
        m.exchange++;
        ck_assert_int_eq(sl_decoder_check(p.decoder, &m, 1, p.parts[1]), SL_EPROTO);
        m.exchange--;
        receive(&p, &m, 1, decoded);
        expect_equal(decoded, zero, from);
        expect_equal(decoded + from, v + from, end - from);
        expect_equal(decoded + end, zero, D - end);
    }
}
