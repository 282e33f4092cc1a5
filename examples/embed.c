/* embed.c - a training loop of your own, with Starling between its steps: logistic regression with
 * averaged minibatch gradients, on data that no other peer has.
 *
 *   cc embed.c $(pkg-config --cflags --libs starling) -lm -o embed
 *   ./embed session.json 4                      four peers in this process, one after the other
 *   mpirun -n 4 ./embed session.json            or srun, torchrun --no-python, or by hand:
 *   STARLING_RANK=0 STARLING_SIZE=4 STARLING_MASTER=host:7000 ./embed session.json
 */
#include <math.h>
#include <starling/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 20, SAMPLES = 400, BATCH = 20, EPOCHS = 15 };
typedef struct samples {
    float in[SAMPLES][FEATURES + 1]; /* the last one is 1 */
    int label[SAMPLES];
} samples;

/* Two clouds that overlap. `share` of the samples are of class 1. */
static void draw(samples *s, unsigned short seed, double share) {
    unsigned short state[3] = {seed, 1, 2};
    for (int i = 0; i < SAMPLES; i++) {
        s->label[i] = erand48(state) < share;
        for (int k = 0; k < FEATURES; k++)
            s->in[i][k] = (float)(6 * erand48(state) - 3 + (s->label[i] ? 0.5 : -0.5) * (k % 3));
        s->in[i][FEATURES] = 1;
    }
}

static double predict(const float *x, const float *in) {
    double sum = 0;
    for (int k = 0; k <= FEATURES; k++)
        sum += x[k] * in[k];
    return 1 / (1 + exp(-sum));
}

static void gradient(const float *x, const samples *s, int first, float *g) {
    memset(g, 0, (FEATURES + 1) * sizeof *g);
    for (int i = first; i < first + BATCH; i++) {
        const double error = predict(x, s->in[i]) - s->label[i];
        for (int k = 0; k <= FEATURES; k++)
            g[k] += (float)(error * s->in[i][k] / BATCH);
    }
}

static double accuracy(const float *x, const samples *s) {
    double right = 0;
    for (int i = 0; i < SAMPLES; i++)
        right += (predict(x, s->in[i]) > 0.5) == s->label[i];
    return right / SAMPLES;
}

/* One peer. Its data are of one class mostly: alone it would learn little. */
static int train(void *experiment, const sl_session_options *options, sl_error *error) {
    static _Thread_local samples own, held_out;
    float x[FEATURES + 1] = {0}, g[FEATURES + 1], mean[FEATURES + 1];
    sl_session_report report = {.size = sizeof report};
    double distance;
    sl_session *s;
    int result = sl_session_join(&s, experiment, FEATURES + 1, options, error);
    if (result != 0)
        return result;
    sl_session_status(s, &report, error);
    draw(&own, (unsigned short)(report.rank + 1), report.rank % 2 ? 0.95 : 0.05);
    draw(&held_out, 0, 0.5);
    result = sl_session_start(s, x, error);
    for (int step = 0; step < EPOCHS * SAMPLES / BATCH && result == 0; step++) {
        result = sl_session_begin(s, x, error); /* x travels while its gradient is computed */
        gradient(x, &own, step * BATCH % SAMPLES, g);
        if (result == 0)
            result = sl_session_end(s, x, error);
        for (int k = 0; k <= FEATURES; k++)
            x[k] -= 0.1f * g[k];
    }
    if (result == 0)
        result = sl_session_average(s, x, mean, &distance, error);
    if (result == 0)
        printf("peer %d: accuracy of the average %.4f, models are %.9g apart\n", (int)report.rank,
               accuracy(mean, &held_out), distance);
    return result == 0 ? sl_session_leave(&s, error) : (sl_session_abort(&s, NULL), result);
}

int main(int argc, char **argv) {
    sl_error error = {0};
    sl_session_options options;
    sl_session_defaults(&options, sizeof options);
    options.overlap = 1;
    if (argc < 2)
        return fprintf(stderr, "usage: embed EXPERIMENT [PEERS]\n"), 2;
    const unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    int result = n > 0 ? sl_simulate(argv[1], n, train, argv[1], &options, &error)
                       : train(argv[1], &options, &error);
    if (result != 0)
        fprintf(stderr, "embed: %s\n", error.text);
    return result == 0 ? 0 : 2;
}
