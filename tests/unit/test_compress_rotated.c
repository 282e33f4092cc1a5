/* test_compress_rotated.c - drive, eden and quantizers behind a rotation: errors and means as the
 * papers have them, whatever the vector. test_kernels.c has their bytes. */
#include "messages.h"

enum { PIECE = 1 << 14 };

static sl_compressor_config rotated(unsigned bits, bool contractive) {
    return (sl_compressor_config){.kind = bits == 0 ? SL_COMPRESSOR_DRIVE : SL_COMPRESSOR_EDEN,
                                  .bits = bits,
                                  .contractive = contractive};
}

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

/* A peer's scale with which a block's sum would be infinite. */
START_LOOP_TEST(a_scale_beyond_sums_is_refused, CASES) {
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
