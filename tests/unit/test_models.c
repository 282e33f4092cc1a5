/* test_models.c - the models of src/learner against PyTorch, the images that they see, and learners
 * made of both. */
#include <jansson.h>

#include "learner/data/image.h"
#include "learner/model.h"
#include "learners.h"
#include "machines.h"
#include "noise.h"

/* ---- PyTorch in float64: tests/reference/models.py ---- */

/* Number i of its formula. */
static float uniform_at(uint64_t i, uint64_t salt) {
    uint32_t h = (uint32_t)(i * 2654435761u + salt * 40503u);
    h = (h ^ (h >> 15)) * 2246822519u;
    h = (h ^ (h >> 13)) * 3266489917u;
    return (float)((h ^ (h >> 16)) / 2147483648.0 - 1);
}

/* Weights in +-sqrt(6/inputs), scales about 1, the rest about 0. */
static void reference_parameters(const sl_layers *table, float *x) {
    size_t salt = 100;
    for (size_t l = 0; l < table->count; l++)
        for (size_t t = 0; t < table->items[l].tensor_count; t++, salt++) {
            const sl_layer *layer = &table->items[l];
            bool norm = layer->kind == SL_LAYER_BATCH_NORM || layer->kind == SL_LAYER_LAYER_NORM;
            size_t count = layer->tensors[t], inputs = count / layer->out.channels;
            double scale = norm ? 0.2 : t == 0 ? sqrt(6.0 / inputs) : 0.1;
            for (size_t i = 0; i < count; i++)
                *x++ = (float)((norm && t == 0) + scale * uniform_at(i, salt));
        }
}

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

/* Largest difference of the gradient's tensors to the reference's, in units of each tensor's norm.
 */
static double compare_tensors(const sl_layers *table, const float *g, const json_t *tensors) {
    double worst = 0;
    size_t start = 0;
    ck_assert_uint_eq(json_array_size(tensors), table->tensor_count);
    for (size_t t = 0; t < table->tensor_count; start = table->tensor_ends[t++]) {
        const json_t *expected = json_array_get(tensors, t),
                     *first = json_object_get(expected, "first"),
                     *last = json_object_get(expected, "last");
        size_t count = table->tensor_ends[t] - start, shown = json_array_size(first);
        double squares = 0, product = 0, norm = number(expected, "norm");
        ck_assert_double_eq((double)count, number(expected, "count"));
        for (size_t i = 0; i < count; i++) {
            squares += (double)g[start + i] * g[start + i];
            product += (double)g[start + i] * uniform_at(i, 1000 + t);
        }
        worst = fmax(worst, fabs(sqrt(squares) - norm) / norm);
        worst = fmax(worst, fabs(product - number(expected, "product")) / norm);
        for (size_t i = 0; i < shown; i++) {
            worst = fmax(worst,
                         fabs(g[start + i] - json_number_value(json_array_get(first, i))) / norm);
            worst = fmax(worst, fabs(g[start + count - shown + i] -
                                     json_number_value(json_array_get(last, i))) /
                                    norm);
        }
    }
    return worst;
}

static const struct {
    const char *name;
    sl_model_kind kind;
    double loss_error, gradient_error;
} references[] = {
    {"lenet5", SL_MODEL_LENET5, 2e-6, 2e-6},           {"lenet5", SL_MODEL_LENET5, 2e-6, 2e-6},
    {"resnet20", SL_MODEL_RESNET20, 1e-5, 5e-5},       {"lstm", SL_MODEL_LSTM, 2e-6, 5e-6},
    {"transformer", SL_MODEL_TRANSFORMER, 2e-6, 5e-6},
};

/* The model that the reference describes, its input and labels as there. */
static sl_network open_reference(const json_t *expected, sl_model_kind kind, machine where) {
    sl_model_config config = {.kind = kind, .embedding = 8, .heads = 4};
    bool text = sl_model_takes_text(kind);
    uint32_t rows = (uint32_t)number(expected, "rows"), side = (uint32_t)number(expected, "side"),
             classes = text ? (uint32_t)number(expected, "symbols") : 10;
    sl_shape image = {side, side, (uint32_t)number(expected, "channels")},
             sequence = {1, (uint32_t)number(expected, "sequence"), 1};
    sl_layers table;
    sl_network net;
    EXPECT_WELL(sl_model_build(&table, &config, text ? sequence : image, classes, "test", &error));
    ck_assert_int_eq(open_on(&net, &table, where, rows), 0);
    for (size_t i = 0; i < rows * sl_shape_size(table.input); i++) {
        float u = uniform_at(i, (uint64_t)number(expected, "salt"));
        net.input[i] = text ? (float)floor((u + 1.0) * classes / 2) : u;
    }
    for (uint32_t i = 0; i < rows * net.positions; i++)
        net.labels[i] = (uint16_t)(i * 7 % classes);
    return net;
}

START_LOOP_TEST(models_agree_with_pytorch, MACHINES * sizeof references / sizeof *references) {
    json_t *all = json_load_file("tests/reference/models.json", 0, NULL),
           *expected = json_array_get(all, (size_t)_i / MACHINES);
    ck_assert_ptr_nonnull(expected);
    ck_assert_str_eq(json_string_value(json_object_get(expected, "model")),
                     references[_i / MACHINES].name);
    sl_network net = open_reference(expected, references[_i / MACHINES].kind, _i % MACHINES);
    size_t dimension = net.table.dimension;
    float *x = new_floats(dimension), *g = new_floats(dimension);
    reference_parameters(&net.table, x);
    ck_assert_double_eq_tol(find_gradient(&net, net.rows_max, x, g), number(expected, "loss"),
                            references[_i / MACHINES].loss_error);
    ck_assert_double_lt(compare_tensors(&net.table, g, json_object_get(expected, "tensors")),
                        references[_i / MACHINES].gradient_error);
    sl_network_close(&net);
    json_decref(all);
}

/* ---- products ---- */

/* By hand, layer by layer. */
static const struct {
    sl_model_config config;
    sl_shape input;
    uint32_t classes;
    double products;
} counted[] = {
    {{.kind = SL_MODEL_SOFTMAX}, {28, 28, 1}, 10, 7840},
    {{.kind = SL_MODEL_LENET5}, {28, 28, 1}, 10, 117600 + 240000 + 48000 + 10080 + 840},
    {{.kind = SL_MODEL_RESNET20},
     {32, 32, 3},
     10,
     442368 + 6 * 2359296 + 2 * (1179648 + 5 * 2359296) + 640},
    {{.kind = SL_MODEL_LSTM, .embedding = 8},
     {1, 80, 1},
     65,
     80.0 * ((8 + 256) * 1024 + (256 + 256) * 1024 + 256 * 65)},
    {{.kind = SL_MODEL_TRANSFORMER, .units = 32, .layers = 2, .heads = 4},
     {1, 16, 1},
     65,
     2 * (16 * 12 * 32 * 32 + 2 * 16 * 16 * 32) + 16 * 32 * 65},
};

START_LOOP_TEST(products_are_counted, sizeof counted / sizeof *counted) {
    sl_layers table;
    EXPECT_WELL(sl_model_build(&table, &counted[_i].config, counted[_i].input, counted[_i].classes,
                               "data", &error));
    ck_assert_double_eq(sl_layers_products(&table), counted[_i].products);
}

/* ---- images ---- */

START_TEST(images_are_arranged_cropped_and_mirrored) {
    const sl_shape shape = {6, 5, 3};
    float planes[90], x[90];
    fill(planes, 90, 3, 1);
    const sl_crop crops[] = {
        {0, 0, false}, {-4, 2, false}, {3, -1, true}, {0, 0, true}, {4, 4, true}};
    for (int i = 0; i < 5; i++) {
        sl_image_arrange(x, planes, shape, crops[i]);
        for (int row = 0; row < 6; row++)
            for (int column = 0; column < 5; column++)
                for (int c = 0; c < 3; c++) {
                    int from_row = row + crops[i].down,
                        from = (crops[i].mirrored ? 4 - column : column) + crops[i].right;
                    bool inside = from_row >= 0 && from_row < 6 && from >= 0 && from < 5;
                    ck_assert_float_eq(x[(row * 5 + column) * 3 + c],
                                       inside ? planes[c * 30 + from_row * 5 + from] : 0);
                }
    }
}

/* ---- learners ---- */

static sl_learner *learner_of(sl_switch augment) {
    sl_learner_settings e = {.nodes = 2,
                             .seed = 1,
                             .rounds = 10,
                             .model = {.kind = SL_MODEL_RESNET20},
                             .data = {.kind = SL_DATA_CIFAR10, .batch = 8, .augment = augment}};
    char folder[] = "/tmp/starling-layers-XXXXXX";
    noise_write(folder);
    snprintf(e.data.path, sizeof e.data.path, "%s", folder);
    sl_learner *learner = open_learner(&e);
    noise_remove(folder);
    return learner;
}

START_TEST(no_call_of_a_residual_network_changes_another) {
    sl_learner *a = learner_of(SL_SWITCH_AUTO), *b = learner_of(SL_SWITCH_AUTO);
    ck_assert_str_eq(sl_learner_describe(a),
                     "resnet20 32x32x3-10, 269722 parameters; cifar10, 200 train, 40 test, iid");
    size_t d = sl_learner_dimension(a);
    float *x = new_floats(d), *g = new_floats(d), *h = new_floats(d);
    ck_assert_uint_eq(sl_learner_data_hash(a), sl_learner_data_hash(b));
    ck_assert_uint_eq(sl_learner_layout_hash(a), sl_learner_layout_hash(b));
    sl_learner_initial(a, 0, x);
    sl_learner_initial(b, 1, g); /* networks start identically on every rank */
    ck_assert_mem_eq(x, g, d * sizeof *x);
    sl_evaluation first = sl_learner_evaluate(a, x);
    double loss = sl_learner_gradient(a, 1, 3, x, g);
    sl_learner_gradient(b, 0, 2, x, h);
    ck_assert(sl_learner_gradient(b, 1, 3, x, h) == loss);
    ck_assert_mem_eq(g, h, d * sizeof *g);
    sl_evaluation second = sl_learner_evaluate(b, x), third = sl_learner_evaluate(a, x);
    ck_assert(first.loss == second.loss && first.loss == third.loss &&
              first.accuracy == third.accuracy);
    ck_assert(isfinite(first.loss));
}

START_TEST(augmentation_changes_gradients_and_not_evaluations) {
    sl_learner *a = learner_of(SL_SWITCH_AUTO), *b = learner_of(SL_SWITCH_OFF);
    size_t d = sl_learner_dimension(a);
    float *x = new_floats(d), *g = new_floats(d);
    sl_learner_initial(a, 0, x);
    ck_assert(sl_learner_gradient(a, 0, 1, x, g) != sl_learner_gradient(b, 0, 1, x, g));
    ck_assert(sl_learner_evaluate(a, x).loss == sl_learner_evaluate(b, x).loss);
}
