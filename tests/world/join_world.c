/* join_world.c - sessions that others join while they train, in the virtual world; each run from a
 * seed (docs/reliability.md).
 *
 *   join_world [-v] SEED [COUNT]     at most QUICK seeds with STARLING_QUICK in the environment
 *
 * Peers mix, or overlap with begin and end, and average every few rounds; connections break. In odd
 * seeds one of them aborts (a kill would leave what libc itself has allocated), or has numbers that
 * are none, and another process takes its rank; in the others one joins that the run did not begin
 * with. Held of each seed:
 *   - who joins is let in in time, after a round that all others have begun;
 *   - it begins with the bits of a model that another peer had in a round before;
 *   - whoever gets the average after a round in the same view gets the same bits, and who gets none
 *     has its own model;
 *   - all end well, in a view of all, and in time; the same seed is the same run.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/descent.h"
#include "seeds.h"
#include "starling/session.h"
#include "virtual.h"
#include "wire/checksum.h"

enum { QUICK = 30, PEERS_MAX = 6, ROUNDS = 400, BREAKS_MAX = 4, DIMENSION_MAX = 1100 };
static const double first_s = 1000, most_s = 120, in_time_s = 8, grace_s = 1;

typedef struct peer {
    uint32_t rank;
    process *process;
    bool joins, aborts, ended;
    double began_s;
    uint64_t first; /* round, of who has joined */
    float x[DIMENSION_MAX], at[DIMENSION_MAX];
} peer;

static char text[1024]; /* of the experiment */
static bool overlaps, replaces;
static uint32_t nodes, newcomer; /* its rank */
static size_t dimension;
static uint64_t average_every;
static double gradient_s;
static peer peers[PEERS_MAX + 1]; /* the last one joins */
static uint64_t left[PEERS_MAX]
                    [ROUNDS + 1]; /* checksums of what rounds have left; 0: nothing yet */
static uint64_t means[ROUNDS + 1][1 << PEERS_MAX]; /* of averages after rounds, by the ranks of the
                                                       view; 0: none yet */
static uint64_t averages, voids;                   /* of all seeds */
static double longest_s;

/* ---- a caller's loop ---- */

static uint64_t sum_of(const float *x) {
    return sl_checksum(x, dimension * sizeof *x) | 1;
}

static uint64_t round_of(sl_session *session) {
    sl_session_report report = {.size = sizeof report};
    sl_error error;
    if (sl_session_status(session, &report, &error) != 0)
        world_fail("%s", error.text);
    return report.round;
}

/* It stands where the others do, with a model that one of them had. */
static void judge_start(peer *p, sl_session *session) {
    const double took_s = world_now() - p->began_s;
    const uint64_t sum = sum_of(p->x);
    bool found = false;
    p->first = round_of(session) + 1;
    longest_s = fmax(longest_s, took_s);
    world_note("joined", p->rank, p->first, sum);
    if (took_s > in_time_s)
        world_fail("peer %u is let in after %.2f s", p->rank, took_s);
    for (uint32_t i = 0; i < nodes; i++)
        for (uint64_t k = 1; k < p->first && i != p->rank; k++)
            found = found || left[i][k] == sum;
    if (!found && !overlaps) /* else its step is between */
        world_fail("peer %u begins in round %" PRIu64 " with a model that nobody had", p->rank,
                   p->first);
}

static int one_round(peer *p, sl_session *session, sl_error *error) {
    memcpy(p->at, p->x, dimension * sizeof *p->x);
    if (!overlaps) {
        process_wait(world_now() + gradient_s * world_uniform());
        descent_step(p->x, p->at, dimension, p->rank);
        return sl_session_mix(session, p->x, error);
    }
    int result = sl_session_begin(session, p->x, error);
    process_wait(world_now() + gradient_s * world_uniform());
    if (result == 0)
        result = sl_session_end(session, p->x, error);
    descent_step(p->x, p->at, dimension, p->rank);
    return result;
}

/* Two that have lost each other average alone. */
static uint64_t *mean_of_view(sl_session *session, uint64_t round) {
    uint64_t members[PEERS_MAX], ranks = 0;
    const size_t count = sl_session_members(session, members, PEERS_MAX);
    for (size_t i = 0; i < count; i++)
        ranks |= (uint64_t)1 << members[i];
    return &means[round][ranks];
}

/* A loss may cut it for some: these have their own model. */
static int average(peer *p, sl_session *session, uint64_t round, sl_error *error) {
    double distance;
    const int result = sl_session_average(session, p->x, p->at, &distance, error);
    voids += result == SL_EVOID;
    if (result == SL_EVOID && (sum_of(p->at) != sum_of(p->x) || !isnan(distance)))
        world_fail("peer %u gets no average, and not its own model after round %" PRIu64, p->rank,
                   round);
    if (result != 0)
        return result == SL_EVOID ? 0 : result;
    const uint64_t sum = sum_of(p->at);
    uint64_t *mean = mean_of_view(session, round);
    averages++;
    if (*mean == 0)
        *mean = sum;
    else if (*mean != sum)
        world_fail("peer %u gets another average than others after round %" PRIu64, p->rank, round);
    return 0;
}

static int work(peer *p, sl_session *session, sl_error *error) {
    uint64_t round = 0, members[PEERS_MAX];
    int result = sl_session_start(session, p->x, error);
    if (result == 0 && p->joins)
        judge_start(p, session);
    while (result == 0 && !p->aborts && (round = round_of(session)) < ROUNDS) {
        result = one_round(p, session, error);
        round++;
        if (result == 0)
            left[p->rank][round] = sum_of(p->x);
        if (result == 0 && round % average_every == 0)
            result = average(p, session, round, error);
    }
    const uint64_t whole = replaces ? nodes : nodes + 1;
    if (result == 0 && !p->aborts && sl_session_members(session, members, PEERS_MAX) != whole)
        world_fail("peer %u ends in a view without somebody", p->rank);
    return result;
}

/* Who is asked to end aborts, or its numbers are none: that is its own error, and no more. */
static void give_up(peer *p, sl_session *session, sl_error *error) {
    if (world_chance(0.5)) {
        p->x[0] = NAN;
        if (sl_session_mix(session, p->x, error) != SL_EDIVERGED)
            world_fail("peer %u mixes what is no number", p->rank);
    }
    sl_session_abort(&session, "it was asked to");
}

static const char roster[] = "127.0.0.1:7000,127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003,"
                             "127.0.0.1:7004,127.0.0.1:7005";
enum { LINE = 15 }; /* of it */

static void *be_peer(void *of) {
    peer *p = of;
    char own[sizeof roster];
    sl_session *session;
    sl_session_options o;
    sl_error error;
    const uint32_t lines = p->rank < nodes ? nodes : nodes + 1;
    snprintf(own, sizeof own, "%.*s", (int)(LINE * lines - 1), roster);
    sl_session_defaults(&o, sizeof o);
    o.nodes = nodes;
    o.rank = p->rank;
    o.roster = own;
    o.overlap = overlaps;
    o.joins = p->joins;
    p->began_s = world_now();
    descent_fill(p->x, dimension, p->rank);
    int result = sl_session_join(&session, text, dimension, &o, &error);
    if (result == 0 && (result = work(p, session, &error)) == 0 && !p->aborts)
        result = sl_session_leave(&session, &error);
    if (result == 0 && p->aborts)
        give_up(p, session, &error);
    if (result != 0)
        world_fail("peer %u ended: %s", p->rank, error.text);
    p->ended = true;
    return NULL;
}

/* ---- a seed ---- */

static void draw(uint64_t seed) {
    static const char *const algorithms[] = {
        "\"name\": \"d-psgd\"",
        "\"name\": \"choco-sgd\", \"compressor\": {\"name\": \"qsgd\"}",
        "\"name\": \"gradient-tracking\"",
        "\"name\": \"all-reduce\"",
    };
    static const char *const families[] = {"ring", "complete", "path"};
    const uint64_t algorithm = world_draw() % 4;
    replaces = seed % 2 == 1;
    nodes = 2 + world_below(PEERS_MAX - 2);
    newcomer = replaces ? world_below(nodes) : nodes;
    dimension = world_chance(0.5) ? 7 : DIMENSION_MAX;
    overlaps = algorithm == 0 && world_chance(0.5);
    average_every = 1 + world_draw() % 20;
    gradient_s = 0.03;
    network.latency_s = 1e-4 + 2e-3 * world_uniform();
    network.slow_wake_s = 1e-6;
    snprintf(
        text, sizeof text,
        "{\"seed\": %d, \"topology\": {\"nodes\": %u, \"family\": \"%s\"}, \"algorithm\": {%s},"
        " \"transport\": {\"chunk_bytes\": 4096, \"connect_timeout_s\": 20},"
        " \"membership\": {\"on_loss\": \"continue\", \"grace_s\": %g, \"joiners\": %d},"
        " \"security\": {\"mode\": \"none\"}}",
        world_below(1000000), nodes, families[world_draw() % 3], algorithms[algorithm], grace_s,
        replaces ? 0 : 1);
}

static void start(void *of, uint64_t ignored) {
    peer *p = of;
    (void)ignored;
    p->process = process_start(p->rank, be_peer, p);
}

/* In the place of one that has ended, if there is one. */
static void start_joiner(void *of, uint64_t ignored) {
    if (replaces && peers[newcomer].process->alive)
        world_at(world_now() + 0.05, start_joiner, of, 0);
    else
        start(of, ignored);
}

static void let_abort(void *of, uint64_t ignored) {
    peer *p = of;
    (void)ignored;
    p->aborts = true; /* before its next round */
}

static void break_some(void *ignored, uint64_t how) {
    const uint32_t a = world_below(nodes);
    (void)ignored;
    network_break_between(a, (a + 1) % nodes, (network_break)how);
}

static bool all_are_over(void) {
    for (uint32_t i = 0; i <= PEERS_MAX; i++)
        if (peers[i].process != NULL && peers[i].process->alive)
            return false;
    return peers[PEERS_MAX].process != NULL;
}

static void plan_events(void) {
    const double at_s = first_s + 1 + world_uniform();
    for (uint32_t i = 0; i < nodes; i++) {
        peers[i].rank = i;
        world_at(first_s + 0.1 * world_uniform(), start, &peers[i], 0);
    }
    peers[PEERS_MAX] = (peer){.rank = newcomer, .joins = true};
    if (replaces)
        world_at(at_s, let_abort, &peers[newcomer], 0);
    world_at(at_s + world_uniform() * world_uniform(), start_joiner, &peers[PEERS_MAX], 0);
    for (uint64_t i = world_draw() % (BREAKS_MAX + 1); i > 0; i--)
        world_at(at_s + 2 * world_uniform(), break_some, NULL, world_draw() % 2);
}

static uint64_t run_seed(uint64_t seed, bool verbose) {
    world_open(seed, verbose);
    memset(peers, 0, sizeof peers);
    memset(left, 0, sizeof left);
    memset(means, 0, sizeof means);
    draw(seed);
    if (verbose)
        printf("%s\noverlap %d, an average every %" PRIu64 " rounds\n", text, overlaps,
               average_every);
    plan_events();
    world_run(first_s + most_s, all_are_over);
    for (uint32_t i = 0; i <= PEERS_MAX; i++)
        if (peers[i].process != NULL && !peers[i].ended)
            world_fail("peer %u still waits at %.3f s", peers[i].rank, world_now() - first_s);
    const uint64_t hash = world_hash();
    world_close();
    return hash;
}

int main(int count, char **arguments) {
    uint64_t seeds;
    if (seeds_run(&seeds, count, arguments, QUICK, run_seed) != 0)
        return 2;
    printf("%" PRIu64 " seeds: joined within %.2f s, %" PRIu64 " averages, %" PRIu64 " void\n",
           seeds, longest_s, averages, voids);
    return 0;
}
