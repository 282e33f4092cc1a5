/* test_compress_magnitude.c - magnitude-dropping: what is kept against a second program, the mean
 * and the error over many messages, lengths, and what is refused. */
#include "sparse_wire.h"

static sl_compressor_config dropping_to(size_t k) {
    return (sl_compressor_config){.kind = SL_COMPRESSOR_MAGNITUDE_DROPPING, .k = k};
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

static float *spread(size_t d) {
    float *v = gaussian(d, 8);
    for (size_t i = 0; i < d; i += 10)
        v[i] *= 30; /* some are certain */
    return v;
}

START_TEST(what_is_kept_is_what_the_paper_says) {
    static const size_t dimensions[] = {3, 10, 1000, 1024, 1025, 30000};
    for (int s = 0; s < 6; s++) {
        const size_t d = dimensions[s], k = d / 3;
        float *v = spread(d), *got = round_trip(dropping_to(k), v, d, ONE_PART);
        const double lambda = lambda_of(v, d, (double)k);
        const sl_rng_key key = {a_message.seed, a_message.exchange, a_message.sender,
                                SL_PURPOSE_COMPRESS | a_message.stage << 8};
        for (size_t i = 0; i < d; i++) {
            uint32_t block[4];
            sl_rng_quick_block(&key, (uint32_t)(i / 4), block);
            const double p = fmin(1, lambda * fabs((double)v[i])), u = block[i % 4] * 0x1p-32;
            if (fabs(u - p) < 1e-4)
                continue; /* an edge: lambda is not quite the same */
            const double expected = u < p ? v[i] / p : 0;
            ck_assert_double_le(fabs(got[i] - expected), 1e-3 * fabs(expected));
        }
        release(got);
        release(v);
    }
}
END_TEST

/* Within five standard deviations. */
START_TEST(mean_error_and_length_are_as_promised) {
    enum { D = 300, K = 60, TRIALS = 4000 };
    float *v = spread(D);
    const double lambda = lambda_of(v, D, K), norm = sl_vec_cpu()->norm2_squared(v, D);
    const sl_compressor_config config = dropping_to(K);
    const sl_quality q = sl_compressor_quality(&config, D);
    double sum[D] = {0}, error = 0, expected = 0, bytes = 0, off = 0;
    for (size_t i = 0; i < D; i++)
        if (lambda * fabs((double)v[i]) < 1)
            expected += fabs((double)v[i]) / lambda - (double)v[i] * v[i];
    for (uint64_t t = 1; t <= TRIALS; t++) {
        pair p = open_pair(config, D, ONE_PART);
        sl_message m = a_message;
        m.exchange = t;
        float *got = vector_of(D);
        ck_assert_int_eq(encode_vector(&p, &m, v), 0);
        decode(&p, &m, 1, got);
        for (size_t i = 0; i < D; i++)
            sum[i] += (double)got[i] / TRIALS;
        error += sl_vec_cpu()->distance_squared(got, v, D) / TRIALS;
        bytes += (double)message_bytes(&p) / TRIALS;
        release(got);
        close_pair(&p);
    }
    for (size_t i = 0; i < D; i++)
        off += (sum[i] - v[i]) * (sum[i] - v[i]);
    ck_assert_msg(off < 1.5 * expected / TRIALS, "%g, of %g", off, expected / TRIALS);
    ck_assert_double_eq_tol(error, expected, 0.02 * expected);
    ck_assert(q.unbiased && q.omega == 4 && expected <= q.omega * norm);
    ck_assert_double_eq(sl_compressor_bits(&config, D), K * (32 + 9));
    ck_assert_double_eq_tol(8 * bytes, K * (32 + 9) + 3.5, 0.01 * K * 41);
    release(v);
}
END_TEST

START_TEST(all_are_kept_where_k_is_d) {
    const size_t d = 3000;
    float *v = spread(d), *got = round_trip(dropping_to(d), v, d, SMALL_PART);
    expect_equal(got, v, d);
    release(got);
    release(v);
    float *zeros = vector_of(d), *none = round_trip(dropping_to(7), zeros, d, SMALL_PART);
    expect_equal(none, zeros, d);
    release(none);
    release(zeros);
}
END_TEST

static int check_bytes(pair *p, const void *from, size_t bytes) {
    uint64_t *exact = malloc(bytes + 1); /* a sanitizer sees what is read behind it */
    memcpy(exact, from, bytes);
    const int result = sl_decoder_check(p->decoder, &a_message, 0, (sl_payload){exact, bytes});
    free(exact);
    return result;
}

START_TEST(a_wrong_payload_is_refused) {
    enum { D = 100 };
    struct entries {
        float values[2];
        uint16_t indices; /* two of seven bits */
    } good = {{1, 2}, 99 << 7 | 5}, bad[] = {{{1, NAN}, 99 << 7 | 5},
                                             {{1, 2}, 100 << 7 | 5},
                                             {{1, 2}, 5 << 7 | 99},
                                             {{1, 2}, 5 << 7 | 5},
                                             {{1, 2}, 0x8000 | 99 << 7 | 5}};
    pair p = open_pair(dropping_to(10), D, ONE_PART);
    ck_assert_int_eq(check_bytes(&p, &good, 10), 0);
    ck_assert_int_eq(check_bytes(&p, &good, 0), 0);
    for (size_t bytes = 1; bytes < 10; bytes++) /* 5 are one entry, with index 0 */
        ck_assert_msg(check_bytes(&p, &good, bytes) == (bytes == 5 ? 0 : SL_EPROTO), "%zu bytes",
                      bytes);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(check_bytes(&p, &bad[i], 10), SL_EPROTO);
    close_pair(&p);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_magnitude");
    ADD_TESTS(suite, "values", what_is_kept_is_what_the_paper_says, all_are_kept_where_k_is_d);
    ADD_TESTS(suite, "promises", mean_error_and_length_are_as_promised);
    ADD_TESTS(suite, "refused", a_wrong_payload_is_refused);
    return run_suite(suite);
}
