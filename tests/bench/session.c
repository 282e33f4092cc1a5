/* session.c - what begin and end cost the thread that trains; session.py starts the processes.
 *
 * usage: session D STEP_S ROUNDS sleep|work snapshot|borrow
 * in two or more processes that a launcher started
 *
 * A step takes STEP_S seconds, or as many of the thread's processor time. Prints one line of JSON
 * with medians over rounds, in seconds: a round, begin and end together, their processor time, how
 * long end would have waited for the exchange, the exchange, and the processor time of all other
 * threads in a round; and the passes over memory that it needs, by one thread. */
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "starling/session.h"

enum { ROUNDS_MAX = 1000 };

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int rising(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, rising);
    return values[count / 2];
}

typedef struct costs {
    double round[ROUNDS_MAX], calls[ROUNDS_MAX], processor[ROUNDS_MAX], stall[ROUNDS_MAX],
        exchange[ROUNDS_MAX], others[ROUNDS_MAX];
} costs;

/* The step; returns how long the exchange, which is under way, took, or NAN: it is not over. */
static double step(sl_session *s, double step_s, bool works) {
    const double began = now(CLOCK_MONOTONIC), used = now(CLOCK_THREAD_CPUTIME_ID);
    struct pollfd over = {.fd = sl_session_fd(s), .events = POLLIN};
    double exchange = NAN;
    while (works ? now(CLOCK_THREAD_CPUTIME_ID) - used < step_s
                 : now(CLOCK_MONOTONIC) - began < step_s) {
        if (isnan(exchange) && poll(&over, 1, works ? 0 : 1) == 1)
            exchange = now(CLOCK_MONOTONIC) - began;
        else if (!works)
            usleep(1000);
    }
    return exchange;
}

static double wait_until_ready(sl_session *s) {
    const double began = now(CLOCK_MONOTONIC);
    poll(&(struct pollfd){.fd = sl_session_fd(s), .events = POLLIN}, 1, -1);
    return now(CLOCK_MONOTONIC) - began;
}

static int one_round(sl_session *s, float *x, double step_s, bool works, costs *c, int round,
                     sl_error *error) {
    const double process = now(CLOCK_PROCESS_CPUTIME_ID), own = now(CLOCK_THREAD_CPUTIME_ID);
    const double began = now(CLOCK_MONOTONIC);
    int result = sl_session_begin(s, x, error);
    c->calls[round] = now(CLOCK_MONOTONIC) - began;
    c->processor[round] = now(CLOCK_THREAD_CPUTIME_ID) - own;
    if (result != 0)
        return result;
    c->exchange[round] = step(s, step_s, works);
    c->stall[round] = wait_until_ready(s);
    if (isnan(c->exchange[round]))
        c->exchange[round] = now(CLOCK_MONOTONIC) - began;
    const double at = now(CLOCK_MONOTONIC), used = now(CLOCK_THREAD_CPUTIME_ID);
    result = sl_session_end(s, x, error);
    c->calls[round] += now(CLOCK_MONOTONIC) - at;
    c->processor[round] += now(CLOCK_THREAD_CPUTIME_ID) - used;
    c->round[round] = now(CLOCK_MONOTONIC) - began;
    c->others[round] = now(CLOCK_PROCESS_CPUTIME_ID) - process;
    c->others[round] -= now(CLOCK_THREAD_CPUTIME_ID) - own;
    return result;
}

/* What begin and end need at least, by one thread: a copy, and x <- mixed + (x - snapshot). */
static double passes(float *x, size_t d) {
    enum { TIMES = 3 };
    double took[TIMES];
    float *snapshot = malloc(d * sizeof *x), *mixed = malloc(d * sizeof *x);
    if (snapshot == NULL || mixed == NULL)
        abort();
    memcpy(snapshot, x, d * sizeof *x);
    memcpy(mixed, x, d * sizeof *x);
    for (int i = 0; i < TIMES; i++) {
        const double began = now(CLOCK_MONOTONIC);
        memcpy(snapshot, x, d * sizeof *x);
        for (size_t k = 0; k < d; k++)
            x[k] = mixed[k] + (x[k] - snapshot[k]);
        took[i] = now(CLOCK_MONOTONIC) - began;
    }
    free(snapshot);
    free(mixed);
    return median(took, TIMES);
}

int main(int argc, char **argv) {
    static costs c;
    sl_error error = {0};
    sl_session *s;
    sl_session_options options;
    if (argc != 6 || atoi(argv[3]) < 1 || atoi(argv[3]) > ROUNDS_MAX)
        return fprintf(stderr, "usage: session D STEP_S ROUNDS sleep|work snapshot|borrow\n"), 2;
    const bool works = strcmp(argv[4], "work") == 0;
    const size_t d = strtoull(argv[1], NULL, 10);
    const int rounds = atoi(argv[3]);
    float *x = calloc(d, sizeof *x);
    for (size_t i = 0; i < d; i++)
        x[i] = (float)(i % 100);
    sl_session_defaults(&options, sizeof options);
    options.overlap = 1;
    options.borrow = strcmp(argv[5], "borrow") == 0;
    int result = sl_session_join(&s, "{\"topology\": {\"family\": \"path\"}}", d, &options, &error);
    if (result == 0)
        result = sl_session_start(s, x, &error);
    for (int round = 0; round < rounds && result == 0; round++)
        result = one_round(s, x, atof(argv[2]), works, &c, round, &error);
    if (result == 0)
        result = sl_session_leave(&s, &error);
    if (result != 0)
        return fprintf(stderr, "%s\n", error.text), 1;
    printf("{\"round\": %.5f, \"calls\": %.5f, \"processor\": %.5f, \"stall\": %.5f, "
           "\"exchange\": %.5f, \"others\": %.5f, \"passes\": %.5f}\n",
           median(c.round, rounds), median(c.calls, rounds), median(c.processor, rounds),
           median(c.stall, rounds), median(c.exchange, rounds), median(c.others, rounds),
           passes(x, d));
    free(x);
    return 0;
}
