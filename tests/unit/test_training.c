/* test_training.c - a model computes on a device what it computes on the CPU: the device is the
 * emulated one, unless STARLING_PLUGIN names another.
 *
 * At the same point two implementations differ by rounding. A network of L products in a row, the
 * longest sum of n terms, has a loss and a gradient within 2 L sqrt(n) u of each other: errors of
 * random sign add up to sqrt(n) u in a sum (Higham and Mary 2019, "A new approach to probabilistic
 * rounding error analysis"; u = 2^-24), in each of L products, in both. The gradient jumps where a
 * ReLU or a max-pool is within rounding of its kink and flips: F flips of a layer's `kinks` values
 * in a batch move it by sqrt(F / kinks) of its norm. 16 are allowed, of the narrowest such layer.
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

static sl_error error;

static const struct {
    sl_model_config model;
    sl_data_config data;
    double rounding, gradient_error; /* of the loss, and of the gradient's norm */
} models[] = {
    ROW({.kind = SL_MODEL_SOFTMAX}, {.kind = SL_DATA_DIGITS, .batch = 16}, 3.4e-6, 3.4e-6),
    ROW({.kind = SL_MODEL_LSTM, .embedding = 8, .units = 33, .layers = 2},
        {.kind = SL_DATA_TEXT, .batch = 6, .sequence = 20}, 2.9e-5, 2.9e-5),
    ROW({.kind = SL_MODEL_TRANSFORMER, .units = 32, .layers = 2, .heads = 4},
        {.kind = SL_DATA_TEXT, .batch = 6, .sequence = 20}, 1.8e-5, 1.8e-5),
    ROW({.kind = SL_MODEL_MLP, .hidden = {50, 31}, .hidden_count = 2},
        {.kind = SL_DATA_DIGITS, .batch = 16}, 1e-5, 0.18),
    ROW({.kind = SL_MODEL_LENET5}, {.kind = SL_DATA_DIGITS, .batch = 16}, 5.8e-5, 0.11),
    ROW({.kind = SL_MODEL_RESNET20}, {.kind = SL_DATA_CIFAR10, .batch = 4}, 1.6e-4, 0.032),
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
    EXPECT_WELL(sl_learner_open(&t.learner, e, &error));
    EXPECT_WELL(sl_learner_attach(t.learner, vec, &error));
    size_t d = sl_learner_dimension(t.learner);
    t.x = vec->allocate(d);
    t.g = vec->allocate(d);
    t.m = vec->allocate(d);
    float *start = new_floats(d);
    sl_learner_initial(t.learner, 0, start);
    vec->copy_in(t.x, start, d * sizeof *start);
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
    float *x = new_floats(d);
    t->vec->copy_out(x, t->x, d * sizeof *x);
    return sl_learner_evaluate(t->learner, x);
}

static void close_trainer(trainer *t) {
    EXPECT_WELL(t->vec->fence(&error));
    sl_learner_close(&t->learner);
    t->vec->release(t->x);
    t->vec->release(t->g);
    t->vec->release(t->m);
}

static const sl_vec_ops *device(void) {
    const sl_vec_ops *vec;
    EXPECT_WELL(sl_device_open(&vec, "cuda:0", 0, &error));
    ck_assert(!vec->on_host);
    return vec;
}

/* The difference of the gradients, of the CPU's norm. */
static double apart(const trainer *there, const trainer *cpu) {
    size_t d = sl_learner_dimension(cpu->learner);
    float *found = new_floats(d);
    there->vec->copy_out(found, there->g, d * sizeof *found);
    double difference = sqrt(cpu->vec->distance_squared(found, cpu->g, d));
    return difference / sqrt(cpu->vec->norm2_squared(cpu->g, d));
}

/* A learner over its bound opens nothing, and stays where it was. It is the first: a
 * process opens matrix products once. */
START_TEST(a_learner_keeps_to_the_bound) {
    const sl_vec_ops *vec;
    sl_vec_memory before;
    sl_learner_settings e = settings_of(MLP, "/nowhere");
    trainer cpu = open_trainer(&e, sl_vec_cpu());
    EXPECT_WELL(sl_device_open(&vec, "cuda:0", 0, &error));
    vec->memory(&before);
    EXPECT_WELL(sl_device_open(&vec, "cuda:0", before.taken + 200000, &error));
    EXPECT_ERROR(sl_learner_attach(cpu.learner, vec, &error), SL_ENOMEM, "device_memory_gb allows");
    ck_assert_ptr_eq(
        strstr(error.text, "model: working memory for 256 samples at a time: cuda:0: "),
        error.text);
    ck_assert(isfinite(step(&cpu, 1, 0.1f)));
    bool named = false; /* its products, which are taken last */
    for (size_t more = 200000; sl_learner_attach(cpu.learner, vec, &error) != 0; more += 50000) {
        named = named || strstr(error.text, "model: working memory of matrix products: cuda:0: ");
        EXPECT_WELL(sl_device_open(&vec, "cuda:0", before.taken + more, &error));
    }
    ck_assert(named);
    EXPECT_WELL(sl_device_open(&vec, "cuda:0", 0, &error));
    close_trainer(&cpu);
}

/* test_models.c and checkvec have each layer's numbers; here a learner puts them together. */
START_LOOP_TEST(gradients_on_a_device_are_the_cpus, sizeof models / sizeof *models) {
    char folder[] = "/tmp/starling-training-XXXXXX";
    noise_write(folder);
    sl_learner_settings e = settings_of(_i, folder);
    trainer cpu = open_trainer(&e, sl_vec_cpu()), there = open_trainer(&e, device());
    const double expected = step(&cpu, 1, 0), found = step(&there, 1, 0);
    ck_assert_double_eq_tol(found, expected, models[_i].rounding * expected);
    ck_assert_double_le(apart(&there, &cpu), models[_i].gradient_error);
    const sl_evaluation on_cpu = evaluate(&cpu), on_device = evaluate(&there);
    ck_assert_double_eq_tol(on_device.loss, on_cpu.loss, models[_i].rounding * on_cpu.loss);
    ck_assert_double_eq_tol(on_device.accuracy, on_cpu.accuracy, 0.05);
    close_trainer(&cpu);
    close_trainer(&there);
    noise_remove(folder);
}

/* Back on the host, a learner has the host's bits, and again there the device's. */
START_TEST(a_learner_moves_between_devices) {
    sl_learner_settings e = settings_of(MLP, "/nowhere");
    trainer cpu = open_trainer(&e, sl_vec_cpu()), there = open_trainer(&e, device());
    double on_cpu = step(&cpu, 1, 0), on_device = step(&there, 1, 0);
    EXPECT_WELL(sl_learner_attach(cpu.learner, there.vec, &error));
    EXPECT_WELL(sl_learner_attach(there.learner, cpu.vec, &error));
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
    float *found = new_floats(bytes / sizeof(float)), *expected = new_floats(bytes / sizeof(float));
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
    close_trainer(&alone);
    close_trainer(&turns);
    noise_remove(folder);
}

/* What was asked for, and how much there is. */
START_TEST(a_shortage_of_memory_is_told) {
    const sl_vec_ops *vec;
    sl_vec_memory before;
    const sl_learner_settings e = settings_of(MLP, "/nowhere");
    trainer first = open_trainer(&e, device());
    close_trainer(&first);
    EXPECT_WELL(sl_device_open(&vec, "cuda:0", 0, &error));
    vec->memory(&before);
    ck_assert_uint_gt(before.taken, 0); /* by products, which the first network opens */
    EXPECT_WELL(sl_device_open(&vec, "cuda:0", before.taken + 1000000, &error));
    float *some = vec->allocate(100000);
    ck_assert_ptr_nonnull(some);
    ck_assert_ptr_null(vec->allocate(150001));
    ck_assert_int_eq(sl_vec_no_memory(vec, &error, "node %u", 3), SL_ENOMEM);
    ck_assert_str_eq(error.text,
                     printed("node 3: cuda:0: 0.6 MB are needed, and of the %.1f MB that "
                             "device_memory_gb allows 0.6 MB are left",
                             1 + 1e-6 * (double)before.taken));
    float *rest = vec->allocate(150000);
    ck_assert_ptr_nonnull(rest);
    vec->release(some);
    vec->release(rest);
    EXPECT_WELL(sl_device_open(&vec, "cuda:0", 0, &error));
    ck_assert_ptr_null(vec->allocate((size_t)1 << 40));
    sl_vec_no_memory(vec, &error, "node %u", 3);
    ck_assert_msg(
        strstr(error.text, "node 3: cuda:0 is out of memory: 4398046.5 MB are needed and ") ==
            error.text,
        "%s", error.text);
    ck_assert_ptr_null(sl_vec_cpu()->allocate(SIZE_MAX / 2));
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
    EXPECT_WELL(sl_device_open(&vec, "cuda:0", 0, &error));
    vec->memory(&before);
    ck_assert_int_eq(pthread_create(&thread, NULL, measure, (void *)(uintptr_t)vec), 0);
    pthread_join(thread, NULL);
    vec->memory(&after);
    ck_assert_uint_eq(after.taken, before.taken);
}
