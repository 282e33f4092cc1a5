/* test_session_memory.c - sessions in a simulation where the n-th allocation fails, for every n:
 * one error, no crash and, as the leak sanitizer sees, nothing lost. */
#include "allocation_sweep.h"
#include "starling/session.h"

enum { N = 3, D = 40, BESIDE = 3 };

/* ---- one peer's loop ---- */

static int train(sl_session *s, float *x, int rounds, sl_error *error) {
    float average[D + BESIDE], beside[BESIDE] = {1, 2, 3};
    double distance;
    int result = sl_session_start(s, x, error);
    for (int round = 0; round < rounds && result == 0; round++)
        result = sl_session_mix(s, x, error);
    if (result == 0)
        result = sl_session_beside(s, beside, error);
    if (result == 0)
        result = sl_session_average(s, average, &distance, error);
    if (result == 0)
        result = sl_session_average(s, NULL, NULL, error);
    return result;
}

/* Higher ranks have more rounds: lower ones answer meanwhile. */
static int peer(void *context, const sl_session_options *o, sl_error *error) {
    static const uint64_t shape[] = {4, 10};
    const sl_session_tensor tensor = {"w", shape, 2};
    const char *experiment = context;
    sl_session_options mine = *o;
    sl_session *s = NULL;
    float x[D] = {1};
    mine.tensors = &tensor;
    mine.tensor_count = 1;
    mine.beside = BESIDE;
    int result = sl_session_join(&s, experiment, D, &mine, error);
    if (result == 0)
        result = train(s, x, 1 + (int)o->rank, error);
    if (result == 0)
        return sl_session_leave(&s, error);
    sl_session_abort(&s, NULL);
    return result;
}

/* ---- simulated ---- */

#define RING(keys) "{\"topology\": {\"nodes\": 3, \"family\": \"ring\"}" keys "}"

static const char *const experiments[] = {
    RING(""),
    RING(", \"algorithm\": {\"name\": \"choco-sgd\", \"compressor\": {\"name\": \"top-k\", "
         "\"fraction\": 0.1}}"),
    RING(", \"algorithm\": \"sgp\""),
};
static const char *experiment;

static int simulate(sl_error *error) {
    return sl_simulate(experiment, N, peer, (void *)(uintptr_t)experiment, NULL, error);
}

START_TEST(simulated_sessions) {
    experiment = experiments[_i];
    sweep(experiment, simulate);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("session memory");
    TCase *faults = tcase_create("faults");
    tcase_set_timeout(faults, 240);
    tcase_add_loop_test(faults, simulated_sessions, 0, sizeof experiments / sizeof *experiments);
    suite_add_tcase(suite, faults);
    return run_suite(suite);
}
