/* test_compress_values.c - what is decoded against second programs that follow the definitions:
 * of vectors and parts of all lengths, a row for each compressor. */
#include "compress/quantization/grid.h"
#include "messages.h"

typedef struct vectors {
    const float *v, *fresh; /* fresh: of what reads two */
    size_t d;
} vectors;

/* Fills in what is decoded; NaN: either of two is right. Returns how far off that may be. */
typedef double program(const sl_compressor_config *c, const vectors *in, double *want);

static double largest(const float *v, size_t from, size_t end) {
    double most = 0;
    for (size_t i = from; i < end; i++)
        most = fmax(most, fabs((double)v[i]));
    return most;
}

static double three_lc(const sl_compressor_config *c, const vectors *in, double *want) {
    const float m = (float)largest(in->v, 0, in->d) * (float)c->multiplier;
    for (size_t i = 0; i < in->d; i++)
        want[i] = fabsf(in->v[i]) >= m / 2 ? copysignf(m, in->v[i]) : 0;
    return 0;
}

static double modular(const sl_compressor_config *c, const vectors *in, double *want) {
    const double codes = ldexp(1, (int)c->bits), b = 2 * c->theta * codes / (codes - 1),
                 step = b / codes;
    for (size_t i = 0; i < in->d; i++) {
        const double from = in->v[i] / step;
        double level = floor(from + 0.5);
        level -= codes * floor((level + codes / 2) / codes);
        want[i] = fabs(from - floor(from) - 0.5) < 1e-3 ? NAN : level * step;
    }
    return 0.01 * step;
}

/* The algorithm rounds alike. */
static double grid(const sl_compressor_config *c, const vectors *in, double *want) {
    const sl_grid g = sl_grid_of(c->bits, (float)largest(in->v, 0, in->d));
    for (size_t i = 0; i < in->d; i++) {
        float rounded;
        sl_grid_round(&g, &in->v[i], 1, &rounded);
        want[i] = rounded;
        ENSURE(fabs(want[i] - in->v[i]) <= 0.501 * g.step + 1e-7, "element %zu: %g for %g", i,
               rounded, in->v[i]);
    }
    return 0;
}

/* By the paper's loops. */
static double adacomp(const sl_compressor_config *c, const vectors *in, double *want) {
    double sum = 0;
    for (size_t at = 0; at < in->d; at += c->bin)
        sum += largest(in->v, at, at + c->bin < in->d ? at + c->bin : in->d);
    const float scale = (float)(sum / (double)((in->d + c->bin - 1) / c->bin));
    for (size_t at = 0; at < in->d; at += c->bin) {
        const size_t end = at + c->bin < in->d ? at + c->bin : in->d;
        const float most = (float)largest(in->v, at, end);
        for (size_t i = at; i < end; i++)
            want[i] = fabsf(in->v[i] + in->fresh[i]) >= most ? copysignf(scale, in->v[i]) : 0;
    }
    return 0;
}

static double nonzeros(const sl_compressor_config *c, const vectors *in, double *want) {
    for (size_t i = 0; i < in->d; i++)
        want[i] = in->v[i];
    return 0 * (double)c->kind;
}

static double strom(const sl_compressor_config *c, const vectors *in, double *want) {
    const double tau = c->threshold;
    for (size_t i = 0; i < in->d; i++)
        want[i] = in->v[i] >= tau ? tau : in->v[i] <= -tau ? -tau : 0;
    return 0;
}

static const sl_rng_key *key_of(const sl_message *m) {
    static sl_rng_key key;
    key = (sl_rng_key){m->seed, m->exchange, m->sender, SL_PURPOSE_COMPRESS | m->stage << 8};
    return &key;
}

/* The elements whose half words are small enough. */
static double random_dropping(const sl_compressor_config *c, const vectors *in, double *want) {
    for (size_t i = 0; i < in->d; i++) {
        uint32_t block[4];
        sl_rng_quick_block(key_of(&message), (uint32_t)(i / 8), block);
        const uint32_t half = block[i % 8 / 2] >> i % 2 * 16 & 0xFFFF;
        want[i] = half < 65536 * c->probability ? in->v[i] : 0;
    }
    return 0;
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

/* At an edge lambda is not quite the same. */
static double magnitude(const sl_compressor_config *c, const vectors *in, double *want) {
    const double share = round(c->fraction * (double)in->d), k = share < 1 ? 1 : share,
                 lambda = lambda_of(in->v, in->d, k);
    for (size_t i = 0; i < in->d; i++) {
        uint32_t block[4];
        sl_rng_quick_block(key_of(&message), (uint32_t)(i / 4), block);
        const double p = fmin(1, lambda * fabs((double)in->v[i])), u = block[i % 4] * 0x1p-32;
        want[i] = k == (double)in->d   ? in->v[i]
                  : fabs(u - p) < 1e-4 ? NAN
                  : u < p              ? in->v[i] / p
                                       : 0;
    }
    return 0;
}

typedef struct row {
    sl_compressor_config config;
    program *program;
    double relative; /* how far off what is decoded may be, of itself */
    size_t every;    /* 0: of normal vectors; else all elements but one in so many, times: */
    float others;
} row;

static const row rows[] = {
    {KIND(THREE_LC, .multiplier = (double)1.1f), three_lc, 0, 0, 0},
    {KIND(ADACOMP, .bin = 1), adacomp, 0, 0, 0},
    {KIND(ADACOMP, .bin = 2), adacomp, 0, 0, 0},
    {KIND(ADACOMP, .bin = 50), adacomp, 0, 0, 0},
    {KIND(ADACOMP, .bin = 64), adacomp, 0, 0, 0},
    {KIND(ADACOMP, .bin = 500), adacomp, 0, 0, 0},
    {KIND(ADACOMP, .bin = 1500), adacomp, 0, 0, 0},
    {KIND(NONZEROS), nonzeros, 0, 0, 0},
    {KIND(NONZEROS), nonzeros, 0, 2, 0},
    {KIND(NONZEROS), nonzeros, 0, 3, 0},
    {KIND(NONZEROS), nonzeros, 0, 100, 0},
    {KIND(NONZEROS), nonzeros, 0, 100000, 0},
    {KIND(STROM, .threshold = 1), strom, 0, 0, 0},
    {KIND(RANDOM_DROPPING, .probability = 0.25), random_dropping, 0, 0, 0},
    {KIND(MAGNITUDE_DROPPING, .fraction = 1.0 / 3), magnitude, 1e-3, 10, 1.0f / 30},
    {KIND(MAGNITUDE_DROPPING, .fraction = 1), magnitude, 0, 10, 1.0f / 30},
};
/* And modular and grid of all widths. */
enum {
    MODULAR_BITS = 24,
    GRID_BITS = 16,
    ROWS = LENGTH(rows),
    ALL = ROWS + MODULAR_BITS + GRID_BITS
};

static row row_at(int i) {
    if (i < ROWS)
        return rows[i];
    const uint32_t bits = (uint32_t)(i - ROWS) % MODULAR_BITS + 1;
    return i < ROWS + MODULAR_BITS
               ? (row){CONFIG(MODULAR, .bits = bits, .theta = 0.4), modular, 0x1p-24, 0, 0}
               : (row){CONFIG(GRID, .bits = bits), grid, 0, 0, 0};
}

static void compare(const row *r, size_t d) {
    float *v = gaussian(d, 2), *fresh = gaussian(d, 3);
    double *want = calloc(d, sizeof *want);
    const vectors in = {v, fresh, d};
    for (size_t i = 0; r->every > 0 && i < d; i++)
        v[i] *= i % r->every == r->every / 2 ? 1 : r->others;
    const double absolute = r->program(&r->config, &in, want);
    const sl_source source = {.vector = v,
                              .fresh = sl_compressor_reads_fresh(r->config.kind) ? fresh : NULL};
    EACH(size_t, bytes, PART_SMALL, 7000, PART_ALL) {
        float *got = through_of(&r->config, &source, d, *bytes);
        for (size_t i = 0; i < d; i++)
            ENSURE(isnan(want[i]) ||
                       fabs(got[i] - want[i]) <= absolute + r->relative * fabs(want[i]),
                   "%s, d %zu: element %zu is %a for %a, not %a", name_of(&r->config), d, i, got[i],
                   v[i], want[i]);
        release(got);
    }
    free(want);
    release(fresh);
    release(v);
}

/* Of groups, tails, bins and parts of every length. */
START_TEST(values_are_those_of_the_definition) {
    const row r = row_at(_i);
    EACH(size_t, d, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 49, 50, 51, 999, 1000, 1023, 1024, 1025, 5000,
         5119, 5120, 5121, 6143, 6145, 9999, 10241, 15360, 15361, 30000, 65536, 65537, 66561,
         163840, 163841, 200001)
    compare(&r, *d);
}
END_TEST

/* What lies far beyond the modulus is still a number. */
START_TEST(large_numbers_are_sent) {
    const float v[] = {3e38f, -3e38f, 1e30f, 1e20f, -1e12f};
    for (uint32_t bits = 1; bits <= MODULAR_BITS; bits++) {
        float *got = through(&CONFIG(MODULAR, .bits = bits, .theta = 1), v, 5, PART_ALL);
        for (int i = 0; i < 5; i++)
            ck_assert(fabsf(got[i]) <= 2);
        release(got);
    }
}
END_TEST

/* Of magnitude-dropping, within five standard deviations. */
START_TEST(mean_error_and_length_are_as_promised) {
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
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_values");
    add_loop(suite, values_are_those_of_the_definition, 0, ALL);
    ADD_TESTS(suite, "once", large_numbers_are_sent, mean_error_and_length_are_as_promised);
    return run_suite(suite);
}
