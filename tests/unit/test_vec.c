/* test_vec.c - sums of the CPU's vectors beside long double, and its memory; what checkvec cannot
 * see, which compares all operations bit by bit with loops in their order. */
#include <float.h>

#include "harness.h"
#include "starling/rng.h"
#include "starling/vec.h"

static const size_t sizes[] = {0, 1, 2, 15, 16, 17, 63, 1000, 2047, 2048, 2049, 6151};
enum { SIZES = sizeof sizes / sizeof *sizes };

static float *random_vector(uint32_t stream, size_t count) {
    static const float extremes[] = {0.0f, -0.0f, FLT_MIN / 8, -FLT_MIN, 1e30f, -1e30f, 1.0f};
    sl_rng rng = sl_rng_open(5, stream, count, SL_PURPOSE_INIT);
    float *v = sl_vec_cpu()->allocate(count);
    for (size_t i = 0; i < count; i++)
        v[i] = i % 13 == 0 ? extremes[sl_rng_below(&rng, 7)] : (float)sl_rng_normal(&rng);
    return v;
}

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
