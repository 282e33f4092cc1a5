/* test_synthetic.c - models of others, by their sizes: against what is published of them; and the
 * task made of such a table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "learner/layer_table.h"
#include "starling/learner.h"

static sl_error error;

/* Parameters; tensors; 10^9 multiplications a sample. Of networks of images as torchvision lists
 * them; of BERT counted by its paper's shapes. */
static const struct {
    sl_layer_table_kind kind;
    size_t dimension, tensors;
    double products;
    const char *first, *last;
} published[] = {
    {SL_LAYER_TABLE_RESNET18, 11689512, 62, 1.814, "conv1.weight", "fc.bias"},
    {SL_LAYER_TABLE_RESNET50, 25557032, 161, 4.089, "conv1.weight", "fc.bias"},
    {SL_LAYER_TABLE_ALEXNET, 61100840, 16, 0.714, "features.0.weight", "classifier.6.bias"},
    {SL_LAYER_TABLE_VGG16, 138357544, 32, 15.470, "features.0.weight", "classifier.6.bias"},
    {SL_LAYER_TABLE_BERT_BASE, 110106428, 206, 11.655, "embeddings.word_embeddings.weight",
     "cls.seq_relationship.bias"},
    {SL_LAYER_TABLE_BERT_LARGE, 336226108, 398, 40.107, "embeddings.word_embeddings.weight",
     "cls.seq_relationship.bias"},
};

START_TEST(tables_have_the_published_sizes) {
    sl_layer_table t;
    ck_assert_int_eq(sl_layer_table_open(&t, published[_i].kind, &error), 0);
    ck_assert_uint_eq(t.dimension, published[_i].dimension);
    ck_assert_uint_eq(t.count, published[_i].tensors);
    ck_assert_double_eq_tol(1e-9 * t.products, published[_i].products, 0.0006);
    ck_assert_str_eq(t.tensors[0].name, published[_i].first);
    ck_assert_str_eq(t.tensors[t.count - 1].name, published[_i].last);
    size_t sum = 0;
    for (size_t i = 0; i < t.count; i++) {
        sum += sl_tensor_size(&t.tensors[i]);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(t.tensors[i].name, t.tensors[k].name);
    }
    ck_assert_uint_eq(sum, t.dimension);
    sl_layer_table_close(&t);
}
END_TEST

static sl_learner *open_learner(double gflops) {
    sl_learner_settings settings = {
        .model = {.kind = SL_MODEL_SYNTHETIC, .table = SL_LAYER_TABLE_RESNET18, .gflops = gflops},
        .data = {.batch = 32, .train_samples = 1000},
        .nodes = 2,
        .seed = 5,
        .epochs = 3};
    sl_learner *learner = NULL;
    ck_assert_msg(sl_learner_open(&learner, &settings, &error) == 0, "%s", error.text);
    return learner;
}

START_TEST(times_follow_from_operations_and_speed) {
    sl_learner *learner = open_learner(2000);
    const double operations = 6.0 * 1814073344 * 32;
    ck_assert_double_eq(sl_learner_operations(learner), operations);
    ck_assert_double_eq_tol(sl_learner_gradient_seconds(learner), operations / 2e12, 1e-12);
    ck_assert_double_eq(sl_learner_task(learner).gradient_seconds,
                        sl_learner_gradient_seconds(learner));
    ck_assert_uint_eq(sl_learner_rounds(learner), 47); /* 3 * 1000 / 64 = 46.9 */
    sl_learner_close(&learner);
    learner = open_learner(0);
    ck_assert_double_eq(sl_learner_gradient_seconds(learner), 0);
    sl_learner_close(&learner);
}
END_TEST

static float *vector(const sl_learner *learner) {
    return malloc(sl_learner_dimension(learner) * sizeof(float));
}

/* f(x) = 1/2 |x|^2; noise of mean 0 that no two nodes or rounds share. */
START_TEST(gradients_are_the_model_and_noise) {
    sl_learner *learner = open_learner(0);
    const size_t d = sl_learner_dimension(learner);
    float *x = vector(learner), *g = vector(learner), *other = vector(learner);
    double square = 0, noise = 0, power = 0;
    sl_learner_initial(learner, 0, x);
    sl_learner_initial(learner, 1, other);
    ck_assert_mem_eq(x, other, d * sizeof *x);
    const double loss = sl_learner_gradient(learner, 0, 1, x, g);
    for (size_t i = 0; i < d; i++) {
        const double s = (double)g[i] - (double)x[i];
        square += (double)x[i] * (double)x[i];
        noise += s;
        power += s * s;
    }
    ck_assert_double_eq_tol(loss, square / 2, 1e-9 * square);
    ck_assert_double_eq_tol(sl_learner_evaluate(learner, x).loss, square / 2, 1e-9 * square);
    ck_assert(isnan(sl_learner_evaluate(learner, x).accuracy));
    ck_assert_double_eq_tol(sqrt(square / (double)d), 0.02, 1e-3);
    ck_assert_double_eq_tol(sqrt(power / (double)d), 0.02, 1e-3);
    ck_assert_double_eq_tol(noise / (double)d, 0, 3e-4);
    sl_learner_gradient(learner, 1, 1, x, other);
    ck_assert_mem_ne(g, other, d * sizeof *x);
    sl_learner_gradient(learner, 0, 2, x, other);
    ck_assert_mem_ne(g, other, d * sizeof *x);
    sl_learner_gradient(learner, 0, 1, x, other);
    ck_assert_mem_eq(g, other, d * sizeof *x);
    free(x);
    free(g);
    free(other);
    sl_learner_close(&learner);
}
END_TEST

static int by_size(const void *a, const void *b) {
    const float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);
    return (x > y) - (x < y);
}

/* A compressor that chooses the largest finds few that are alike. */
START_TEST(few_numbers_of_a_gradient_are_alike) {
    sl_learner *learner = open_learner(0);
    const size_t d = sl_learner_dimension(learner);
    float *x = vector(learner), *g = vector(learner);
    size_t alike = 0;
    sl_learner_initial(learner, 0, x);
    sl_learner_gradient(learner, 0, 1, x, g);
    qsort(g, d, sizeof *g, by_size);
    for (size_t i = d - d / 100 + 1; i < d; i++)
        alike += by_size(&g[i], &g[i - 1]) == 0;
    ck_assert_uint_lt(alike, d / 1000);
    free(x);
    free(g);
    sl_learner_close(&learner);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("synthetic");
    add_loop(suite, tables_have_the_published_sizes, 0, sizeof published / sizeof *published);
    ADD_TESTS(suite, "tasks", times_follow_from_operations_and_speed,
              gradients_are_the_model_and_noise, few_numbers_of_a_gradient_are_alike);
    return run_suite(suite);
}
