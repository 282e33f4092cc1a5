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
#include <string.h>

#include "../unit/descent.h"
#include "expected.h"
#include "peers.h"
#include "seeds.h"
#include "starling/session.h"
#include "wire/checksum.h"

enum { QUICK = 30, PEERS_MAX = 6, ROUNDS = 400, BREAKS_MAX = 4, LARGE = 1100 };
static const double most_s = 120, in_time_s = 8, grace_s = 1;

static char text[1024]; /* of the experiment */
static bool overlaps, replaces;
static uint32_t nodes, newcomer; /* its rank */
static size_t dimension;
static uint64_t average_every;
static double gradient_s;
static uint64_t left[PEERS_MAX]
                    [ROUNDS + 1]; /* checksums of what rounds have left; 0: nothing yet */
static uint64_t means[ROUNDS + 1][1 << PEERS_MAX]; /* of averages after rounds, by the ranks of the
                                                       view; 0: none yet */
/* Of the peers, the last of which joins. */
static struct caller {
    bool aborts;
    double began_s;
    float x[LARGE], at[LARGE];
} callers[PEERS_MAX + 1];

/* ---- a caller's loop ---- */

static struct caller *caller_of(const peer *p) {
    return &callers[p - peers];
}

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
static void judge_start(const peer *p, sl_session *session) {
    const double took_s = world_now() - caller_of(p)->began_s;
    const uint64_t sum = sum_of(caller_of(p)->x), first = round_of(session) + 1;
    bool found = false;
    seeds_time("joined", took_s);
    world_note("joined", p->rank, first, sum);
    if (took_s > in_time_s)
        world_fail("peer %u is let in after %.2f s", p->rank, took_s);
    for (uint32_t i = 0; i < nodes; i++)
        for (uint64_t k = 1; k < first && i != p->rank; k++)
            found = found || left[i][k] == sum;
    if (!found && !overlaps) /* else its step is between */
        world_fail("peer %u begins in round %" PRIu64 " with a model that nobody had", p->rank,
                   first);
}

static int one_round(const peer *p, sl_session *session, sl_error *error) {
    float *x = caller_of(p)->x, *at = caller_of(p)->at;
    memcpy(at, x, dimension * sizeof *x);
    if (!overlaps) {
        process_wait(world_now() + gradient_s * world_uniform());
        descent_step(x, at, dimension, p->rank);
        return sl_session_mix(session, x, error);
    }
    int result = sl_session_begin(session, x, error);
    process_wait(world_now() + gradient_s * world_uniform());
    if (result == 0)
        result = sl_session_end(session, x, error);
    descent_step(x, at, dimension, p->rank);
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
static int average(const peer *p, sl_session *session, uint64_t round, sl_error *error) {
    float *x = caller_of(p)->x, *at = caller_of(p)->at;
    double distance;
    const int result = sl_session_average(session, x, at, &distance, error);
    seeds_count("averages that are void", result == SL_EVOID);
    if (result == SL_EVOID && (sum_of(at) != sum_of(x) || !isnan(distance)))
        world_fail("peer %u gets no average, and not its own model after round %" PRIu64, p->rank,
                   round);
    if (result != 0)
        return result == SL_EVOID ? 0 : result;
    const uint64_t sum = sum_of(at);
    uint64_t *mean = mean_of_view(session, round);
    seeds_count("averages", 1);
    if (*mean == 0)
        *mean = sum;
    else if (*mean != sum)
        world_fail("peer %u gets another average than others after round %" PRIu64, p->rank, round);
    return 0;
}

static int work(const peer *p, sl_session *session, sl_error *error) {
    const struct caller *c = caller_of(p);
    uint64_t round = 0, members[PEERS_MAX];
    int result = sl_session_start(session, caller_of(p)->x, error);
    if (result == 0 && p->joins)
        judge_start(p, session);
    while (result == 0 && !c->aborts && (round = round_of(session)) < ROUNDS) {
        result = one_round(p, session, error);
        round++;
        if (result == 0)
            left[p->rank][round] = sum_of(c->x);
        if (result == 0 && round % average_every == 0)
            result = average(p, session, round, error);
    }
    const uint64_t whole = replaces ? nodes : nodes + 1;
    if (result == 0 && !c->aborts && sl_session_members(session, members, PEERS_MAX) != whole)
        world_fail("peer %u ends in a view without somebody", p->rank);
    return result;
}

/* Who is asked to end aborts, or its numbers are none: that is its own error, and no more. */
static void give_up(const peer *p, sl_session *session, sl_error *error) {
    float *x = caller_of(p)->x;
    if (world_chance(0.5)) {
        x[0] = NAN;
        if (sl_session_mix(session, x, error) != SL_EDIVERGED)
            world_fail("peer %u mixes what is no number", p->rank);
    }
    sl_session_abort(&session, "it was asked to");
}

static void *be_peer(void *of) {
    peer *p = of;
    struct caller *c = caller_of(p);
    char roster[ROSTER_MAX];
    sl_session *session;
    sl_session_options o;
    sl_error error;
    expected_roster(roster, p->rank < nodes ? nodes : nodes + 1, ",");
    sl_session_defaults(&o, sizeof o);
    o.nodes = nodes;
    o.rank = p->rank;
    o.roster = roster;
    o.overlap = overlaps;
    o.joins = p->joins;
    c->began_s = world_now();
    descent_fill(c->x, dimension, p->rank);
    int result = sl_session_join(&session, text, dimension, &o, &error);
    if (result == 0 && (result = work(p, session, &error)) == 0 && !c->aborts)
        result = sl_session_leave(&session, &error);
    if (result == 0 && c->aborts)
        give_up(p, session, &error);
    if (result != 0)
        world_fail("peer %u ended: %s", p->rank, error.text);
    peer_ends(p);
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
    dimension = world_chance(0.5) ? 7 : LARGE;
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

/* In the place of one that has ended, if there is one. */
static void start_joiner(void *of, uint64_t ignored) {
    if (replaces && peer_is_up(&peers[newcomer]))
        world_at(world_now() + 0.05, start_joiner, of, 0);
    else
        peer_start(of, ignored);
}

static void let_abort(void *of, uint64_t ignored) {
    caller_of(of)->aborts = true; /* before its next round */
}

static void break_some(void *ignored, uint64_t how) {
    const uint32_t a = world_below(nodes);
    network_break_between(a, (a + 1) % nodes, (network_break)how);
}

static void plan_events(void) {
    const double at_s = first_s + 1 + world_uniform();
    for (uint32_t i = 0; i < nodes; i++)
        world_at(first_s + 0.1 * world_uniform(), peer_start, &peers[i], 0);
    peers[nodes] = (peer){.rank = newcomer, .joins = true};
    if (replaces)
        world_at(at_s, let_abort, &peers[newcomer], 0);
    world_at(at_s + world_uniform() * world_uniform(), start_joiner, &peers[nodes], 0);
    for (uint64_t i = world_draw() % (BREAKS_MAX + 1); i > 0; i--)
        world_at(at_s + 2 * world_uniform(), break_some, NULL, world_draw() % 2);
}

static uint64_t run_seed(uint64_t seed, bool verbose) {
    world_open(seed, verbose);
    memset(callers, 0, sizeof callers);
    memset(left, 0, sizeof left);
    memset(means, 0, sizeof means);
    draw(seed);
    if (verbose)
        printf("%s\noverlap %d, an average every %" PRIu64 " rounds\n", text, overlaps,
               average_every);
    peers_open(nodes + 1, be_peer);
    plan_events();
    world_run(first_s + most_s, peers_are_over);
    for (uint32_t i = 0; i <= nodes; i++)
        peer_judge(&peers[i], verbose);
    const uint64_t hash = world_hash();
    world_close();
    return hash;
}

int main(int count, char **arguments) {
    return seeds_main(count, arguments, QUICK, run_seed);
}
