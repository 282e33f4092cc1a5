/* test_models.c - every kind of layer and the models of src/learner against PyTorch, the images
 * that they see, and learners made of both. */
#include <jansson.h>

#include "layer_rows.h"
#include "learner/data/image.h"
#include "learner/layers/network.h"
#include "learner/model.h"
#include "learners.h"
#include "noise.h"
#include "starling/device.h"
#include "starling/rng.h"

static sl_error error;

static void fill(float *x, size_t count, uint64_t seed, double scale) {
    sl_rng rng = sl_rng_open(seed, 0, 0, SL_PURPOSE_FAULT);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(scale * (2 * sl_rng_uniform(&rng) - 1));
}

/* What computes: this processor's fastest kernels, those of any, or a device: the emulated one,
 * unless STARLING_PLUGIN names another. */
typedef enum machine { FASTEST, PLAIN, DEVICE, MACHINES } machine;

static int open_on(sl_network *net, const sl_layers *table, machine where, uint32_t rows) {
    const sl_vec_ops *vec = sl_vec_cpu();
    if (where == DEVICE)
        EXPECT_WELL(sl_device_open(&vec, "cuda:0", 0, &error));
    int code = sl_network_open(net, table, vec, rows, &error);
    if (where == PLAIN && code == 0)
        net->backend = sl_layer_backend_plain();
    return code;
}

/* sl_network_gradient with x and g on the host. */
static double find_gradient(sl_network *net, uint32_t rows, const float *x, float *g) {
    const sl_vec_ops *vec = net->vec;
    size_t count = net->table.dimension;
    if (vec->on_host)
        return sl_network_gradient(net, rows, x, g);
    float *there = vec->allocate(count), *gradient = vec->allocate(count);
    vec->copy_in(there, x, count * sizeof *x);
    double loss = sl_network_gradient(net, rows, there, gradient);
    vec->copy_out(g, gradient, count * sizeof *g);
    EXPECT_WELL(vec->fence(&error));
    vec->release(there);
    vec->release(gradient);
    return loss;
}

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
} models[] = {
    {"lenet5", SL_MODEL_LENET5, 2e-6, 2e-6},           {"lenet5", SL_MODEL_LENET5, 2e-6, 2e-6},
    {"resnet20", SL_MODEL_RESNET20, 1e-5, 5e-5},       {"lstm", SL_MODEL_LSTM, 2e-6, 5e-6},
    {"transformer", SL_MODEL_TRANSFORMER, 2e-6, 5e-6},
};
/* Behind them small networks, each with its batch and with one row. */
enum { MODELS = sizeof models / sizeof *models, NETWORKS = 31, REFERENCES = MODELS + 2 * NETWORKS };
static const char *const kinds[] = {
#define NAME(kind, function, text) text,
    SL_LAYER_TABLE(NAME)
#undef NAME
};

static json_t *load_references(void) {
    json_t *all = json_load_file("tests/reference/models.json", 0, NULL);
    ck_assert_uint_eq(json_array_size(all), REFERENCES);
    return all;
}

static sl_layer_kind kind_of(const json_t *layer) {
    const char *name = json_string_value(json_object_get(layer, "kind"));
    int kind = 0;
    while (strcmp(kinds[kind], name) != 0)
        ck_assert_int_lt(++kind, SL_LAYER_KINDS);
    return (sl_layer_kind)kind;
}

/* The small network that the reference describes. */
static void build_layers(sl_layers *table, const json_t *expected) {
    const json_t *shape = json_object_get(expected, "shape"), *item;
    uint32_t sides[3];
    size_t i;
    json_array_foreach(shape, i, item) {
        sides[i] = (uint32_t)json_number_value(item);
    }
    *table = (sl_layers){.input = {sides[0], sides[1], sides[2]}};
    json_array_foreach(json_object_get(expected, "layers"), i, item) {
        const sl_layer layer = {.kind = kind_of(item),
                                .out.channels = (uint32_t)number(item, "k"),
                                .window = (uint32_t)number(item, "window"),
                                .stride = (uint32_t)number(item, "stride"),
                                .padding = (uint32_t)number(item, "padding"),
                                .bias = number(item, "bias") != 0,
                                .relu = number(item, "relu") != 0,
                                .each = number(item, "each") != 0,
                                .shortcut = (uint32_t)number(item, "shortcut"),
                                .symbols = (uint32_t)number(item, "symbols"),
                                .heads = (uint32_t)number(item, "heads")};
        EXPECT_WELL(sl_layers_add(table, &layer, &error));
    }
}

static void build_model(sl_layers *table, const json_t *expected, sl_model_kind kind) {
    const sl_model_config config = {.kind = kind, .embedding = 8, .heads = 4};
    const bool text = sl_model_takes_text(kind);
    const uint32_t side = (uint32_t)number(expected, "side");
    const sl_shape image = {side, side, (uint32_t)number(expected, "channels")},
                   sequence = {1, (uint32_t)number(expected, "sequence"), 1};
    EXPECT_WELL(sl_model_build(table, &config, text ? sequence : image,
                               text ? (uint32_t)number(expected, "symbols") : 10, "test", &error));
}

/* What the reference describes, its input and labels as there, and parameters. */
static sl_network open_reference(const json_t *expected, size_t at, machine where, float **x) {
    const uint32_t rows = (uint32_t)number(expected, "rows");
    sl_layers table;
    sl_network net;
    if (at < MODELS)
        build_model(&table, expected, models[at].kind);
    else
        build_layers(&table, expected);
    EXPECT_WELL(open_on(&net, &table, where, rows));
    const uint32_t symbols = table.items[0].symbols; /* 0: it takes numbers */
    for (size_t i = 0; i < rows * sl_shape_size(table.input); i++) {
        float u = uniform_at(i, (uint64_t)number(expected, "salt"));
        net.input[i] = symbols > 0 ? (float)floor((u + 1.0) * symbols / 2) : u;
    }
    for (uint32_t i = 0; i < rows * net.positions; i++)
        net.labels[i] = (uint16_t)(i * 7 % net.classes);
    *x = new_floats(table.dimension);
    reference_parameters(&table, *x);
    return net;
}

START_LOOP_TEST(networks_agree_with_pytorch, MACHINES *REFERENCES) {
    const size_t at = (size_t)_i / MACHINES;
    json_t *all = load_references(), *expected = json_array_get(all, at);
    const bool is_model = at < MODELS;
    float *x;
    sl_network net = open_reference(expected, at, _i % MACHINES, &x);
    float *g = new_floats(net.table.dimension);
    const double loss = find_gradient(&net, net.rows_max, x, g);
    ck_assert_double_eq_tol(loss, number(expected, "loss"),
                            is_model ? models[at].loss_error : 2e-6 * (1 + loss));
    ck_assert_double_lt(compare_tensors(&net.table, g, json_object_get(expected, "tensors")),
                        is_model ? models[at].gradient_error : 1e-5);
    ck_assert(loss == find_gradient(&net, net.rows_max, x, g));
    sl_network_close(&net);
    json_decref(all);
}

START_TEST(every_kind_is_in_a_small_network) {
    bool had[SL_LAYER_KINDS] = {false};
    json_t *all = load_references(), *layer;
    size_t i;
    for (size_t at = MODELS; at < REFERENCES; at++) {
        json_array_foreach(json_object_get(json_array_get(all, at), "layers"), i, layer) {
            had[kind_of(layer)] = true;
        }
    }
    for (int kind = 0; kind < SL_LAYER_KINDS; kind++)
        ck_assert_msg(had[kind], "%s: no network of tests/reference/models.py has it", kinds[kind]);
    json_decref(all);
}

/* ---- networks of dense layers ---- */

/* With 9 inputs, of one hidden layer. */
static sl_network open_perceptron(json_t **expected, float **x) {
    enum { PERCEPTRON = MODELS + 2 };
    *expected = load_references();
    return open_reference(json_array_get(*expected, PERCEPTRON), PERCEPTRON, FASTEST, x);
}

/* A number that is none shows through a ReLU, too. */
START_TEST(a_score_is_the_loss_and_a_nan_parameter_shows_in_it) {
    float *x, g[512];
    uint64_t correct = 0;
    json_t *all;
    sl_network net = open_perceptron(&all, &x);
    const uint32_t rows = net.rows_max;
    ck_assert_double_eq_tol(sl_network_score(&net, rows, x, &correct) / rows,
                            sl_network_gradient(&net, rows, x, g), 1e-6);
    ck_assert_uint_le(correct, rows);
    x[0] = NAN;
    ck_assert(isnan(sl_network_gradient(&net, rows, x, g)));
    sl_network_close(&net);
    json_decref(all);
}

START_TEST(gradients_do_not_depend_on_where_vectors_lie) {
    enum { ROWS = 32, PIXELS = 784, FARTHEST = 9 };
    const sl_layer layers[] = {DENSE(256, false, true), DENSE(10, false, false)};
    sl_layers table = {.input = {1, 1, PIXELS}};
    sl_network net;
    for (int l = 0; l < 2; l++)
        EXPECT_WELL(sl_layers_add(&table, &layers[l], &error));
    ck_assert_int_eq(open_on(&net, &table, FASTEST, ROWS), 0);
    const size_t d = table.dimension, room = ((d + FARTHEST) * sizeof(float) + 63) / 64 * 64;
    float *x = aligned_alloc(64, room), *g = aligned_alloc(64, room),
          *moved = aligned_alloc(64, room), *h = aligned_alloc(64, room);
    sl_layers_initial(&table, 1, x);
    memset(net.labels, 0, ROWS * sizeof *net.labels);
    fill(net.input, ROWS * PIXELS, 5, 1);
    for (size_t offset = 0; offset < FARTHEST; offset += 3) {
        memcpy(moved + offset, x, d * sizeof *x);
        const double loss = sl_network_gradient(&net, ROWS, x, g);
        ck_assert(loss == sl_network_gradient(&net, ROWS, moved + offset, h + offset));
        ck_assert_mem_eq(g, h + offset, d * sizeof *g);
    }
    free(x);
    free(g);
    free(moved);
    free(h);
    sl_network_close(&net);
}

START_TEST(unfitting_layers_are_refused) {
    sl_layers table = {.input = {4, 4, 2}};
    sl_layer layer = CONV(3, 5, 1, 0, false, false);
    EXPECT_ERROR(sl_layers_add(&table, &layer, &error), SL_EINVAL, "layer 1 (conv2d 5x5");
    ck_assert_uint_eq(table.count, 0);
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
