/* test_compress_marks.c - stc, sbc and pos-neg: what a sort gives, and the error of one vector. */
#include "messages.h"

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

/* ---- against a sort ---- */

typedef struct place {
    double value;
    size_t index;
} place;

static int downward(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static place *sorted(const float *v, size_t d, double (*of)(double)) {
    place *all = calloc(d, sizeof *all);
    for (size_t i = 0; i < d; i++)
        all[i] = (place){of(v[i]), i};
    qsort(all, d, sizeof *all, downward);
    return all;
}

static double same(double x) {
    return x;
}
static double negated(double x) {
    return -x;
}

static double mean_of(const place *all, size_t k) {
    double sum = 0;
    for (size_t i = 0; i < k; i++)
        sum += all[i].value;
    return sum / (double)k;
}

static void put(double *out, const place *all, size_t k, double value) {
    for (size_t i = 0; i < k; i++)
        out[all[i].index] = value;
}

static void expect_near(sl_compressor_kind kind, size_t k, const float *v, size_t d,
                        const double *expected) {
    float *got = through(&(sl_compressor_config){.kind = kind, .k = k}, v, d, PART_SMALL);
    for (size_t i = 0; i < d; i++)
        if (fabs(got[i] - expected[i]) > 1e-6 * fabs(expected[i]))
            ck_abort_msg("%s, d %zu, k %zu: element %zu is %g, not %g", sl_compressor_name(kind), d,
                         k, i, got[i], expected[i]);
    release(got);
}

/* Equal values would make the order matter; and one that is far off, a guess too high. */
static float *uneven(size_t d, int shape) {
    float *v = gaussian(d, (uint32_t)(30 + shape));
    for (size_t i = 0; i < d; i++)
        v[i] = shape == 1   ? fabsf(v[i]) + 1e-3f
               : shape == 2 ? -v[i] * v[i] * v[i]
               : shape == 3 ? v[i] * (i < d - d / 64 ? 1e-3f : 1)
                            : v[i] + 0.1f;
    return v;
}

static void compare_with_sorts(const float *v, size_t d, size_t k) {
    double *expected = calloc(d, sizeof *expected);
    place *large = sorted(v, d, fabs), *up = sorted(v, d, same), *down = sorted(v, d, negated);
    for (size_t i = 0; i < k; i++)
        expected[large[i].index] = v[large[i].index] < 0 ? -mean_of(large, k) : mean_of(large, k);
    expect_near(SL_COMPRESSOR_STC, k, v, d, expected);
    if (k <= (d + 1) / 2) {
        const double above = mean_of(up, k), below = mean_of(down, k);
        const size_t least = k < d - k ? k : d - k;
        memset(expected, 0, d * sizeof *expected);
        put(expected, above >= below ? up : down, k, above >= below ? above : -below);
        expect_near(SL_COMPRESSOR_SBC, k, v, d, expected);
        memset(expected, 0, d * sizeof *expected);
        put(expected, up, k, above);
        put(expected, down, least, least > 0 ? -mean_of(down, least) : 0);
        expect_near(SL_COMPRESSOR_POS_NEG, k, v, d, expected);
    }
    free(large);
    free(up);
    free(down);
    free(expected);
}

START_LOOP_TEST(marks_are_what_a_sort_gives, 4) {
    for (size_t d = 1; d <= 3000; d += d < 20 ? 1 : d / 2) {
        float *v = uneven(d, _i);
        for (size_t k = 1; k <= d; k += k / 2 + 1)
            compare_with_sorts(v, d, k);
        release(v);
    }
    const size_t d = (1 << 15) + 3;
    float *v = uneven(d, _i);
    compare_with_sorts(v, d, 327);
    compare_with_sorts(v, d, 12500);
    release(v);
}

/* ---- the error of one vector ---- */

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

int main(void) {
    return run_tests("compress_marks");
}
