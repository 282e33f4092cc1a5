/* test_compress_promises.c - what definitions promise: qualities in numbers, errors as papers have
 * them, streams of random numbers, and refusal of what cannot be sent. */
#include <float.h>

#include "messages.h"

/* ---- what theory promises ---- */

START_TEST(test_quality) {
    const struct {
        sl_compressor_config config;
        size_t d;
        sl_quality want;
    } rows[] = {
        {KIND(QSGD, .levels = 7, .bucket = 512), 1000, {.unbiased = true, .omega = sqrt(512) / 7}},
        {KIND(QSGD, .levels = 20, .bucket = 100),
         1000,
         {.unbiased = true, .omega = 0.25, .is_contractive = true, .delta = 0.75}},
        {KIND(QSGD, .levels = 1, .contractive = true),
         1000,
         {.omega = INFINITY, .is_contractive = true, .delta = 1 / (1 + sqrt(1000))}},
        {KIND(QSGD, .levels = 1, .norm = SL_NORM_MAX, .bucket = 25),
         1000,
         {.unbiased = true, .omega = 2}},
        {KIND(TERNGRAD, .bucket = 25), 1000, {.unbiased = true, .omega = 2}},
        {KIND(TERNGRAD, .clip_sigma = 2), 1000, {.unbiased = true, .omega = 1.5}},
        {KIND(TERNGRAD, .clip_sigma = 5), 1000, {.unbiased = true, .omega = 4}},
        {KIND(NATURAL),
         1000,
         {.unbiased = true, .omega = 0.125, .is_contractive = true, .delta = 0.875}},
        {KIND(SCALED_SIGN), 1000, {.omega = INFINITY, .is_contractive = true, .delta = 1e-3}},
        {KIND(ONE_BIT, .bucket = 10),
         1000,
         {.omega = INFINITY, .is_contractive = true, .delta = 0.1}},
        {KIND(FLOAT16), 1000, {.omega = INFINITY, .is_contractive = true, .delta = 1 - 0x1p-22}},
        {KIND(THRESHOLD, .threshold = 1), 1000, {.omega = INFINITY}},
        {KIND(RANDOM_K, .k = 25, .scaled = true), 100, {.unbiased = true, .omega = 3}},
        {KIND(RANDOM_K, .k = 80, .scaled = true),
         100,
         {.unbiased = true, .omega = 0.25, .is_contractive = true, .delta = 0.75}},
        {KIND(RANDOM_K, .k = 80), 100, {.omega = INFINITY, .is_contractive = true, .delta = 0.8}},
        {KIND(TOP_K, .k = 25), 100, {.omega = INFINITY, .is_contractive = true, .delta = 0.25}},
        {KIND(RANDOM_DROPPING, .probability = 0.3, .scaled = true),
         100,
         {.unbiased = true, .omega = 65536.0 / 19661 - 1}},
        {KIND(TOP_K, .k = 100), 100, {.unbiased = true, .is_contractive = true, .delta = 1}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sl_quality q = sl_compressor_quality(&rows[r].config, rows[r].d), want = rows[r].want;
        ENSURE(q.unbiased == want.unbiased && q.is_contractive == want.is_contractive &&
                   (q.omega == want.omega || fabs(q.omega - want.omega) < 1e-12) &&
                   fabs(q.delta - want.delta) < 1e-12,
               "%s: %d omega %.17g, %d delta %.17g", name_of(&rows[r].config), q.unbiased, q.omega,
               q.is_contractive, q.delta);
    }
}

static double squared(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (b ? b[i] : 0)) * ((double)a[i] - (b ? b[i] : 0));
    return sum;
}

static double error_of(const sl_compressor_config *config, const float *v, size_t d) {
    return squared(through(config, v, d, PART_ALL), v, d) / squared(v, NULL, d);
}

START_TEST(test_errors_of_3lc) {
    static const double multipliers[] = {1, 1.3, 1.75, 1.99};
    for (int s = 0; s < 4; s++)
        for (size_t d = 1; d < 100000; d = 3 * d + 1) {
            const double multiplier = multipliers[s];
            const sl_compressor_config config = KIND(THREE_LC, .multiplier = multiplier);
            const sl_quality q = sl_compressor_quality(&config, d);
            float *v = gaussian(d, 3);
            ck_assert(q.is_contractive && !q.unbiased && q.delta > 0 && q.usual_delta >= q.delta);
            ck_assert_double_le(error_of(&config, v, d), 1 - q.delta + 1e-6);
            for (size_t i = 0; i < d; i++) /* the worst of all */
                v[i] = i == d / 2 ? 1 : (float)(multiplier / 2);
            ck_assert_double_eq_tol(error_of(&config, v, d), 1 - q.delta, 1e-5);
        }
}

/* Of eden, whatever the vector: those of the points of a normal distribution, as the paper has
 * them. */
START_TEST(errors_of_rotated_vectors_are_those_of_the_points) {
    static const double unbiased[] = {0.5708, 0.1331, 0.03578, 0.009592},
                        contractive[] = {0.3634, 0.1175, 0.03455, 0.009501};
    const size_t d = 1 << 15;
    float *v = gaussian(d, 5);
    for (size_t i = 0; i < d; i++)
        v[i] *= i % 3 == 0 ? 5 : 0.1f; /* anything but normal */
    for (unsigned bits = 1; bits <= 4; bits++)
        for (int c = 0; c < 2; c++) {
            const sl_compressor_config config = KIND(EDEN, .bits = bits, .contractive = c);
            const double want = (c ? contractive : unbiased)[bits - 1],
                         got = error_of(&config, v, d);
            ENSURE(fabs(got - want) < 0.04 * want, "%u bits: %g, not %g", bits, got, want);
            const sl_quality q = sl_compressor_quality(&config, d);
            ck_assert(q.unbiased == !c && q.is_contractive == (c || bits > 1));
            ck_assert(c ? q.delta <= 1 - got && fabs(q.usual_delta - 1 + want) < 1e-4
                        : q.omega >= want - 1e-4);
        }
    ck_assert_double_eq(error_of(&CONFIG(EDEN, .bits = 1), v, d), error_of(&CONFIG(DRIVE), v, d));
}

/* The vectors for which the bounds on delta are exact. */
START_TEST(bounds_are_reached) {
    enum { D = 20, K = 3 };
    const sl_compressor_config stc = KIND(STC, .k = K), sbc = KIND(SBC, .k = K);
    float *v = floats(D), *w = floats(D);
    for (size_t i = 0; i < D; i++) {
        v[i] = i % 2 ? 1 : -1; /* stc: k/d */
        w[i] = -1;             /* sbc: k - 1 of the upper ones are -1 too, and both means 1 */
    }
    w[4] = 2 * (float)K - 1;
    ck_assert_double_eq_tol(error_of(&stc, v, D), 1 - sl_compressor_quality(&stc, D).delta, 1e-6);
    ck_assert_double_eq_tol(error_of(&sbc, w, D), 1 - sl_compressor_quality(&sbc, D).delta, 1e-6);
}

/* Every message of an exchange has random numbers of its own, however many there are. */
START_TEST(messages_have_streams_of_their_own) {
    static const uint32_t stages[] = {0, 1, 255, 256, 257, 511, 512, 65535};
    enum { STAGES = sizeof stages / sizeof *stages, EXCHANGES = 3 };
    static const uint64_t exchanges[EXCHANGES] = {1, 2, (UINT64_C(1) << 40) - 1};
    uint32_t blocks[STAGES * EXCHANGES][4];
    for (size_t i = 0; i < STAGES * EXCHANGES; i++) {
        const sl_message m = {
            .seed = 1, .exchange = exchanges[i / STAGES], .sender = 3, .stage = stages[i % STAGES]};
        const sl_rng_key key = sl_message_key(&m);
        sl_rng_block(&key, 0, blocks[i]);
        for (size_t j = 0; j < i; j++)
            ck_assert_int_ne(memcmp(blocks[i], blocks[j], sizeof blocks[i]), 0);
    }
}

/* ---- extreme inputs ---- */

static float value_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int send_pair(sl_compressor_config config, float a, float b) {
    wire w = open_wire(&config, 2, PART_USUAL);
    return send_vector(&w, &message, (const float[]){a, b});
}

START_TEST(test_out_of_range_is_refused) {
    const sl_compressor_config half = KIND(FLOAT16), brain = {.kind = SL_COMPRESSOR_BFLOAT16};
    const sl_compressor_config natural = {.kind = SL_COMPRESSOR_NATURAL},
                               qsgd = {.kind = SL_COMPRESSOR_QSGD, .levels = 3};
    ck_assert_int_eq(send_pair(half, 0, -65519.996f), 0);
    ck_assert_int_eq(send_pair(half, 0, 65520), SL_EDIVERGED);
    ck_assert_int_eq(send_pair(CONFIG(FLOAT8), 0, -61439), 0);
    ck_assert_int_eq(send_pair(CONFIG(FLOAT8), 0, -61440), SL_EDIVERGED);
    ck_assert_int_eq(send_pair(brain, 0, value_of(0x7F7F7FFF)), 0);
    ck_assert_int_eq(send_pair(brain, 0, value_of(0x7F7F8000)), SL_EDIVERGED);
    ck_assert_int_eq(send_pair(natural, 0, -0x1p127f), 0);
    ck_assert_int_eq(send_pair(natural, 0, nextafterf(0x1p127f, INFINITY)), SL_EDIVERGED);
    ck_assert_int_eq(send_pair(qsgd, 0, -FLT_MAX), 0);
    ck_assert_int_eq(send_pair(qsgd, FLT_MAX, -FLT_MAX), SL_EDIVERGED); /* the norm is none */
    ck_assert_int_eq(send_pair(CONFIG(QSGD, .levels = 3, .norm = SL_NORM_MAX), FLT_MAX, -FLT_MAX),
                     0);
    ck_assert_int_eq(send_pair(CONFIG(SCALED_SIGN), FLT_MAX, -FLT_MAX), 0);
    ck_assert_int_eq(send_pair(CONFIG(ONE_BIT), FLT_MAX, -FLT_MAX), 0);
    ck_assert_int_eq(send_pair(CONFIG(TERNGRAD), FLT_MAX, -FLT_MAX), 0);
}

/* A peer's scale with which a block's sum, behind the rotation, would be infinite. */
START_LOOP_TEST(a_scale_beyond_sums_is_refused, 3) {
    static const sl_compressor_config rotated[] = {
        KIND(ROTATED_QSGD, .levels = 3, .bucket = 512),
        KIND(ROTATED_QSGD, .levels = 7, .norm = SL_NORM_MAX),
        KIND(ROTATED_TERNGRAD, .bucket = 256),
    };
    float *got = floats(1000);
    wire w = open_wire(&rotated[_i], 1000, PART_ALL);
    ck_assert_int_eq(send_vector(&w, &message, gaussian(1000, 3)), 0);
    for (int power = 90; power <= 127; power++) {
        const float scale = ldexpf(1, power);
        memcpy(w.bytes, &scale, sizeof scale);
        const int result = take_part(&w, &message, 0, w.parts[0], 1, got);
        ck_assert_int_eq(result, power < 100 ? 0 : SL_EPROTO);
        for (size_t k = 0; k < 1000; k++)
            ENSURE(isfinite(got[k]), "2^%d", power);
    }
}

/* Of the magnitudes of 64 elements fours are added as floats. */
START_TEST(test_magnitudes_that_add_to_no_float) {
    const sl_compressor_config sign = {.kind = SL_COMPRESSOR_SCALED_SIGN};
    float v[64], out[64] = {0};
    wire w = open_wire(&sign, 64, PART_USUAL);
    for (int i = 0; i < 64; i++)
        v[i] = i % 3 ? FLT_MAX / 4 : -FLT_MAX / 4;
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    receive(&w, &message, 1, out);
    ck_assert_mem_eq(out, v, sizeof v);
    for (int i = 0; i < 64; i++)
        v[i] = FLT_MAX / 3;
    ck_assert_int_eq(send_vector(&w, &message, v), SL_EDIVERGED);
}
