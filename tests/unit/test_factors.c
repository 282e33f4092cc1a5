/* test_factors.c - factors of matrices: where they are in their vectors, their products, and
 * columns that become orthonormal, compared with double precision. */
#include <math.h>
#include <string.h>

#include "algorithm/lowrank/factors.h"
#include "harness.h"
#include "starling/rng.h"

enum { ROWS_MAX = 70, COLUMNS_MAX = 70, RANK_MAX = 5 };

static float matrix[ROWS_MAX * COLUMNS_MAX], out[ROWS_MAX * COLUMNS_MAX];
static float p[ROWS_MAX * RANK_MAX], q[COLUMNS_MAX * RANK_MAX];

static void draw(float *v, size_t count, uint32_t what) {
    sl_rng rng = sl_rng_open(7, what, 1, SL_PURPOSE_DATA);
    for (size_t i = 0; i < count; i++)
        v[i] = (float)sl_rng_normal(&rng);
}

static sl_matrix of(size_t rows, size_t columns, size_t rank) {
    return (sl_matrix){.rows = rows, .columns = columns, .rank = rank};
}

START_TEST(factors_stand_one_behind_the_other) {
    static const size_t ends[] = {60, 65, 77, 117}, rows[] = {6, 1, 3, 4};
    const sl_shapes shapes = {117, ends, rows, 4};
    static const struct {
        size_t from, p, p_length, q, q_length;
    } want[] = {{0, 0, 12, 0, 20}, {60, 12, 5, 20, 0}, {65, 17, 12, 20, 0}, {77, 29, 8, 20, 20}};
    sl_matrix m = {.rank = 2};
    for (size_t i = 0; i < 4; i++) {
        ck_assert(sl_matrix_next(&m, &shapes));
        ck_assert_uint_eq(m.from, want[i].from);
        ck_assert_uint_eq(m.rows, rows[i]);
        ck_assert_uint_eq(m.p, want[i].p);
        ck_assert_uint_eq(m.p_length, want[i].p_length);
        ck_assert_uint_eq(m.q, want[i].q);
        ck_assert_uint_eq(m.q_length, want[i].q_length);
    }
    ck_assert(!sl_matrix_next(&m, &shapes));
    const sl_algorithm_config config = {.rank = 2};
    ck_assert_uint_eq(sl_factor_p_length(&config, &shapes), 37);
    ck_assert_uint_eq(sl_factor_q_length(&config, &shapes), 40);
}
END_TEST

START_TEST(a_vector_without_tensors_is_whole) {
    const sl_shapes shapes = {.dimension = 9};
    const sl_algorithm_config config = {.rank = 1};
    ck_assert_uint_eq(sl_factor_p_length(&config, &shapes), 9);
    ck_assert_uint_eq(sl_factor_q_length(&config, &shapes), 0);
}
END_TEST

static void check_products(size_t rows, size_t columns, size_t rank) {
    const sl_matrix m = of(rows, columns, rank);
    draw(matrix, rows * columns, 1);
    draw(p, rows * rank, 2);
    draw(q, columns * rank, 3);
    sl_factor_expand(out, &m, p, q);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            double sum = 0;
            for (size_t c = 0; c < rank; c++)
                sum += (double)p[c * rows + i] * (double)q[c * columns + j];
            ck_assert_double_eq_tol(out[i * columns + j], sum, 1e-5);
        }
    memcpy(out, matrix, rows * columns * sizeof *out);
    sl_factor_add(out, &m, p, q, -0.5f);
    for (size_t i = 0; i < rows * columns; i++) {
        double sum = matrix[i];
        for (size_t c = 0; c < rank; c++)
            sum -= 0.5 * (double)p[c * rows + i / columns] * (double)q[c * columns + i % columns];
        ck_assert_double_eq_tol(out[i], sum, 1e-5);
    }
    sl_factor_left(out, &m, matrix, q);
    for (size_t k = 0; k < rows * rank; k++) {
        double sum = 0;
        for (size_t j = 0; j < columns; j++)
            sum += (double)matrix[k % rows * columns + j] * (double)q[k / rows * columns + j];
        ck_assert_double_eq_tol(out[k], sum, 1e-4);
    }
    sl_factor_right(out, &m, matrix, p);
    for (size_t k = 0; k < columns * rank; k++) {
        double sum = 0;
        for (size_t i = 0; i < rows; i++)
            sum += (double)matrix[i * columns + k % columns] * (double)p[k / columns * rows + i];
        ck_assert_double_eq_tol(out[k], sum, 1e-4);
    }
}

START_TEST(products_are_those_of_double_precision) {
    static const size_t sizes[] = {1, 2, 3, 4, 5, 15, 16, 17, 33, 70};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < SIZES; j++)
            for (size_t rank = 1; rank <= RANK_MAX; rank++)
                check_products(sizes[i], sizes[j], rank);
}
END_TEST

static double product(size_t rows, size_t a, size_t b) {
    double sum = 0;
    for (size_t i = 0; i < rows; i++)
        sum += (double)p[a * rows + i] * (double)p[b * rows + i];
    return sum;
}

START_TEST(columns_become_orthonormal) {
    const size_t rows = 50;
    const sl_matrix m = of(rows, 1, RANK_MAX);
    draw(p, rows * RANK_MAX, 4);
    for (size_t i = 0; i < rows; i++) /* the second is nearly the first */
        p[rows + i] = p[i] + 1e-4f * p[rows + i];
    sl_factor_orthogonalize(p, &m, rows);
    for (size_t a = 0; a < RANK_MAX; a++)
        for (size_t b = 0; b <= a; b++)
            ck_assert_double_eq_tol(product(rows, a, b), a == b, 1e-6);
}
END_TEST

START_TEST(a_column_that_depends_on_others_becomes_0) {
    const size_t rows = 50;
    const sl_matrix m = of(rows, 1, 4);
    draw(p, rows * 4, 5);
    for (size_t i = 0; i < rows; i++) {
        p[rows + i] = 3 * p[i];
        p[2 * rows + i] = 0;
    }
    sl_factor_orthogonalize(p, &m, rows);
    for (size_t c = 0; c < 4; c++)
        ck_assert_double_eq_tol(product(rows, c, c), c == 0 || c == 3, 1e-6);
    ck_assert_double_eq_tol(product(rows, 0, 3), 0, 1e-6);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("factors");
    ADD_TESTS(suite, "factors", factors_stand_one_behind_the_other,
              a_vector_without_tensors_is_whole, products_are_those_of_double_precision,
              columns_become_orthonormal, a_column_that_depends_on_others_becomes_0);
    return run_suite(suite);
}
