/* layers.c - each kind of layer on a device against the plain C one on the CPU: forward, backward,
 * adding and overwriting.
 *
 * Both are given the same numbers. Results may differ by `tolerance` times the largest number of
 * the tensor: sums run in another order, and exponentials are others.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/layer_rows.h"
#include "base/clock.h"
#include "checkvec.h"
#include "starling/rng.h"

static const struct {
    const char *name;
    sl_layer layer;
    sl_shape in;
    uint32_t rows;
    float largest; /* of extreme inputs; beyond, results mean nothing */
    double tolerance;
    sl_shape shortcut; /* without channels: none */
} cases[] = {
    {"dense", DENSE(10, false, true), {3, 5, 7}, 33, 1e15f, 2e-6, {0}},
    {"dense, one row, one output", DENSE(1, false, false), {1, 1, 1}, 1, 1e15f, 2e-6, {0}},
    {"dense at each, shortcut", DENSE(12, true, true), {1, 67, 5}, 3, 1e15f, 2e-6, {1, 67, 12}},
    {"dense, 5000 positions", DENSE(3, true, false), {1, 5000, 2}, 1, 1e15f, 5e-6, {0}},
    {"conv2d 5x5", CONV(6, 5, 1, 2, true, true), {28, 28, 1}, 3, 1e15f, 5e-6, {0}},
    {"conv2d 3x3, odd sides", CONV(21, 3, 1, 1, false, false), {7, 9, 10}, 3, 1e15f, 5e-6, {0}},
    {"conv2d 3x3, stride 2", CONV(8, 3, 2, 1, true, true), {8, 7, 4}, 5, 1e15f, 5e-6, {0}},
    {"conv2d 2x2, stride 3", CONV(5, 2, 3, 0, true, false), {9, 11, 3}, 2, 1e15f, 5e-6, {0}},
    {"conv2d 1x1, one row", CONV(17, 1, 1, 0, false, true), {5, 4, 6}, 1, 1e15f, 5e-6, {0}},
    {"conv2d of 8, stride 2", CONV(12, 3, 2, 1, true, false), {9, 15, 8}, 4, 1e15f, 5e-6, {0}},
    {"conv2d of 8 channels, 2x2", CONV(8, 2, 3, 0, false, false), {10, 11, 8}, 2, 1e15f, 5e-6, {0}},
    {"conv2d of long sums", CONV(8, 3, 1, 1, false, true), {45, 47, 8}, 3, 0, 2e-5, {0}},
    {"conv2d of 36, in pieces", CONV(36, 5, 1, 2, true, true), {70, 64, 36}, 3, 0, 2e-5, {0}},
    {"conv2d in pieces", CONV(4, 5, 1, 2, true, true), {70, 64, 32}, 5, 0, 2e-5, {0}},
    {"batch norm", NORM(true, 0), {5, 6, 19}, 4, 1e4f, 1e-5, {0}},
    {"batch norm, shortcut", NORM(true, 0), {6, 6, 16}, 30, 1e4f, 1e-5, {6, 6, 16}},
    {"batch norm, shortcut of option A", NORM(true, 0), {4, 3, 21}, 3, 1e4f, 1e-5, {7, 6, 10}},
    {"batch norm, one row", NORM(false, 0), {5, 5, 3}, 1, 1e4f, 1e-5, {0}},
    {"batch norm, 300 channels", NORM(true, 0), {4, 5, 300}, 9, 1e4f, 1e-5, {4, 5, 300}},
    {"max pool 2x2", MAX_POOL(2, 2), {8, 9, 5}, 3, 1e15f, 1e-6, {0}},
    {"max pool 3x3, overlapping", MAX_POOL(3, 1), {6, 7, 11}, 2, 1e15f, 1e-6, {0}},
    {"max pool 2x2, stride 3", MAX_POOL(2, 3), {9, 8, 3}, 1, 1e15f, 1e-6, {0}},
    {"average pool 3x3, stride 2", AVERAGE_POOL(3, 2), {8, 9, 5}, 3, 1e15f, 2e-6, {0}},
    {"average pool of all", AVERAGE_POOL(0, 0), {8, 8, 64}, 2, 1e15f, 2e-6, {0}},
    {"embedding", EMBED(65, 8, false), {1, 80, 1}, 9, 1e15f, 2e-6, {0}},
    {"embedding of positions", EMBED(5, 9, true), {1, 7, 1}, 1, 1e15f, 2e-6, {0}},
    {"lstm", LSTM(13), {1, 9, 3}, 5, 30, 2e-5, {0}},
    {"lstm of one step, one row", LSTM(5), {1, 1, 4}, 1, 30, 2e-5, {0}},
    {"layer norm", LAYER_NORM, {1, 37, 11}, 7, 1e4f, 1e-5, {0}},
    /* little is left of d */
    {"layer norm, 3 channels, one row", LAYER_NORM, {1, 1, 3}, 1, 1e4f, 2e-4, {0}},
    {"attention", ATTEND(3), {1, 17, 36}, 5, 2, 1e-5, {0}},
    {"attention, one position", ATTEND(1), {1, 1, 6}, 1, 2, 1e-5, {0}},
    {"attention in pieces", ATTEND(8), {1, 520, 48}, 5, 0, 1e-5, {0}},
    {"gelu", GELU, {1, 3, 7}, 5, 1e4f, 1e-6, {0}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Kinds that no case has. */
static void name_missing(const target *t) {
    static const char *const names[] = {
#define NAME(kind, function, text) #function " has no case in tests/checkvec/layers.c",
        SL_LAYER_TABLE(NAME)
#undef NAME
    };
    bool had[SL_LAYER_KINDS] = {false};
    for (int c = 0; c < CASES; c++)
        had[cases[c].layer.kind] = true;
    for (int kind = 0; kind < SL_LAYER_KINDS; kind++)
        if (t->vec->layers->kinds[kind] != NULL && !had[kind])
            tell(t, names[kind], false);
}

/* ---- numbers ---- */

static void draw_numbers(float *v, size_t count, input_kind kind, float largest, uint32_t stream) {
    const float extremes[] = {0.0f, -0.0f, 1e-41f, -1e-38f, largest, -largest, 1.0f, -0.5f};
    sl_rng rng = sl_rng_open(5, stream, kind, SL_PURPOSE_INIT);
    for (size_t i = 0; i < count; i++)
        v[i] = kind == EXTREME && sl_rng_below(&rng, 2) ? extremes[sl_rng_below(&rng, 8)]
                                                        : (float)sl_rng_normal(&rng);
}

/* A tensor as the host sees it, and where the layer works on it. */
typedef struct tensor {
    float *host, *there;
    size_t count;
} tensor;

static tensor open_tensor(const sl_vec_ops *vec, size_t count) {
    return (tensor){need(calloc(count + 1, sizeof(float))), need(vec->allocate(count + 1)), count};
}

static void send(const sl_vec_ops *vec, const tensor *t) {
    vec->copy_in(t->there, t->host, t->count * sizeof *t->host);
}

static void fetch(const sl_vec_ops *vec, const tensor *t) {
    vec->copy_out(t->host, t->there, t->count * sizeof *t->host);
}

/* ---- one layer on one device ---- */

enum { W, IN, SHORTCUT, OUT, SAVED, KEPT, SCRATCH, G, D_OUT, D_IN, D_SHORTCUT, TENSORS };
static const char *const tensor_names[] = {"w",       "in", "shortcut", "out",  "saved",     "kept",
                                           "scratch", "g",  "d_out",    "d_in", "d_shortcut"};

typedef struct side {
    const sl_vec_ops *vec;
    const sl_layer_ops *ops;
    sl_layer layer;
    tensor t[TENSORS];
} side;

static sl_layer layer_of(int c) {
    sl_layers table = {.input = cases[c].in};
    sl_error error;
    if (sl_layers_add(&table, &cases[c].layer, &error) != 0) {
        printf("not ok %s: %s\n", cases[c].name, error.text);
        exit(1);
    }
    return table.items[0];
}

static side open_side(const sl_vec_ops *vec, const sl_layer_backend *backend, int c) {
    side s = {.vec = vec, .layer = layer_of(c), .ops = backend->kinds[cases[c].layer.kind]};
    const sl_layer_memory m = s.ops->memory(&s.layer, cases[c].rows);
    const size_t in = cases[c].rows * sl_shape_size(s.layer.in),
                 out = cases[c].rows * sl_shape_size(s.layer.out);
    const size_t shortcut = cases[c].rows * sl_shape_size(cases[c].shortcut);
    const size_t counts[TENSORS] = {s.layer.count, in,         shortcut,  out,
                                    m.saved,       2 * m.kept, m.scratch, s.layer.count,
                                    out,           in,         shortcut};
    for (int i = 0; i < TENSORS; i++)
        s.t[i] = open_tensor(vec, counts[i]);
    return s;
}

static void close_side(side *s) {
    for (int i = 0; i < TENSORS; i++) {
        free(s->t[i].host);
        s->vec->release(s->t[i].there);
    }
}

static void fill_side(side *s, int c, input_kind kind) {
    static const int drawn[] = {W, IN, SHORTCUT, G, D_OUT, D_IN, D_SHORTCUT};
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
        tensor *t = &s->t[drawn[i]];
        draw_numbers(t->host, t->count, drawn[i] == IN || drawn[i] == D_OUT ? kind : RANDOM,
                     cases[c].largest, (uint32_t)drawn[i]);
        for (size_t e = 0; e < t->count && drawn[i] == IN && s->layer.kind == SL_LAYER_EMBEDDING;
             e++)
            t->host[e] = (float)(e * 7 % 19 % s->layer.symbols);
        send(s->vec, t);
    }
    s->vec->fill(s->t[KEPT].there, 0, s->t[KEPT].count);
}

static sl_layer_call call_of(const side *s, int c, sl_pass pass, bool add) {
    const bool detours = cases[c].shortcut.channels > 0;
    return (sl_layer_call){.layer = &s->layer,
                           .pass = pass,
                           .rows = cases[c].rows,
                           .w = s->t[W].there,
                           .in = s->t[IN].there,
                           .shortcut = detours ? s->t[SHORTCUT].there : NULL,
                           .shortcut_shape = cases[c].shortcut,
                           .out = s->t[OUT].there,
                           .saved = s->t[SAVED].there,
                           .kept = (double *)(void *)s->t[KEPT].there,
                           .scratch = s->t[SCRATCH].there,
                           .g = s->t[G].there,
                           .d_out = s->t[D_OUT].there,
                           .d_in = s->t[D_IN].there,
                           .d_shortcut = detours ? s->t[D_SHORTCUT].there : NULL,
                           .add_in = add,
                           .add_shortcut = add};
}

/* ---- both ---- */

static bool is_near(const char *label, int c, const side *got, const side *expected, int which,
                    const char *when) {
    const tensor *a = &got->t[which], *b = &expected->t[which];
    float largest = 0;
    fetch(got->vec, a);
    fetch(expected->vec, b);
    for (size_t i = 0; i < b->count; i++)
        largest = fmaxf(largest, fabsf(b->host[i]));
    for (size_t i = 0; i < a->count; i++)
        if (!(fabs((double)a->host[i] - b->host[i]) <= cases[c].tolerance * largest)) {
            printf("# %s: %s, %s: %s[%zu] of %zu is %.9g, not %.9g (the largest is %.9g, tolerance "
                   "%g)\n",
                   label, cases[c].name, when, tensor_names[which], i, a->count, a->host[i],
                   b->host[i], largest, cases[c].tolerance);
            return false;
        }
    return true;
}

static bool check_training(const char *label, int c, side *device, side *cpu, input_kind kind,
                           bool add) {
    side *both[] = {device, cpu};
    char when[64];
    snprintf(when, sizeof when, "%s numbers, %s", kind == RANDOM ? "random" : "extreme",
             add ? "adding" : "overwriting");
    for (int i = 0; i < 2; i++) {
        fill_side(both[i], c, kind);
        sl_layer_call call = call_of(both[i], c, SL_PASS_TRAIN, add);
        both[i]->ops->forward(&call);
    }
    bool good = is_near(label, c, device, cpu, OUT, when);
    for (int i = 0; i < 2; i++) {
        sl_layer_call call = call_of(both[i], c, SL_PASS_TRAIN, add);
        both[i]->ops->backward(&call);
    }
    return is_near(label, c, device, cpu, G, when) && is_near(label, c, device, cpu, D_IN, when) &&
           is_near(label, c, device, cpu, D_SHORTCUT, when) && good;
}

/* Statistics of two batches, then an evaluation with them. */
static bool check_evaluation(const char *label, int c, side *device, side *cpu) {
    static const sl_pass passes[] = {SL_PASS_COLLECT, SL_PASS_COLLECT, SL_PASS_EVALUATE};
    side *both[] = {device, cpu};
    for (int i = 0; i < 2; i++) {
        fill_side(both[i], c, RANDOM);
        for (int p = 0; p < 3; p++) {
            sl_layer_call call = call_of(both[i], c, passes[p], false);
            both[i]->ops->forward(&call);
            if (p == 0) {
                draw_numbers(both[i]->t[IN].host, both[i]->t[IN].count, RANDOM, 0, 77);
                send(both[i]->vec, &both[i]->t[IN]);
            }
        }
    }
    return is_near(label, c, device, cpu, OUT, "evaluating");
}

static bool check_case(const sl_vec_ops *vec, const char *label, int c) {
    side device = open_side(vec, vec->layers, c),
         cpu = open_side(sl_vec_cpu(), sl_layer_backend_plain(), c);
    bool good = true;
    for (input_kind kind = RANDOM; kind < (cases[c].largest > 0 ? EQUAL : EXTREME); kind++)
        for (int add = 0; add < 2; add++)
            good = check_training(label, c, &device, &cpu, kind, add == 1) && good;
    if (cases[c].layer.kind == SL_LAYER_BATCH_NORM)
        good = check_evaluation(label, c, &device, &cpu) && good;
    close_side(&device);
    close_side(&cpu);
    return good;
}

/* ---- the loss ---- */

static void find_loss(const sl_vec_ops *vec, const sl_layer_backend *backend, tensor *z,
                      const uint16_t *labels, uint32_t rows, bool gradient, double result[2]) {
    const uint32_t classes = (uint32_t)(z->count / rows);
    float *labels_there = need(vec->allocate(rows / 2 + 1)),
          *scratch = need(vec->allocate(backend->loss_scratch(rows) + 1)),
          *found = need(vec->allocate(4));
    send(vec, z);
    vec->copy_in(labels_there, labels, rows * sizeof *labels);
    backend->loss(&(sl_loss_call){.z = z->there,
                                  .labels = (uint16_t *)(void *)labels_there,
                                  .rows = rows,
                                  .classes = classes,
                                  .gradient = gradient,
                                  .result = (double *)(void *)found,
                                  .scratch = scratch});
    vec->copy_out(result, found, 2 * sizeof *result);
    fetch(vec, z);
    vec->release(labels_there);
    vec->release(scratch);
    vec->release(found);
}

static bool check_loss_of(const sl_vec_ops *vec, const char *label, uint32_t rows, uint32_t classes,
                          input_kind kind) {
    tensor there = open_tensor(vec, (size_t)rows * classes),
           here = open_tensor(sl_vec_cpu(), (size_t)rows * classes);
    uint16_t *labels = need(malloc(rows * sizeof *labels));
    double got[2], expected[2];
    bool good = true;
    for (uint32_t row = 0; row < rows; row++)
        labels[row] = (uint16_t)(row * 7 % classes);
    for (int gradient = 0; gradient < 2; gradient++) {
        draw_numbers(there.host, there.count, kind, 1e30f, 3);
        draw_numbers(here.host, here.count, kind, 1e30f, 3);
        find_loss(vec, vec->layers, &there, labels, rows, gradient, got);
        find_loss(sl_vec_cpu(), sl_layer_backend_plain(), &here, labels, rows, gradient, expected);
        good =
            good && fabs(got[0] - expected[0]) <= 1e-6 * fabs(expected[0]) && got[1] == expected[1];
        for (size_t i = 0; i < here.count && gradient; i++)
            good = good && fabs((double)there.host[i] - here.host[i]) <= 1e-6 / rows;
    }
    if (!good)
        printf("# %s: %u rows, %u classes, %s: loss %.17g, correct %g; not %.17g and %g; or their "
               "gradients\n",
               label, rows, classes, kind == RANDOM ? "random" : "extreme", got[0], got[1],
               expected[0], expected[1]);
    free(labels);
    free(there.host);
    free(here.host);
    vec->release(there.there);
    sl_vec_cpu()->release(here.there);
    return good;
}

static bool check_loss(const sl_vec_ops *vec, const char *label) {
    static const uint32_t shapes[][2] = {{1, 1}, {1, 10}, {63, 2}, {64, 65}, {65, 3}, {5000, 33}};
    bool good = true;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (input_kind kind = RANDOM; kind < EQUAL; kind++)
            good = check_loss_of(vec, label, shapes[i][0], shapes[i][1], kind) && good;
    return good;
}

void check_layers(const target *t) {
    sl_error error;
    if (t->vec->layers->open(&error) != 0) {
        tell(t, error.text, false);
        return;
    }
    for (int c = 0; c < CASES; c++)
        tell(t, cases[c].name, check_case(t->vec, t->label, c));
    tell(t, "loss", check_loss(t->vec, t->label));
    name_missing(t);
}

/* ---- speed ---- */

static const model_row models[] = {
    {"mlp 784-256-10",
     {.kind = SL_MODEL_MLP, .hidden = {256}, .hidden_count = 1},
     {1, 1, 784},
     10,
     32},
    {"lenet5", {.kind = SL_MODEL_LENET5}, {28, 28, 1}, 10, 32},
    {"resnet20", {.kind = SL_MODEL_RESNET20}, {32, 32, 3}, 10, 32},
    {"resnet20", {.kind = SL_MODEL_RESNET20}, {32, 32, 3}, 10, 128},
    {"lstm 2x256, 80 characters", {.kind = SL_MODEL_LSTM, .embedding = 8}, {1, 80, 1}, 65, 32},
    {"transformer 4x128, 80 char.", {.kind = SL_MODEL_TRANSFORMER, .heads = 4}, {1, 80, 1}, 65, 32},
};
enum { STEPS = 5, BENCH_SECONDS = 2 };

/* Batches lie ready: gathering them is not counted. The least of the times, after a first step; at
 * least STEPS, and for about BENCH_SECONDS. */
static double time_gradient(sl_network *net, uint32_t rows, const float *x, float *g) {
    double best = INFINITY, began = sl_clock_seconds();
    for (int i = 0; i < STEPS || sl_clock_seconds() - began < BENCH_SECONDS; i++) {
        double before = sl_clock_seconds();
        sl_network_gradient(net, rows, x, g);
        best = fmin(best, sl_clock_seconds() - before);
    }
    return best;
}

void bench_models(const target *t) {
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        sl_network net;
        if (!open_network(&net, t, &models[m]))
            continue;
        float *x = initial_model(t, &net), *g = initial_model(t, &net);
        fill_batch(&net, &models[m], 0);
        printf("%-10s gradient of %-28s batch %3u %10.3f ms\n", t->label, models[m].name,
               models[m].rows, 1e3 * time_gradient(&net, models[m].rows, x, g));
        fflush(stdout);
        sl_network_close(&net);
        t->vec->release(x);
        t->vec->release(g);
    }
}
