/* session.c - what begin and end cost the thread that trains, beside a step that does nothing else.
 *
 * usage: session D STEP_S ROUNDS, in two or more processes that a launcher started, such as
 *
 *   for r in 0 1; do STARLING_RANK=$r STARLING_SIZE=2 STARLING_ROSTER=127.0.0.1:7001,127.0.0.1:7002
 * \ build/tests/bench/session 25500000 1 10 & done; wait
 *
 * A step is a wait of STEP_S seconds, in which the exchange has the processor. Prints medians over
 * rounds: seconds in begin and end, and of the thread's processor time; how long end waited for an
 * exchange that was not over ("stall"); processor time of all other threads. */
#include <stdio.h>
#include <stdlib.h>
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
    double calls[ROUNDS_MAX], cpu[ROUNDS_MAX], stall[ROUNDS_MAX], others[ROUNDS_MAX];
} costs;

static int one_round(sl_session *s, float *x, double step_s, costs *c, int round, sl_error *error) {
    double process = now(CLOCK_PROCESS_CPUTIME_ID), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    const double own = cpu;
    double at = now(CLOCK_MONOTONIC);
    int result = sl_session_begin(s, x, error);
    c->calls[round] = now(CLOCK_MONOTONIC) - at;
    c->cpu[round] = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    usleep((useconds_t)(1e6 * step_s));
    at = now(CLOCK_MONOTONIC);
    while (result == 0 && !sl_session_ready(s))
        usleep(500);
    c->stall[round] = now(CLOCK_MONOTONIC) - at;
    at = now(CLOCK_MONOTONIC);
    cpu = now(CLOCK_THREAD_CPUTIME_ID);
    if (result == 0)
        result = sl_session_end(s, x, error);
    c->calls[round] += now(CLOCK_MONOTONIC) - at;
    c->cpu[round] += now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    c->others[round] = now(CLOCK_PROCESS_CPUTIME_ID) - process;
    c->others[round] -= now(CLOCK_THREAD_CPUTIME_ID) - own;
    return result;
}

int main(int argc, char **argv) {
    static costs c;
    sl_error error = {0};
    sl_session *s;
    sl_session_options options;
    if (argc != 4 || atoi(argv[3]) < 1 || atoi(argv[3]) > ROUNDS_MAX)
        return fprintf(stderr, "usage: session D STEP_S ROUNDS\n"), 2;
    const size_t d = strtoull(argv[1], NULL, 10);
    const int rounds = atoi(argv[3]);
    float *x = calloc(d, sizeof *x);
    for (size_t i = 0; i < d; i++)
        x[i] = (float)(i % 100);
    sl_session_defaults(&options, sizeof options);
    options.overlap = 1;
    int result = sl_session_join(&s, "{\"topology\": {\"family\": \"path\"}}", d, &options, &error);
    if (result == 0)
        result = sl_session_start(s, x, &error);
    for (int round = 0; round < rounds && result == 0; round++)
        result = one_round(s, x, atof(argv[2]), &c, round, &error);
    if (result == 0)
        result = sl_session_leave(&s, &error);
    if (result != 0)
        return fprintf(stderr, "%s\n", error.text), 1;
    printf("begin + end %.5f s, processor %.5f s; stall %.5f s; other threads %.4f s\n",
           median(c.calls, rounds), median(c.cpu, rounds), median(c.stall, rounds),
           median(c.others, rounds));
    free(x);
    return 0;
}
