/* factors.c - how long powersgd takes to make the factors of ResNet-50's matrices, beside the two
 * products alone on OpenBLAS.
 *
 * Of each matrix: M = g + e, P = M Q, Gram-Schmidt of P, Q = M^T P, e = M - P Q^T, as
 * src/algorithm/lowrank/powersgd.c does it; and P = M Q and Q = M^T P by cblas_sgemm, with the same
 * layouts. One thread each. They take turns; the table has medians.
 *
 *     factors [RANK [REPETITIONS]]
 */
#include <cblas.h>
#include <string.h>

#include "algorithm/lowrank/factors.h"
#include "bench.h"
#include "learner/layer_table.h"

enum { REPETITIONS_MAX = 999 };

typedef struct work {
    sl_shapes shapes;
    size_t rank;
    float *g, *e, *p, *q;
} work;

static void *take(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL)
        exit(1);
    return memory;
}

static void fill(float *v, size_t count) {
    for (size_t i = 0; i < count; i++)
        v[i] = (float)((i * 2654435761u >> 8) % 2048) / 1024 - 1;
}

/* Of the tensors that are factored: the others are sent whole by any way. */
static double ours(const work *w) {
    const double begin = bench_now_ms();
    for (sl_matrix m = {.rank = w->rank}; sl_matrix_next(&m, &w->shapes);) {
        float *e = w->e + m.from;
        const float *g = w->g + m.from;
        for (size_t k = 0; m.factored && k < m.rows * m.columns; k++)
            e[k] += g[k];
        if (m.factored)
            sl_factor_left(w->p + m.p, &m, e, w->q + m.q);
    }
    for (sl_matrix m = {.rank = w->rank}; sl_matrix_next(&m, &w->shapes);)
        if (m.factored) {
            sl_factor_orthogonalize(w->p + m.p, &m, m.rows);
            sl_factor_right(w->q + m.q, &m, w->e + m.from, w->p + m.p);
            sl_factor_add(w->e + m.from, &m, w->p + m.p, w->q + m.q, -1);
        }
    return bench_now_ms() - begin;
}

static double products(const work *w) {
    const double begin = bench_now_ms();
    for (sl_matrix m = {.rank = w->rank}; sl_matrix_next(&m, &w->shapes);) {
        const int rows = (int)m.rows, columns = (int)m.columns, rank = (int)w->rank;
        if (!m.factored)
            continue;
        /* P and Q stand column by column: P^T = Q^T M^T, Q^T = P^T M. */
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rank, rows, columns, 1, w->q + m.q,
                    columns, w->g + m.from, columns, 0, w->p + m.p, rows);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rank, columns, rows, 1, w->p + m.p,
                    rows, w->g + m.from, columns, 0, w->q + m.q, columns);
    }
    return bench_now_ms() - begin;
}

/* Of ours, the two products alone. */
static double our_products(const work *w) {
    const double begin = bench_now_ms();
    for (sl_matrix m = {.rank = w->rank}; sl_matrix_next(&m, &w->shapes);)
        if (m.factored) {
            sl_factor_left(w->p + m.p, &m, w->g + m.from, w->q + m.q);
            sl_factor_right(w->q + m.q, &m, w->g + m.from, w->p + m.p);
        }
    return bench_now_ms() - begin;
}

static sl_shapes shapes_of(const sl_layer_table *table) {
    size_t *ends = take(table->count, sizeof *ends), *rows = take(table->count, sizeof *rows);
    for (size_t i = 0, end = 0; i < table->count; i++) {
        ends[i] = end += sl_tensor_size(&table->tensors[i]);
        rows[i] = table->tensors[i].axes > 1 ? table->tensors[i].shape[0] : 1;
    }
    return (sl_shapes){table->dimension, ends, rows, table->count};
}

int main(int argc, char **argv) {
    static double times[3][REPETITIONS_MAX];
    const size_t asked = argc > 2 ? strtoul(argv[2], NULL, 10) : 21,
                 count = asked < 1 || asked > REPETITIONS_MAX ? REPETITIONS_MAX : asked;
    sl_layer_table table;
    sl_error error;
    if (sl_layer_table_open(&table, SL_LAYER_TABLE_RESNET50, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    openblas_set_num_threads(1);
    work w = {.shapes = shapes_of(&table), .rank = argc > 1 ? strtoul(argv[1], NULL, 10) : 2};
    const sl_algorithm_config config = {.rank = (uint32_t)w.rank};
    const size_t p = sl_factor_p_length(&config, &w.shapes),
                 q = sl_factor_q_length(&config, &w.shapes);
    float **vectors[] = {&w.g, &w.e, &w.p, &w.q};
    for (size_t i = 0; i < 4; i++) {
        *vectors[i] = take(table.dimension, sizeof(float));
        fill(*vectors[i], table.dimension);
    }
    for (size_t r = 0; r < count; r++) {
        times[0][r] = ours(&w);
        times[1][r] = our_products(&w);
        fill(w.q, q);
        times[2][r] = products(&w);
        fill(w.q, q);
    }
    const double all = bench_median(times[0], count), two = bench_median(times[1], count),
                 blas = bench_median(times[2], count);
    printf("ResNet-50, rank %zu: %zu numbers, of which P and Q have %zu\n"
           "  factors and error   %.1f ms, %.2f of OpenBLAS's products\n"
           "  the two products    %.1f ms, %.2f\n"
           "  OpenBLAS's          %.1f ms\n",
           w.rank, table.dimension, p + q, all, all / blas, two, two / blas, blas);
    sl_layer_table_close(&table);
    return 0;
}
