/* test_vec.c - every vector operation against a naive loop with the same rounding, on odd sizes and
 * extreme values. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "harness.h"
#include "starling/rng.h"
#include "starling/vec.h"

static const size_t sizes[] = {0, 1, 2, 15, 16, 17, 63, 1000, 2047, 2048, 2049, 6151};
enum { SIZES = sizeof sizes / sizeof *sizes, INPUTS = 9 };

static float *random_vector(uint32_t stream, size_t count) {
    static const float extremes[] = {0.0f, -0.0f, FLT_MIN / 8, -FLT_MIN, 1e30f, -1e30f, 1.0f};
    sl_rng rng = sl_rng_open(5, stream, count, SL_PURPOSE_INIT);
    float *v = sl_vec_cpu()->allocate(count);
    for (size_t i = 0; i < count; i++)
        v[i] = i % 13 == 0 ? extremes[sl_rng_below(&rng, 7)] : (float)sl_rng_normal(&rng);
    return v;
}

/* The reference's products must not be fused either. */
static float times(float a, float b) {
    volatile float product = a * b;
    return product;
}

static void expect_equal(const float *got, const float *expected, size_t count) {
    ck_assert_msg(memcmp(got, expected, count * sizeof(float)) == 0, "bits differ at size %zu",
                  count);
}

START_TEST(combine_sums_in_order_whatever_the_number_of_vectors) {
    const float w[INPUTS] = {0.3f, 0.1f, 0.2f, -0.05f, 0.15f, 0.07f, 0.11f, 0.013f, 0.107f};
    for (int s = 0; s < SIZES; s++)
        for (size_t k = 1; k <= INPUTS; k++)
            for (int in_place = 0; in_place < 2; in_place++) {
                size_t n = sizes[s];
                float *in[INPUTS], *expected = random_vector(99, n);
                for (uint32_t j = 0; j < k; j++)
                    in[j] = random_vector(j, n);
                for (size_t i = 0; i < n; i++) {
                    float sum = times(w[0], in[0][i]);
                    for (size_t j = 1; j < k; j++)
                        sum += times(w[j], in[j][i]);
                    expected[i] = sum;
                }
                float *out = in_place ? in[0] : random_vector(98, n);
                sl_vec_cpu()->combine(out, (const float *const *)in, w, k, n);
                expect_equal(out, expected, n);
                for (size_t j = in_place; j < k; j++)
                    sl_vec_cpu()->release(in[j]);
                sl_vec_cpu()->release(out);
                sl_vec_cpu()->release(expected);
            }
}
END_TEST

/* PyTorch's SGD, one element. */
static void reference_step(float *x, float x_decay, float g, float *m, const sl_sgd *s) {
    float d = g + times(s->weight_decay, x_decay);
    if (m != NULL) {
        *m = times(s->momentum, *m) + d;
        d = s->nesterov ? d + times(s->momentum, *m) : *m;
    }
    *x -= times(s->learning_rate, d);
}

static void check_step(const sl_sgd *sgd) {
    for (int s = 0; s < SIZES; s++) {
        size_t n = sizes[s];
        float *x = random_vector(1, n), *y = random_vector(1, n), *g = random_vector(2, n),
              *decay = random_vector(3, n);
        float *m = sgd->momentum > 0 ? random_vector(4, n) : NULL,
              *k = m ? random_vector(4, n) : NULL;
        sl_vec_cpu()->sgd_step(x, decay, g, m, sgd, n);
        for (size_t i = 0; i < n; i++)
            reference_step(&y[i], decay[i], g[i], k ? &k[i] : NULL, sgd);
        expect_equal(x, y, n);
        if (m)
            expect_equal(m, k, n);
        float *all[] = {x, y, g, decay, m, k};
        for (int i = 0; i < 6; i++)
            sl_vec_cpu()->release(all[i]);
    }
}

START_TEST(sgd_step_is_pytorchs) {
    check_step(&(sl_sgd){.learning_rate = 0.1f});
    check_step(&(sl_sgd){.learning_rate = 0.1f, .weight_decay = 1e-2f});
    check_step(&(sl_sgd){.learning_rate = 0.1f, .weight_decay = 1e-2f, .momentum = 0.9f});
    check_step(&(sl_sgd){
        .learning_rate = 0.1f, .weight_decay = 1e-2f, .momentum = 0.9f, .nesterov = true});
}
END_TEST

START_TEST(reductions_agree_with_long_double) {
    for (int s = 0; s < SIZES; s++) {
        size_t n = sizes[s];
        float *x = random_vector(1, n), *y = random_vector(2, n);
        long double norm = 0, distance = 0;
        for (size_t i = 0; i < n; i++) {
            norm += (long double)x[i] * x[i];
            distance += ((long double)x[i] - y[i]) * ((long double)x[i] - y[i]);
        }
        ck_assert_double_le(fabs(sl_vec_cpu()->norm2_squared(x, n) - (double)norm),
                            1e-14 * (double)norm);
        ck_assert_double_le(fabs(sl_vec_cpu()->distance_squared(x, y, n) - (double)distance),
                            1e-14 * (double)distance);
        sl_vec_cpu()->release(x);
        sl_vec_cpu()->release(y);
    }
}
END_TEST

START_TEST(allocated_vectors_are_aligned_and_zero) {
    for (int s = 0; s < SIZES; s++) {
        float *v = sl_vec_cpu()->allocate(sizes[s]);
        ck_assert_ptr_nonnull(v);
        ck_assert_uint_eq((uintptr_t)v % SL_VEC_ALIGNMENT, 0);
        ck_assert_double_eq(sl_vec_cpu()->norm2_squared(v, sizes[s]), 0);
        sl_vec_cpu()->release(v);
    }
    ck_assert_ptr_null(sl_vec_cpu()->allocate(SIZE_MAX / 2));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("vec");
    ADD_TESTS(suite, "cpu", combine_sums_in_order_whatever_the_number_of_vectors,
              sgd_step_is_pytorchs, reductions_agree_with_long_double,
              allocated_vectors_are_aligned_and_zero);
    return run_suite(suite);
}
