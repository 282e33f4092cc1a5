/* test_session_saving.c - sessions that are stopped, and go on from the states that they saved:
 * with the bits of a run that was never stopped, simulated and with agents; what is no such state.
 */
#include "descent.h"
#include "sessions.h"

enum { D = 3000, N = 4, STATE_MAX = 1 << 18 };

typedef enum form { MIX, BEGIN, OFFER } form;

/* Peers make steps: a round each, or half of one. They save after `saves` of them. */
typedef struct scene {
    const char *experiment;
    form form;
    int steps, saves;
    bool goes_on;      /* from state and x, after as many steps */
    bool averages;     /* before it saves */
    bool fewer_rounds; /* for higher ranks, which wait in that average */
    bool only_trains;  /* does not save */
    float x[N][D], at[N][D], average[N][D], saved_x[N][D];
    double distance[N];
    char state[N][STATE_MAX];
    uint64_t bytes[N];
} scene;
static scene *whole, *halves;

static void setup(void) {
    sl_session_defaults(&options, sizeof options);
    whole = calloc(1, sizeof *whole);
    halves = calloc(1, sizeof *halves);
    error = (sl_error){0};
}

static void teardown(void) {
    free(whole);
    free(halves);
}

static int half_step(sl_session *s, scene *w, int step, int64_t rank, sl_error *e) {
    float *x = w->x[rank], *at = w->at[rank];
    int result;
    if (step % 2 != 0) {
        result = sl_session_end(s, x, e);
        if (w->form == BEGIN)
            descent_step(x, at, D, rank);
        return result;
    }
    if (w->form == OFFER)
        descent_step(x, x, D, rank);
    memcpy(at, x, D * sizeof *x);
    return w->form == OFFER ? sl_session_offer(s, x, e) : sl_session_begin(s, x, e);
}

static int make_step(sl_session *s, scene *w, int step, int64_t rank, sl_error *e) {
    float *x = w->x[rank];
    if (w->form != MIX)
        return half_step(s, w, step, rank, e);
    descent_step(x, x, D, rank);
    return sl_session_mix(s, x, e);
}

static int save(sl_session *s, scene *w, int64_t rank, sl_error *e) {
    uint64_t bytes = 0;
    int result = 0;
    if (w->averages)
        result = sl_session_average(s, w->x[rank], w->average[rank], NULL, e);
    if (w->only_trains)
        return result;
    memcpy(w->saved_x[rank], w->x[rank], sizeof w->x[rank]);
    THEN(result, sl_session_save(s, w->x[rank], NULL, &bytes, e));
    ck_assert(result != 0 || bytes <= STATE_MAX);
    w->bytes[rank] = STATE_MAX;
    THEN(result, sl_session_save(s, w->x[rank], w->state[rank], &w->bytes[rank], e));
    ck_assert(result != 0 || bytes == w->bytes[rank]);
    return result;
}

static int run_steps(sl_session *s, scene *w, int64_t rank, sl_error *e) {
    int result = 0;
    for (int step = w->goes_on ? w->saves : 0; step < w->steps && result == 0; step++) {
        if (!w->fewer_rounds || w->goes_on || step + rank < w->saves || step >= w->saves)
            result = make_step(s, w, step, rank, e);
        if (step + 1 == w->saves && result == 0)
            result = save(s, w, rank, e);
    }
    return result;
}

static int start(sl_session *s, scene *w, int64_t rank, sl_error *e) {
    descent_fill(w->x[rank], D, rank);
    if (!w->goes_on)
        return sl_session_start(s, w->x[rank], e);
    int result = sl_session_load(s, w->state[rank], w->bytes[rank], e);
    memcpy(w->x[rank], w->saved_x[rank], sizeof w->x[rank]);
    return result != 0 ? result : sl_session_start(s, w->x[rank], e);
}

static int train(void *context, const sl_session_options *o, sl_error *e) {
    scene *w = context;
    sl_session *s = NULL;
    int result = sl_session_join(&s, w->experiment, D, o, e);
    THEN(result, start(s, w, o->rank, e));
    THEN(result, run_steps(s, w, o->rank, e));
    if (result == 0 && w->form != MIX && w->steps % 2 != 0)
        result = sl_session_end(s, w->x[o->rank], e);
    THEN(result,
         sl_session_average(s, w->x[o->rank], w->average[o->rank], &w->distance[o->rank], e));
    return end_session(s, result, e);
}

static void run(scene *w, bool simulated) {
    if (simulated) {
        int result = sl_simulate(w->experiment, N, train, w, &options, &error);
        ck_assert_msg(result == 0, "%s: %s", w->experiment, error.text);
        return;
    }
    run_as_agents(N, train, w);
}

static void check_same_states(const scene *a, const scene *b) {
    for (int rank = 0; rank < N; rank++) {
        ck_assert_uint_eq(a->bytes[rank], b->bytes[rank]);
        ck_assert_mem_eq(a->state[rank], b->state[rank], a->bytes[rank]);
    }
}

/* Saved, stopped there, and gone on with: in which of both drivers does not matter. */
static void check_goes_on(const scene *what) {
    *whole = *what;
    whole->steps = what->saves;
    run(whole, true); /* for its states */
    *halves = *what;
    run(halves, false);
    check_same_states(whole, halves);
    *whole = *what;
    whole->only_trains = true;
    run(whole, true);
    ck_assert_mem_eq(halves->x, whole->x, sizeof whole->x); /* to save changes nothing */
    for (int k = 0; k < 4; k++) {
        *halves = *what;
        halves->steps = halves->saves;
        run(halves, k % 2 == 0);
        halves->steps = what->steps;
        halves->goes_on = true;
        run(halves, k < 2);
        ck_assert_msg(memcmp(halves->x, whole->x, sizeof whole->x) == 0, "%s, %d", what->experiment,
                      k);
        ck_assert_mem_eq(halves->average, whole->average, sizeof whole->average);
        ck_assert_mem_eq(halves->distance, whole->distance, sizeof whole->distance);
    }
}

/* ---- what goes on ---- */

#define RING(keys)                                                                                 \
    "{\"topology\": {\"nodes\": 4, \"family\": \"ring\"}, \"transport\": {\"chunk_bytes\": "       \
    "4096}, \"membership\": {\"on_loss\": \"stop\"}, "                                             \
    "\"algorithm\": {\"name\": " keys "}}"
#define TOP_K ", \"compressor\": {\"name\": \"top-k\", \"fraction\": 0.1}"
#define QSGD ", \"compressor\": {\"name\": \"qsgd\", \"levels\": 64}"

static const char ring[] = RING("\"d-psgd\"");
static const char *const algorithms[] = {
    ring,
    RING("\"d-psgd\", \"variant\": \"combine-while-adapt\""),
    RING("\"dcd-psgd\"" QSGD),
    RING("\"choco-sgd\"" TOP_K),
    RING("\"choco-sgd\", \"variant\": \"mix-then-compress\"" TOP_K),
    RING("\"choco-sgd\", \"variant\": \"mix-then-compress\", \"local_steps\": 3" TOP_K),
    RING("\"naive-compression\"" QSGD),
    RING("\"deep-squeeze\"" TOP_K),
    RING("\"sgp\""),
    RING("\"gradient-tracking\""),
    RING("\"exact-diffusion\""),
    RING("\"cd-sgd\", \"warmup_rounds\": 4"),
    RING("\"cd-sgd\", \"warmup_rounds\": 40"),
};

FIXTURES(setup, teardown);

START_LOOP_TEST(every_algorithm_goes_on, sizeof algorithms / sizeof *algorithms) {
    check_goes_on(&(scene){.experiment = algorithms[_i], .steps = 12, .saves = 7});
    check_goes_on(&(scene){.experiment = algorithms[_i], .steps = 3, .saves = 1});
}

START_TEST(overlap_goes_on_between_rounds_and_in_them) {
    options.overlap = 1;
    for (int saves = 6; saves < 8; saves++)
        check_goes_on(
            &(scene){.experiment = algorithms[0], .form = BEGIN, .steps = 14, .saves = saves});
}

START_TEST(offers_go_on_too) {
    for (int k = 3; k < 5; k++)
        for (int saves = 6; saves < 8; saves++)
            check_goes_on(
                &(scene){.experiment = algorithms[k], .form = OFFER, .steps = 14, .saves = saves});
}

START_TEST(who_waited_for_an_average_goes_on) {
    for (int k = 0; k < 2; k++) {
        options.overlap = k == 1;
        check_goes_on(&(scene){.experiment = algorithms[k == 0 ? 3 : 0],
                               .steps = 12,
                               .saves = 7,
                               .averages = true,
                               .fewer_rounds = true});
        ck_assert_ptr_nonnull(memmem(halves->state[3], 4096, "\"state.behind\":\"1\"", 18));
    }
}

/* ---- what is refused ---- */

/* States of round 3, and their x. */
static void make_states(scene *w) {
    *w = (scene){.experiment = algorithms[0], .steps = 3, .saves = 3};
    run(w, true);
    w->steps = 5;
    w->goes_on = true;
}

/* Rank 1 loads what a peer of `o` has. */
static sl_session *join_alone(const char *experiment, uint64_t d, const sl_session_options *o) {
    static char roster[PEERS_MAX * 32];
    sl_session_options mine = *o;
    sl_session *s = NULL;
    free_roster(roster, sizeof roster, N);
    mine.roster = roster;
    mine.rank = 1;
    ck_assert_msg(sl_session_join(&s, experiment, d, &mine, &error) == 0, "%s", error.text);
    return s;
}

static void refuse_state(sl_session *s, const void *state, uint64_t bytes, const char *text) {
    ck_assert_int_eq(sl_session_load(s, state, bytes, &error), SL_EFILE);
    ck_assert_msg(strstr(error.text, text) != NULL, "%s: %s", text, error.text);
}

START_TEST(a_damaged_state_is_refused) {
    make_states(halves);
    sl_session *s = join_alone(halves->experiment, D, &options);
    char *state = halves->state[1];
    const uint64_t bytes = halves->bytes[1];
    const uint64_t lengths[] = {0, 7, 8, 100, bytes / 2, bytes - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        refuse_state(s, state, lengths[i], "is cut short");
    for (uint64_t at = 0; at < bytes; at += at < 1000 ? 7 : 333) {
        state[at] ^= 4;
        refuse_state(s, state, bytes, "load: the state");
        state[at] ^= 4;
    }
    ck_assert_int_eq(sl_session_load(s, NULL, bytes, &error), SL_EINVAL);
    ck_assert_int_eq(sl_session_load(s, state, bytes, &error), 0); /* and it is as it was */
    sl_session_abort(&s, NULL);
}

/* Rank 2 goes on from another round, or begins. */
static int differ(void *context, const sl_session_options *o, sl_error *e) {
    return train(o->rank == 2 ? (scene *)context : halves, o, e);
}

static void check_difference(const char *simulated, const char *agents) {
    ck_assert_int_ne(sl_simulate(ring, N, differ, whole, &options, &error), 0);
    ck_assert_msg(strstr(error.text, simulated) != NULL, "%s", error.text);
    run_agents(threads, N, differ, whole, &options);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(threads[i].result, SL_EPEER);
    ck_assert_msg(strstr(threads[2].error.text, agents) != NULL, "%s", threads[2].error.text);
}

START_TEST(all_go_on_from_the_same_round) {
    static const char *set[] = {"transport.connect_timeout_s=3"};
    set_options(set, 1);
    *whole = (scene){.experiment = ring, .steps = 4, .saves = 4};
    run(whole, true);
    whole->goes_on = true;
    make_states(halves);
    check_difference("of ranks 0 and 2 differs: 3 and 4", "agent 2 goes on from round 4");
    whole->goes_on = false;
    check_difference("of ranks 0 and 2 differs: 3 and 0", "agent 2 begins anew");
}

int main(void) {
    return run_tests("session saving");
}
