/* session_loop.c - a loop on f_i(x) = 1/2 |x - c_i|^2 in sessions, for test_session.py and
 * cuts.py.
 *
 * usage: session_loop EXPERIMENT FORM ROUNDS DIMENSION [N]
 *
 * FORM is "mix", "begin", or "offer". With N all peers are simulated, else this process is one of
 * them. Prints for each "RANK model HEX", "RANK average HEX", "RANK distance HEX": the bits; and
 * every few rounds "RANK early-average HEX". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "starling/session.h"

enum { AVERAGE_EVERY = 5 };

typedef struct loop {
    const char *experiment, *form;
    int rounds, dimension;
} loop;

/* Equal in test_session.py. */
static float start(uint64_t rank, int i) {
    return (float)((rank * 31 + (uint64_t)i * 17) % 23) / 8.0f - 1.25f;
}

static float center(uint64_t rank, int i) {
    return (float)((rank * 13 + (uint64_t)i * 7) % 19) / 16.0f;
}

static void show(uint64_t rank, const char *what, const void *bytes, size_t count) {
    char *line = malloc(2 * count + 1);
    for (size_t i = 0; i < count; i++)
        sprintf(line + 2 * i, "%02x", ((const unsigned char *)bytes)[i]);
    printf("%llu %s %s\n", (unsigned long long)rank, what, line);
    free(line);
}

static void step(const loop *l, uint64_t rank, float *x, const float *at) {
    for (int i = 0; i < l->dimension; i++)
        x[i] -= 0.1f * (at[i] - center(rank, i));
}

static int one_round(const loop *l, sl_session *s, uint64_t rank, float *x, float *at,
                     sl_error *e) {
    const size_t bytes = (size_t)l->dimension * sizeof *x;
    int result;
    if (strcmp(l->form, "begin") == 0) {
        result = sl_session_begin(s, x, e);
        memcpy(at, x, bytes);
        if (result == 0)
            result = sl_session_end(s, x, e);
        step(l, rank, x, at);
        return result;
    }
    step(l, rank, x, x);
    if (strcmp(l->form, "mix") == 0)
        return sl_session_mix(s, x, e);
    result = sl_session_offer(s, x, e);
    return result != 0 ? result : sl_session_end(s, x, e);
}

static int run_rounds(const loop *l, sl_session *s, uint64_t rank, float *x, float *at,
                      float *average, sl_error *e) {
    int result = 0;
    for (int k = 1; k <= l->rounds && result == 0; k++) {
        result = one_round(l, s, rank, x, at, e);
        if (result == 0 && k % AVERAGE_EVERY == 0) {
            result = sl_session_average(s, x, average, NULL, e);
            show(rank, "early-average", average, (size_t)l->dimension * sizeof *average);
        }
    }
    return result;
}

static int finish(const loop *l, sl_session **s, uint64_t rank, const float *x, float *average,
                  sl_error *e) {
    const size_t bytes = (size_t)l->dimension * sizeof *x;
    double distance;
    int result = sl_session_average(*s, x, average, &distance, e);
    if (result == 0) {
        show(rank, "model", x, bytes);
        show(rank, "average", average, bytes);
        show(rank, "distance", &distance, sizeof distance);
        result = sl_session_leave(s, e);
    }
    return result;
}

static int peer(void *context, const sl_session_options *options, sl_error *error) {
    const loop *l = context;
    const size_t d = (size_t)l->dimension;
    float *x = malloc(d * sizeof *x), *at = malloc(d * sizeof *x), *average = malloc(d * sizeof *x);
    sl_session *s = NULL;
    sl_session_report report = {.size = sizeof report};
    int result = sl_session_join(&s, l->experiment, d, options, error);
    if (result == 0)
        result = sl_session_status(s, &report, error);
    for (int i = 0; i < l->dimension; i++)
        x[i] = start(report.rank, i);
    if (result == 0)
        result = sl_session_start(s, x, error);
    if (result == 0)
        result = run_rounds(l, s, report.rank, x, at, average, error);
    if (result == 0)
        result = finish(l, &s, report.rank, x, average, error);
    sl_session_abort(&s, NULL);
    free(x);
    free(at);
    free(average);
    return result;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    loop l = {argv[1], argv[2], atoi(argv[3]), atoi(argv[4])};
    sl_error error = {0};
    sl_session_options options;
    sl_session_defaults(&options, sizeof options);
    options.overlap = strcmp(l.form, "begin") == 0;
    int result = argc > 5 ? sl_simulate(l.experiment, strtoull(argv[5], NULL, 10), peer, &l,
                                        &options, &error)
                          : peer(&l, &options, &error);
    if (result != 0)
        fprintf(stderr, "starling: %s\n", error.text);
    return result == 0 ? 0 : 2;
}
