/* test_session_memory.c - sessions where the n-th allocation fails, for every n: one error, no
 * crash and, as the leak sanitizer sees, nothing lost. All peers of a simulation; and an agent that
 * has no neighbours, so that nobody else fails first. */
#include "allocation_sweep.h"
#include "peers.h"

enum { N = 3, D = 40, NUMBERS = 3, STATE_MAX = 16384 };

/* What each rank has saved; and does it go on from there? */
static struct saved {
    float x[D];
    char state[STATE_MAX];
    uint64_t bytes;
} saved[N];
static bool goes_on;

/* ---- one peer's loop ---- */

static int start(sl_session *s, float *x, const struct saved *from, sl_error *error) {
    int result = goes_on ? sl_session_load(s, from->state, from->bytes, error) : 0;
    if (goes_on)
        memcpy(x, from->x, sizeof from->x);
    return result != 0 ? result : sl_session_start(s, x, error);
}

static int save(sl_session *s, const float *x, struct saved *to, sl_error *error) {
    memcpy(to->x, x, sizeof to->x);
    to->bytes = STATE_MAX;
    return sl_session_save(s, x, to->state, &to->bytes, error);
}

static int train(sl_session *s, float *x, int rounds, struct saved *state, sl_error *error) {
    float average[D];
    double numbers[NUMBERS] = {1, 2, 3};
    double distance;
    int result = start(s, x, state, error);
    for (int round = 0; round < rounds && result == 0; round++)
        result = sl_session_mix(s, x, error);
    if (result == 0)
        result = sl_session_sum(s, numbers, NUMBERS, NULL, error);
    if (result == 0)
        result = sl_session_average(s, x, average, &distance, error);
    if (result == 0)
        result = sl_session_average(s, x, NULL, NULL, error);
    if (result == 0 && !goes_on)
        result = save(s, x, state, error);
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
    int result = sl_session_join(&s, experiment, D, &mine, error);
    if (result == 0)
        result = train(s, x, 1 + (int)o->rank, &saved[o->rank], error);
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
    goes_on = true;
    sweep(experiment, simulate);
    goes_on = false;
}
END_TEST

/* ---- an agent ---- */

static int train_alone(sl_error *error) {
    char roster[PEERS_MAX * 32];
    sl_session_options options;
    free_roster(roster, sizeof roster, 1);
    sl_session_defaults(&options, sizeof options);
    options.rank = 0;
    options.roster = roster;
    options.same_start = 1;
    return peer((void *)(uintptr_t) "{\"topology\": {\"nodes\": 1, \"family\": \"ring\"}}",
                &options, error);
}

START_TEST(a_session_of_one_agent) {
    sweep("an agent", train_alone);
    goes_on = true;
    sweep("an agent that goes on", train_alone);
    goes_on = false;
}
END_TEST

int main(void) {
    Suite *suite = suite_create("session memory");
    TCase *faults = tcase_create("faults");
    tcase_set_timeout(faults, 240);
    tcase_add_loop_test(faults, simulated_sessions, 0, sizeof experiments / sizeof *experiments);
    tcase_add_test(faults, a_session_of_one_agent);
    suite_add_tcase(suite, faults);
    return run_suite(suite);
}
