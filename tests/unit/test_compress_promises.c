/* test_compress_promises.c - what definitions promise: qualities in numbers, errors as papers have
 * them, and of the dense-coded compressors refusal of what cannot be sent. */
#include "dense_kinds.h"

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

START_TEST(test_errors_of_3lc) {
    static const double multipliers[] = {1, 1.3, 1.75, 1.99};
    for (int s = 0; s < 4; s++)
        for (size_t d = 1; d < 100000; d = 3 * d + 1) {
            const double multiplier = multipliers[s];
            const sl_compressor_config config = KIND(THREE_LC, .multiplier = multiplier);
            const sl_quality q = sl_compressor_quality(&config, d);
            float *v = gaussian(d, 3), *got = through(&config, v, d, PART_ALL);
            ck_assert(q.is_contractive && !q.unbiased && q.delta > 0 && q.usual_delta >= q.delta);
            ck_assert_double_le(squared(got, v, d) / squared(v, NULL, d), 1 - q.delta + 1e-6);
            release(got);
            for (size_t i = 0; i < d; i++) /* the worst of all */
                v[i] = i == d / 2 ? 1 : (float)(multiplier / 2);
            got = through(&config, v, d, PART_ALL);
            ck_assert_double_eq_tol(squared(got, v, d) / squared(v, NULL, d), 1 - q.delta, 1e-5);
            release(got);
            release(v);
        }
}

/* The vectors for which the bounds on delta are exact. */
START_TEST(bounds_are_reached) {
    const size_t d = 20, k = 3;
    float *v = floats(d);
    for (size_t i = 0; i < d; i++)
        v[i] = i % 2 ? 1 : -1; /* stc: k/d */
    sl_compressor_config config = CONFIG(STC, .k = k);
    float *decoded = through(&config, v, d, PART_ALL);
    ck_assert_double_eq_tol(sl_vec_cpu()->distance_squared(decoded, v, d) / (double)d,
                            1 - sl_compressor_quality(&config, d).delta, 1e-6);
    release(decoded);
    for (size_t i = 0; i < d; i++)
        v[i] = -1; /* sbc: k - 1 of the upper ones are -1 too, and both means 1 */
    v[4] = 2 * (float)k - 1;
    config = CONFIG(SBC, .k = k);
    decoded = through(&config, v, d, PART_ALL);
    const double norm = sl_vec_cpu()->norm2_squared(v, d);
    ck_assert_double_eq_tol(sl_vec_cpu()->distance_squared(decoded, v, d) / norm,
                            1 - sl_compressor_quality(&config, d).delta, 1e-6);
    release(decoded);
    release(v);
}

/* Equal values count as sorted by index: the first go up, the last down. */
START_TEST(no_element_is_of_both_kinds) {
    float v[4096], *decoded;
    for (size_t d = 1; d <= 4096; d = d * 2 + d % 3) {
        for (size_t i = 0; i < d; i++)
            v[i] = i % 7 == 3 ? 0.0f : -0.0f;
        v[d / 2] = d > 3 ? 5 : 1;
        for (size_t k = 1; k <= (d + 1) / 2; k = k * 2 + 1) {
            decoded = through(&CONFIG(POS_NEG, .k = k), v, d, PART_SMALL);
            for (size_t i = 0, ups = 0; i < d; i++) {
                ups += decoded[i] != 0;
                ck_assert(ups <= k);
            }
            release(decoded);
        }
    }
}

/* ---- extreme inputs ---- */

static int send_pair(sl_compressor_config config, float a, float b) {
    wire w = open_wire(&config, 2, PART_USUAL);
    int result = send_vector(&w, &message, (const float[]){a, b});
    close_wire(&w);
    return result;
}

START_TEST(test_out_of_range_is_refused) {
    const sl_compressor_config half = KIND(FLOAT16), brain = {.kind = SL_COMPRESSOR_BFLOAT16};
    const sl_compressor_config natural = {.kind = SL_COMPRESSOR_NATURAL},
                               qsgd = {.kind = SL_COMPRESSOR_QSGD, .levels = 3};
    ck_assert_int_eq(send_pair(half, 0, -65519.996f), 0);
    ck_assert_int_eq(send_pair(half, 0, 65520), SL_EDIVERGED);
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
    close_wire(&w);
}

/* What lies far beyond the modulus is still a number. */
START_TEST(large_numbers_are_sent) {
    const float v[] = {3e38f, -3e38f, 1e30f, 1e20f, -1e12f};
    for (uint32_t bits = 1; bits <= 24; bits++) {
        float *got = through(&CONFIG(MODULAR, .bits = bits, .theta = 1), v, 5, PART_ALL);
        for (int i = 0; i < 5; i++)
            ck_assert(fabsf(got[i]) <= 2);
        release(got);
    }
}

/* lambda by bisection: the sum of min(1, lambda |v_j|) rises with it. */
static double lambda_of(const float *v, size_t d, double k) {
    double low = 0, high = 1e12;
    for (int pass = 0; pass < 200; pass++) {
        const double middle = (low + high) / 2;
        double sum = 0;
        for (size_t i = 0; i < d; i++)
            sum += fmin(1, middle * fabs((double)v[i]));
        *(sum < k ? &low : &high) = middle;
    }
    return low;
}

/* Of magnitude-dropping, within five standard deviations. */
START_TEST(magnitude_dropping_errs_as_promised) {
    enum { D = 300, K = 60, TRIALS = 4000 };
    const sl_compressor_config config = KIND(MAGNITUDE_DROPPING, .k = K);
    const sl_quality q = sl_compressor_quality(&config, D);
    float *v = gaussian(D, 8);
    for (size_t i = 0; i < D; i += 10)
        v[i] *= 30; /* some are certain */
    const double lambda = lambda_of(v, D, K), norm = sl_vec_cpu()->norm2_squared(v, D);
    double mean[D], expected = 0, bytes = 0, off = 0;
    for (size_t i = 0; i < D; i++)
        if (lambda * fabs((double)v[i]) < 1)
            expected += fabs((double)v[i]) / lambda - (double)v[i] * v[i];
    const double error = mean_error(&config, v, D, TRIALS, mean, &bytes);
    for (size_t i = 0; i < D; i++)
        off += (mean[i] - v[i]) * (mean[i] - v[i]);
    ck_assert_msg(off < 1.5 * expected / TRIALS, "%g, of %g", off, expected / TRIALS);
    ck_assert_double_eq_tol(error, expected, 0.02 * expected);
    ck_assert(q.unbiased && q.omega == 4 && expected <= q.omega * norm);
    ck_assert_double_eq(sl_compressor_bits(&config, D), K * (32 + 9));
    ck_assert_double_eq_tol(8 * bytes, K * (32 + 9) + 3.5, 0.01 * K * 41);
    release(v);
}
