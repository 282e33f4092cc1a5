/* test_training.c - a model computes on a device what it computes on the CPU: the device is the
 * emulated one, unless STARLING_PLUGIN names another.
 *
 * At the same point two implementations differ by rounding. A network of L products in a row, the
 * longest sum of n terms, has a loss and a gradient within rounding_of() = 2 L sqrt(n) u of each
 * other: errors of random sign add up to sqrt(n) u in a sum (Higham and Mary 2019, "A new approach
 * to probabilistic rounding error analysis"; u = 2^-24), in each of L products, in both.
 *
 * The gradient jumps where a ReLU or a max-pool is within rounding of its kink and flips. A flip
 * reroutes one of the `kinks` values of a layer in a batch, whose shares of the gradient are of the
 * same order, so that F flips move it by sqrt(F / kinks) of its norm. FLIPS are allowed: of the
 * narrowest layer with kinks, in which a flip counts most, fewer than one value a step lies that
 * near on average. Most steps have none, but with the half million kinks of ResNet-20.
 *
 * A step is one of checkvec's operations, whose bits are equal.
 */
#include <pthread.h>

#include "element/sum.h"
#include "harness.h"
#include "noise.h"
#include "starling/device.h"
#include "starling/learner.h"
#include "starling/rng.h"

enum { LSTM = 1, MLP = 3, RESNET20 = 5 }; /* places among models */
#define FLIPS 16
#define SAME_POINTS 10

static sl_error error;

static const struct {
    const char *name;
    sl_model_config model;
    sl_data_config data;
    float learning_rate;
    uint32_t products;    /* in a row, L */
    uint32_t terms;       /* of the longest sum, n */
    uint32_t kinks;       /* of the narrowest layer that has any, in a batch */
    bool flips_each_step; /* too many kinks for a step without */
} models[] = {
    {"softmax",
     {.kind = SL_MODEL_SOFTMAX},
     {.kind = SL_DATA_DIGITS, .batch = 16},
     .learning_rate = 0.02f,
     .products = 1,
     .terms = 784},
    {"lstm",
     {.kind = SL_MODEL_LSTM, .embedding = 8, .units = 33, .layers = 2},
     {.kind = SL_DATA_TEXT, .batch = 6, .sequence = 20},
     .learning_rate = 0.1f,
     .products = 22, /* 20 letters, 2 layers */
     .terms = 6 * 20},
    {"transformer",
     {.kind = SL_MODEL_TRANSFORMER, .units = 32, .layers = 2, .heads = 4},
     {.kind = SL_DATA_TEXT, .batch = 6, .sequence = 20},
     .learning_rate = 0.05f,
     .products = 2 * 6 + 1,
     .terms = 128},
    {"mlp",
     {.kind = SL_MODEL_MLP, .hidden = {50, 31}, .hidden_count = 2},
     {.kind = SL_DATA_DIGITS, .batch = 16},
     .learning_rate = 0.02f,
     .products = 3,
     .terms = 784,
     .kinks = 16 * 31},
    {"lenet5",
     {.kind = SL_MODEL_LENET5},
     {.kind = SL_DATA_DIGITS, .batch = 16},
     .learning_rate = 0.01f,
     .products = 5,
     .terms = 16 * 24 * 24,
     .kinks = 16 * 84},
    {"resnet20",
     {.kind = SL_MODEL_RESNET20},
     {.kind = SL_DATA_CIFAR10, .batch = 4},
     .learning_rate = 0.0002f,
     .products = 20,
     .terms = 4 * 32 * 32,
     .kinks = 4 * 64 * 8 * 8,
     .flips_each_step = true},
};

/* One trainer: a learner with its vectors. */
typedef struct trainer {
    sl_learner *learner;
    const sl_vec_ops *vec;
    float *x, *g, *m;
} trainer;

static sl_learner_settings settings_of(int i, const char *folder) {
    sl_learner_settings e = {
        .nodes = 2, .seed = 1, .rounds = 100, .model = models[i].model, .data = models[i].data};
    snprintf(e.data.path, sizeof e.data.path, e.data.kind == SL_DATA_TEXT ? "%s/text" : "%s",
             folder);
    e.data.train_samples = e.data.kind == SL_DATA_DIGITS ? 400 : 0;
    e.data.test_samples = e.data.kind == SL_DATA_DIGITS ? 50 : 0;
    return e;
}

static trainer open_trainer(const sl_learner_settings *e, const sl_vec_ops *vec) {
    trainer t = {.vec = vec};
    ck_assert_msg(sl_learner_open(&t.learner, e, &error) == 0, "%s", error.text);
    ck_assert_msg(sl_learner_attach(t.learner, vec, &error) == 0, "%s", error.text);
    size_t d = sl_learner_dimension(t.learner);
    t.x = vec->allocate(d);
    t.g = vec->allocate(d);
    t.m = vec->allocate(d);
    float *start = malloc(d * sizeof *start);
    sl_learner_initial(t.learner, 0, start);
    vec->copy_in(t.x, start, d * sizeof *start);
    free(start);
    return t;
}

static double step(trainer *t, uint64_t round, float learning_rate) {
    double loss = sl_learner_gradient(t->learner, round % 2, round, t->x, t->g);
    t->vec->sgd_step(t->x, t->x, t->g, t->m,
                     &(sl_sgd){.learning_rate = learning_rate, .momentum = 0.9f},
                     sl_learner_dimension(t->learner));
    return loss;
}

static sl_evaluation evaluate(trainer *t) {
    size_t d = sl_learner_dimension(t->learner);
    float *x = malloc(d * sizeof *x);
    t->vec->copy_out(x, t->x, d * sizeof *x);
    sl_evaluation e = sl_learner_evaluate(t->learner, x);
    free(x);
    return e;
}

static void close_trainer(trainer *t) {
    ck_assert_msg(t->vec->fence(&error) == 0, "%s", error.text);
    sl_learner_close(&t->learner);
    t->vec->release(t->x);
    t->vec->release(t->g);
    t->vec->release(t->m);
}

static const sl_vec_ops *device(void) {
    const sl_vec_ops *vec;
    ck_assert_msg(sl_device_open(&vec, "cuda:0", 0, &error) == 0, "%s", error.text);
    ck_assert(!vec->on_host);
    return vec;
}

static double rounding_of(int i) {
    return 2 * models[i].products * sqrt(models[i].terms) * 0x1p-24;
}

/* The difference of the gradients, of the CPU's norm. */
static double apart(const trainer *there, const trainer *cpu) {
    size_t d = sl_learner_dimension(cpu->learner);
    float *found = malloc(d * sizeof *found);
    there->vec->copy_out(found, there->g, d * sizeof *found);
    double difference = sqrt(cpu->vec->distance_squared(found, cpu->g, d));
    free(found);
    return difference / sqrt(cpu->vec->norm2_squared(cpu->g, d));
}

static void check_evaluations(trainer *there, trainer *cpu, double error_allowed) {
    sl_evaluation expected = evaluate(cpu), found = evaluate(there);
    ck_assert_double_le(fabs(found.loss - expected.loss), error_allowed * expected.loss);
    ck_assert_double_le(fabs(found.accuracy - expected.accuracy), 0.05);
}

/* The CPU trains; the device computes each gradient at the CPU's point. */
START_LOOP_TEST(gradients_on_a_device_are_the_cpus, sizeof models / sizeof *models) {
    char folder[] = "/tmp/starling-training-XXXXXX";
    noise_write(folder);
    sl_learner_settings e = settings_of(_i, folder);
    trainer cpu = open_trainer(&e, sl_vec_cpu()), there = open_trainer(&e, device());
    const size_t d = sl_learner_dimension(cpu.learner);
    const double rounding = rounding_of(_i);
    const double flipped = models[_i].kinks > 0 ? sqrt((double)FLIPS / models[_i].kinks) : 0;
    double worst_loss = 0, worst_smooth = 0, worst_flipped = 0;
    const uint64_t points = getenv("STARLING_QUICK") != NULL ? 3 : SAME_POINTS;
    uint64_t flips = 0;
    for (uint64_t round = 1; round <= points; round++) {
        there.vec->copy_in(there.x, cpu.x, d * sizeof *cpu.x);
        double found = step(&there, round, 0);
        double expected = step(&cpu, round, models[_i].learning_rate);
        double gradient = apart(&there, &cpu), loss = fabs(found - expected) / expected;
        worst_loss = fmax(worst_loss, loss);
        ck_assert_msg(loss <= rounding, "%s, step %d: loss %.9g, on the CPU %.9g", models[_i].name,
                      (int)round, found, expected);
        ck_assert_msg(gradient <= fmax(rounding, flipped),
                      "%s, step %d: the gradients are %.2g of their norm apart", models[_i].name,
                      (int)round, gradient);
        flips += gradient > rounding;
        *(gradient > rounding ? &worst_flipped : &worst_smooth) =
            fmax(gradient, gradient > rounding ? worst_flipped : worst_smooth);
    }
    there.vec->copy_in(there.x, cpu.x, d * sizeof *cpu.x);
    check_evaluations(&there, &cpu, rounding);
    printf("%s: at the same points losses are apart by %.2e, gradients by %.2e (%.2e allowed), "
           "in %d steps with flips by %.2e (%.2e)\n",
           models[_i].name, worst_loss, worst_smooth, rounding, (int)flips, worst_flipped, flipped);
    ck_assert(models[_i].flips_each_step || 2 * flips <= points);
    close_trainer(&cpu);
    close_trainer(&there);
    noise_remove(folder);
}

/* Back on the host, a learner has the host's bits, and again there the device's. */
START_TEST(a_learner_moves_between_devices) {
    sl_learner_settings e = settings_of(MLP, "/nowhere");
    trainer cpu = open_trainer(&e, sl_vec_cpu()), there = open_trainer(&e, device());
    double on_cpu = step(&cpu, 1, 0), on_device = step(&there, 1, 0);
    ck_assert_int_eq(sl_learner_attach(cpu.learner, there.vec, &error), 0);
    ck_assert_int_eq(sl_learner_attach(there.learner, cpu.vec, &error), 0);
    ck_assert(sl_learner_gradient(cpu.learner, 1, 1, there.x, there.g) == on_device);
    ck_assert(sl_learner_gradient(there.learner, 1, 1, cpu.x, cpu.g) == on_cpu);
    close_trainer(&cpu);
    close_trainer(&there);
}

/* A node that asks round by round has its next batch gathered beside the gradient; one that takes
 * turns with another has not. Evaluating is in between. */
START_LOOP_TEST(batches_gathered_ahead_are_the_same, 3) {
    static const int kinds[] = {LSTM, MLP, RESNET20}; /* text, pixels, and cropped ones */
    if (kinds[_i] == RESNET20 && getenv("STARLING_QUICK") != NULL)
        return;
    char folder[] = "/tmp/starling-training-XXXXXX";
    noise_write(folder);
    sl_learner_settings e = settings_of(kinds[_i], folder);
    trainer alone = open_trainer(&e, device()), turns = open_trainer(&e, device());
    size_t bytes = sl_learner_dimension(alone.learner) * sizeof(float);
    float *found = malloc(bytes), *expected = malloc(bytes);
    for (uint64_t round = 1; round <= 8; round++) {
        sl_learner_gradient(turns.learner, 1, round, turns.x, turns.g);
        ck_assert(sl_learner_gradient(alone.learner, 0, round, alone.x, alone.g) ==
                  sl_learner_gradient(turns.learner, 0, round, turns.x, turns.g));
        alone.vec->copy_out(found, alone.g, bytes);
        turns.vec->copy_out(expected, turns.g, bytes);
        ck_assert_mem_eq(found, expected, bytes);
        if (round == 4)
            evaluate(&alone);
        if (round == 6)
            sl_learner_gradient(alone.learner, 0, 2, alone.x, alone.g);
    }
    free(found);
    free(expected);
    close_trainer(&alone);
    close_trainer(&turns);
    noise_remove(folder);
}

/* What was asked for, and how much there is. */
START_TEST(a_shortage_of_memory_is_told) {
    const sl_vec_ops *vec;
    sl_vec_memory before;
    ck_assert_int_eq(sl_device_open(&vec, "cuda:0", 0, &error), 0);
    vec->memory(&before);
    ck_assert_uint_gt(before.taken, 0); /* by products */
    ck_assert_int_eq(sl_device_open(&vec, "cuda:0", before.taken + 1000000, &error), 0);
    float *some = vec->allocate(100000);
    ck_assert_ptr_nonnull(some);
    ck_assert_ptr_null(vec->allocate(150001));
    ck_assert_int_eq(sl_vec_no_memory(vec, &error, "node %u", 3), SL_ENOMEM);
    char expected[160];
    snprintf(expected, sizeof expected,
             "node 3: cuda:0: 0.6 MB are needed, and of the %.1f MB that device_memory_gb allows "
             "0.6 MB are left",
             1 + 1e-6 * (double)before.taken);
    ck_assert_str_eq(error.text, expected);
    float *rest = vec->allocate(150000);
    ck_assert_ptr_nonnull(rest);
    vec->release(some);
    vec->release(rest);
    ck_assert_int_eq(sl_device_open(&vec, "cuda:0", 0, &error), 0);
    ck_assert_ptr_null(vec->allocate((size_t)1 << 40));
    sl_vec_no_memory(vec, &error, "node %u", 3);
    ck_assert_msg(
        strstr(error.text, "node 3: cuda:0 is out of memory: 4398046.5 MB are needed and ") ==
            error.text,
        "%s", error.text);
    sl_vec_no_memory(sl_vec_cpu(), &error, "node %u", 3);
    ck_assert_str_eq(error.text, "node 3: out of memory");
}

static void *measure(void *vec_) {
    const sl_vec_ops *vec = vec_;
    enum { N = 1 << 20, SUMS = N / SUM_TILE };
    sl_vec_memory before, while_thread, after;
    float *v = vec->allocate(N);
    ck_assert_ptr_nonnull(v);
    vec->fill(v, 2, N);
    vec->memory(&before);
    ck_assert_double_eq(vec->norm2_squared(v, N), 4.0 * N);
    vec->memory(&while_thread);
    ck_assert_uint_ge(while_thread.taken, before.taken + SUMS * sizeof(double));
    ck_assert_double_eq(vec->norm2_squared(v, N / 2), 2.0 * N);
    vec->memory(&after);
    ck_assert_uint_eq(after.taken, while_thread.taken);
    vec->release(v);
    return NULL;
}

/* It counts while its thread lives. */
START_TEST(working_memory_counts) {
    const sl_vec_ops *vec;
    sl_vec_memory before, after;
    pthread_t thread;
    ck_assert_int_eq(sl_device_open(&vec, "cuda:0", 0, &error), 0);
    vec->memory(&before);
    ck_assert_int_eq(pthread_create(&thread, NULL, measure, (void *)(uintptr_t)vec), 0);
    pthread_join(thread, NULL);
    vec->memory(&after);
    ck_assert_uint_eq(after.taken, before.taken);
}

/* A learner over its bound opens nothing, and stays where it was. */
START_TEST(a_learner_keeps_to_the_bound) {
    const sl_vec_ops *vec;
    sl_vec_memory before;
    sl_learner_settings e = settings_of(MLP, "/nowhere");
    trainer cpu = open_trainer(&e, sl_vec_cpu());
    ck_assert_int_eq(sl_device_open(&vec, "cuda:0", 0, &error), 0);
    vec->memory(&before);
    ck_assert_int_eq(sl_device_open(&vec, "cuda:0", before.taken + 200000, &error), 0);
    ck_assert_int_eq(sl_learner_attach(cpu.learner, vec, &error), SL_ENOMEM);
    ck_assert_msg(strstr(error.text, "model: working memory for 256 samples at a time: cuda:0: ") ==
                          error.text &&
                      strstr(error.text, "device_memory_gb allows") != NULL,
                  "%s", error.text);
    ck_assert(isfinite(step(&cpu, 1, 0.1f)));
    ck_assert_int_eq(sl_device_open(&vec, "cuda:0", 0, &error), 0);
    close_trainer(&cpu);
}

int main(void) {
    return run_tests("training");
}
