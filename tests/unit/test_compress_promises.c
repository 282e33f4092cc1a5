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
END_TEST

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
END_TEST

START_TEST(test_usual_delta_of_3lc) {
    for (size_t d = 10000; d <= 1000000; d *= 10) {
        const sl_compressor_config config = KIND(THREE_LC, .multiplier = 1);
        const sl_quality q = sl_compressor_quality(&config, d);
        float *v = gaussian(d, 4), *got = through(&config, v, d, PART_ALL);
        const double delta = 1 - squared(got, v, d) / squared(v, NULL, d);
        ck_assert_msg(q.usual_delta <= delta && q.usual_delta > 0.3 * delta, "%zu: %g, not %g", d,
                      q.usual_delta, delta);
        release(got);
        release(v);
    }
}
END_TEST

/* ---- extreme inputs ---- */

/* Elements in [2^-149, 2^-126), or near the largest: nothing breaks, and scales stay right. Of one
 * element alone the scale is its magnitude. */
static void expect_right_scales(const sl_compressor_config *c, size_t d, float unit) {
    const bool is_tiny = unit <= 0x1p-126f;
    float *v = gaussian(d, 3);
    for (size_t i = 0; i < d; i++)
        v[i] *= unit;
    float *out = through(c, v, d, PART_USUAL);
    const sl_quality q = sl_compressor_quality(c, d);
    const double error = squared(out, v, d), norm = squared(v, NULL, d);
    double promised = q.is_contractive ? 1 - q.delta
                      : q.unbiased     ? q.omega
                                       : 1,
           slack = (double)d * 0x1p-149 * 0x1p-149 + 0x1p-44 * norm;
    if (c->kind == SL_COMPRESSOR_FLOAT16 ||
        (is_tiny && (c->kind == SL_COMPRESSOR_NATURAL || c->kind == SL_COMPRESSOR_BFLOAT16)))
        promised = 1e6; /* below these compressors' range */
    if (is_tiny)
        slack *= (double)c->levels * c->levels + 4; /* a level, scale / levels, loses its digits */
    ENSURE(isfinite(error) && error <= 1.3 * promised * norm + slack,
           "%s, d %zu: unit %g: error %g of %g", name_of(c), d, unit, error, norm);
    release(v);
    release(out);
}

START_TEST(test_far_exponents) {
    const sl_compressor_config *c = kinds + _i;
    EACH(float, unit, 0x1p-140f, 0x1p-126f, 0x1p-100f, 0x1p60f, 0x1p105f)
    EACH(size_t, d, 1, 2000)
    if (*unit < 1 || c->kind != SL_COMPRESSOR_FLOAT16)
        expect_right_scales(c, *d, *unit);
}
END_TEST

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
END_TEST

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
END_TEST

/* What was decoded is on the grid, and encoding it again changes no code, whatever the random
 * numbers; a scale may lose its last digit. */
START_TEST(test_stable) {
    enum { D = 3000 };
    static const sl_compressor_config stable[] = {
        KIND(FLOAT16),
        KIND(BFLOAT16),
        KIND(NATURAL),
        KIND(THRESHOLD, .threshold = 0.3),
        KIND(TERNGRAD, .bucket = 100),
        KIND(QSGD, .levels = 1, .norm = SL_NORM_MAX),
        KIND(QSGD, .levels = 7, .norm = SL_NORM_MAX, .bucket = 512),
        KIND(QSGD, .levels = 31, .norm = SL_NORM_MAX),
        KIND(QSGD, .levels = 63, .norm = SL_NORM_MAX),
        KIND(QSGD, .levels = 1000, .norm = SL_NORM_MAX),
        KIND(QSGD, .levels = 32767, .norm = SL_NORM_MAX),
    };
    const sl_compressor_config *c = stable + _i;
    float *v = gaussian(D, 12);
    for (uint64_t t = 1; t <= 30; t++) {
        wire first = open_wire(c, D, PART_USUAL), second = open_wire(c, D, PART_USUAL);
        sl_message m = {.seed = 5, .exchange = t}, other = {.seed = 6, .exchange = t};
        float *out = floats(D), *again = floats(D);
        for (int i = 0; i < D; i++)
            v[i] *= 1.1f;
        ck_assert_int_eq(send_vector(&first, &m, v), 0);
        receive(&first, &m, 1, out);
        ck_assert_int_eq(send_vector(&second, &other, out), 0);
        receive(&second, &other, 1, again);
        for (int i = 0; i < D; i++)
            ENSURE(fabsf(again[i] - out[i]) <= 0x1p-22f * fabsf(out[i]), "%s: %a became %a",
                   name_of(c), out[i], again[i]);
        release(again);
        release(out);
        close_wire(&first);
        close_wire(&second);
    }
    release(v);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_promises");
    add_loop(suite, test_far_exponents, 0, KINDS);
    add_loop(suite, test_stable, 0, 11);
    ADD_TESTS(suite, "examples", test_quality, test_errors_of_3lc, test_usual_delta_of_3lc,
              test_out_of_range_is_refused, test_magnitudes_that_add_to_no_float);
    return run_suite(suite);
}
