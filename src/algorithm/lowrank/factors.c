/* factors.c - see factors.h. */
#include <math.h>
#include <string.h>

#include "algorithm/lowrank/factors.h"
#include "base/kernels.h"

enum { LANES = 16, ROWS = 4, WORDS_OF_A_NORMAL = 4 };

/* A column of which less than this is left has nothing but rounding in it. */
static const double least_left = 1e-6;

/* ---- where they are ---- */

static bool is_factored(const sl_matrix *m) {
    const size_t longer = m->rows > m->columns ? m->rows : m->columns,
                 sent = m->takes_turns ? longer : m->rows + m->columns;
    return m->rows > 1 && m->columns > 1 && sent * m->rank <= m->rows * m->columns;
}

bool sl_matrix_next(sl_matrix *m, const sl_shapes *shapes) {
    if (m->number == (shapes->ends != NULL ? shapes->count : 1))
        return false;
    const size_t end = shapes->ends != NULL ? shapes->ends[m->number] : shapes->dimension;
    m->from += m->rows * m->columns;
    m->p += m->p_length;
    m->q += m->q_length;
    m->rows = shapes->rows != NULL ? shapes->rows[m->number] : 1;
    m->columns = (end - m->from) / m->rows;
    m->factored = is_factored(m);
    m->p_length = m->factored ? m->rows * m->rank : m->rows * m->columns;
    m->q_length = m->factored ? m->columns * m->rank : m->takes_turns ? m->p_length : 0;
    m->number++;
    return true;
}

static sl_matrix last(const sl_algorithm_config *config, const sl_shapes *shapes,
                      bool takes_turns) {
    sl_matrix m = {.rank = config->rank, .takes_turns = takes_turns};
    while (sl_matrix_next(&m, shapes))
        ;
    return m;
}

size_t sl_factor_p_length(const sl_algorithm_config *config, const sl_shapes *shapes) {
    const sl_matrix m = last(config, shapes, false);
    return m.p + m.p_length;
}

size_t sl_factor_q_length(const sl_algorithm_config *config, const sl_shapes *shapes) {
    const sl_matrix m = last(config, shapes, false);
    return m.q + m.q_length;
}

size_t sl_factor_p_turn(const sl_algorithm_config *config, const sl_shapes *shapes) {
    const sl_matrix m = last(config, shapes, true);
    return m.p + m.p_length;
}

size_t sl_factor_q_turn(const sl_algorithm_config *config, const sl_shapes *shapes) {
    const sl_matrix m = last(config, shapes, true);
    return m.q + m.q_length;
}

static int check_rank(const sl_algorithm_config *config, const sl_shapes *shapes, sl_error *error) {
    size_t most = 0;
    for (sl_matrix m = {.rank = config->rank}; sl_matrix_next(&m, shapes);) {
        const size_t least = m.rows < m.columns ? m.rows : m.columns;
        most = least > most ? least : most;
    }
    if (most < 2)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.name: \"%s\" factors matrices, and this model has none; a "
                       "quadratic's is model.matrix, a session's are tensors of two axes or more",
                       config->name);
    if (config->rank < 1 || config->rank > most)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.rank: %u is no rank of a matrix of this model; it must be from 1 "
                       "to %zu",
                       config->rank, most);
    return 0;
}

static int check(const sl_algorithm_config *config, bool takes_turns, const sl_shapes *shapes,
                 sl_error *error) {
    const int result = check_rank(config, shapes, error);
    if (result != 0)
        return result;
    const sl_number_rows *start = &config->start;
    size_t rows = 0;
    for (sl_matrix m = {.rank = config->rank, .takes_turns = takes_turns};
         sl_matrix_next(&m, shapes);)
        rows += m.factored ? m.columns : 0;
    if (start->rows == 0 || rows == 0 || (start->rows == rows && start->columns == config->rank))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.start: has %zu rows of %zu numbers; it must have %zu, one for each "
                   "column of each matrix that is factored, of algorithm.rank %u",
                   start->rows, start->columns, rows, config->rank);
}

int sl_factor_check_both(const sl_algorithm_config *config, const sl_shapes *shapes,
                         sl_error *error) {
    return check(config, false, shapes, error);
}

int sl_factor_check_turns(const sl_algorithm_config *config, const sl_shapes *shapes,
                          sl_error *error) {
    return check(config, true, shapes, error);
}

/* ---- first ones ---- */

void sl_factor_draw(float *columns, const sl_matrix *m, size_t length, sl_rng_key key, size_t at) {
    for (size_t c = 0; c < m->rank; c++, columns += length, at += length) {
        sl_rng rng = {.key = key, .next = WORDS_OF_A_NORMAL * at};
        size_t zeros = 0;
        while (zeros < length && columns[zeros] == 0)
            zeros++;
        for (size_t k = 0; zeros == length && k < length; k++)
            columns[k] = (float)sl_rng_normal(&rng);
    }
}

void sl_factor_start(float *q, const sl_state *s, sl_matrix m) {
    const double *row = s->config->start.values;
    while (s->config->start.rows > 0 && sl_matrix_next(&m, &s->shapes))
        for (size_t k = 0; m.factored && k < m.columns; k++, row += m.rank)
            for (size_t c = 0; c < m.rank; c++)
                q[m.q + c * m.columns + k] = (float)row[c];
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

void sl_factor_add(float *matrix, const sl_matrix *m, const float *p, const float *q,
                   float factor) {
    for (size_t i = 0; i < m->rows; i++)
        for (size_t c = 0; c < m->rank; c++)
            add_row(matrix + i * m->columns, q + c * m->columns, factor * p[c * m->rows + i],
                    m->columns);
}

void sl_factor_expand(float *matrix, const sl_matrix *m, const float *p, const float *q) {
    memset(matrix, 0, m->rows * m->columns * sizeof *matrix);
    sl_factor_add(matrix, m, p, q, 1);
}

/* ---- orthogonal columns ---- */

static double dot(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void remove_earlier(float *columns, size_t length, size_t column) {
    float *v = columns + column * length, *earlier = columns;
    for (; earlier < v; earlier += length)
        add_row(v, earlier, (float)-dot(v, earlier, length), length);
}

/* Twice: what is left of a column may be little, and then its first remainder is not orthogonal. */
void sl_factor_orthogonalize(float *columns, const sl_matrix *m, size_t length) {
    for (size_t c = 0; c < m->rank; c++) {
        float *v = columns + c * length;
        const double before = sqrt(dot(v, v, length));
        remove_earlier(columns, length, c);
        for (int twice = 0; twice < 2; twice++) {
            const double left = sqrt(dot(v, v, length));
            const float scale = left > least_left * before ? (float)(1 / left) : 0;
            for (size_t i = 0; i < length; i++)
                v[i] *= scale;
            if (twice == 0)
                remove_earlier(columns, length, c);
        }
    }
}
