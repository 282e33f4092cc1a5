/* model_step.c - how long one gradient takes: a model, batch 32, one thread; the gathering of the
 * batch included (ResNet-20: crops and mirroring too).
 *
 * model_step mlp | lenet5 | resnet20 | lstm | transformer
 *
 * Prints "starling MEDIAN MIN" in milliseconds.
 *
 * For model_step.py, which sets PyTorch's times beside it. ResNet-20 takes images of noise, written
 * as CIFAR-10's files, and the character models text of noise, 80 of 65 characters a sample.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "starling/learner.h"
#include "starling/rng.h"

#define STEPS_MAX 3000
#define RECORDS 320
#define RECORD_BYTES 3073
#define FILES 7

static const struct {
    const char *name;
    sl_model_config model;
    sl_data_kind data;
    int steps;
} models[] = {
    {"mlp", {.kind = SL_MODEL_MLP, .hidden = {256}, .hidden_count = 1}, SL_DATA_DIGITS, STEPS_MAX},
    {"lenet5", {.kind = SL_MODEL_LENET5}, SL_DATA_DIGITS, 1000},
    {"resnet20", {.kind = SL_MODEL_RESNET20}, SL_DATA_CIFAR10, 60},
    {"lstm", {.kind = SL_MODEL_LSTM, .embedding = 8}, SL_DATA_TEXT, 20},
    {"transformer", {.kind = SL_MODEL_TRANSFORMER, .heads = 4}, SL_DATA_TEXT, 20},
};

/* File `f` of the noise: the six of CIFAR-10, then a text. */
static void name_noise(char path[SL_PATH_MAX], const char *folder, int f) {
    snprintf(path, SL_PATH_MAX,
             f < 5    ? "%s/data_batch_%d.bin"
             : f == 5 ? "%s/test_batch.bin"
                      : "%s/text",
             folder, f + 1);
}

/* RECORDS images of noise in each of CIFAR-10's files, and as many bytes of text. */
static int write_noise(const char *folder) {
    static uint8_t bytes[RECORDS * RECORD_BYTES];
    sl_rng rng = sl_rng_open(1, 0, 0, SL_PURPOSE_DATA);
    for (int f = 0; f < FILES; f++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] =
                (uint8_t)(f == FILES - 1 ? ' ' + sl_rng_below(&rng, 65)
                                         : sl_rng_below(&rng, i % RECORD_BYTES == 0 ? 10 : 256));
        char path[SL_PATH_MAX];
        name_noise(path, folder, f);
        FILE *file = fopen(path, "wb");
        if (file == NULL || fwrite(bytes, 1, sizeof bytes, file) != sizeof bytes ||
            fclose(file) != 0)
            return -1;
    }
    return 0;
}

static void remove_noise(const char *folder) {
    for (int f = 0; f < FILES; f++) {
        char path[SL_PATH_MAX];
        name_noise(path, folder, f);
        unlink(path);
    }
    rmdir(folder);
}

static void time_steps(sl_learner *learner, int steps) {
    static double times_ms[STEPS_MAX];
    size_t dimension = sl_learner_dimension(learner);
    float *x = sl_vec_cpu()->allocate(dimension), *g = sl_vec_cpu()->allocate(dimension);
    int warm_up = steps / 10;
    sl_learner_initial(learner, 0, x);
    for (int step = -warm_up; step < steps; step++) {
        double start = bench_now_ms();
        sl_learner_gradient(learner, 0, (uint64_t)(step + warm_up + 1), x, g);
        if (step >= 0)
            times_ms[step] = bench_now_ms() - start;
    }
    const double median = bench_median(times_ms, (size_t)steps);
    printf("starling %.4f %.4f\n", median, times_ms[0]);
    sl_vec_cpu()->release(x);
    sl_vec_cpu()->release(g);
}

static int time_model(int m) {
    char folder[] = "/tmp/starling-noise-XXXXXX";
    sl_error error = {0};
    sl_learner *learner = NULL;
    sl_learner_settings settings = {.nodes = 2,
                                    .seed = 1,
                                    .rounds = 1,
                                    .model = models[m].model,
                                    .data = {.kind = models[m].data, .batch = 32, .sequence = 80}};
    if (mkdtemp(folder) == NULL || write_noise(folder) != 0) {
        perror("model_step: images of noise");
        return 1;
    }
    snprintf(settings.data.path, sizeof settings.data.path,
             models[m].data == SL_DATA_TEXT ? "%s/text" : "%s", folder);
    int code = sl_learner_open(&learner, &settings, &error);
    remove_noise(folder);
    if (code != 0)
        fprintf(stderr, "model_step: %s\n", error.text);
    else
        time_steps(learner, models[m].steps);
    sl_learner_close(&learner);
    return code != 0;
}

int main(int argc, char **argv) {
    for (int m = 0; m < (int)(sizeof models / sizeof *models) && argc == 2; m++)
        if (strcmp(argv[1], models[m].name) == 0)
            return time_model(m);
    fprintf(stderr, "usage: model_step mlp | lenet5 | resnet20 | lstm | transformer\n");
    return 2;
}
