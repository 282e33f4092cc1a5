/* test_compress_promises.c - what the definitions of the dense-coded compressors promise:
 * unbiasedness, error, and refusal of what cannot be sent or was not sent by them. */
#include "dense_wire.h"
#include "usual_compressor.h"

/* ---- what theory promises ---- */

enum { TRIALS = 20000, ELEMENTS = 50 };

/* What is cut off is lost, but the error stays within its bound: also of one element far above the
 * rest. */
START_TEST(test_clipped_errors) {
    for (double clip = 1; clip <= 8; clip *= 2) {
        const sl_compressor_config c = {.kind = SL_COMPRESSOR_TERNGRAD, .clip_sigma = clip};
        const double omega = sl_compressor_quality(&c, ELEMENTS).omega;
        for (float far = 0; far < 1e5f; far = 10 * far + 1) {
            float *v = gaussian(ELEMENTS, 31);
            v[3] += far;
            double error = 0;
            wire w = open_wire(&c, ELEMENTS, PART_USUAL);
            for (uint64_t t = 1; t <= 500; t++) {
                const sl_message m = {.seed = 97, .exchange = t, .sender = 1};
                float out[ELEMENTS] = {0};
                ENSURE(send_vector(&w, &m, v) == 0, "not sent");
                receive(&w, &m, 1, out);
                error += squared(out, v, ELEMENTS) / 500;
            }
            const double norm = squared(v, NULL, ELEMENTS);
            ENSURE(error <= omega * norm, "clip %g, %g: error %g, promised %g", clip, (double)far,
                   error / norm, omega);
            close_wire(&w);
            free(v);
        }
    }
}
END_TEST

/* For one vector: delta of scaled sign as algorithms have it, and the two means err no more. */
START_TEST(test_sign_errors) {
    enum { D = 1003 };
    float *v = gaussian(D, 6);
    for (int i = 0; i < D; i++)
        v[i] += 0.3f;
    float *sign = through(&(sl_compressor_config){.kind = SL_COMPRESSOR_SCALED_SIGN}, v, D);
    float *means = through(&(sl_compressor_config){.kind = SL_COMPRESSOR_ONE_BIT}, v, D);
    double l1 = 0, l2 = squared(v, NULL, D);
    for (int i = 0; i < D; i++)
        l1 += fabs(v[i]);
    ck_assert_double_eq_tol(squared(sign, v, D), l2 - l1 * l1 / D, 1e-5 * l2);
    ck_assert_double_lt(squared(means, v, D), squared(sign, v, D));
    free(v);
    free(sign);
    free(means);
}
END_TEST

START_TEST(test_quality) {
    const struct {
        sl_compressor_config config;
        sl_quality want;
    } rows[] = {
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 512},
         {.unbiased = true, .omega = sqrt(512) / 7}},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 20, .bucket = 100},
         {.unbiased = true, .omega = 0.25, .is_contractive = true, .delta = 0.75}},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 1, .contractive = true},
         {.omega = INFINITY, .is_contractive = true, .delta = 1 / (1 + sqrt(1000))}},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 1, .norm = SL_NORM_MAX, .bucket = 25},
         {.unbiased = true, .omega = 2}},
        {{.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 25}, {.unbiased = true, .omega = 2}},
        {{.kind = SL_COMPRESSOR_TERNGRAD, .clip_sigma = 2}, {.unbiased = true, .omega = 1.5}},
        {{.kind = SL_COMPRESSOR_TERNGRAD, .clip_sigma = 5}, {.unbiased = true, .omega = 4}},
        {{.kind = SL_COMPRESSOR_NATURAL},
         {.unbiased = true, .omega = 0.125, .is_contractive = true, .delta = 0.875}},
        {{.kind = SL_COMPRESSOR_SCALED_SIGN},
         {.omega = INFINITY, .is_contractive = true, .delta = 1e-3}},
        {{.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 10},
         {.omega = INFINITY, .is_contractive = true, .delta = 0.1}},
        {{.kind = SL_COMPRESSOR_FLOAT16},
         {.omega = INFINITY, .is_contractive = true, .delta = 1 - 0x1p-22}},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 1}, {.omega = INFINITY}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sl_quality q = sl_compressor_quality(&rows[r].config, 1000), want = rows[r].want;
        ENSURE(q.unbiased == want.unbiased && q.is_contractive == want.is_contractive &&
                   (q.omega == want.omega || fabs(q.omega - want.omega) < 1e-12) &&
                   fabs(q.delta - want.delta) < 1e-12,
               "%s: %d omega %.17g, %d delta %.17g", describe(&rows[r].config), q.unbiased, q.omega,
               q.is_contractive, q.delta);
    }
}
END_TEST

/* ---- extreme inputs ---- */

START_TEST(test_one_element) {
    static const float values[] = {1.5f, -1.5f, 0x1p-149f, -0x1p-126f, 1000, -0x1p-20f};
    for (int i = 0; i < 6; i++) {
        const sl_compressor_config *c = kinds + _i;
        float *out = through(c, values + i, 1),
              factor = c->contractive && sl_compressor_quality(c, 1).delta < 1 ? 0.5f : 1;
        if (has_buckets(c)) /* its scale is the element's magnitude */
            ENSURE(fabsf(out[0] - values[i]) <=
                       0x1p-22f * fabsf(values[i]) + (float)c->levels * 0x1p-149f,
                   "%s: %a, not %a", describe(c), out[0], values[i]);
        else
            ENSURE(isfinite(out[0]) && factor > 0, "%s: %a", describe(c), out[0]);
        free(out);
    }
}
END_TEST

/* Every element in [2^-149, 2^-126), or near the largest: nothing breaks, and scales stay right. */
START_TEST(test_far_exponents) {
    enum { D = 2000 };
    const sl_compressor_config *c = kinds + _i;
    static const float units[] = {0x1p-140f, 0x1p-100f, 0x1p60f, 0x1p105f};
    for (int u = 0; u < 4; u++) {
        if (units[u] > 1 && c->kind == SL_COMPRESSOR_FLOAT16)
            continue;
        float *v = gaussian(D, 3);
        for (int i = 0; i < D; i++)
            v[i] *= units[u];
        float *out = through(c, v, D);
        double error = squared(out, v, D), norm = squared(v, NULL, D),
               slack = D * 0x1p-149 * 0x1p-149;
        sl_quality q = sl_compressor_quality(c, D);
        double promised = q.is_contractive ? 1 - q.delta : q.unbiased ? q.omega : 1;
        if (c->kind == SL_COMPRESSOR_FLOAT16 ||
            (u == 0 && (c->kind == SL_COMPRESSOR_NATURAL || c->kind == SL_COMPRESSOR_BFLOAT16)))
            promised = 1e6; /* below these compressors' range */
        if (u == 0)
            slack *=
                (double)c->levels * c->levels + 4; /* a level, scale / levels, loses its digits */
        ENSURE(isfinite(error) && error <= 1.3 * promised * norm + slack,
               "%s: unit %g: error %g of %g", describe(c), units[u], error, norm);
        free(v);
        free(out);
    }
}
END_TEST

static int send_pair(sl_compressor_config config, float a, float b) {
    wire w = open_wire(&config, 2, PART_USUAL);
    int result = send_vector(&w, &message, (const float[]){a, b});
    close_wire(&w);
    return result;
}

START_TEST(test_out_of_range_is_refused) {
    const sl_compressor_config half = {.kind = SL_COMPRESSOR_FLOAT16},
                               brain = {.kind = SL_COMPRESSOR_BFLOAT16};
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
    ck_assert_int_eq(
        send_pair(
            (sl_compressor_config){.kind = SL_COMPRESSOR_QSGD, .levels = 3, .norm = SL_NORM_MAX},
            FLT_MAX, -FLT_MAX),
        0);
    ck_assert_int_eq(
        send_pair((sl_compressor_config){.kind = SL_COMPRESSOR_SCALED_SIGN}, FLT_MAX, -FLT_MAX), 0);
    ck_assert_int_eq(
        send_pair((sl_compressor_config){.kind = SL_COMPRESSOR_ONE_BIT}, FLT_MAX, -FLT_MAX), 0);
    ck_assert_int_eq(
        send_pair((sl_compressor_config){.kind = SL_COMPRESSOR_TERNGRAD}, FLT_MAX, -FLT_MAX), 0);
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
        {.kind = SL_COMPRESSOR_FLOAT16},
        {.kind = SL_COMPRESSOR_BFLOAT16},
        {.kind = SL_COMPRESSOR_NATURAL},
        {.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 0.3},
        {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 100},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .norm = SL_NORM_MAX, .bucket = 512},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 31, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 63, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1000, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 32767, .norm = SL_NORM_MAX},
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
                   describe(c), out[i], again[i]);
        free(again);
        free(out);
        close_wire(&first);
        close_wire(&second);
    }
    free(v);
}
END_TEST

/* ---- bytes from a peer ---- */

/* Sets the code of every element in turn to each value that its bits can hold. */
START_TEST(test_wrong_codes) {
    static const struct {
        sl_compressor_config config;
        uint32_t mask, max;
    } rows[] = {
        {{.kind = SL_COMPRESSOR_FLOAT16}, 0x7FFF, 0x7BFF},
        {{.kind = SL_COMPRESSOR_BFLOAT16}, 0x7FFF, 0x7F7F},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 5}, 7, 5},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 7}, 7, 7},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 130}, 255, 130},
        {{.kind = SL_COMPRESSOR_TERNGRAD}, 3, 2},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 1}, 3, 2},
        {{.kind = SL_COMPRESSOR_NATURAL}, 255, 254},
        {{.kind = SL_COMPRESSOR_SCALED_SIGN}, 1, 1},
    };
    enum { D = 1049 };
    const sl_compressor_config *c = &rows[_i].config;
    unsigned width = width_of(c);
    wire w = open_wire(c, D, PART_USUAL);
    float *v = gaussian(D, 5);
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    uint8_t *codes = w.bytes + (w.parts[0].bytes - (D * width + 7) / 8);
    for (size_t i = 0; i < D; i += i < 30 || i > D - 30 ? 1 : 97)
        for (uint32_t code = 0; code < 1u << width; code += width == 16 ? 0x7F : 1) {
            uint8_t kept[4] = {0};
            size_t at = i * width / 8, n = ((i + 1) * width + 7) / 8 - at;
            memcpy(kept, codes + at, n);
            for (unsigned b = 0; b < width; b++) {
                size_t bit = i * width + b;
                codes[bit / 8] =
                    (uint8_t)((codes[bit / 8] & ~(1 << bit % 8)) | (code >> b & 1) << bit % 8);
            }
            int want = (code & rows[_i].mask) <= rows[_i].max ? 0 : SL_EPROTO;
            ENSURE(sl_decoder_check(w.decoder, &message, 0, w.parts[0]) == want,
                   "%s: code %u of element %zu", describe(c), code, i);
            memcpy(codes + at, kept, n);
        }
    free(v);
    close_wire(&w);
}
END_TEST

/* ---- settings ---- */

START_TEST(test_settings) {
    const struct {
        sl_compressor_config config;
        const char *names; /* in the error; NULL: allowed */
    } rows[] = {
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 0}, "algorithm.compressor.levels: 0"},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 32768}, "algorithm.compressor.levels: 32768"},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 32767}, NULL},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 1, .bucket = 3}, "algorithm.compressor.bucket: 3"},
        {{.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 1}, "algorithm.compressor.bucket: 1"},
        {{.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 2}, "algorithm.compressor.bucket: 2"},
        {{.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 4}, NULL},
        {{.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 3}, "algorithm.compressor.bucket: 3"},
        {{.kind = SL_COMPRESSOR_TERNGRAD, .clip_sigma = 1}, NULL},
        {{.kind = SL_COMPRESSOR_TERNGRAD, .clip_sigma = 0.5},
         "algorithm.compressor.clip_sigma: 0.5"},
        {{.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 4000000000u}, NULL},
        {{.kind = SL_COMPRESSOR_THRESHOLD}, "algorithm.compressor.threshold: 0"},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = -1}, "algorithm.compressor.threshold: -1"},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = NAN},
         "algorithm.compressor.threshold: nan"},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 1e39},
         "algorithm.compressor.threshold: 1e+39"},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 0.01}, NULL},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sl_error error = {0};
        int result = sl_compressor_check(&rows[r].config, 100, &error);
        ck_assert_int_eq(result, rows[r].names == NULL ? 0 : SL_EINVAL);
        ENSURE(rows[r].names == NULL ||
                   strncmp(error.text, rows[r].names, strlen(rows[r].names)) == 0,
               "%s", error.text);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_promises");
    TCase *loops = tcase_create("every kind");
    tcase_set_timeout(loops, 120);
    tcase_add_loop_test(loops, test_one_element, 0, KINDS);
    tcase_add_loop_test(loops, test_far_exponents, 0, KINDS);
    tcase_add_loop_test(loops, test_stable, 0, 11);
    tcase_add_loop_test(loops, test_wrong_codes, 0, 9);
    suite_add_tcase(suite, loops);
    ADD_TESTS(suite, "examples", test_sign_errors, test_clipped_errors, test_quality,
              test_out_of_range_is_refused, test_magnitudes_that_add_to_no_float, test_settings);
    return run_suite(suite);
}
