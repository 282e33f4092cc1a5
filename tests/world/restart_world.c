/* restart_world.c - many runs of `starling run` that starts lost agents again (membership.restart),
 * each from a seed, in the virtual world (docs/reliability.md).
 *
 *   restart_world [-v] SEED [COUNT]     at most QUICK seeds with STARLING_QUICK in the environment
 *
 * The run is tools/run's own code, as in run_world. All agents but the first are killed, stopped,
 * and asked to leave; processes that join end as they begin. Some runs have gone on from a
 * checkpoint before that, and some of these have lost an agent before the checkpoint. Held of each
 * seed:
 *   - the run ends well, and in time, and no agent, no pipe and no memory is left;
 *   - who was killed is started again, unless membership.restart is "never", at once where it is
 *     the first time; who has left under "always" only; nobody else is;
 *   - a rank is started five times a minute at most, and not twice within a second;
 *   - a process that joins listens where the one before did; the run's owner hears of each;
 *   - who is killed, or leaves, and is started while nothing else happens, comes back in time; so
 *     does who was no member when the checkpoint was written;
 *   - numbers stay finite, and the same seed is the same run.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "disk.h"
#include "expected.h"
#include "life.h"
#include "parent.h"
#include "seeds.h"

enum { QUICK = 50, STRIKES_MAX = 5, STARTS_MAX = 5, SAVED_AFTER = 3 };
static const double most_s = 300, soon_s = 0.5, apart_s = 0.9, minute_s = 60;
/* All waits between six starts, and what they take; to be lost, and to join. */
static const double all_starts_s = 15 + 6, back_s = 5;

typedef enum strike_kind {
    STRIKE_KILL,
    STRIKE_CRASH,  /* and whoever takes its place ends as it begins, */
    STRIKE_REFUSE, /* or says that it cannot start */
    STRIKE_STOP,
    STRIKE_LEAVE,
    STRIKES
} strike_kind;
static const char *const names[STRIKES] = {"kill", "crash", "refuse", "stop", "leave"};

typedef struct strike {
    strike_kind kind;
    uint32_t rank;
    uint64_t round; /* that agent 0 has recorded */
    double at_s, seconds;
} strike;

typedef struct fate_of_rank {
    double killed_s;  /* the first time; 0: never */
    double crashed_s; /* since then whoever joins ends as it begins; the last time */
    bool crashes, refuses, stopped, asked;
    bool absent; /* it was no member when the checkpoint was written: it is started, and joins */
} fate_of_rank;

static scenario s;
static strike strikes[STRIKES_MAX];
static int strike_count;
static fate_of_rank fates[NODES_MAX];
static sl_restart policy;
static sl_checkpoints checkpoints;
static bool saves;    /* the run is to end after a checkpoint, and nothing strikes yet */
static strike before; /* the checkpoint */
static uint64_t recorded, cut_short; /* the latest round; the same when `before` struck */

/* ---- what agents.c needs of the command ---- */

static void hit(void *of, uint64_t ignored);

int collector_record(collector *c, const sl_record *record, const float *x, sl_error *why) {
    world_note("records", record->rank, record->round.round, 0);
    if (record->round.round > recorded)
        recorded = record->round.round;
    for (size_t i = 0; i < task.dimension; i++)
        if (!isfinite(x[i]))
            world_fail("agent %u has a number that is not finite", record->rank);
    if (saves && record->rank == 0 && record->round.round == SAVED_AFTER)
        run_receive(SIGTERM);
    if (saves && record->rank == 0 && record->round.round == before.round)
        world_at(world_now() + before.at_s, hit, &before, 0);
    for (int i = 0; i < strike_count && record->rank == 0 && !saves; i++)
        if (strikes[i].round == record->round.round)
            world_at(world_now() + strikes[i].at_s, hit, &strikes[i], 0);
    return 0;
}

/* ---- what happens ---- */

static life_fate find_fate(uint32_t rank, bool joins) {
    return (life_fate){.start_s = s.start_s[rank],
                       .exits = joins && fates[rank].crashes,
                       .refused = joins && fates[rank].refuses};
}

static void go_on(void *of, uint64_t ignored) {
    child_receive(((const strike *)of)->rank, SIGCONT);
}

static void hit(void *of, uint64_t ignored) {
    const strike *k = of;
    fate_of_rank *f = &fates[k->rank];
    if (k == &before && !saves) /* the run has ended by then */
        return;
    if (k == &before)
        cut_short = recorded;
    world_note(names[k->kind], k->rank, 0, 0);
    switch (k->kind) {
    case STRIKE_CRASH:
    case STRIKE_REFUSE:
        f->crashes = k->kind == STRIKE_CRASH;
        f->refuses = !f->crashes;
        f->crashed_s = world_now();
        child_receive(k->rank, SIGKILL);
        break;
    case STRIKE_KILL:
        child_receive(k->rank, SIGKILL);
        break;
    case STRIKE_STOP:
        f->stopped = true;
        child_receive(k->rank, SIGSTOP);
        world_at(world_now() + k->seconds, go_on, of, 0);
        return;
    case STRIKE_LEAVE:
        f->asked = true;
        child_receive(k->rank, SIGTERM);
        return;
    case STRIKES:
        break;
    }
    if (f->killed_s == 0)
        f->killed_s = world_now();
}

/* ---- what holds at the end ---- */

static uint32_t count_starts(uint32_t rank) {
    uint32_t count = 0;
    while (child_started_s(rank, count) > 0)
        count++;
    return count;
}

/* Of those after the first. */
static void judge_pace(uint32_t rank, uint32_t starts) {
    for (uint32_t i = 2; i < starts; i++)
        if (child_started_s(rank, i) - child_started_s(rank, i - 1) < apart_s)
            world_fail("agent %u is started twice within a second", rank);
    for (uint32_t i = STARTS_MAX + 1; i < starts; i++)
        if (child_started_s(rank, i) - child_started_s(rank, i - STARTS_MAX) < minute_s)
            world_fail("agent %u is started more than five times a minute", rank);
}

/* Returns of how many the run's owner is to be told. */
static uint32_t judge_starts(uint32_t rank) {
    const fate_of_rank *f = &fates[rank];
    const uint32_t starts = count_starts(rank);
    const double again_s = child_started_s(rank, 1);
    const bool touched = f->killed_s > 0 || f->stopped;
    const bool may =
        policy != SL_RESTART_NEVER && (touched || (f->asked && policy == SL_RESTART_ALWAYS));
    if (starts > 1 && !may)
        world_fail("agent %u is started %u times", rank, starts);
    const bool due = policy != SL_RESTART_NEVER && f->killed_s > 0 && !f->stopped && !f->asked &&
                     run.ended_s - f->killed_s > 2;
    if (due && (starts < 2 || again_s - f->killed_s > soon_s))
        world_fail("agent %u is killed at %.3f s, and started again at %.3f s", rank,
                   f->killed_s - first_s, again_s - first_s);
    const bool gives_up = due && f->crashed_s > 0 && run.ended_s - f->crashed_s > all_starts_s;
    if (gives_up && starts != STARTS_MAX + 1)
        world_fail("agent %u, which ends as it begins, is started %u times", rank, starts);
    const bool calm = strike_count == 1 && !f->crashes && !f->refuses && !f->stopped;
    if (calm && starts == 2 && run.ended_s - again_s > back_s && !run.is_back[rank])
        world_fail("agent %u does not come back", rank);
    if (f->absent && starts == 1 && strike_count == 1 && !f->asked && !run.is_back[rank])
        world_fail("agent %u, which was no member at the checkpoint, does not come back", rank);
    judge_pace(rank, starts);
    seeds_count("processes started again", starts - 1);
    seeds_count("that a checkpoint was without", f->absent);
    return starts - !f->absent;
}

static void judge(bool verbose) {
    parent_judge(verbose);
    if (run.result != 0 || !run.finished)
        world_fail("the run ended with %d: %s", run.result, run.error.text);
    uint32_t starts = 0;
    for (uint32_t i = 0; i < s.nodes; i++)
        starts += judge_starts(i);
    if (run.restarts != starts)
        world_fail("of %u starts the run's owner has heard %u", starts, run.restarts);
}

/* ---- a seed ---- */

static void draw_experiment(void) {
    static const char *const algorithms[] = {
        "\"name\": \"d-psgd\"", "\"name\": \"choco-sgd\", \"compressor\": {\"name\": \"qsgd\"}",
        "\"name\": \"gradient-tracking\""};
    static const char *const policies[] = {"never", "on-failure", "always"};
    policy = (sl_restart)world_below(3);
    s.nodes = 2 + world_below(4);
    s.rounds = 200 + world_below(200);
    s.dimension = 7;
    s.gradient_s = 0.3;
    snprintf(s.text, sizeof s.text,
             "{\"rounds\": %llu, \"seed\": %u, \"topology\": {\"nodes\": %u, \"family\": \"%s\"},"
             " \"algorithm\": {%s}, \"record\": {\"every\": 1}, \"optimizer\":"
             " {\"learning_rate\": 0.1}, \"transport\": {\"connect_timeout_s\": 5,"
             " \"round_timeout_s\": 60}, \"membership\": {\"on_loss\": \"continue\","
             " \"grace_s\": %.3f, \"restart\": \"%s\"}, \"security\": {\"mode\": \"%s\"},"
             " \"checkpoint\": {\"every\": %d}}",
             (unsigned long long)s.rounds, world_below(1000000), s.nodes,
             world_chance(0.5) ? "ring" : "complete", algorithms[world_below(3)],
             0.6 + world_uniform(), policies[policy], s.seed % 2 == 1 ? "auto" : "none",
             saves ? 100000 : 0);
    network.latency_s = 1e-4 + 2e-3 * world_uniform();
    network.slow_wake_s = 1e-6;
    for (uint32_t i = 0; i < s.nodes; i++)
        s.start_s[i] = 0.02 * world_uniform();
}

static void draw_strikes(bool verbose) {
    strike_count = 1 + (int)world_below(STRIKES_MAX);
    for (int i = 0; i < strike_count; i++) {
        strike *k = &strikes[i];
        *k = (strike){.kind = (strike_kind)world_below(STRIKES),
                      .rank = 1 + world_below(s.nodes - 1),
                      .round = 5 + world_below((uint32_t)s.rounds / 2),
                      .at_s = 0.3 * world_uniform(),
                      .seconds = 6 * world_uniform()};
        if (verbose)
            printf("%s of %u, %.4f s after round %llu\n", names[k->kind], k->rank, k->at_s,
                   (unsigned long long)k->round);
    }
}

/* Of the seed alone: what else is drawn stays. */
static void choose_before(void) {
    before = (strike){.kind = STRIKE_KILL,
                      .rank = 1 + (uint32_t)(s.seed / 6 % (s.nodes - 1)),
                      .round = s.seed % 6 == 5 ? 1 + s.seed / 24 % SAVED_AFTER : 0,
                      .at_s = 0.05 * (double)(s.seed / 72 % 8)};
}

static void begin_run(void) {
    life_open(find_fate);
    parent_begin(&checkpoints, s.nodes);
    world_run(world_now() + most_s, parent_is_over);
}

/* Who was struck before it has another fate now. */
static void forget_before(void) {
    sl_checkpoint_view view;
    sl_error error;
    memset(fates, 0, sizeof fates);
    if (sl_checkpoint_view_at(&view, CHECKPOINTS, checkpoints.round, &error) != 0)
        world_fail("%s", error.text);
    for (uint32_t i = 0; i < s.nodes; i++)
        fates[i].absent = !sl_checkpoint_view_has(&view, i);
}

/* After its first rounds all save, and end; then it goes on. False: one was killed when others had
 * ended the last round already, and its file is missing. */
static bool save_and_go_on(void) {
    recorded = cut_short = 0;
    begin_run();
    checkpoints.resume = true;
    checkpoints.round = expected_newest(NULL);
    if (run.result == SL_ESAVED && checkpoints.round == 0 && cut_short == (uint64_t)run.error.round)
        return false;
    if (run.result != SL_ESAVED || checkpoints.round < SAVED_AFTER)
        world_fail("the run has saved round %llu, and ended with %d: %s",
                   (unsigned long long)checkpoints.round, run.result, run.error.text);
    saves = false;
    forget_before();
    return true;
}

static uint64_t run_seed(uint64_t seed, bool verbose) {
    world_open(seed, verbose);
    disk_open();
    s = (scenario){.seed = seed};
    memset(fates, 0, sizeof fates);
    checkpoints = (sl_checkpoints){.folder = CHECKPOINTS, .run_id = RUN_ID};
    saves = seed % 3 == 2;
    draw_experiment();
    draw_strikes(verbose);
    choose_before();
    if (verbose)
        printf("%s\n", s.text);
    expected_take(&s, NULL, 0);
    if (!saves || save_and_go_on()) {
        begin_run();
        judge(verbose);
    }
    return expected_end();
}

int main(int count, char **arguments) {
    return seeds_main(count, arguments, QUICK, run_seed);
}
