/* test_compress_sparse.c - top-k against a sort, the subsets of random-k, random dropping and the
 * shared mask at both ends, and that nothing malformed gets past sl_decoder_check. */
#include <float.h>

#include "messages.h"

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

START_TEST(random_dropping_sends_about_what_is_documented) {
    static const double probabilities[] = {1e-9, 0.001, 0.1, 0.5, 0.99, 1};
    size_t d = 300001;
    float *v = gaussian(d, 2);
    for (int i = 0; i < 6; i++) {
        sl_compressor_config config = CONFIG(RANDOM_DROPPING, .probability = probabilities[i]);
        wire p = open_wire(&config, d, 8 * PART_SMALL);
        ck_assert_int_eq(send_vector(&p, &message, v), 0);
        double expected = sl_compressor_bits(&config, d), kept = expected / 32;
        ck_assert_double_eq_tol(8 * (double)message_bytes(&p), expected,
                                32 * 5 * sqrt(kept * (1 - kept / (double)d)) + 1e-6);
        close_wire(&p);
    }
    release(v);
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
    float *expected = floats(d), *decoded = through(&CONFIG(TOP_K, .k = k), v, d, part_bytes);
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
            expect_top_k(v, order, d, k, PART_SMALL);
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
        expect_top_k(v, order, d, kept[i], 16 * PART_SMALL);
    free(order);
    release(v);
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
    expect_top_k(v, order, d, 300000, PART_ALL);
    expect_top_k(v, order, d, 200000, PART_ALL);
    free(order);
    release(v);
}
END_TEST

/* Between a tiny and a huge element all others are close, and in odd cases 30 each are equal: the
 * class of the k-th holds more than are looked at apart, beside others of as many. */
START_TEST(a_crowd_around_the_last_one_is_told_apart) {
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
    free(order);
    release(v);
}
END_TEST

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

START_TEST(top_k_reads_a_vector_once_and_a_sample) {
    const size_t d = 1 << 20;
    const sl_compressor_config config = KIND(TOP_K, .fraction = _i == 0 ? 0.01 : 0.34);
    float *v = gaussian(d, 6);
    reads r = {v, d, 0};
    wire p = open_wire(&config, d, PART_ALL);
    ck_assert_int_eq(send_from(&p, &message, &(sl_source){.read = read_block, .context = &r}), 0);
    ck_assert_uint_le(r.count, d / SL_BLOCK * 9 / 8);
    close_wire(&p);
    release(v);
}
END_TEST

/* ---- random subsets ---- */

/* Which elements a message of ones brings. */
static float *chosen(wire *p, size_t d, uint64_t exchange) {
    sl_message m = message;
    m.exchange = exchange;
    float *ones = floats(d), *decoded = floats(d);
    for (size_t i = 0; i < d; i++)
        ones[i] = 1;
    ck_assert_int_eq(send_vector(p, &m, ones), 0);
    receive(p, &m, 1, decoded);
    release(ones);
    return decoded;
}

/* The draws are sl_rng_below's, with the numbers that it rejects: of the long vector a few dozen of
 * these. Where more than half are kept, those that are not are drawn. */
START_TEST(random_k_takes_the_first_different_draws) {
    static const size_t of[][2] = {{1000003, 100000},
                                   {1000003, 900000},
                                   {100, 10},
                                   {100, 90},
                                   {6, 3},
                                   {64, 33},
                                   {5, 4},
                                   {1, 1}};
    for (size_t t = 0; t < LENGTH(of); t++)
        for (uint64_t exchange = 1; exchange <= (of[t][0] > 100 ? 1 : 50); exchange++) {
            const size_t d = of[t][0], k = of[t][1];
            const bool leaves_out = k > d / 2;
            float *expected = floats(d);
            sl_message m = message;
            m.exchange = exchange;
            sl_rng rng = {.key = sl_message_key(&m)};
            for (size_t i = 0; i < d; i++)
                expected[i] = leaves_out;
            for (size_t drawn = 0; drawn < (leaves_out ? d - k : k);) {
                const uint32_t i = sl_rng_below(&rng, (uint32_t)d);
                drawn += expected[i] == leaves_out;
                expected[i] = !leaves_out;
            }
            wire p = open_wire(&CONFIG(RANDOM_K, .k = k), d, PART_SMALL);
            float *decoded = chosen(&p, d, exchange);
            expect_equal(decoded, expected, d);
            close_wire(&p);
            release(decoded);
            release(expected);
        }
}
END_TEST

START_TEST(a_shared_mask_is_that_of_all_senders) {
    size_t d = 10000;
    sl_message other = message, later = message;
    other.sender++;
    later.exchange++;
    wire p = open_wire(&CONFIG(SHARED_MASK, .k = 1000), d, PART_SMALL);
    float *ones = floats(d), *mine = floats(d), *theirs = floats(d), *next = floats(d);
    for (size_t i = 0; i < d; i++)
        ones[i] = 1;
    ck_assert_int_eq(send_vector(&p, &message, ones), 0);
    ck_assert_uint_eq(message_bytes(&p), 4000);
    receive(&p, &message, 1, mine);
    ck_assert_int_eq(send_vector(&p, &other, ones), 0);
    receive(&p, &other, 1, theirs);
    ck_assert_int_eq(send_vector(&p, &later, ones), 0);
    receive(&p, &later, 1, next);
    expect_equal(mine, theirs, d);
    ck_assert(sl_vec_cpu()->distance_squared(mine, next, d) > 1000);
    close_wire(&p);
    release(ones);
    release(mine);
    release(theirs);
    release(next);
}
END_TEST

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
    close_wire(&p);
    release(v);
    release(zero);
    release(decoded);
}
END_TEST

/* ---- a peer's bytes ---- */

static void expect_malformed(wire *w, uint32_t part) {
    ENSURE(take_part(w, &message, part, w->parts[part], 1, NULL) == SL_EPROTO, "part %u was taken",
           part);
}

static void set_packed(uint8_t *packed, size_t width, size_t i, uint32_t index) {
    for (size_t b = 0, bit = i * width; b < width; b++, bit++)
        packed[bit / 8] =
            (uint8_t)((packed[bit / 8] & ~(1u << bit % 8)) | (index >> b & 1) << bit % 8);
}

static uint32_t get_packed(const uint8_t *packed, size_t width, size_t i) {
    uint32_t index = 0;
    for (size_t b = 0, bit = i * width; b < width; b++, bit++)
        index |= (uint32_t)(packed[bit / 8] >> bit % 8 & 1) << b;
    return index;
}

/* Index i of `count` that are packed behind as many values. */
static void expect_index_refused(wire *w, uint32_t part, size_t count, size_t width, size_t i,
                                 uint32_t index) {
    uint8_t *packed = w->bytes + part * w->stride + 4 * count;
    const uint32_t right = get_packed(packed, width, i);
    set_packed(packed, width, i, index);
    expect_malformed(w, part);
    set_packed(packed, width, i, right);
}

START_TEST(indices_out_of_order_or_range_are_refused) {
    enum { D = 30011, K = 1003, WIDTH = 15 };
    float *v = gaussian(D, 16);
    wire w = open_wire(&CONFIG(TOP_K, .k = K), D, PART_SMALL);
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    ck_assert_uint_eq(sl_codec_parts(w.codec), 2);
    size_t counts[2] = {PART_SMALL * 8 / (32 + WIDTH) / 8 * 8};
    counts[1] = K - counts[0];
    for (uint32_t part = 0; part < 2; part++) {
        const size_t n = counts[part];
        const uint8_t *packed = w.bytes + part * w.stride + 4 * n;
        ck_assert_uint_eq(w.parts[part].bytes, 4 * n + (WIDTH * n + 7) / 8);
        for (size_t i = 1; i < n; i++) {
            expect_index_refused(&w, part, n, WIDTH, i, get_packed(packed, WIDTH, i - 1));
            expect_index_refused(&w, part, n, WIDTH, i, 0);
        }
        expect_index_refused(&w, part, n, WIDTH, n - 1, D);
        expect_index_refused(&w, part, n, WIDTH, n - 1, (1 << WIDTH) - 1);
        ck_assert_int_eq(take_part(&w, &message, part, w.parts[part], 1, NULL), 0);
    }
    expect_index_refused(&w, 0, counts[0], WIDTH, counts[0] - 1,
                         (uint32_t)(D - counts[1])); /* no room for those that follow */
    expect_index_refused(&w, 1, counts[1], WIDTH, 0,
                         (uint32_t)counts[0] - 1); /* nor for those before */
    ck_assert_uint_ne(WIDTH * counts[1] % 8, 0);
    w.bytes[w.stride + w.parts[1].bytes - 1] |= 0x80;
    expect_malformed(&w, 1);
    close_wire(&w);
    release(v);
}
END_TEST

START_TEST(bitmaps_that_contradict_the_length_are_refused) {
    enum { D = 30011, K = 10000 };
    float *v = gaussian(D, 17);
    EACH(size_t, part_bytes, PART_ALL, PART_SMALL) {
        wire w = open_wire(&CONFIG(TOP_K, .k = K), D, *part_bytes);
        ck_assert_int_eq(send_vector(&w, &message, v), 0);
        const uint32_t last = sl_codec_parts(w.codec) - 1;
        size_t from, elements, bit = 0;
        sl_codec_part_range(w.codec, last, &from, &elements);
        const size_t bytes = (elements + 7) / 8;
        uint8_t *bitmap = w.bytes + last * w.stride + w.parts[last].bytes - bytes;
        for (size_t b = 0; b < 8 * bytes; b++) { /* the bits behind the last element as well */
            bitmap[b / 8] ^= (uint8_t)(1u << b % 8);
            expect_malformed(&w, last);
            bitmap[b / 8] ^= (uint8_t)(1u << b % 8);
        }
        ck_assert_int_eq(take_part(&w, &message, last, w.parts[last], 1, NULL), 0);
        while ((bitmap[bit / 8] >> bit % 8 & 1) == 0)
            bit++;
        bitmap[bit / 8] ^= (uint8_t)(1u << bit % 8); /* moved behind the end: the count is right */
        bitmap[bytes - 1] |= 0x80;
        expect_malformed(&w, last);
        close_wire(&w);
    }
    release(v);
}
END_TEST

/* A message of one part has all k entries, not one less. */
START_TEST(a_bitmap_with_too_few_entries_is_refused) {
    enum { D = 64, K = 32 };
    float *v = gaussian(D, 18);
    wire fewer = open_wire(&CONFIG(TOP_K, .k = K - 1), D, PART_ALL),
         w = open_wire(&CONFIG(TOP_K, .k = K), D, PART_ALL);
    ck_assert_int_eq(send_vector(&fewer, &message, v), 0);
    ck_assert_int_eq(take_part(&w, &message, 0, fewer.parts[0], 1, NULL), SL_EPROTO);
    close_wire(&fewer);
    close_wire(&w);
    release(v);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_sparse");
    add_loop(suite, top_k_is_what_a_sort_gives, 0, SHAPES);
    add_loop(suite, a_crowd_around_the_last_one_is_told_apart, 0, 60);
    add_loop(suite, top_k_of_a_long_vector_is_what_a_sort_gives, 0, SHAPES);
    add_loop(suite, top_k_reads_a_vector_once_and_a_sample, 0, 2);
    ADD_TESTS(suite, "once", random_dropping_sends_about_what_is_documented,
              a_sample_that_misleads_costs_time_only, a_shared_mask_is_that_of_all_senders,
              random_k_takes_the_first_different_draws, blocks_take_turns,
              indices_out_of_order_or_range_are_refused,
              bitmaps_that_contradict_the_length_are_refused,
              a_bitmap_with_too_few_entries_is_refused);
    return run_suite(suite);
}
