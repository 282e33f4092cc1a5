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
 *
 * In seeds beyond RESTART_SEEDS it starts lost agents again (membership.restart). All but the first
 * are killed, stopped, and asked to leave; processes that join end as they begin. Some runs have
 * gone on from a checkpoint before that, and some of these have lost an agent before the
 * checkpoint. Held of each:
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

#include "blame.h"
#include "children.h"
#include "disk.h"
#include "expected.h"
#include "life.h"
#include "parent.h"
#include "seeds.h"

enum { QUICK = 200, BLOWS_MAX = 3 };
static const double grace_s = 5; /* fleet.c's */
/* Where it starts some again. */
enum { RESTART_SEEDS = 100000, STRIKES_MAX = 5, STARTS_MAX = 5, SAVED_AFTER = 3 };
static const double most_s = 300, soon_s = 0.5, apart_s = 0.9, minute_s = 60;
/* All waits between six starts, and what they take; to be lost, and to join. */
static const double all_starts_s = 15 + 6, back_s = 5;

typedef enum blow_kind {
    BLOW_KILL,    /* an agent's process */
    BLOW_STOP,    /* it, by SIGSTOP; it goes on only where some are started again */
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
    BLOWS,
    /* Where it starts some again: */
    BLOW_CRASH = BLOWS, /* an agent is killed, and whoever takes its place ends as it begins, */
    BLOW_REFUSE,        /* or says that it cannot start */
    ALL_BLOWS
} blow_kind;
static const char *const names[ALL_BLOWS] = {"kill", "stop",   "pause", "silence", "refusal",
                                             "exit", "hang",   "leave", "term",    "int",
                                             "save", "folder", "crash", "refuse"};
/* Signals. */
static const int
    to_agent[ALL_BLOWS] = {[BLOW_KILL] = SIGKILL,  [BLOW_STOP] = SIGSTOP,  [BLOW_PAUSE] = SIGSTOP,
                           [BLOW_LEAVE] = SIGTERM, [BLOW_CRASH] = SIGKILL, [BLOW_REFUSE] = SIGKILL},
    to_run[ALL_BLOWS] = {[BLOW_TERM] = SIGTERM, [BLOW_INT] = SIGINT, [BLOW_SAVE] = SIGUSR1};

typedef struct blow {
    blow_kind kind;
    uint32_t rank;
    uint64_t round;       /* that it has recorded, or agent 0; 0: since the start */
    double at_s, seconds; /* seconds: of who is stopped; 0: it does not go on */
} blow;

typedef struct fate_of_rank {
    double killed_s;  /* the first time; 0: never */
    double crashed_s; /* since then whoever joins ends as it begins; the last time */
    bool crashes, refuses, stopped, asked;
    bool absent; /* it was no member when the checkpoint was written: it is started, and joins */
} fate_of_rank;

static scenario s;
static blow blows[STRIKES_MAX];
static int blow_count;
static fate_of_rank fates[NODES_MAX];
static sl_checkpoints checkpoints;
static bool saves; /* agents write checkpoints */
static bool folder_fails;
static bool trained;     /* an agent has recorded a round */
static bool interrupted; /* it waited for agents that all stood still, and got SIGINT */
static double struck_s;  /* the last blow */
/* Where it starts some again: */
static bool restarts;
static sl_restart policy;
static bool is_to_save; /* the run is to end after a checkpoint, and nothing strikes yet */
static blow before;     /* the checkpoint */
static uint64_t recorded, cut_short; /* the latest round; the same when `before` struck */

/* ---- what agents.c needs of the command ---- */

static void strike(void *of, uint64_t ignored);

static void plan(blow *b) {
    world_at(world_now() + b->at_s, strike, b, 0);
}

/* Where some are started again. */
static void look(const sl_record *record, const float *x) {
    world_note("records", record->rank, record->round.round, 0);
    if (record->round.round > recorded)
        recorded = record->round.round;
    for (size_t i = 0; i < task.dimension; i++)
        if (!isfinite(x[i]))
            world_fail("agent %u has a number that is not finite", record->rank);
    if (is_to_save && record->rank == 0 && record->round.round == SAVED_AFTER)
        run_receive(SIGTERM);
    if (is_to_save && record->rank == 0 && record->round.round == before.round)
        plan(&before);
}

/* As run/collector.c does, without files. */
int collector_record(collector *c, const sl_record *record, const float *x, sl_error *why) {
    if (restarts)
        look(record, x);
    else
        expected_check(record->rank, record->round.round, x);
    trained = true;
    for (int i = 0; i < blow_count && !is_to_save; i++)
        if (blows[i].round == record->round.round && record->rank == (restarts ? 0 : blows[i].rank))
            plan(&blows[i]);
    if (folder_fails)
        return sl_fail(why, SL_EFILE, "the disk is full");
    if (c->incomplete || restarts)
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
                       .refused = is_hit(rank, BLOW_REFUSAL) || (joins && fates[rank].refuses),
                       .exits = is_hit(rank, BLOW_EXIT) || (joins && fates[rank].crashes),
                       .hangs = is_hit(rank, BLOW_HANG)};
}

/* ---- the run ---- */

static void go_on(void *of, uint64_t ignored) {
    child_receive(((const blow *)of)->rank, SIGCONT);
}

static void meet_fate(const blow *b) {
    fate_of_rank *f = &fates[b->rank];
    f->stopped = f->stopped || b->kind == BLOW_STOP;
    f->asked = f->asked || b->kind == BLOW_LEAVE;
    if (f->killed_s == 0 && to_agent[b->kind] == SIGKILL)
        f->killed_s = world_now();
    if (b->kind != BLOW_CRASH && b->kind != BLOW_REFUSE)
        return;
    f->crashes = b->kind == BLOW_CRASH;
    f->refuses = !f->crashes;
    f->crashed_s = world_now();
}

static void strike(void *of, uint64_t ignored) {
    const blow *b = of;
    if (b == &before ? !is_to_save : b >= blows + blow_count)
        return; /* it was for the run before */
    if (b == &before)
        cut_short = recorded;
    world_note(names[b->kind], b->rank, 0, 0);
    struck_s = world_now();
    meet_fate(b);
    folder_fails = folder_fails || b->kind == BLOW_FOLDER;
    if (to_agent[b->kind] != 0)
        child_receive(b->rank, to_agent[b->kind]);
    if (to_run[b->kind] != 0)
        run_receive(to_run[b->kind]);
    if (to_agent[b->kind] == SIGSTOP && b->seconds > 0)
        world_at(world_now() + b->seconds, go_on, of, 0);
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

static void begin_run(double seconds) {
    struck_s = world_now();
    folder_fails = trained = interrupted = false;
    life_open(find_fate);
    blame();
    parent_begin(&checkpoints, s.nodes);
    for (int i = 0; i < blow_count; i++)
        if (blows[i].round == 0)
            plan(&blows[i]);
    world_run(struck_s + seconds, parent_is_over);
}

static void run_once(bool verbose) {
    const double began_s = world_now();
    begin_run(500);
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
    checkpoints.resume = true;
    checkpoints.round = round;
    run_once(verbose);
}

static void tell_seed(void) {
    printf("%s\n", s.text);
    for (const blow *b = blows; b < blows + blow_count; b++)
        printf("%s of %u, %.4f s after %s %llu\n", names[b->kind], b->rank, b->at_s,
               b->round == 0 ? "the start" : "round", (unsigned long long)b->round);
}

static void draw_blows(void) {
    blow_count = world_chance(0.2) ? 0 : 1 + world_below(BLOWS_MAX);
    for (blow *b = blows; b < blows + blow_count; b++) {
        *b = (blow){.kind = (blow_kind)(world_draw() % BLOWS), .rank = world_below(s.nodes)};
        const bool early_one = world_chance(0.3);
        b->round = early_one ? 0 : 1 + world_draw() % s.rounds;
        b->at_s = (early_one ? 0.1 : 0.02) * world_uniform();
        b->seconds = b->kind == BLOW_PAUSE ? 0.1 * s.timeout_s : 0;
    }
}

static void run_alone(bool verbose) {
    const char *const set[] = {"checkpoint.every=2", "checkpoint.keep=16"};
    scenario_draw(&s, s.seed);
    draw_blows();
    saves = world_chance(0.6);
    if (verbose)
        tell_seed();
    expected_open(&s, set, saves ? 2 : 0);
    run_once(verbose);
    if (run.result == SL_ESAVED)
        go_on_to_the_end(verbose);
}

/* ---- that starts some again: what holds at the end ---- */

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
    const bool calm = blow_count == 1 && !f->crashes && !f->refuses && !f->stopped;
    if (calm && starts == 2 && run.ended_s - again_s > back_s && !run.is_back[rank])
        world_fail("agent %u does not come back", rank);
    if (f->absent && starts == 1 && blow_count == 1 && !f->asked && !run.is_back[rank])
        world_fail("agent %u, which was no member at the checkpoint, does not come back", rank);
    judge_pace(rank, starts);
    seeds_count("processes started again", starts - 1);
    seeds_count("that a checkpoint was without", f->absent);
    return starts - !f->absent;
}

static void judge_restarts(bool verbose) {
    parent_judge(verbose);
    if (run.result != 0 || !run.finished)
        world_fail("the run ended with %d: %s", run.result, run.error.text);
    uint32_t starts = 0;
    for (uint32_t i = 0; i < s.nodes; i++)
        starts += judge_starts(i);
    if (run.restarts != starts)
        world_fail("of %u starts the run's owner has heard %u", starts, run.restarts);
}

/* ---- its seed ---- */

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
             is_to_save ? 100000 : 0);
    network.latency_s = 1e-4 + 2e-3 * world_uniform();
    network.slow_wake_s = 1e-6;
    for (uint32_t i = 0; i < s.nodes; i++)
        s.start_s[i] = 0.02 * world_uniform();
}

static void draw_strikes(void) {
    static const blow_kind kinds[] = {BLOW_KILL, BLOW_CRASH, BLOW_REFUSE, BLOW_STOP, BLOW_LEAVE};
    blow_count = 1 + (int)world_below(STRIKES_MAX);
    for (int i = 0; i < blow_count; i++)
        blows[i] = (blow){.kind = kinds[world_below(5)],
                          .rank = 1 + world_below(s.nodes - 1),
                          .round = 5 + world_below((uint32_t)s.rounds / 2),
                          .at_s = 0.3 * world_uniform(),
                          .seconds = 6 * world_uniform()};
}

/* Of the seed alone: what else is drawn stays. */
static void choose_before(void) {
    before = (blow){.kind = BLOW_KILL,
                    .rank = 1 + (uint32_t)(s.seed / 6 % (s.nodes - 1)),
                    .round = s.seed % 6 == 5 ? 1 + s.seed / 24 % SAVED_AFTER : 0,
                    .at_s = 0.05 * (double)(s.seed / 72 % 8)};
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
    begin_run(most_s);
    checkpoints.resume = true;
    checkpoints.round = expected_newest(NULL);
    if (run.result == SL_ESAVED && checkpoints.round == 0 && cut_short == (uint64_t)run.error.round)
        return false;
    if (run.result != SL_ESAVED || checkpoints.round < SAVED_AFTER)
        world_fail("the run has saved round %llu, and ended with %d: %s",
                   (unsigned long long)checkpoints.round, run.result, run.error.text);
    is_to_save = false;
    forget_before();
    return true;
}

static void run_with_restarts(bool verbose) {
    is_to_save = s.seed % 3 == 2;
    draw_experiment();
    draw_strikes();
    choose_before();
    if (verbose)
        tell_seed();
    expected_take(&s, NULL, 0);
    if (is_to_save && !save_and_go_on())
        return;
    begin_run(most_s);
    judge_restarts(verbose);
}

static uint64_t run_seed(uint64_t number, bool verbose) {
    restarts = number > RESTART_SEEDS;
    s = (scenario){.seed = restarts ? number - RESTART_SEEDS : number};
    world_open(s.seed, verbose);
    disk_open();
    memset(fates, 0, sizeof fates);
    is_to_save = false;
    checkpoints = (sl_checkpoints){.folder = CHECKPOINTS, .run_id = RUN_ID};
    (restarts ? run_with_restarts : run_alone)(verbose);
    return expected_end();
}

int main(int count, char **arguments) {
    return seeds_main(count, arguments, QUICK, run_seed);
}
