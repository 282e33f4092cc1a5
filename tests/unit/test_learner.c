/* test_learner.c - the quadratic, determinism, and what digits and texts can teach. */
#include "learner/data/data.h"
#include "learner/quadratic.h"
#include "learners.h"

static sl_error error;

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
    EXPECT_WELL(parse_quadratic(&q, TWO_NODES "\"x0\": [[1, -1], [0.5, 2]]}", 2));
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

START_LOOP_TEST(bad_quadratic_files_are_explained,
                sizeof bad_quadratics / sizeof bad_quadratics[0]) {
    sl_quadratic q;
    EXPECT_ERROR(parse_quadratic(&q, bad_quadratics[_i].json, bad_quadratics[_i].nodes), SL_EFILE,
                 bad_quadratics[_i].said);
    ck_assert_ptr_nonnull(strstr(error.text, "q.json"));
}

/* ---- the whole learner ---- */

static sl_learner_settings settings_of(sl_model_kind model, uint32_t nodes) {
    sl_learner_settings e = {
        .nodes = nodes, .seed = 1, .epochs = 5, .data = {.kind = SL_DATA_DIGITS, .batch = 32}};
    e.model =
        (sl_model_config){.kind = model, .hidden = {256}, .hidden_count = model == SL_MODEL_MLP};
    return e;
}

/* One process's SGD with momentum 0.9 over both nodes' samples in turn. */
static sl_evaluation train(sl_learner *learner, float rate, uint64_t steps) {
    size_t d = sl_learner_dimension(learner);
    float *x = new_floats(d), *g = new_floats(d), *m = new_floats(d);
    sl_learner_initial(learner, 0, x);
    for (uint64_t step = 0; step < steps; step++) {
        sl_learner_gradient(learner, step % 2, step / 2 + 1, x, g);
        for (size_t i = 0; i < d; i++) {
            m[i] = 0.9f * m[i] + g[i];
            x[i] -= rate * m[i];
        }
    }
    sl_evaluation result = sl_learner_evaluate(learner, x);
    sl_evaluation again = sl_learner_evaluate(learner, x);
    ck_assert(result.loss == again.loss && result.accuracy == again.accuracy);
    return result;
}

/* One process's SGD over some digits, and between which accuracies it ends. */
static const struct {
    sl_model_kind model;
    uint32_t train_samples, test_samples;
    float rate;
    uint64_t steps;
    double least, most;
    const char *said;
} lessons[] = {
    {SL_MODEL_SOFTMAX, 4000, 1000, 0.01f, 1500, 0.75, 0.92, "softmax 784-10, 7850 parameters; "},
    {SL_MODEL_MLP, 4000, 1000, 0.02f, 600, 0.93, 1, "mlp 784-256-10, 203530 parameters; "},
    {SL_MODEL_LENET5, 2000, 500, 0.02f, 200, 0.90, 1, "lenet5 28x28x1-10, 61706 parameters; "},
};

START_LOOP_TEST(digits_are_learnt_and_too_hard_for_a_linear_model,
                sizeof lessons / sizeof *lessons) {
    sl_learner_settings e = settings_of(lessons[_i].model, 2);
    e.data.train_samples = lessons[_i].train_samples;
    e.data.test_samples = lessons[_i].test_samples;
    sl_learner *learner = open_learner(&e);
    ck_assert_str_eq(sl_learner_describe(learner),
                     printed("%sdigits, %u train, %u test, iid", lessons[_i].said,
                             lessons[_i].train_samples, lessons[_i].test_samples));
    const double accuracy = train(learner, lessons[_i].rate, lessons[_i].steps).accuracy;
    ck_assert_double_gt(accuracy, lessons[_i].least);
    ck_assert_double_lt(accuracy, lessons[_i].most);
}

START_TEST(hashes_tell_layouts_and_data_apart) {
    sl_learner_settings e = settings_of(SL_MODEL_MLP, 2);
    e.data.train_samples = e.data.test_samples = 50;
    sl_learner *a = open_learner(&e);
    e.seed = 2;
    e.model.hidden[0] = 255;
    sl_learner *b = open_learner(&e);
    ck_assert_uint_ne(sl_learner_data_hash(a), sl_learner_data_hash(b));
    ck_assert_uint_ne(sl_learner_layout_hash(a), sl_learner_layout_hash(b));
}

static uint64_t rounds_of(const sl_learner_settings *settings) {
    sl_learner *learner = open_learner(settings);
    ck_assert_uint_eq(sl_learner_epoch_rounds(learner), 16); /* 1001 / 64 = 15.6 */
    return sl_learner_rounds(learner);
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
    e = settings_of(SL_MODEL_QUADRATIC, 4); /* whose epoch is a round */
    strcpy(e.model.path, "examples/quadratic-problem.json");
    ck_assert_uint_eq(sl_learner_rounds(open_learner(&e)), 5);
}

static void expect_refusal(const sl_learner_settings *e, int code, const char *said) {
    sl_learner *learner = NULL;
    EXPECT_ERROR(sl_learner_open(&learner, e, &error), code, said);
}

START_TEST(impossible_experiments_are_refused) {
    sl_learner_settings e = settings_of(SL_MODEL_SOFTMAX, 20);
    e.data.batch = 0;
    expect_refusal(&e, SL_EINVAL, "data.batch is 0");
    e.data.batch = 1;
    e.model =
        (sl_model_config){.kind = SL_MODEL_MLP, .hidden = {100000, 100000}, .hidden_count = 2};
    expect_refusal(&e, SL_EINVAL, "smaller hidden layers");
}

/* ---- text ---- */

static const struct {
    sl_model_kind model;
    sl_data_kind data;
    uint32_t heads;
    sl_switch augment;
    const char *said;
} unfit[] = {
    {SL_MODEL_MLP, SL_DATA_TEXT, 3, SL_SWITCH_AUTO, "model.name: mlp does not take text"},
    {SL_MODEL_TRANSFORMER, SL_DATA_DIGITS, 3, SL_SWITCH_AUTO,
     "model.name: transformer needs text, but data.name is digits"},
    {SL_MODEL_RESNET20, SL_DATA_DIGITS, 3, SL_SWITCH_AUTO,
     "model.name: resnet20 takes images of 32x32x3; the samples of data.name digits are images of "
     "28x28x1"},
    {SL_MODEL_SOFTMAX, SL_DATA_DIGITS, 3, SL_SWITCH_ON,
     "data.augment: true needs a model that sees images"},
    {SL_MODEL_TRANSFORMER, SL_DATA_TEXT, 5, SL_SWITCH_AUTO,
     "model.heads is 5; it must divide model.units, which is 24"},
    {SL_MODEL_TRANSFORMER, SL_DATA_TEXT, 3, SL_SWITCH_ON,
     "data.augment: true needs a model that sees images"},
};

/* Run from the root of the sources, where a text is. */
START_LOOP_TEST(models_and_data_that_do_not_fit_are_refused, sizeof unfit / sizeof *unfit) {
    sl_learner_settings e = settings_of(unfit[_i].model, 2);
    e.model.layers = 2;
    e.model.units = 24;
    e.model.embedding = 8;
    e.model.heads = unfit[_i].heads;
    e.data = (sl_data_config){
        .kind = unfit[_i].data, .batch = 8, .sequence = 32, .augment = unfit[_i].augment};
    strcpy(e.data.path, "README.md");
    expect_refusal(&e, SL_EINVAL, unfit[_i].said);
}
