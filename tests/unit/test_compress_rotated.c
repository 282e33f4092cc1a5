/* test_compress_rotated.c - drive and eden: against a second implementation in double precision,
 * with the definition of Walsh's matrix; exact sizes; errors and means as the papers have them. */
#include <float.h>

#include "sparse_wire.h"

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
        out[i] = v[i] * sign_of(&a_message, i);
    for (size_t at = 0, n; at < d; at += n) {
        for (n = PIECE; n > d - at;)
            n /= 2;
        expect_block(out + at, n, bits == 0 ? 1 : bits, contractive);
    }
    for (size_t i = 0; i < d; i++)
        out[i] *= sign_of(&a_message, i);
    return out;
}

START_TEST(what_is_decoded_is_what_the_papers_say) {
    static const size_t dimensions[] = {1,  2,   3,    7,    8,    31,   32,
                                        50, 100, 1023, 1024, 1500, 4096, 5003};
    for (size_t at = 0; at < sizeof dimensions / sizeof *dimensions; at++)
        for (unsigned bits = 0; bits <= 4; bits++) {
            const size_t d = dimensions[at];
            float *v = gaussian(d, 2), *got = round_trip(rotated(bits, _i), v, d, ONE_PART);
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

/* ---- sizes ---- */

START_TEST(parts_too_short_for_a_piece_are_refused) {
    sl_codec *codec = NULL;
    sl_error error;
    sl_compressor_config config = rotated(2, false);
    ck_assert_int_eq(sl_codec_open(&codec, &config, PIECE, 4096, &error), SL_EINVAL);
    ck_assert_str_eq(error.text, "transport.chunk_bytes: 4096: the parts of eden cannot be shorter "
                                 "than 4100");
    ck_assert_ptr_null(codec);
    config.bits = 5;
    ck_assert_int_eq(sl_compressor_check(&config, PIECE, &error), SL_EINVAL);
    ck_assert_str_eq(error.text, "algorithm.compressor.bits: 5: allowed are 1 to 4");
}
END_TEST

/* ---- errors ---- */

static double error_of(const sl_compressor_config *config, const float *v, size_t d,
                       uint64_t exchange, double *sum) {
    pair p = open_pair(*config, d, ONE_PART);
    sl_message m = a_message;
    m.exchange = exchange;
    ck_assert_int_eq(encode_vector(&p, &m, v), 0);
    float *decoded = vector_of(d);
    decode(&p, &m, 1, decoded);
    for (size_t i = 0; sum != NULL && i < d; i++)
        sum[i] += decoded[i];
    const double error =
        sl_vec_cpu()->distance_squared(decoded, v, d) / sl_vec_cpu()->norm2_squared(v, d);
    release(decoded);
    close_pair(&p);
    return error;
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
    ck_assert_double_eq(error_of(&one, v, d, 3, NULL), error_of(&drive, v, d, 3, NULL));
    release(v);
}
END_TEST

START_TEST(errors_of_spikes_are_known) {
    const size_t d = 1024;
    float *v = vector_of(d);
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
        double sum[D] = {0}, error = 0, off = 0;
        for (uint64_t t = 1; t <= TRIALS; t++)
            error += error_of(&config, v, D, t, sum) / TRIALS;
        for (size_t i = 0; i < D; i++)
            off += (sum[i] / TRIALS - v[i]) * (sum[i] / TRIALS - v[i]);
        off /= sl_vec_cpu()->norm2_squared(v, D);
        ck_assert_msg(off < 1.5 * error / TRIALS, "%u bits: %g, of %g", bits, off, error / TRIALS);
    }
    release(v);
}
END_TEST

/* ---- what is refused ---- */

/* Written down once: of every instruction set. */
static uint64_t hash(uint64_t h, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        h = (h ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return h;
}

START_TEST(bytes_are_the_same_on_every_processor) {
    static const uint64_t expected_hash[5] = {
        UINT64_C(0x99e60ec8e83807b9), UINT64_C(0xa76a2938ad086b58), UINT64_C(0x637e32335d0fde6e),
        UINT64_C(0x1a87a9a00b9da512), UINT64_C(0xa3cce68e3a4295aa)};
    const size_t d = 3 * PIECE + 1237;
    float *v = vector_of(d), *acc = vector_of(d);
    sl_rng rng = sl_rng_open(3, 1, 4, SL_PURPOSE_INIT);
    for (size_t i = 0; i < d; i++)
        v[i] = (float)((int32_t)sl_rng_u32(&rng) >> 8);
    pair p = open_pair(rotated((unsigned)_i, _i % 2), d, 1 << 16);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    decode(&p, &a_message, 0.3f, acc);
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (uint32_t part = 0; part < sl_codec_parts(p.codec); part++)
        h = hash(h, p.payloads[part].data, p.payloads[part].bytes);
    h = hash(h, acc, d * sizeof(float));
    ck_assert_msg(h == expected_hash[_i], "UINT64_C(0x%016llx),", (unsigned long long)h);
    close_pair(&p);
    release(v);
    release(acc);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_rotated");
    TCase *each = tcase_create("each");
    tcase_set_timeout(each, 120);
    tcase_add_loop_test(each, what_is_decoded_is_what_the_papers_say, 0, 2);
    tcase_add_loop_test(each, bytes_are_the_same_on_every_processor, 0, 5);
    suite_add_tcase(suite, each);
    ADD_TESTS(suite, "sizes", parts_too_short_for_a_piece_are_refused);
    ADD_TESTS(suite, "errors", errors_of_dense_vectors_are_those_of_the_points,
              errors_of_spikes_are_known, the_mean_over_rotations_is_the_vector);
    return run_suite(suite);
}
