/* test_learner.c - gradients against float64 losses, the quadratic, determinism, and what the
 * digits can teach. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "learner/data/data.h"
#include "learner/layers/network.h"
#include "learner/quadratic.h"
#include "starling/learner.h"
#include "starling/rng.h"

static sl_error error;

static void fill(float *x, size_t count, uint64_t seed, double scale) {
    sl_rng rng = sl_rng_open(seed, 0, 0, SL_PURPOSE_FAULT);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(scale * (2 * sl_rng_uniform(&rng) - 1));
}

/* ---- the reference: a loss in float64, written from the definition and sharing no code with
 * network.c ---- */

static double reference_row(const uint32_t *sizes, size_t size_count, const double *x,
                            const float *input, int label) {
    double layer[64], next[64];
    for (uint32_t i = 0; i < sizes[0]; i++)
        layer[i] = input[i];
    for (size_t l = 1; l < size_count; l++) {
        const double *bias = x + (size_t)sizes[l - 1] * sizes[l];
        for (uint32_t j = 0; j < sizes[l]; j++) {
            next[j] = bias[j];
            for (uint32_t i = 0; i < sizes[l - 1]; i++)
                next[j] += layer[i] * x[i * sizes[l] + j];
            if (l + 1 < size_count && next[j] < 0)
                next[j] = 0;
        }
        memcpy(layer, next, sizeof layer);
        x = bias + sizes[l];
    }
    double sum = 0;
    for (uint32_t j = 0; j < sizes[size_count - 1]; j++)
        sum += exp(layer[j] - layer[label]);
    return log(sum);
}

static double reference_loss(const sl_network *net, uint32_t rows, const double *x) {
    double loss = 0;
    uint32_t sizes[8] = {net->table.input.channels};
    for (size_t l = 0; l < net->table.count; l++)
        sizes[l + 1] = net->table.items[l].out.channels;
    for (uint32_t row = 0; row < rows; row++)
        loss += reference_row(sizes, net->table.count + 1, x, net->input + row * sizes[0],
                              net->labels[row]);
    return loss / rows;
}

static const struct {
    uint32_t sizes[5];
    size_t size_count;
    uint32_t rows;
} shapes[] = {
    {{7, 3}, 2, 1},        {{13, 10}, 2, 5},           {{6, 16, 2}, 3, 4}, {{9, 20, 4}, 3, 33},
    {{5, 8, 17, 3}, 4, 7}, {{12, 33, 6, 18, 5}, 5, 9}, {{1, 1, 2}, 3, 1},  {{3, 2}, 2, 300},
};

static void open_perceptron(sl_network *net, const uint32_t *sizes, size_t size_count,
                            uint32_t rows) {
    sl_layers table = {.input = {1, 1, sizes[0]}};
    for (size_t i = 1; i < size_count; i++) {
        sl_layer dense = {
            .kind = SL_LAYER_DENSE, .relu = i + 1 < size_count, .out = {.channels = sizes[i]}};
        ck_assert_int_eq(sl_layers_add(&table, &dense, &error), 0);
    }
    ck_assert_int_eq(sl_network_open(net, &table, sl_vec_cpu(), rows, &error), 0);
}

/* A network of the shape with random parameters (*x), inputs and labels. */
static sl_network open_shape(int shape, float **x) {
    sl_network net;
    uint32_t rows = shapes[shape].rows;
    open_perceptron(&net, shapes[shape].sizes, shapes[shape].size_count, rows);
    *x = malloc(net.table.dimension * sizeof **x);
    fill(*x, net.table.dimension, 1, 0.8);
    fill(net.input, (size_t)rows * net.table.input.channels, 2, 1.5);
    for (uint32_t row = 0; row < rows; row++)
        net.labels[row] = (uint16_t)(row * 7 % net.classes);
    return net;
}

START_TEST(gradient_agrees_with_finite_differences_in_float64) {
    float *x;
    sl_network net = open_shape(_i, &x);
    uint32_t rows = shapes[_i].rows;
    float *g = malloc(net.table.dimension * sizeof *g);
    double *point = malloc(net.table.dimension * sizeof *point);
    for (size_t i = 0; i < net.table.dimension; i++)
        point[i] = x[i];
    double loss = sl_network_gradient(&net, rows, x, g);
    ck_assert_double_eq_tol(loss, reference_loss(&net, rows, point), 1e-5);
    for (size_t i = 0; i < net.table.dimension; i++) {
        const double h = 1e-6;
        point[i] = x[i] + h;
        double above = reference_loss(&net, rows, point);
        point[i] = x[i] - h;
        double below = reference_loss(&net, rows, point);
        point[i] = x[i];
        ck_assert_double_eq_tol(g[i], (above - below) / (2 * h), 2e-6);
    }
    free(x);
    free(g);
    free(point);
    sl_network_close(&net);
}
END_TEST

START_TEST(score_agrees_with_float64) {
    float *x;
    sl_network net = open_shape(3, &x);
    double point[512];
    uint64_t correct = 0;
    for (size_t i = 0; i < net.table.dimension; i++)
        point[i] = x[i];
    double loss = sl_network_score(&net, shapes[3].rows, x, &correct);
    ck_assert_double_eq_tol(loss / shapes[3].rows, reference_loss(&net, shapes[3].rows, point),
                            1e-5);
    ck_assert_uint_le(correct, shapes[3].rows);
    free(x);
    sl_network_close(&net);
}
END_TEST

START_TEST(huge_outputs_do_not_overflow) {
    float x[8] = {0}, g[8];
    sl_network net;
    open_perceptron(&net, (uint32_t[]){3, 2}, 2, 1);
    x[6] = 3e30f;
    net.input[0] = net.input[1] = net.input[2] = 0;
    net.labels[0] = 1;
    ck_assert_double_eq_tol(sl_network_gradient(&net, 1, x, g), 3e30, 1e25);
    ck_assert_float_eq(g[6], 1);
    ck_assert_float_eq(g[7], -1);
    sl_network_close(&net);
}
END_TEST

START_TEST(a_nan_parameter_shows_in_the_loss) {
    float *x;
    sl_network net = open_shape(3, &x);
    float *g = malloc(net.table.dimension * sizeof *g);
    x[0] = NAN;
    ck_assert(isnan(sl_network_gradient(&net, shapes[3].rows, x, g)));
    free(x);
    free(g);
    sl_network_close(&net);
}
END_TEST

START_TEST(gradients_do_not_depend_on_where_vectors_lie) {
    sl_network net;
    open_perceptron(&net, (uint32_t[]){784, 256, 10}, 3, 32);
    size_t d = net.table.dimension;
    float *x = aligned_alloc(64, ((d + 32) * 4 + 63) / 64 * 64),
          *g = aligned_alloc(64, ((d + 32) * 4 + 63) / 64 * 64);
    float *moved = aligned_alloc(64, ((d + 32) * 4 + 63) / 64 * 64),
          *h = aligned_alloc(64, ((d + 32) * 4 + 63) / 64 * 64);
    sl_layers_initial(&net.table, 1, x);
    for (size_t offset = 0; offset < 9; offset += 3) {
        fill(net.input, 32 * 784, 5, 1);
        memset(net.labels, 0, 32 * sizeof *net.labels);
        memcpy(moved + offset, x, d * sizeof *x);
        double loss = sl_network_gradient(&net, 32, x, g);
        ck_assert(loss == sl_network_gradient(&net, 32, moved + offset, h + offset));
        ck_assert_mem_eq(g, h + offset, d * sizeof *g);
    }
    free(x);
    free(g);
    free(moved);
    free(h);
    sl_network_close(&net);
}
END_TEST

/* ---- the quadratic ---- */

#define TWO_NODES                                                                                  \
    "{\"A\": [[[1, 2], [0, 1], [3, 0]], [[1, 0], [0, 1], [1, 1]]], \"b\": [[1, 0, 2], [0, 0, "     \
    "4]], "

static int parse_quadratic(sl_quadratic *q, const char *json, uint32_t nodes) {
    sl_bytes file = {.data = (uint8_t *)json, .size = strlen(json), .name = "q.json"};
    return sl_quadratic_parse(q, &file, nodes, &error);
}

START_TEST(quadratic_gradients_are_exact) {
    sl_quadratic q;
    float x[] = {1, -1}, g[2];
    ck_assert_msg(parse_quadratic(&q, TWO_NODES "\"x0\": [[1, -1], [0.5, 2]]}", 2) == 0, "%s",
                  error.text);
    /* A_0 x - b_0 = (-2, -1, 1), A_1 x - b_1 = (1, -1, -4) */
    ck_assert_double_eq(sl_quadratic_gradient(&q, 0, x, g), 3);
    ck_assert_float_eq(g[0], 1);
    ck_assert_float_eq(g[1], -5);
    ck_assert_double_eq(sl_quadratic_gradient(&q, 1, x, g), 9);
    ck_assert_float_eq(g[0], -3);
    ck_assert_float_eq(g[1], -5);
    ck_assert_double_eq(sl_quadratic_mean(&q, x), 6);
    ck_assert_float_eq(q.x0[3], 2);
    sl_quadratic_close(&q);
}
END_TEST

static const struct {
    const char *json;
    uint32_t nodes;
    const char *said;
} bad_quadratics[] = {
    {"{", 2, ":1:1: "},
    {"[1]", 2, "is not a JSON object"},
    {"{\"B\": 1}", 2, "unknown key \"B\""},
    {"{\"b\": [], \"x0\": []}", 2, "A is missing"},
    {TWO_NODES "\"x0\": [[1, -1], [0.5, 2]]}", 3, "A is for 2 nodes, but the topology has 3"},
    {TWO_NODES "\"x0\": [[1, -1]]}", 2, "x0 has 1 elements; it must have 2"},
    {TWO_NODES "\"x0\": [[1, -1], [1]]}", 2, "x0[1] has 1 elements; it must have 2"},
    {TWO_NODES "\"x0\": [[1, -1], [1, \"a\"]]}", 2, "x0[1][1] is not a finite float32 number"},
    {TWO_NODES "\"x0\": [[1, -1], [1, 1e39]]}", 2, "x0[1][1] is not a finite float32 number"},
    {"{\"A\": [[[1]], [[1, 2]]], \"b\": [[1], [1]], \"x0\": [[1], [1]]}", 2,
     "A[1][0] has 2 elements"},
    {"{\"A\": [[[1]], [1]], \"b\": [[1], [1]], \"x0\": [[1], [1]]}", 2, "A[1][0] is no array"},
    {"{\"A\": [[[]], [[]]], \"b\": [[1], [1]], \"x0\": [[], []]}", 2, "A[0][0] has 0 elements"},
    {"{\"A\": [5, 6], \"b\": [[1], [1]], \"x0\": [[1], [1]]}", 2, "A[0] is no array"},
    {"{\"A\": [[[1,2,3,4,5,6,7,8],[],[],[],[],[],[],[]],[]], \"b\": [[],[]], \"x0\": [[],[]]}", 2,
     "too short"},
};

START_TEST(bad_quadratic_files_are_explained) {
    sl_quadratic q;
    ck_assert_int_eq(parse_quadratic(&q, bad_quadratics[_i].json, bad_quadratics[_i].nodes),
                     SL_EFILE);
    ck_assert_msg(strstr(error.text, bad_quadratics[_i].said) != NULL, "\"%s\" should say \"%s\"",
                  error.text, bad_quadratics[_i].said);
    ck_assert_ptr_nonnull(strstr(error.text, "q.json"));
}
END_TEST

/* ---- the whole learner ---- */

static sl_learner_settings settings_of(sl_model_kind model, uint32_t nodes) {
    sl_learner_settings e = {
        .nodes = nodes, .seed = 1, .epochs = 5, .data = {.kind = SL_DATA_DIGITS, .batch = 32}};
    e.model =
        (sl_model_config){.kind = model, .hidden = {256}, .hidden_count = model == SL_MODEL_MLP};
    return e;
}

/* One process's SGD with momentum 0.9 over both nodes' samples in turn. */
static sl_evaluation train(sl_learner *learner, float rate, int epochs) {
    size_t d = sl_learner_dimension(learner);
    float *x = malloc(d * sizeof *x), *g = malloc(d * sizeof *g), *m = calloc(d, sizeof *m);
    sl_learner_initial(learner, 0, x);
    for (int step = 0; step < epochs * 12000 / 32; step++) {
        sl_learner_gradient(learner, step % 2, step / 2 + 1, x, g);
        for (size_t i = 0; i < d; i++) {
            m[i] = 0.9f * m[i] + g[i];
            x[i] -= rate * m[i];
        }
    }
    sl_evaluation result = sl_learner_evaluate(learner, x);
    sl_evaluation again = sl_learner_evaluate(learner, x);
    ck_assert(result.loss == again.loss && result.accuracy == again.accuracy);
    free(x);
    free(g);
    free(m);
    return result;
}

START_TEST(digits_are_too_hard_for_a_linear_model) {
    sl_learner_settings e = settings_of(SL_MODEL_SOFTMAX, 2);
    sl_learner *learner;
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), 0);
    double accuracy = train(learner, 0.01f, 20).accuracy;
    ck_assert_double_lt(accuracy, 0.95);
    ck_assert_double_gt(accuracy, 0.80);
    sl_learner_close(&learner);
}
END_TEST

START_TEST(a_perceptron_learns_the_digits_in_five_epochs) {
    sl_learner_settings e = settings_of(SL_MODEL_MLP, 2);
    sl_learner *learner;
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), 0);
    ck_assert_str_eq(sl_learner_describe(learner),
                     "mlp 784-256-10, 203530 parameters; digits, 12000 train, 2000 test, iid");
    ck_assert_double_gt(train(learner, 0.02f, 5).accuracy, 0.97);
    sl_learner_close(&learner);
}
END_TEST

START_TEST(learners_opened_twice_are_equal_bit_for_bit) {
    sl_learner_settings e = settings_of(SL_MODEL_MLP, 3);
    sl_learner *a, *b;
    e.data.train_samples = 300;
    e.data.test_samples = 70;
    e.model.hidden[0] = 37;
    ck_assert_int_eq(sl_learner_open(&a, &e, &error), 0);
    ck_assert_int_eq(sl_learner_open(&b, &e, &error), 0);
    size_t d = sl_learner_dimension(a);
    float *x = malloc(d * sizeof *x), *y = malloc(d * sizeof *y), *g = malloc(d * sizeof *g),
          *h = malloc(d * sizeof *h);
    sl_learner_initial(a, 0, x);
    sl_learner_initial(b, 2, y); /* networks start identically on every rank */
    ck_assert_mem_eq(x, y, d * sizeof *x);
    for (uint64_t round = 1; round < 20; round++) {
        sl_learner_gradient(b, (round + 1) % 3, round, x, h); /* what came before changes nothing */
        ck_assert(sl_learner_gradient(a, round % 3, round, x, g) ==
                  sl_learner_gradient(b, round % 3, round, x, h));
        ck_assert_mem_eq(g, h, d * sizeof *g);
    }
    ck_assert_uint_eq(sl_learner_data_hash(a), sl_learner_data_hash(b));
    ck_assert_uint_eq(sl_learner_layout_hash(a), sl_learner_layout_hash(b));
    free(x);
    free(y);
    free(g);
    free(h);
    sl_learner_close(&a);
    sl_learner_close(&b);
}
END_TEST

START_TEST(hashes_tell_layouts_and_data_apart) {
    sl_learner_settings e = settings_of(SL_MODEL_MLP, 2);
    sl_learner *a, *b;
    e.data.train_samples = e.data.test_samples = 50;
    ck_assert_int_eq(sl_learner_open(&a, &e, &error), 0);
    e.seed = 2;
    e.model.hidden[0] = 255;
    ck_assert_int_eq(sl_learner_open(&b, &e, &error), 0);
    ck_assert_uint_ne(sl_learner_data_hash(a), sl_learner_data_hash(b));
    ck_assert_uint_ne(sl_learner_layout_hash(a), sl_learner_layout_hash(b));
    sl_learner_close(&a);
    sl_learner_close(&b);
}
END_TEST

static uint64_t rounds_of(const sl_learner_settings *settings) {
    sl_learner *learner;
    ck_assert_int_eq(sl_learner_open(&learner, settings, &error), 0);
    ck_assert_uint_eq(sl_learner_epoch_rounds(learner), 16); /* 1001 / 64 = 15.6 */
    uint64_t rounds = sl_learner_rounds(learner);
    sl_learner_close(&learner);
    return rounds;
}

START_TEST(epochs_become_rounds_rounded_up) {
    sl_learner_settings e = settings_of(SL_MODEL_SOFTMAX, 2);
    e.data.train_samples = 1001;
    e.data.test_samples = 10;
    e.epochs = 2;
    ck_assert_uint_eq(rounds_of(&e), 32); /* 2 * 1001 / 64 = 31.3 */
    e.epochs = 1e-9;
    ck_assert_uint_eq(rounds_of(&e), 1);
    e.rounds = 7;
    ck_assert_uint_eq(rounds_of(&e), 7);
}
END_TEST

START_TEST(ten_thousand_ranks_share_one_learner) {
    sl_learner_settings e = settings_of(SL_MODEL_SOFTMAX, 10000);
    sl_learner *learner;
    e.data.train_samples = 10007;
    e.data.test_samples = 10;
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), 0);
    static float x[7850], g[7850];
    for (uint32_t rank = 0; rank < 10000; rank++)
        ck_assert_double_eq_tol(sl_learner_gradient(learner, rank, 1 + rank % 3, x, g), log(10),
                                1e-6);
    sl_learner_close(&learner);
}
END_TEST

START_TEST(a_quadratic_learner_starts_where_its_file_says) {
    sl_learner_settings e = settings_of(SL_MODEL_QUADRATIC, 2);
    sl_learner *learner;
    const char *json = TWO_NODES "\"x0\": [[1, -1], [0.5, 2]]}";
    strcpy(e.model.path, "/tmp/starling-quadratic-XXXXXX");
    int fd = mkstemp(e.model.path);
    ck_assert_int_eq(write(fd, json, strlen(json)), (int)strlen(json));
    close(fd);
    int code = sl_learner_open(&learner, &e, &error);
    unlink(e.model.path);
    ck_assert_msg(code == 0, "%s", error.text);
    float x[2], g[2];
    ck_assert_uint_eq(sl_learner_dimension(learner), 2);
    ck_assert_uint_eq(sl_learner_rounds(learner), 5);
    ck_assert_uint_eq(sl_learner_epoch_rounds(learner), 1);
    sl_learner_initial(learner, 1, x);
    ck_assert_float_eq(x[0], 0.5f);
    ck_assert_float_eq(x[1], 2);
    ck_assert_double_eq(sl_learner_gradient(learner, 1, 1, x, g), 0.5 * (0.25 + 4 + 2.25));
    ck_assert(isnan(sl_learner_evaluate(learner, x).accuracy));
    sl_learner_close(&learner);
}
END_TEST

START_TEST(impossible_experiments_are_refused) {
    sl_learner_settings e = settings_of(SL_MODEL_SOFTMAX, 20);
    sl_learner *learner;
    e.data.train_samples = 19;
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "19 training samples for 20 nodes"));
    e.data.train_samples = 100;
    e.data.batch = 0;
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "data.batch is 0"));
    e.data.batch = 1;
    e.model =
        (sl_model_config){.kind = SL_MODEL_MLP, .hidden = {100000, 100000}, .hidden_count = 2};
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "smaller hidden layers"));
    e.model = (sl_model_config){.kind = SL_MODEL_QUADRATIC, .path = "/nonexistent/q.json"};
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), SL_EFILE);
    ck_assert_ptr_nonnull(strstr(error.text, "/nonexistent/q.json"));
}
END_TEST

/* ---- text ---- */

/* Two verses over and over: after a few characters the next one is certain. */
static void write_verses(char path[32]) {
    strcpy(path, "/tmp/starling-text-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < 60; i++)
        dprintf(fd, i % 2 ? "the more it goes\ntiddely pom\n" : "the more it snows\ntiddely pom\n");
    close(fd);
}

static sl_learner_settings text_settings(sl_model_kind model, const char *path) {
    sl_learner_settings e = settings_of(model, 2);
    e.model =
        (sl_model_config){.kind = model, .layers = 2, .units = 24, .embedding = 8, .heads = 3};
    e.data = (sl_data_config){.kind = SL_DATA_TEXT, .batch = 8, .sequence = 32};
    snprintf(e.data.path, sizeof e.data.path, "%s", path);
    return e;
}

static const struct {
    sl_model_kind model;
    float rate;
} text_models[] = {{SL_MODEL_LSTM, 0.3f}, {SL_MODEL_TRANSFORMER, 0.02f}};

START_TEST(text_models_learn_what_comes_next) {
    char path[32];
    write_verses(path);
    sl_learner_settings e = text_settings(text_models[_i].model, path);
    sl_learner *learner;
    ck_assert_msg(sl_learner_open(&learner, &e, &error) == 0, "%s", error.text);
    float *x = malloc(sl_learner_dimension(learner) * sizeof *x);
    sl_learner_initial(learner, 0, x);
    sl_evaluation before = sl_learner_evaluate(learner, x),
                  after = train(learner, text_models[_i].rate, 1);
    const double guess = log(17); /* characters in the verses */
    ck_assert_msg(fabs(before.loss - guess) < 0.05 && before.accuracy < 0.3, "%g %g", before.loss,
                  before.accuracy);
    ck_assert_msg(after.loss < 0.4 && after.accuracy > 0.9, "loss %g accuracy %g", after.loss,
                  after.accuracy);
    free(x);
    sl_learner_close(&learner);
    unlink(path);
}
END_TEST

START_TEST(text_and_models_that_take_none_are_refused) {
    char path[32];
    write_verses(path);
    sl_learner *learner = NULL;
    sl_learner_settings e = text_settings(SL_MODEL_MLP, path);
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "model.name: mlp does not take text"));
    e.model.kind = SL_MODEL_TRANSFORMER;
    e.data.kind = SL_DATA_DIGITS;
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), SL_EINVAL);
    ck_assert_ptr_nonnull(
        strstr(error.text, "model.name: transformer needs text, but data.name is digits"));
    e.data.kind = SL_DATA_TEXT;
    e.model.heads = 5;
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), SL_EINVAL);
    ck_assert_ptr_nonnull(
        strstr(error.text, "model.heads is 5; it must divide model.units, which is 24"));
    e.model.heads = 3;
    e.data.augment = SL_SWITCH_ON;
    ck_assert_int_eq(sl_learner_open(&learner, &e, &error), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "data.augment: true needs a model that sees images"));
    unlink(path);
}
END_TEST

static void add_loop(Suite *suite, const char *name, const TTest *test, size_t count) {
    TCase *tcase = tcase_create(name);
    tcase_add_loop_test(tcase, test, 0, (int)count);
    suite_add_tcase(suite, tcase);
}

int main(void) {
    Suite *suite = suite_create("learner");
    add_loop(suite, "gradients", gradient_agrees_with_finite_differences_in_float64,
             sizeof shapes / sizeof shapes[0]);
    add_loop(suite, "bad quadratics", bad_quadratic_files_are_explained,
             sizeof bad_quadratics / sizeof bad_quadratics[0]);
    add_loop(suite, "text", text_models_learn_what_comes_next,
             sizeof text_models / sizeof text_models[0]);
    ADD_TESTS(suite, "network", score_agrees_with_float64, huge_outputs_do_not_overflow,
              a_nan_parameter_shows_in_the_loss, gradients_do_not_depend_on_where_vectors_lie);
    ADD_TESTS(suite, "learner", quadratic_gradients_are_exact,
              digits_are_too_hard_for_a_linear_model, a_perceptron_learns_the_digits_in_five_epochs,
              learners_opened_twice_are_equal_bit_for_bit, hashes_tell_layouts_and_data_apart,
              epochs_become_rounds_rounded_up, ten_thousand_ranks_share_one_learner,
              a_quadratic_learner_starts_where_its_file_says, impossible_experiments_are_refused,
              text_and_models_that_take_none_are_refused);
    return run_suite(suite);
}
