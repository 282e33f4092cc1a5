/* quadratic.c - least squares per node; see quadratic.h. */
#include "learner/quadratic.h"

#include <assert.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "learner/problem.h"

#define WHERE_MAX 96

/* An array of `count` elements, or an error that names it; count 0 takes any length from 1 to
 * `most`. */
static int check_array(const json_t *array, size_t count, size_t most, const char *name,
                       const char *where, sl_error *error) {
    if (!json_is_array(array))
        return sl_fail(error, SL_EFILE, "%s: %s is %s; it must be an array", name, where,
                       array == NULL ? "missing" : "no array");
    size_t found = json_array_size(array);
    if (count != 0 && found != count)
        return sl_fail(error, SL_EFILE, "%s: %s has %zu elements; it must have %zu", name, where,
                       found, count);
    if (count == 0 && (found < 1 || found > most))
        return sl_fail(error, SL_EFILE, "%s: %s has %zu elements; allowed are 1 to %zu", name,
                       where, found, most);
    return 0;
}

/* The `count` numbers of an array into out. */
static int read_numbers(double *out, const json_t *array, size_t count, const char *name,
                        const char *where, sl_error *error) {
    int result = check_array(array, count, count, name, where, error);
    for (size_t i = 0; result == 0 && i < count; i++) {
        const json_t *value = json_array_get(array, i);
        out[i] = json_number_value(value);
        if (!json_is_number(value) || !(fabs(out[i]) <= (double)FLT_MAX))
            result = sl_fail(error, SL_EFILE, "%s: %s[%zu] is not a finite float32 number", name,
                             where, i);
    }
    return result;
}

static int check_keys(const json_t *root, const char *name, sl_error *error) {
    const char *key;
    json_t *value;
    if (!json_is_object(root))
        return sl_fail(error, SL_EFILE,
                       "%s: is not a JSON object; it must have the keys A, b and x0", name);
    json_object_foreach((json_t *)root, key, value) {
        if (strcmp(key, "A") != 0 && strcmp(key, "b") != 0 && strcmp(key, "x0") != 0 &&
            strcmp(key, "comment") != 0)
            return sl_fail(
                error, SL_EFILE,
                "%s: unknown key \"%s\"; allowed are A [n][m][d], b [n][m], x0 [n][d] and comment",
                name, key);
    }
    return 0;
}

/* Reads n, m and d from A's outermost arrays. All matrices must have the same m and d. */
static int read_shape(sl_quadratic *q, const json_t *a, const char *name, uint32_t nodes,
                      sl_error *error) {
    int result = check_array(a, 0, SL_NODES_MAX, name, "A", error);
    if (result == 0 && json_array_size(a) != nodes)
        result = sl_fail(
            error, SL_EFILE,
            "%s: A is for %zu nodes, but the topology has %u; A needs one [m][d] matrix a node",
            name, json_array_size(a), nodes);
    const json_t *first = json_array_get(a, 0), *row = json_array_get(first, 0);
    if (result == 0)
        result = check_array(first, 0, SL_QUADRATIC_ROWS_MAX, name, "A[0]", error);
    if (result == 0)
        result = check_array(row, 0, SL_QUADRATIC_DIMENSION_MAX, name, "A[0][0]", error);
    if (result == 0)
        *q = (sl_quadratic){.nodes = nodes,
                            .rows = (uint32_t)json_array_size(first),
                            .dimension = (uint32_t)json_array_size(row)};
    return result;
}

/* Refuses shapes that need more numbers than the file has characters, before allocating. */
static int allocate(sl_quadratic *q, const sl_bytes *file, sl_error *error) {
    uint64_t vectors = (uint64_t)q->nodes * q->dimension;
    if (vectors > file->size || vectors * q->rows > file->size)
        return sl_fail(error, SL_EFILE,
                       "%s: A[0] is %u x %u, but the file is too short for %u such matrices",
                       file->name, q->rows, q->dimension, q->nodes);
    q->a = malloc((size_t)vectors * q->rows * sizeof *q->a);
    q->b = malloc((size_t)q->nodes * q->rows * sizeof *q->b);
    q->x0 = malloc((size_t)vectors * sizeof *q->x0);
    q->sum = malloc(q->dimension * sizeof *q->sum);
    if (q->a == NULL || q->b == NULL || q->x0 == NULL || q->sum == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for %u matrices of %u x %u", file->name,
                       q->nodes, q->rows, q->dimension);
    return 0;
}

static int read_node(sl_quadratic *q, const json_t *root, uint32_t node, const char *name,
                     sl_error *error) {
    char where[WHERE_MAX];
    size_t d = q->dimension, m = q->rows;
    const json_t *a = json_array_get(json_object_get(root, "A"), node);
    snprintf(where, sizeof where, "A[%u]", node);
    int result = check_array(a, m, m, name, where, error);
    for (size_t row = 0; result == 0 && row < m; row++) {
        snprintf(where, sizeof where, "A[%u][%zu]", node, row);
        result = read_numbers(q->a + (node * m + row) * d, json_array_get(a, row), d, name, where,
                              error);
    }
    snprintf(where, sizeof where, "b[%u]", node);
    if (result == 0)
        result = read_numbers(q->b + node * m, json_array_get(json_object_get(root, "b"), node), m,
                              name, where, error);
    snprintf(where, sizeof where, "x0[%u]", node);
    if (result == 0)
        result = read_numbers(q->sum, json_array_get(json_object_get(root, "x0"), node), d, name,
                              where, error);
    for (size_t i = 0; result == 0 && i < d; i++)
        q->x0[node * d + i] = (float)q->sum[i];
    return result;
}

static int read_root(sl_quadratic *q, const json_t *root, const sl_bytes *file, uint32_t nodes,
                     sl_error *error) {
    int result = check_keys(root, file->name, error);
    if (result == 0)
        result = read_shape(q, json_object_get(root, "A"), file->name, nodes, error);
    if (result == 0)
        result = check_array(json_object_get(root, "b"), nodes, nodes, file->name, "b", error);
    if (result == 0)
        result = check_array(json_object_get(root, "x0"), nodes, nodes, file->name, "x0", error);
    if (result == 0)
        result = allocate(q, file, error);
    for (uint32_t node = 0; result == 0 && node < nodes; node++)
        result = read_node(q, root, node, file->name, error);
    return result;
}

int sl_quadratic_parse(sl_quadratic *out, const sl_bytes *file, uint32_t nodes, sl_error *error) {
    sl_quadratic q = {0};
    json_t *root;
    int result = sl_json_parse(&root, (const char *)file->data, file->size, JSON_DECODE_INT_AS_REAL,
                               file->name, SL_EFILE, error);
    if (result != 0)
        return result;
    result = read_root(&q, root, file, nodes, error);
    json_decref(root);
    if (result != 0)
        sl_quadratic_close(&q);
    else
        *out = q;
    return result;
}

int sl_quadratic_load(sl_quadratic *out, const char *path, uint32_t nodes, sl_error *error) {
    sl_bytes file;
    int result = sl_bytes_read_text(&file, path, SL_BYTES_MAX, error);
    if (result != 0)
        return result;
    result = sl_quadratic_parse(out, &file, nodes, error);
    sl_bytes_close(&file);
    return result;
}

void sl_quadratic_close(sl_quadratic *quadratic) {
    free(quadratic->a);
    free(quadratic->b);
    free(quadratic->x0);
    free(quadratic->sum);
    *quadratic = (sl_quadratic){0};
}

/* (A_i x - b_i)_row */
static double residual(const double *a, double b, const float *x, uint32_t dimension) {
    double sum = 0;
    for (uint32_t k = 0; k < dimension; k++)
        sum += a[k] * (double)x[k];
    return sum - b;
}

double sl_quadratic_gradient(sl_quadratic *quadratic, uint32_t rank, const float *x, float *g) {
    assert(rank < quadratic->nodes);
    uint32_t m = quadratic->rows, d = quadratic->dimension;
    const double *a = quadratic->a + (size_t)rank * m * d, *b = quadratic->b + (size_t)rank * m;
    double *sum = quadratic->sum, loss = 0;
    memset(sum, 0, d * sizeof *sum);
    for (uint32_t row = 0; row < m; row++, a += d) {
        double r = residual(a, b[row], x, d);
        loss += r * r;
        for (uint32_t k = 0; k < d; k++)
            sum[k] += a[k] * r;
    }
    for (uint32_t k = 0; k < d; k++)
        g[k] = (float)sum[k];
    return loss / 2;
}

double sl_quadratic_mean(const sl_quadratic *quadratic, const float *x) {
    size_t m = quadratic->rows, d = quadratic->dimension;
    double total = 0;
    for (size_t i = 0; i < quadratic->nodes * m; i++) {
        double r = residual(quadratic->a + i * d, quadratic->b[i], x, quadratic->dimension);
        total += r * r;
    }
    return total / 2 / quadratic->nodes;
}

/* ---- as a problem ---- */

typedef struct quadratic_problem {
    sl_quadratic quadratic;
    sl_tensor tensors[2]; /* x, or a matrix and what follows it */
} quadratic_problem;

static void close_problem(void *self) {
    quadratic_problem *p = self;
    if (p != NULL)
        sl_quadratic_close(&p->quadratic);
    free(p);
}

static uint64_t hash_of(const sl_quadratic *q) {
    const size_t vectors = (size_t)q->nodes * q->dimension, rows = (size_t)q->nodes * q->rows;
    uint64_t hash = sl_hash(SL_HASH_START, q->a, vectors * q->rows * sizeof *q->a);
    hash = sl_hash(hash, q->b, rows * sizeof *q->b);
    return sl_hash(hash, q->x0, vectors * sizeof *q->x0);
}

/* With model.matrix the first parameters are a matrix, and the rest is a vector. */
static int name_tensors(quadratic_problem *p, sl_problem *out, const sl_model_config *model,
                        sl_error *error) {
    const size_t d = p->quadratic.dimension;
    p->tensors[0] = (sl_tensor){"x", {d}, 1};
    out->tensors = p->tensors;
    out->tensor_count = 1;
    if (model->matrix_count == 0)
        return 0;
    const size_t rows = model->matrix[0], columns = model->matrix[model->matrix_count - 1];
    if (model->matrix_count != SL_MATRIX_AXES || rows * columns > d)
        return sl_fail(error, SL_EINVAL,
                       "model.matrix: must be [rows, columns] of at most the %zu parameters of "
                       "model.path",
                       d);
    p->tensors[0] = (sl_tensor){"x", {rows, columns}, SL_MATRIX_AXES};
    p->tensors[1] = (sl_tensor){"rest", {d - rows * columns}, 1};
    out->tensor_count = rows * columns < d ? 2 : 1;
    return 0;
}

static int open_problem(sl_problem *out, const sl_problem_source *source, char *text, size_t size,
                        sl_error *error) {
    const sl_learner_settings *settings = source->settings;
    const char *path = settings->model.path, *slash = strrchr(path, '/');
    quadratic_problem *p = calloc(1, sizeof *p);
    if (p == NULL)
        return sl_fail(error, SL_ENOMEM, "learner: out of memory");
    out->self = p;
    int result = sl_quadratic_load(&p->quadratic, path, settings->nodes + settings->joiners, error);
    if (result != 0)
        return result;
    const sl_quadratic *q = &p->quadratic;
    result = name_tensors(p, out, &settings->model, error);
    if (result != 0)
        return result;
    out->dimension = q->dimension;
    out->bytes = (size_t)q->nodes * q->rows * (q->dimension + 1u) * sizeof(double);
    out->data_hash = hash_of(q);
    snprintf(text, size, "quadratic, %u parameters, %u rows a node; %s", q->dimension, q->rows,
             slash != NULL ? slash + 1 : path);
    return 0;
}

static void initial(const void *self, uint32_t rank, float *x) {
    const sl_quadratic *q = &((const quadratic_problem *)self)->quadratic;
    memcpy(x, q->x0 + (size_t)rank * q->dimension, q->dimension * sizeof *x);
}

static double gradient(void *self, uint32_t rank, uint64_t round, const float *x, float *g) {
    (void)round;
    return sl_quadratic_gradient(&((quadratic_problem *)self)->quadratic, rank, x, g);
}

static sl_evaluation evaluate(void *self, const float *x) {
    return (sl_evaluation){.loss = sl_quadratic_mean(&((quadratic_problem *)self)->quadratic, x),
                           .accuracy = NAN};
}

const sl_problem_ops sl_quadratic_problem = {
    .open = open_problem,
    .close = close_problem,
    .initial = initial,
    .gradient = gradient,
    .evaluate = evaluate,
};
