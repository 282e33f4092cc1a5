/* test_compress_rotated.c - drive and eden: against a second implementation in double precision,
 * with the definition of Walsh's matrix; errors and means as the papers have them. Quantizers
 * behind a rotation: their messages are those of the rotated vector, what is decoded is turned
 * back, and errors no longer depend on the vector. */
#include "compress/quantization/rotation.h"
#include "messages.h"

enum { PIECE = 1 << 14 };

static sl_compressor_config rotated(unsigned bits, bool contractive) {
    return (sl_compressor_config){.kind = bits == 0 ? SL_COMPRESSOR_DRIVE : SL_COMPRESSOR_EDEN,
                                  .bits = bits,
                                  .contractive = contractive};
}

/* ---- a second implementation ---- */

static double sign_of(const sl_message *m, size_t i) {
    const sl_rng_key key = {m->seed, m->exchange, m->sender, SL_PURPOSE_COMPRESS | m->stage << 8};
    uint32_t block[4];
    sl_rng_quick_block(&key, (uint32_t)(i / 128), block);
    return block[i % 128 / 32] >> i % 32 & 1 ? -1 : 1;
}

/* Element (i, j) of Walsh's matrix is -1 to the number of ones that i and j have in common. */
static void multiply(double *v, size_t n) {
    double *out = calloc(n, sizeof *out);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            out[i] += (__builtin_popcountll(i & j) % 2 ? -1 : 1) * v[j] / sqrt((double)n);
    memcpy(v, out, n * sizeof *v);
    free(out);
}

static const double halves[4][8] = {
    {0.7978845608},
    {0.4527800398, 1.5104176087},
    {0.2450941789, 0.7560052809, 1.3439093, 2.1519457},
    {0.1283950, 0.3880483, 0.6567591, 0.9423405, 1.2562312, 1.6180464, 2.0690172, 2.7325896}};

static double nearest(double x, unsigned bits) {
    double best = 0, distance = INFINITY;
    for (int k = 0; k < 1 << (bits - 1); k++)
        if (fabs(fabs(x) - halves[bits - 1][k]) < distance) {
            distance = fabs(fabs(x) - halves[bits - 1][k]);
            best = halves[bits - 1][k];
        }
    return x < 0 ? -best : best;
}

static void expect_block(double *v, size_t n, unsigned bits, bool contractive) {
    double norm = 0, with = 0, own = 0;
    multiply(v, n);
    for (size_t i = 0; i < n; i++)
        norm += v[i] * v[i];
    for (size_t i = 0; i < n; i++) {
        const double q = nearest(v[i] * sqrt((double)n / norm), bits);
        with += v[i] * q;
        own += q * q;
    }
    for (size_t i = 0; i < n; i++)
        v[i] =
            nearest(v[i] * sqrt((double)n / norm), bits) * (contractive ? with / own : norm / with);
    multiply(v, n);
}

static double *expected(const float *v, size_t d, unsigned bits, bool contractive) {
    double *out = calloc(d, sizeof *out);
    for (size_t i = 0; i < d; i++)
        out[i] = v[i] * sign_of(&message, i);
    for (size_t at = 0, n; at < d; at += n) {
        for (n = PIECE; n > d - at;)
            n /= 2;
        expect_block(out + at, n, bits == 0 ? 1 : bits, contractive);
    }
    for (size_t i = 0; i < d; i++)
        out[i] *= sign_of(&message, i);
    return out;
}

START_TEST(what_is_decoded_is_what_the_papers_say) {
    static const size_t dimensions[] = {1,  2,   3,    7,    8,    31,   32,
                                        50, 100, 1023, 1024, 1500, 4096, 5003};
    for (size_t at = 0; at < sizeof dimensions / sizeof *dimensions; at++)
        for (unsigned bits = 0; bits <= 4; bits++) {
            const size_t d = dimensions[at];
            const sl_compressor_config config = rotated(bits, _i);
            float *v = gaussian(d, 2), *got = through(&config, v, d, PART_ALL);
            double *want = expected(v, d, bits, _i), error = 0, norm = 0;
            for (size_t i = 0; i < d; i++) {
                error += (got[i] - want[i]) * (got[i] - want[i]);
                norm += want[i] * want[i];
            }
            ck_assert_msg(error <= 1e-9 * norm, "d %zu, %u bits: %g of %g", d, bits, error, norm);
            free(want);
            release(got);
            release(v);
        }
}
END_TEST

/* ---- errors ---- */

static double error_of(const sl_compressor_config *config, const float *v, size_t d, int messages,
                       double *mean) {
    return mean_error(config, v, d, messages, mean, NULL) / sl_vec_cpu()->norm2_squared(v, d);
}

START_TEST(errors_of_dense_vectors_are_those_of_the_points) {
    static const double unbiased[] = {0.5708, 0.1331, 0.03578, 0.009592},
                        contractive[] = {0.3634, 0.1175, 0.03455, 0.009501};
    const size_t d = 2 * PIECE;
    float *v = gaussian(d, 5);
    for (size_t i = 0; i < d; i++)
        v[i] *= i % 3 == 0 ? 5 : 0.1f; /* anything but normal */
    for (unsigned bits = 1; bits <= 4; bits++)
        for (int c = 0; c < 2; c++) {
            const sl_compressor_config config = rotated(bits, c);
            const double want = (c ? contractive : unbiased)[bits - 1],
                         got = error_of(&config, v, d, 1, NULL);
            ck_assert_msg(fabs(got - want) < 0.04 * want, "%u bits: %g, not %g", bits, got, want);
            const sl_quality q = sl_compressor_quality(&config, d);
            ck_assert(q.unbiased == !c && q.is_contractive == (c || bits > 1));
            ck_assert(c ? q.delta <= 1 - got && fabs(q.usual_delta - 1 + want) < 1e-4
                        : q.omega >= want - 1e-4);
        }
    const sl_compressor_config one = rotated(1, false), drive = rotated(0, false);
    ck_assert_double_eq(error_of(&one, v, d, 1, NULL), error_of(&drive, v, d, 1, NULL));
    release(v);
}
END_TEST

START_TEST(errors_of_spikes_are_known) {
    const size_t d = 1024;
    float *v = floats(d);
    const sl_compressor_config unbiased = rotated(0, false), contractive = rotated(0, true);
    v[17] = -3;
    ck_assert_double_le(error_of(&unbiased, v, d, 1, NULL), 1e-10);
    ck_assert_double_le(error_of(&contractive, v, d, 1, NULL), 1e-10);
    v[900] = 3;
    ck_assert_double_eq_tol(error_of(&unbiased, v, d, 1, NULL), 1, 1e-5);
    ck_assert_double_eq_tol(error_of(&contractive, v, d, 1, NULL), 0.5, 1e-5);
    release(v);
}
END_TEST

/* Within five standard errors of each element, and of the mean of all. */
START_TEST(the_mean_over_rotations_is_the_vector) {
    enum { D = 256, TRIALS = 3000 };
    float *v = gaussian(D, 6);
    for (unsigned bits = 0; bits <= 2; bits++) {
        const sl_compressor_config config = rotated(bits, false);
        double mean[D], off = 0;
        const double error = error_of(&config, v, D, TRIALS, mean);
        for (size_t i = 0; i < D; i++)
            off += (mean[i] - v[i]) * (mean[i] - v[i]);
        off /= sl_vec_cpu()->norm2_squared(v, D);
        ck_assert_msg(off < 1.5 * error / TRIALS, "%u bits: %g, of %g", bits, off, error / TRIALS);
    }
    release(v);
}
END_TEST

/* ---- quantizers behind a rotation ---- */

/* The case's rotated form, or the quantizer alone. */
static sl_compressor_config coded(int i, bool is_rotated) {
    sl_compressor_config all[] = {
        {.kind = SL_COMPRESSOR_QSGD, .levels = 3, .bucket = 512},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 60, .bucket = 1000, .coding = SL_ENTROPY_HUFFMAN},
        {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 256},
    };
    sl_compressor_config c = all[i];
    if (is_rotated)
        c.kind = c.kind == SL_COMPRESSOR_QSGD ? SL_COMPRESSOR_ROTATED_QSGD
                                              : SL_COMPRESSOR_ROTATED_TERNGRAD;
    return c;
}
enum { CASES = 4 };

/* Signs of a stream of its own, then H over the root of each block; forth, or back. */
static void rotate(float *v, size_t d, bool forth) {
    const sl_rng_key key = {message.seed, message.exchange, message.sender,
                            SL_PURPOSE_ROTATE | message.stage << 8};
    for (size_t at = 0, n; at < d; at += n) {
        n = d - at < ROTATION_PIECE ? d - at : ROTATION_PIECE;
        if (forth)
            sl_rotation_signs(&key, at, v + at, n);
        for (size_t i = 0, block; i < n; i += block) {
            block = sl_rotation_block(n - i);
            sl_rotation_hadamard(v + at + i, block);
            for (size_t k = 0; k < block; k++)
                v[at + i + k] *= 1 / sqrtf((float)block);
        }
        if (!forth)
            sl_rotation_signs(&key, at, v + at, n);
    }
}

START_TEST(messages_are_those_of_the_rotated_vector) {
    static const size_t dimensions[] = {1, 3, 1000, 16384, 40001};
    const sl_compressor_config rotated = coded(_i, true), alone = coded(_i, false);
    for (int s = 0; s < 5; s++) {
        const size_t d = dimensions[s];
        float *v = gaussian(d, 3), *u = gaussian(d, 3);
        rotate(u, d, true);
        wire p = open_wire(&rotated, d, PART_ALL), plain = open_wire(&alone, d, PART_ALL);
        ck_assert_int_eq(send_vector(&p, &message, v), 0);
        ck_assert_int_eq(send_vector(&plain, &message, u), 0);
        ck_assert_uint_eq(message_bytes(&p), message_bytes(&plain));
        for (uint32_t part = 0; part < sl_codec_parts(p.codec); part++)
            ck_assert_mem_eq(p.parts[part].data, plain.parts[part].data, p.parts[part].bytes);
        float *got = floats(d), *expected = floats(d);
        receive(&p, &message, 0.5f, got);
        receive(&plain, &message, 0.5f, expected);
        rotate(expected, d, false);
        expect_equal(got, expected, d);
        ck_assert_double_eq(sl_compressor_bits(&rotated, d), sl_compressor_bits(&alone, d));
        close_wire(&p);
        close_wire(&plain);
        release(v);
        release(u);
        release(got);
        release(expected);
    }
}
END_TEST

/* A peer's scale with which a block's sum would be infinite. */
START_TEST(a_scale_beyond_sums_is_refused) {
    const sl_compressor_config rotated = coded(_i, true);
    float *v = gaussian(1000, 3), *got = floats(1000);
    wire p = open_wire(&rotated, 1000, PART_ALL);
    ck_assert_int_eq(send_vector(&p, &message, v), 0);
    uint8_t *bytes = (uint8_t *)p.parts[0].data;
    for (int power = 90; power <= 127 && rotated.coding == SL_ENTROPY_NONE; power++) {
        const float scale = ldexpf(1, power);
        memcpy(bytes, &scale, sizeof scale);
        const int result = take_part(&p, &message, 0, p.parts[0], 1, got);
        ck_assert_int_eq(result, power < 100 ? 0 : SL_EPROTO);
        for (size_t k = 0; k < 1000; k++)
            ck_assert(isfinite(got[k]));
    }
    close_wire(&p);
    release(v);
    release(got);
}
END_TEST

/* With the largest magnitude as scale, one large element takes the levels of all others. Rotated,
 * the vector errs as a normal one does. */
START_TEST(a_spike_costs_no_more_than_a_normal_vector) {
    enum { D = 16384, TRIALS = 64 };
    sl_compressor_config config = coded(1, false), turned = coded(1, true);
    float *v = gaussian(D, 8);
    double *mean = calloc(D, sizeof *mean), apart = 0;
    const double normal = error_of(&turned, v, D, TRIALS, NULL);
    v[100] = 60; /* a fifth of the norm's square, and 15 times the others' largest */
    const double without = error_of(&config, v, D, TRIALS, NULL),
                 with = error_of(&turned, v, D, TRIALS, mean);
    ck_assert_double_lt(with, 1.1 * normal);
    ck_assert_double_gt(without, 5 * with);
    for (size_t i = 0; i < D; i++)
        apart += (mean[i] - v[i]) * (mean[i] - v[i]);
    ck_assert_double_lt(apart,
                        1.3 * with / TRIALS * (D + 3600)); /* unbiased: falls as 1 / messages */
    free(mean);
    release(v);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_rotated");
    add_loop(suite, what_is_decoded_is_what_the_papers_say, 0, 2);
    add_loop(suite, messages_are_those_of_the_rotated_vector, 0, CASES);
    add_loop(suite, a_scale_beyond_sums_is_refused, 0, CASES);
    ADD_TESTS(suite, "errors", errors_of_dense_vectors_are_those_of_the_points,
              errors_of_spikes_are_known, the_mean_over_rotations_is_the_vector,
              a_spike_costs_no_more_than_a_normal_vector);
    return run_suite(suite);
}
