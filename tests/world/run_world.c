/* run_world.c - many runs of `starling run`: what it does with its agents, from the first that it
 * starts to the last that it reaps; each from a seed, in the virtual world (docs/reliability.md).
 *
 *   run_world [-v] SEED [COUNT]     at most QUICK seeds with STARLING_QUICK in the environment
 *
 * The run is tools/run's own code: agents.c, fleet.c, and reporter.c in the agents. Held of each
 * seed:
 *   - its models are the simulator's, after every round, bit for bit; without a blow it ends well;
 *   - it ends in time, and no agent, no pipe and no memory is left;
 *   - it says whom a blow has hit, or that it was asked to stop;
 *   - who was asked to end after a checkpoint has a whole one, and goes on from it to the end;
 *   - the same seed is the same run.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "blame.h"
#include "children.h"
#include "disk.h"
#include "expected.h"
#include "life.h"
#include "parent.h"
#include "seeds.h"

enum { QUICK = 200, BLOWS_MAX = 3 };
static const double grace_s = 5; /* fleet.c's */

typedef enum blow_kind {
    BLOW_KILL,    /* an agent's process */
    BLOW_STOP,    /* it, by SIGSTOP; it does not go on */
    BLOW_PAUSE,   /* it goes on in time */
    BLOW_SILENCE, /* it never comes up */
    BLOW_REFUSAL, /* it does not start, and says why */
    BLOW_EXIT,    /* it does not start, and says nothing */
    BLOW_HANG,    /* it does not exit when it is through */
    BLOW_LEAVE,   /* it is asked to end after a checkpoint */
    BLOW_TERM,    /* the run gets SIGTERM, */
    BLOW_INT,     /* SIGINT, */
    BLOW_SAVE,    /* SIGUSR1 */
    BLOW_FOLDER,  /* the run cannot write its folder */
    BLOWS
} blow_kind;
static const char *const names[BLOWS] = {"kill", "stop",  "pause", "silence", "refusal", "exit",
                                         "hang", "leave", "term",  "int",     "save",    "folder"};
/* Signals. */
static const int to_agent[BLOWS] =
    {[BLOW_KILL] = SIGKILL, [BLOW_STOP] = SIGSTOP, [BLOW_PAUSE] = SIGSTOP, [BLOW_LEAVE] = SIGTERM},
                 to_run[BLOWS] = {
                     [BLOW_TERM] = SIGTERM, [BLOW_INT] = SIGINT, [BLOW_SAVE] = SIGUSR1};

typedef struct blow {
    blow_kind kind;
    uint32_t rank;
    uint64_t round; /* that it has recorded; 0: since the start */
    double at_s;
} blow;

static scenario s;
static blow blows[BLOWS_MAX];
static int blow_count;
static bool saves; /* agents write checkpoints */
static sl_checkpoints checkpoints;
static bool folder_fails;
static bool trained;     /* an agent has recorded a round */
static bool interrupted; /* it waited for agents that all stood still, and got SIGINT */
static double struck_s;  /* the last blow */

/* ---- what agents.c needs of the command ---- */

static void strike(void *of, uint64_t ignored);

/* As run/collector.c does, without files. */
int collector_record(collector *c, const sl_record *record, const float *x, sl_error *why) {
    expected_check(record->rank, record->round.round, x);
    trained = true;
    for (int i = 0; i < blow_count; i++)
        if (blows[i].round == record->round.round && blows[i].rank == record->rank)
            world_at(world_now() + blows[i].at_s, strike, &blows[i], 0);
    if (folder_fails)
        return sl_fail(why, SL_EFILE, "the disk is full");
    if (c->incomplete)
        return 0;
    if (c->waiting[record->rank])
        world_fail("agent %u records twice before the others have", record->rank);
    c->waiting[record->rank] = true;
    if (++c->waiting_count == s.nodes) {
        memset(c->waiting, 0, s.nodes * sizeof *c->waiting);
        c->waiting_count = 0;
    }
    return 0;
}

static bool is_hit(uint32_t rank, blow_kind kind) {
    for (int i = 0; i < blow_count; i++)
        if (blows[i].kind == kind && blows[i].rank == rank)
            return true;
    return false;
}

static life_fate find_fate(uint32_t rank, bool joins) {
    return (life_fate){.start_s = s.start_s[rank],
                       .silent = is_hit(rank, BLOW_SILENCE),
                       .refused = is_hit(rank, BLOW_REFUSAL),
                       .exits = is_hit(rank, BLOW_EXIT),
                       .hangs = is_hit(rank, BLOW_HANG)};
}

/* ---- the run ---- */

static void go_on(void *of, uint64_t ignored) {
    child_receive(((const blow *)of)->rank, SIGCONT);
}

static void strike(void *of, uint64_t ignored) {
    const blow *b = of;
    if (b >= blows + blow_count)
        return; /* it was for the run before */
    world_note(names[b->kind], b->rank, 0, 0);
    struck_s = world_now();
    folder_fails = folder_fails || b->kind == BLOW_FOLDER;
    if (to_agent[b->kind] != 0)
        child_receive(b->rank, to_agent[b->kind]);
    if (to_run[b->kind] != 0)
        run_receive(to_run[b->kind]);
    if (b->kind == BLOW_PAUSE)
        world_at(world_now() + 0.1 * s.timeout_s, go_on, of, 0);
}

/* ---- what holds at the end ---- */

static bool has(blow_kind kind) {
    for (int i = 0; i < blow_count; i++)
        if (blows[i].kind == kind)
            return true;
    return false;
}

/* Whom an error may name. */
static void blame(void) {
    blame_none();
    for (int i = 0; i < blow_count; i++)
        if (blows[i].kind <= BLOW_LEAVE && blows[i].kind != BLOW_PAUSE)
            blame_node(blows[i].rank);
}

/* When the run must have ended: what it takes by itself, or the deadlines that follow a blow. */
static double end_by(double began_s) {
    double by_s = began_s + (double)s.rounds * (s.gradient_s + 0.5);
    for (uint32_t i = 0; i < s.nodes; i++)
        by_s = fmax(by_s, began_s + s.start_s[i]);
    by_s = fmax(by_s, struck_s) + s.connect_s + 2 * s.timeout_s + 2 * s.reconnect_s;
    return by_s + 2 * grace_s + 2;
}

static void judge_cause(void) {
    const bool asked = interrupted || has(BLOW_INT) || has(BLOW_TERM) || has(BLOW_LEAVE);
    if (run.result == SL_ESTOPPED && !asked)
        world_fail("the run was stopped, and nobody asked: %s", run.error.text);
    if (run.result == SL_EFILE && !has(BLOW_FOLDER))
        world_fail("the run ended for its folder: %s", run.error.text);
    if (run.result == SL_EPEER || run.result == SL_EPROTO || run.result == SL_EINVAL)
        if (!blame_is_right(run.error.text) &&
            !(run.complained && strstr(run.error.text, "said nothing") != NULL))
            world_fail("the run names nobody whom a blow has hit: %s", run.error.text);
    if (run.result == SL_ESAVED && (!saves || (!has(BLOW_TERM) && !has(BLOW_LEAVE))))
        world_fail("the run ended after a checkpoint that nobody asked for");
}

/* Who would have ended by itself is not killed: it names an edge, once its neighbours are late, or
 * is asked to end. */
static void judge_kills(void) {
    int asked = 0;
    for (int i = 0; i < blow_count; i++)
        asked += blows[i].kind == BLOW_INT || blows[i].kind == BLOW_TERM;
    const bool in_time = (run.result == SL_EPEER && asked == 0) ||
                         (run.result == SL_ESTOPPED && asked == 1); /* more are impatient */
    for (uint32_t i = 0; i < s.nodes && trained && in_time; i++)
        if (child_was_killed(i) && !is_hit(i, BLOW_STOP) && !is_hit(i, BLOW_PAUSE) &&
            !is_hit(i, BLOW_HANG) && !is_hit(i, BLOW_SILENCE))
            world_fail("the run killed agent %u, which would have ended: %s", i, run.error.text);
}

static void judge(double began_s, bool verbose) {
    parent_judge(verbose);
    if (run.ended_s > end_by(began_s))
        world_fail("the run ended at %.3f s, and should have by %.3f", run.ended_s - first_s,
                   end_by(began_s) - first_s);
    if ((run.result == 0) != run.finished)
        world_fail("the run ended with %d, and %s its folder", run.result,
                   run.finished ? "finished" : "did not finish");
    if (run.losses + run.restarts > 0)
        world_fail("an agent was lost, and the run goes on");
    bool well_due = true;
    for (int i = 0; i < blow_count; i++)
        well_due = well_due && (blows[i].kind == BLOW_SAVE || blows[i].kind == BLOW_PAUSE);
    if (run.result != 0 && well_due)
        world_fail("the run ended with %d, without a cause: %s", run.result, run.error.text);
    judge_cause();
    judge_kills();
    seeds_count(run.result == 0           ? "trained to the end"
                : run.result == SL_ESAVED ? "ended after a checkpoint"
                                          : "early, and said why",
                1);
}

/* ---- a seed ---- */

/* Agents that all stand still may go on at any time: the run waits for them, or for its user. */
static void interrupt_who_waits(void) {
    for (uint32_t i = 0; i < s.nodes; i++)
        if (!is_hit(i, BLOW_STOP))
            return;
    if (parent_is_over())
        return;
    interrupted = true;
    struck_s = world_now();
    run_receive(SIGINT);
    world_run(struck_s + 500, parent_is_over);
}

static void begin_run(const sl_checkpoints *from, bool verbose) {
    const double began_s = struck_s = world_now();
    checkpoints = *from;
    folder_fails = trained = interrupted = false;
    life_open(find_fate);
    blame();
    parent_begin(&checkpoints, s.nodes);
    for (int i = 0; i < blow_count; i++)
        if (blows[i].round == 0)
            world_at(began_s + blows[i].at_s, strike, &blows[i], 0);
    world_run(began_s + 500, parent_is_over);
    interrupt_who_waits();
    judge(began_s, verbose);
}

/* From the checkpoint after which it ended, to the last round. */
static void go_on_to_the_end(bool verbose) {
    const uint64_t round = expected_newest(NULL);
    char wanted[32];
    snprintf(wanted, sizeof wanted, "round %llu:", (unsigned long long)round);
    if (round == 0 || strstr(run.error.text, wanted) == NULL)
        world_fail("the newest whole cut is of round %llu: %s", (unsigned long long)round,
                   run.error.text);
    blow_count = 0;
    begin_run(
        &(sl_checkpoints){.folder = CHECKPOINTS, .run_id = RUN_ID, .resume = true, .round = round},
        verbose);
}

static void draw_blows(bool verbose) {
    blow_count = world_chance(0.2) ? 0 : 1 + world_below(BLOWS_MAX);
    for (int i = 0; i < blow_count; i++) {
        blow *b = &blows[i];
        *b = (blow){.kind = (blow_kind)(world_draw() % BLOWS), .rank = world_below(s.nodes)};
        const bool early_one = world_chance(0.3);
        b->round = early_one ? 0 : 1 + world_draw() % s.rounds;
        b->at_s = (early_one ? 0.1 : 0.02) * world_uniform();
        if (verbose)
            printf("%s of %u, %.4f s after %s %llu\n", names[b->kind], b->rank, b->at_s,
                   early_one ? "the start" : "round", (unsigned long long)b->round);
    }
}

static uint64_t run_seed(uint64_t seed, bool verbose) {
    const char *const set[] = {"checkpoint.every=2", "checkpoint.keep=16"};
    world_open(seed, verbose);
    disk_open();
    scenario_draw(&s, seed);
    draw_blows(verbose);
    saves = world_chance(0.6);
    expected_open(&s, set, saves ? 2 : 0);
    if (verbose)
        printf("%s\n", s.text);
    begin_run(&(sl_checkpoints){.folder = CHECKPOINTS, .run_id = RUN_ID}, verbose);
    if (run.result == SL_ESAVED)
        go_on_to_the_end(verbose);
    return expected_end();
}

int main(int count, char **arguments) {
    return seeds_main(count, arguments, QUICK, run_seed);
}
