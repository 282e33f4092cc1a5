/* test_compress_promises.c - what the definitions of the dense-coded compressors promise:
 * unbiasedness, error, and refusal of what cannot be sent or was not sent by them. */
#include "dense_wire.h"
#include "usual_compressor.h"

/* ---- what theory promises ---- */

enum { TRIALS = 20000, ELEMENTS = 50 };

/* Mean and mean squared error over messages of one vector, with error bars of five standard
 * deviations; `resolution`: of the rounding. */
static void try_unbiased(const sl_compressor_config *c, const float *v, double resolution) {
    wire w = open_wire(c, ELEMENTS, PART_USUAL);
    double sum[ELEMENTS] = {0}, squares[ELEMENTS] = {0}, error = 0, error2 = 0,
           norm = squared(v, NULL, ELEMENTS);
    sl_quality q = sl_compressor_quality(c, ELEMENTS);
    ck_assert(q.unbiased);
    for (uint64_t t = 1; t <= TRIALS; t++) {
        sl_message m = {.seed = 99, .exchange = t, .sender = 1};
        float out[ELEMENTS] = {0};
        memset(w.bytes, 0xA5, w.stride);
        ENSURE(send_vector(&w, &m, v) == 0, "not sent");
        receive(&w, &m, 1, out);
        for (int i = 0; i < ELEMENTS; i++) {
            sum[i] += out[i];
            squares[i] += (double)out[i] * out[i];
        }
        double e = squared(out, v, ELEMENTS);
        error += e / TRIALS;
        error2 += e * e / TRIALS;
    }
    for (int i = 0; i < ELEMENTS; i++) {
        double mean = sum[i] / TRIALS,
               spread = sqrt(fmax(squares[i] / TRIALS - mean * mean, 0) / TRIALS);
        ENSURE(fabs(mean - v[i]) <= 5 * spread + resolution,
               "%s: element %d: mean %.7g +- %.2g, not %.7g", describe(c), i, mean, spread, v[i]);
    }
    double bar = 5 * sqrt(fmax(error2 - error * error, 0) / TRIALS);
    ENSURE(error <= q.omega * norm + bar + 1e-12 * norm, "%s: error %g of %g, promised %g",
           describe(c), error, norm, q.omega * norm);
    close_wire(&w);
}

START_TEST(test_unbiased) {
    static const sl_compressor_config unbiased[] = {
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 16},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 3, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 100, .bucket = 8},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 32767},
        {.kind = SL_COMPRESSOR_TERNGRAD},
        {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 12},
        {.kind = SL_COMPRESSOR_NATURAL},
    };
    const sl_compressor_config *c = unbiased + _i;
    float *v = gaussian(ELEMENTS, 8), equal[ELEMENTS], one_large[ELEMENTS];
    double norm = sqrt(squared(v, NULL, ELEMENTS));
    for (int i = 0; i < ELEMENTS; i++) {
        equal[i] =
            i % 3
                ? 0.75f
                : -0.75f; /* halfway between powers of two, and the worst for the Euclidean norm */
        one_large[i] = i == 0 ? 1 : 1 / (1 + sqrtf(ELEMENTS)); /* the worst for TernGrad */
    }
    unsigned bits = bits_of_levels(c->levels) > 5 ? 21 - bits_of_levels(c->levels) : 16;
    double unit =
        c->kind == SL_COMPRESSOR_NATURAL ? 0x1p-17 : ldexp(1.0 / fmax(c->levels, 1), -(int)bits);
    try_unbiased(c, v, norm * unit);
    try_unbiased(c, equal, sqrt(ELEMENTS) * unit);
    try_unbiased(c, one_large, 2 * unit);
    free(v);
}
END_TEST

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

static void try_contractive(const sl_compressor_config *c) {
    sl_quality q = sl_compressor_quality(c, ELEMENTS);
    ENSURE(q.is_contractive && q.delta > 0 && q.delta < 1, "%s: delta %g", describe(c), q.delta);
    for (uint32_t form = 0; form < 4; form++) {
        float *v = gaussian(ELEMENTS, 20 + form);
        for (int i = 1; i < ELEMENTS && form > 1; i++)
            v[i] = form == 2 ? 0.75f * v[0] : 1e-3f * v[i]; /* all alike; one far above the rest */
        double error = 0, error2 = 0, norm = squared(v, NULL, ELEMENTS);
        wire w = open_wire(c, ELEMENTS, PART_USUAL);
        for (uint64_t t = 1; t <= 2000; t++) {
            sl_message m = {.seed = 98, .exchange = t, .sender = 1};
            float out[ELEMENTS] = {0};
            memset(w.bytes, 0xA5, w.stride);
            ENSURE(send_vector(&w, &m, v) == 0, "not sent");
            receive(&w, &m, 1, out);
            double e = squared(out, v, ELEMENTS);
            error += e / 2000;
            error2 += e * e / 2000;
        }
        double bar = 5 * sqrt(fmax(error2 - error * error, 0) / 2000);
        ENSURE(error <= (1 - q.delta) * norm * (1 + 1e-6) + bar,
               "%s: vector %u: error %g of %g, delta %g", describe(c), form, error, norm, q.delta);
        close_wire(&w);
        free(v);
    }
}

START_TEST(test_contractive) {
    static const sl_compressor_config contractive[] = {
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1, .contractive = true},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 3, .bucket = 16, .contractive = true},
        {.kind = SL_COMPRESSOR_TERNGRAD, .contractive = true},
        {.kind = SL_COMPRESSOR_NATURAL, .contractive = true},
        {.kind = SL_COMPRESSOR_NATURAL},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 15, .bucket = 20},
        {.kind = SL_COMPRESSOR_SCALED_SIGN},
        {.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 7},
        {.kind = SL_COMPRESSOR_ONE_BIT},
        {.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 7},
        {.kind = SL_COMPRESSOR_FLOAT16},
        {.kind = SL_COMPRESSOR_BFLOAT16},
    };
    try_contractive(contractive + _i);
}
END_TEST

/* Of those that promise it, with usual parameters; identity errs by nothing. */
START_TEST(test_every_contractive_one) {
    const sl_compressor_config c = usual_compressor((sl_compressor_kind)_i);
    const sl_quality q = sl_compressor_quality(&c, ELEMENTS);
    if (q.is_contractive && q.delta < 1)
        try_contractive(&c);
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

START_TEST(test_zeros_stay_zero) {
    enum { D = 3001 };
    float v[D] = {0};
    for (int i = 0; i < D; i += 2)
        v[i] = -0.0f;
    float *out = through(kinds + _i, v, D);
    for (int i = 0; i < D; i++)
        ENSURE(out[i] == 0, "%s: element %d: %g", describe(kinds + _i), i, out[i]);
    free(out);
}
END_TEST

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

START_TEST(test_not_finite_is_refused) {
    enum { D = 9000 };
    static const size_t places[] = {0, 1, 1023, 1024, 4095, 8191, D - 1};
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    float *v = gaussian(D, 2);
    for (size_t bytes = PART_SMALL; bytes <= PART_USUAL; bytes += PART_USUAL - PART_SMALL) {
        wire w = open_wire(kinds + _i, D, bytes);
        for (int p = 0; p < 7; p++)
            for (int b = 0; b < 4; b++) {
                float kept = v[places[p]];
                v[places[p]] = bad[b];
                memset(w.bytes, 0xA5, w.stride * sl_codec_parts(w.codec));
                ENSURE(send_vector(&w, &message, v) == SL_EDIVERGED, "%s: %g at %zu went through",
                       describe(kinds + _i), bad[b], places[p]);
                v[places[p]] = kept;
            }
        memset(w.bytes, 0xA5, w.stride * sl_codec_parts(w.codec));
        ck_assert_int_eq(send_vector(&w, &message, v),
                         0); /* and what came before leaves no trace */
        float *got = floats(D), *want = floats(D);
        receive(&w, &message, 1, got);
        close_wire(&w);
        w = open_wire(kinds + _i, D, bytes);
        ck_assert_int_eq(send_vector(&w, &message, v), 0);
        receive(&w, &message, 1, want);
        ck_assert_mem_eq(got, want, D * sizeof *got);
        free(got);
        free(want);
        close_wire(&w);
    }
    free(v);
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

START_TEST(test_long_vector_not_finite) {
    enum { D = 300000 };
    const sl_compressor_config sign = {.kind = SL_COMPRESSOR_SCALED_SIGN};
    float *v = gaussian(D, 2);
    wire w = open_wire(&sign, D, PART_USUAL);
    for (size_t i = 7; i < D; i += D / 20) {
        const float kept = v[i];
        v[i] = i % 2 ? NAN : -INFINITY;
        ENSURE(send_vector(&w, &message, v) == SL_EDIVERGED, "%g at %zu went through", v[i], i);
        v[i] = kept;
    }
    free(v);
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

static int check_of(wire *w, uint32_t part, const void *bytes, size_t n) {
    return sl_decoder_check(w->decoder, &message, part, (sl_payload){bytes, n});
}

START_TEST(test_wrong_lengths_and_scales) {
    const sl_compressor_config *c = kinds + _i;
    const size_t d = 20003;
    wire w = open_wire(c, d, PART_SMALL);
    float *v = gaussian(d, 9);
    uint64_t room[PART_SMALL / 8 + 2];
    uint8_t *copy = (uint8_t *)room;
    const uint32_t bad[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0xBF800000, 0x80000000};
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    for (uint32_t p = 0; p < sl_codec_parts(w.codec); p++) {
        size_t from, count, n = w.parts[p].bytes;
        sl_codec_part_range(w.codec, p, &from, &count);
        memcpy(copy, w.parts[p].data, n);
        memset(copy + n, 0, 8);
        ck_assert_int_eq(check_of(&w, p, copy, n), 0);
        ck_assert_int_eq(check_of(&w, p, copy, n + 1), SL_EPROTO);
        ck_assert_int_eq(check_of(&w, p, copy, n - 1), SL_EPROTO);
        ck_assert_int_eq(check_of(&w, p, copy, 0), SL_EPROTO);
        size_t scales = n - (count * width_of(c) + 7) / 8;
        for (size_t s = 0; s < scales; s += 4)
            for (int b = 0; b < (c->kind == SL_COMPRESSOR_ONE_BIT ? 4 : 6); b++) {
                uint32_t kept;
                memcpy(&kept, copy + s, 4);
                memcpy(copy + s, bad + b, 4);
                ENSURE(check_of(&w, p, copy, n) == SL_EPROTO, "%s: scale %zu: %08x was taken",
                       describe(c), s / 4, bad[b]);
                memcpy(copy + s, &kept, 4);
            }
        unsigned used = count * width_of(c) % 8;
        for (unsigned b = used; used != 0 && b < 8; b++) {
            copy[n - 1] = (uint8_t)(copy[n - 1] ^ 1 << b);
            ck_assert_int_eq(check_of(&w, p, copy, n), SL_EPROTO);
            copy[n - 1] = (uint8_t)(copy[n - 1] ^ 1 << b);
        }
    }
    ck_assert_int_eq(check_of(&w, sl_codec_parts(w.codec), w.parts[0].data, w.parts[0].bytes),
                     SL_EPROTO);
    free(v);
    close_wire(&w);
}
END_TEST

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
    tcase_add_loop_test(loops, test_unbiased, 0, 9);
    tcase_add_loop_test(loops, test_contractive, 0, 12);
    tcase_add_loop_test(loops, test_every_contractive_one, 0, SL_COMPRESSOR_COUNT);
    tcase_add_loop_test(loops, test_zeros_stay_zero, 0, KINDS);
    tcase_add_loop_test(loops, test_one_element, 0, KINDS);
    tcase_add_loop_test(loops, test_far_exponents, 0, KINDS);
    tcase_add_loop_test(loops, test_not_finite_is_refused, 0, KINDS);
    tcase_add_loop_test(loops, test_stable, 0, 11);
    tcase_add_loop_test(loops, test_wrong_lengths_and_scales, 0, KINDS);
    tcase_add_loop_test(loops, test_wrong_codes, 0, 9);
    suite_add_tcase(suite, loops);
    ADD_TESTS(suite, "examples", test_sign_errors, test_clipped_errors, test_quality,
              test_out_of_range_is_refused, test_magnitudes_that_add_to_no_float,
              test_long_vector_not_finite, test_settings);
    return run_suite(suite);
}
