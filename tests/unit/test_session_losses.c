/* test_session_losses.c - sessions go on without a peer that is lost: in rounds, while an average
 * is made, and while all leave. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "sessions.h"

/* libfabric 1.17 forgets a connection that its listener has accepted, and that has said nothing yet
 * as the listener closes. Who comes back to peers that end may be that. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libfabric.so";
}

enum { D = 5000, N = 5, LOST = 2, ROUNDS = 60, SEEDS = 3 };
static const char ring[] =
    "{\"topology\": {\"nodes\": 5, \"family\": \"ring\"}, \"transport\": {\"chunk_bytes\": 4096}, "
    "\"membership\": {\"on_loss\": \"continue\", \"grace_s\": 2}}";

typedef struct peer {
    float x[D], average[D];
    double distance;
    uint64_t members[N], member_count, epoch;
    int averages, voids; /* calls, and those without a result */
} peer;

typedef struct scene {
    /* Of the peer that is lost: ends it, and returns its e. */
    int (*end)(sl_session *s, peer *p, sl_error *e);
    int round;    /* in which it ends */
    int averages; /* 1: at the end; ROUNDS: after each round */
} scene;

static scene the;
static peer peers[N];

static void say(void *context, const char *text) {
    fprintf(stderr, "%s\n", text);
}

static void setup(void) {
    sl_session_defaults(&options, sizeof options);
    options.log = say;
    memset(peers, 0, sizeof peers);
}

static int take_average(sl_session *s, peer *p, sl_error *e) {
    const int result = sl_session_average(s, p->x, p->average, &p->distance, e);
    __atomic_add_fetch(&p->averages, 1, __ATOMIC_RELAXED);
    p->voids += result == SL_EVOID;
    if (result == SL_EVOID && (memcmp(p->average, p->x, sizeof p->x) != 0 || !isnan(p->distance)))
        return sl_fail(e, SL_EINVAL, "a void average is not this peer's own model");
    return result == SL_EVOID ? 0 : result;
}

static int train(sl_session *s, peer *p, bool is_lost, sl_error *e) {
    int result = sl_session_start(s, p->x, e);
    for (int round = 1; round <= ROUNDS && result == 0; round++) {
        if (is_lost && round == the.round)
            return the.end(s, p, e);
        result = sl_session_mix(s, p->x, e);
        if (result == 0 && (the.averages == ROUNDS || round == ROUNDS))
            result = take_average(s, p, e);
    }
    return result;
}

static int run_peer(void *context, const sl_session_options *o, sl_error *e) {
    peer *p = &peers[o->rank];
    sl_session *s = NULL;
    int result = sl_session_join(&s, ring, D, o, e);
    for (int i = 0; i < D; i++)
        p->x[i] = sinf((float)(i + 100 * o->rank));
    THEN(result, train(s, p, o->rank == LOST, e));
    sl_session_report report = {.size = sizeof report};
    if (result == 0 && sl_session_status(s, &report, NULL) == 0)
        p->epoch = report.epoch;
    p->member_count = sl_session_members(s, p->members, N);
    return end_session(s, result, e);
}

static void expect_survivors(void) {
    const peer *first = &peers[0];
    for (int i = 0; i < N; i++) {
        const peer *p = &peers[i];
        if (i == LOST)
            continue;
        ck_assert_msg(threads[i].result == 0, "%d: %s", i, threads[i].error.text);
        ck_assert_int_eq(p->averages, first->averages);
        ck_assert_uint_eq(p->member_count, N - 1);
        ck_assert_uint_eq(p->epoch, 2);
        for (uint64_t k = 0; k < N - 1; k++)
            ck_assert_uint_eq(p->members[k], k + (k >= LOST));
    }
}

/* Of the last call: nobody changes x after it. Rounds may have gone by meanwhile, on the way to the
 * view, so models are nearer to each other than x. */
static void expect_averages(void) {
    double squares = 0;
    for (int k = 0; k < D; k++) {
        double sum = 0;
        for (int i = 0; i < N; i++)
            sum += i == LOST ? 0 : (double)peers[i].x[k];
        const float mean = (float)(sum / (N - 1));
        for (int i = 0; i < N; i++) {
            if (i == LOST)
                continue;
            ck_assert_msg(fabsf(peers[i].average[k] - mean) < 1e-6, "%d, %d: %g, not %g", i, k,
                          (double)peers[i].average[k], (double)mean);
            squares += pow((double)peers[i].x[k] - mean, 2);
        }
    }
    for (int i = 0; i < N; i++)
        if (i != LOST)
            ck_assert_double_le(peers[i].distance, sqrt(squares / (N - 1)) + 1e-5);
}

static void run_scene(scene s) {
    the = s;
    run_agents(threads, N, run_peer, NULL, &options);
}

/* ---- how it is lost ---- */

static int give_up(sl_session *s, peer *p, sl_error *e) {
    return sl_fail(e, SL_ESTOPPED, "gives up");
}

static int give_nan(sl_session *s, peer *p, sl_error *e) {
    p->x[7] = NAN;
    return sl_session_mix(s, p->x, e);
}

FIXTURES(setup, NULL);

static const struct {
    int (*end)(sl_session *s, peer *p, sl_error *e);
    int round, result;
} losses[] = {
    {give_up, 3, SL_ESTOPPED},
    {give_nan, 3, SL_EDIVERGED},    /* its caller's error, and no more */
    {give_up, ROUNDS, SL_ESTOPPED}, /* the others wait for it in the last average */
};

START_LOOP_TEST(rounds_and_averages_go_on, sizeof losses / sizeof *losses) {
    run_scene((scene){.end = losses[_i].end, .round = losses[_i].round, .averages = 1});
    ck_assert_int_eq(threads[LOST].result, losses[_i].result);
    expect_survivors();
    expect_averages();
}

/* A process of its own, which is killed somewhere in a round, or in an average. */
static void run_and_kill(const char *roster, unsigned after_us) {
    for (int i = 0; i < N; i++) {
        threads[i] = (peer_thread){.function = run_peer, .options = options};
        threads[i].options.rank = i;
        threads[i].options.roster = roster;
    }
    const pid_t child = fork();
    if (child == 0) {
        peer_thread_run(&threads[LOST]);
        _exit(0);
    }
    for (int i = 0; i < N; i++)
        if (i != LOST)
            ck_assert_int_eq(pthread_create(&threads[i].thread, NULL, peer_thread_run, &threads[i]),
                             0);
    while (__atomic_load_n(&peers[0].averages, __ATOMIC_RELAXED) < 3)
        nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = after_us * 1000}, NULL);
    kill(child, SIGKILL);
    for (int i = 0; i < N; i++)
        if (i != LOST)
            pthread_join(threads[i].thread, NULL);
    waitpid(child, NULL, 0);
}

START_LOOP_TEST(averages_that_are_cut_are_behind_all, SEEDS) {
    char roster[N * 32];
    free_roster(roster, sizeof roster, N);
    the = (scene){.round = ROUNDS + 1, .averages = ROUNDS};
    run_and_kill(roster, 137u * (unsigned)_i);
    expect_survivors();
    expect_averages();
    for (int i = 0; i < N; i++)
        ck_assert_int_le(peers[i].voids, 1);
}

int main(void) {
    return run_tests("session losses");
}
