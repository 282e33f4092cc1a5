/* factors.c - see factors.h. */
#include <math.h>
#include <string.h>

#include "algorithm/factors.h"
#include "base/kernels.h"

enum { LANES = 16, ROWS = 4 };

/* A column of which less than this is left has nothing but rounding in it. */
static const double least_left = 1e-6;

/* ---- where they are ---- */

bool sl_matrix_next(sl_matrix *m, const sl_shapes *shapes, size_t rank, size_t index) {
    const size_t count = shapes->ends != NULL ? shapes->count : 1;
    if (index >= count)
        return false;
    const size_t from = m->from + m->rows * m->columns, p = m->p + m->p_length,
                 q = m->q + m->q_length,
                 end = shapes->ends != NULL ? shapes->ends[index] : shapes->dimension,
                 rows = shapes->rows != NULL ? shapes->rows[index] : 1,
                 columns = (end - from) / rows;
    const bool factored = (rows + columns) * rank <= rows * columns;
    *m = (sl_matrix){.from = from,
                     .rows = rows,
                     .columns = columns,
                     .rank = rank,
                     .p = p,
                     .p_length = factored ? rows * rank : rows * columns,
                     .q = q,
                     .q_length = factored ? columns * rank : 0};
    return true;
}

sl_factor_length sl_factor_lengths(const sl_shapes *shapes, size_t rank) {
    sl_matrix m = {0};
    for (size_t i = 0; sl_matrix_next(&m, shapes, rank, i); i++)
        ;
    return (sl_factor_length){m.p + m.p_length, m.q + m.q_length};
}

int sl_factor_check_rank(const sl_algorithm_config *config, const sl_shapes *shapes,
                         sl_error *error) {
    size_t most = 0;
    sl_matrix m = {0};
    for (size_t i = 0; sl_matrix_next(&m, shapes, config->rank, i); i++) {
        const size_t least = m.rows < m.columns ? m.rows : m.columns;
        most = least > most ? least : most;
    }
    if (most < 2)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.name: \"%s\" factors matrices, and this model has none; a "
                       "quadratic's is model.matrix, a session's are tensors of two axes or more",
                       config->name);
    if (config->rank < 1 || config->rank > most)
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.rank: %u is no rank of a matrix of this model; it must be from 1 to "
            "%zu",
            config->rank, most);
    return 0;
}

/* ---- products ---- */

/* out[i] of each row: its product with a column of Q. */
FOR_EACH_CPU(void, multiply,
             (float *p, const float *m, const float *q, size_t rows, size_t columns),
             (p, m, q, rows, columns)) {
    const size_t whole = columns / LANES * LANES;
    for (size_t i = 0; i < rows; i++, m += columns) {
        float lanes[LANES] = {0}, sum = 0;
        for (size_t j = 0; j < whole; j += LANES)
            for (size_t l = 0; l < LANES; l++)
                lanes[l] += m[j + l] * q[j + l];
        for (size_t j = whole; j < columns; j++)
            lanes[j - whole] += m[j] * q[j];
        for (size_t l = 0; l < LANES; l++)
            sum += lanes[l];
        p[i] = sum;
    }
}

/* q += p[0] row 0 + p[1] row 1 + ... of ROWS rows. */
FOR_EACH_CPU(void, add_rows, (float *restrict q, const float *m, const float *p, size_t columns),
             (q, m, p, columns)) {
    for (size_t j = 0; j < columns; j++)
        q[j] += (p[0] * m[j] + p[1] * m[columns + j]) +
                (p[2] * m[2 * columns + j] + p[3] * m[3 * columns + j]);
}

/* q += w row */
FOR_EACH_CPU(void, add_row, (float *restrict q, const float *m, float w, size_t columns),
             (q, m, w, columns)) {
    for (size_t j = 0; j < columns; j++)
        q[j] += w * m[j];
}

void sl_factor_left(float *p, const sl_matrix *m, const float *matrix, const float *q) {
    for (size_t i = 0; i < m->rows; i++) /* a row stays in cache for all columns of Q */
        for (size_t c = 0; c < m->rank; c++)
            multiply(p + c * m->rows + i, matrix + i * m->columns, q + c * m->columns, 1,
                     m->columns);
}

void sl_factor_right(float *q, const sl_matrix *m, const float *matrix, const float *p) {
    const size_t columns = m->columns, whole = m->rows / ROWS * ROWS;
    memset(q, 0, m->rank * columns * sizeof *q);
    for (size_t i = 0; i < whole; i += ROWS)
        for (size_t c = 0; c < m->rank; c++)
            add_rows(q + c * columns, matrix + i * columns, p + c * m->rows + i, columns);
    for (size_t i = whole; i < m->rows; i++)
        for (size_t c = 0; c < m->rank; c++)
            add_row(q + c * columns, matrix + i * columns, p[c * m->rows + i], columns);
}

static void add_products(float *matrix, const sl_matrix *m, const float *p, const float *q,
                         float sign) {
    for (size_t i = 0; i < m->rows; i++)
        for (size_t c = 0; c < m->rank; c++)
            add_row(matrix + i * m->columns, q + c * m->columns, sign * p[c * m->rows + i],
                    m->columns);
}

void sl_factor_expand(float *matrix, const sl_matrix *m, const float *p, const float *q) {
    memset(matrix, 0, m->rows * m->columns * sizeof *matrix);
    add_products(matrix, m, p, q, 1);
}

void sl_factor_remove(float *matrix, const sl_matrix *m, const float *p, const float *q) {
    add_products(matrix, m, p, q, -1);
}

/* ---- orthogonal columns ---- */

static double dot(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void remove_earlier(float *p, size_t rows, size_t column) {
    float *v = p + column * rows;
    for (size_t c = 0; c < column; c++)
        add_row(v, p + c * rows, (float)-dot(v, p + c * rows, rows), rows);
}

/* Twice: what is left of a column may be little, and then its first remainder is not orthogonal. */
void sl_factor_orthogonalize(float *p, const sl_matrix *m) {
    const size_t rows = m->rows;
    for (size_t c = 0; c < m->rank; c++) {
        float *v = p + c * rows;
        const double before = sqrt(dot(v, v, rows));
        remove_earlier(p, rows, c);
        for (int twice = 0; twice < 2; twice++) {
            const double left = sqrt(dot(v, v, rows));
            const float scale = left > least_left * before ? (float)(1 / left) : 0;
            for (size_t i = 0; i < rows; i++)
                v[i] *= scale;
            if (twice == 0)
                remove_earlier(p, rows, c);
        }
    }
}
