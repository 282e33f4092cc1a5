/* fault_world.c - many runs of agents' own code in a virtual world, each from a seed, in one thread
 * (docs/reliability.md).
 *
 *   fault_world [-v] SEED [COUNT]     at most QUICK seeds with STARLING_QUICK in the environment
 *
 * Held of each seed:
 *   - who ends well has the simulator's models, after every round, bit for bit; without a fault
 *     that may end a run, all do;
 *   - who does not says an edge or a node, and the round;
 *   - nobody waits beyond its deadlines (P1), or for long without saying for whom;
 *   - who ends leaves no memory; nobody holds more than its bound;
 *   - a stranger has a few seconds, and few are let in at a time;
 *   - a payload stays as it is until it has left, the model while a gradient is computed;
 *   - what is told for the log of events makes sense;
 *   - the same seed is the same run.
 *
 * Beyond LIAR_SEEDS one of the agents forges frames: HELLO, data, sums, credit, whatever it sends.
 * Then models may be any, and the others end in time, well or with one error.
 */
#include <math.h>
#include <string.h>

#include "agent/peers/refusals.h"
#include "agent/peers/unverified.h"
#include "blame.h"
#include "config/buffers.h"
#include "disk.h"
#include "expected.h"
#include "liar.h"
#include "peers.h"
#include "seeds.h"

enum { QUICK = 400 };               /* with sanitizers */
enum { CROWD = 120, POLLED = 8 };   /* more than an agent lets in at a time */
static const double crowd_s = 0.02; /* in which they come */
/* What an agent holds beside what `starling check` forecasts: for itself, with the plan twice and
 * what it has told of whom it refused, codecs of buckets, a neighbour's tables. */
static const size_t agent_bytes = 2 * sizeof(sl_plan) + sizeof(sl_refusals) + (72 << 10),
                    neighbour_bytes = 12 << 10;

static scenario s;
static bool saves;                    /* the agents write checkpoints */
static const double told_after_s = 6; /* five, and the time to look */
static double last_fault_s;
static uint32_t forger; /* NODES_MAX: all are honest */

/* ---- faults ---- */

static void hit(void *of, uint64_t ignored);

static void on_round(void *context, uint32_t rank, uint64_t round) {
    for (int i = 0; i < s.fault_count; i++)
        if (s.faults[i].round == round && s.faults[i].a == rank)
            world_at(world_now() + s.faults[i].at_s, hit, &s.faults[i], 0);
}

static void join(void *of, uint64_t ignored) {
    const fault *f = of;
    network_part(f->a, f->b, false);
}

static void send_stranger(void *of, uint64_t ignored) {
    const fault *f = of;
    network_send_stranger(f->a);
}

static void stop_corrupting(void *of, uint64_t ignored) {
    network.corrupt = 0;
}

/* Each fault does so once, though rounds come again: three restarts would begin each other anew. */
static void kill_agent(peer *p, fault *f) {
    if (f->done || !peer_is_up(p))
        return;
    f->done = true;
    peer_kill(p, f->kind == FAULT_POWER);
    if (f->kind == FAULT_RESTART)
        world_at(world_now() + f->seconds, peer_start, p, 0);
}

/* They agree on the round themselves. Where there is none, the run begins anew. */
static void start_all(void *of, uint64_t ignored) {
    const uint64_t round = expected_newest(NULL);
    world_note("goes-on", round, 0, 0);
    if (round == 0)
        disk_clear();
    for (uint32_t i = 0; i < s.nodes; i++) {
        peers[i].checkpoints.resume = round > 0;
        world_at(world_now() + 0.02 * world_uniform(), peer_start, &peers[i], ignored);
    }
}

/* All lose power at once, if all have been started. Each fault does so once, though rounds come
 * again. */
static void black_out(fault *f) {
    for (uint32_t i = 0; i < s.nodes; i++)
        if (f->done || !peer_is_up(&peers[i]))
            return;
    f->done = true;
    seeds_count("blackouts", 1);
    for (uint32_t i = 0; i < s.nodes; i++) {
        peer_kill(&peers[i], true);
        peers[i].process = NULL; /* it comes again */
    }
    disk_lose_power();
    world_at(world_now() + f->seconds, start_all, NULL, 0);
}

/* Whose edges may be named by those who end early. */
static void blame(const fault *f) {
    const bool edge = f->kind == FAULT_CUT || f->kind == FAULT_HALF_OPEN || f->kind == FAULT_MUTE ||
                      f->kind == FAULT_PARTITION;
    if (edge)
        blame_edge(f->a, f->b);
    else if (f->kind >= FAULT_CUT)
        blame_node(f->a);
    for (uint32_t i = 0; i < s.nodes && f->kind == FAULT_CORRUPT; i++)
        blame_node(i);
}

static void hit(void *of, uint64_t ignored) {
    fault *f = of;
    peer *a = &peers[f->a];
    world_note("strikes", f->kind, f->a, f->b);
    blame(f);
    /* Who is started again has a time-out of its own to find the others. */
    const bool starts = f->kind == FAULT_RESTART || f->kind == FAULT_BLACKOUT;
    last_fault_s = fmax(last_fault_s, world_now() + f->seconds + (starts ? s.connect_s : 0));
    switch (f->kind) {
    case FAULT_CUT:
    case FAULT_HALF_OPEN:
    case FAULT_MUTE: /* they have one order */
        seeds_count("connections broken", (uint64_t)network_break_between(
                                              f->a, f->b, (network_break)(f->kind - FAULT_CUT)));
        break;
    case FAULT_CORRUPT:
        network.corrupt = 0.05;
        world_at(world_now() + f->seconds, stop_corrupting, NULL, 0);
        break;
    case FAULT_KILL:
    case FAULT_POWER:
    case FAULT_RESTART:
        kill_agent(a, f);
        break;
    case FAULT_STOP:
    case FAULT_SHORT_STOP:
        if (peer_is_up(a))
            peer_stop(a, f->seconds);
        break;
    case FAULT_PARTITION:
    case FAULT_SHORT_PARTITION:
        network_part(f->a, f->b, true);
        world_at(world_now() + f->seconds, join, f, 0);
        break;
    case FAULT_TERM:
        if (a->agent != NULL)
            sl_agent_stop(a->agent);
        break;
    case FAULT_STRANGER:
        network_send_stranger(f->a);
        break;
    case FAULT_CROWD:
        for (int i = 0; i < CROWD; i++)
            world_at(world_now() + crowd_s * world_uniform(), send_stranger, f, 0);
        break;
    case FAULT_BLACKOUT:
        black_out(f);
        break;
    case FAULT_NONE:
    case FAULT_KINDS:
        break;
    }
}

/* ---- an agent ---- */

static int on_record(void *context, const sl_record *record, const float *x) {
    peer *p = context;
    p->recorded = record->round.round;
    if (forger == NODES_MAX) /* else a number that passes may be forged */
        expected_check(p->rank, p->recorded, x);
    return 0;
}

static void on_notice(void *context, const char *text) {
    peer *p = context;
    world_say(p->rank, text);
    if (strstr(text, "waiting") != NULL) /* the first time behind "warning: " */
        p->told_s = world_now();
}

/* Each second: does every agent say for whom it waits for longer than 5 s? */
static void look(void *of, uint64_t ignored) {
    for (const peer *p = peers; p < peers + s.nodes; p++) {
        if (p->agent == NULL || p->process->stopped)
            continue;
        const sl_agent_progress progress = sl_agent_progress_read(p->agent);
        const double still_s = progress.own.still_s;
        if (progress.waits_for[0] != '\0' && still_s > told_after_s &&
            p->told_s < world_now() - still_s)
            world_fail("agent %u has waited for %.3f s, and has not said so: %s", p->rank, still_s,
                       progress.waits_for);
    }
    world_at(world_now() + 1, look, NULL, 0);
}

static void on_log(void *context, const sl_log_entry *entry) {
    peer *p = context;
    logbook_take(&p->logbook, entry, s.rounds);
}

/* A seed in two has a key; of these, one in two seals all frames. */
static bool has_key(void) {
    return s.seed % 2 == 1;
}

static void *be_agent(void *of) {
    peer *p = of;
    const sl_agent_settings settings = {.rank = p->rank,
                                        .credentials = has_key() ? expected_key() : NULL,
                                        .checkpoints = saves ? &p->checkpoints : NULL,
                                        .observer = {.context = p,
                                                     .record = on_record,
                                                     .round = on_round,
                                                     .notice = on_notice,
                                                     .log = on_log}};
    p->result = expected_run(&p->agent, settings, s.nodes, &p->error);
    logbook_close(&p->logbook, p->rank, p->result);
    peer_ends(p);
    return NULL;
}

/* ---- what holds at the end ---- */

/* When the last one must have ended: what happened, the deadlines that follow from it, a farewell,
 * and a gradient that is still under way. */
static double end_by(void) {
    double by_s = first_s;
    for (uint32_t i = 0; i < s.nodes; i++)
        by_s = fmax(by_s, first_s + s.start_s[i]);
    const double rounds_s = (double)s.rounds * (s.gradient_s + 0.5);
    by_s = fmax(by_s + s.connect_s + rounds_s, last_fault_s);
    return by_s + s.timeout_s + 2 * s.reconnect_s + 2 + (forger < NODES_MAX ? s.round_s : 0);
}

static void judge_error(const peer *p) {
    const sl_error *e = &p->error;
    /* Who alone is started again finds its own checkpoints, and does not go on alone. */
    if (p->result == SL_ESTOPPED || (saves && p->result == SL_EFILE) || p->rank == forger)
        return;
    if (p->result != SL_EPEER && p->result != SL_EPROTO &&
        !(forger < NODES_MAX && p->result == SL_EDIVERGED))
        world_fail("agent %u ended with code %d: %s", p->rank, p->result, e->text);
    if (strstr(e->text, "round ") == NULL ||
        (strstr(e->text, "edge ") == NULL && strstr(e->text, "node ") == NULL))
        world_fail("agent %u names no edge and round: %s", p->rank, e->text);
    /* Who starts late may find that its neighbours have ended. */
    const bool absent = e->round == 0 || strstr(e->text, "did not come up") != NULL;
    if (!absent && forger == NODES_MAX && !blame_is_right(e->text)) /* who forges says anything */
        world_fail("agent %u names only edges that were well: %s", p->rank, e->text);
}

/* A place for each visitor, and a neighbour's connections: the old one, the new one, and one that
 * is only to be asked. What is closed goes at the next poll. */
static void judge_visitors(void) {
    const uint32_t most = SL_UNVERIFIED_MAX + 3 * s.nodes + POLLED;
    double stay_s = 3 + s.timeout_s + 0.5;
    for (uint32_t i = 0; i < s.nodes; i++)
        if (peers[i].process->connections_max > most)
            world_fail("agent %u had %u connections at a time; %u are right", i,
                       peers[i].process->connections_max, most);
    for (int i = 0; i < s.fault_count; i++)
        if (s.faults[i].kind == FAULT_STOP || s.faults[i].kind == FAULT_SHORT_STOP)
            stay_s += s.faults[i].seconds;
    if (network_longest_stay() > stay_s)
        world_fail("a stranger was connected for %.3f s; %.3f are right", network_longest_stay(),
                   stay_s);
}

static void judge(const peer *p, bool verbose) {
    if (!peer_judge(p, verbose))
        return;
    if (p->ended_s > end_by())
        world_fail("agent %u ended at %.3f s, and should have by %.3f", p->rank,
                   p->ended_s - first_s, end_by() - first_s);
    if (p->result != 0 && !s.may_fail)
        world_fail("agent %u ended without a cause: %s", p->rank, p->error.text);
    peer_judge_end(p, s.rounds);
    if (p->result != 0)
        judge_error(p);
    expected_memory(p->process, p->rank, saves, has_key(),
                    agent_bytes + sl_receive_degree(experiment, p->rank) * neighbour_bytes);
    seeds_count("ended early and said why", p->result != 0);
}

/* ---- a seed ---- */

static bool blacks_out(void) {
    for (int i = 0; i < s.fault_count; i++)
        if (s.faults[i].kind == FAULT_BLACKOUT)
            return true;
    return false;
}

static uint64_t run_seed(uint64_t seed, bool verbose) {
    const char *const checkpoints[] = {"checkpoint.every=1", "checkpoint.keep=16"};
    world_open(seed, verbose);
    disk_open();
    scenario_draw(&s, seed);
    if (verbose)
        scenario_print(&s);
    peers_open(s.nodes, be_agent);
    blame_none();
    forger = seed > LIAR_SEEDS ? (uint32_t)(seed % s.nodes) : NODES_MAX;
    if (forger < NODES_MAX) {
        liar_is(forger, 0.5 * world_uniform() * world_uniform());
        network.forge = liar_forge_any;
        s.may_fail = true;
    }
    last_fault_s = first_s;
    saves = blacks_out();
    expected_open(&s, checkpoints, saves ? 2 : 0);
    for (uint32_t i = 0; i < s.nodes; i++)
        world_at(first_s + s.start_s[i], peer_start, &peers[i], 0);
    for (int i = 0; i < s.fault_count; i++)
        if (s.faults[i].round == 0)
            world_at(first_s + s.faults[i].at_s, hit, &s.faults[i], 0);
    world_at(first_s + 1, look, NULL, 0);
    world_run(first_s + 100, peers_are_over);
    for (uint32_t i = 0; i < s.nodes; i++)
        judge(&peers[i], verbose);
    judge_visitors();
    return expected_end();
}

int main(int count, char **arguments) {
    expected_key();
    return seeds_main(count, arguments, QUICK, run_seed);
}
