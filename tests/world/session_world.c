/* session_world.c - sessions in the virtual world: loops of callers' own, each on its agent's side
 * of a thread, whose connections break; each from a seed (docs/reliability.md).
 *
 *   session_world [-v] SEED [COUNT]     at most QUICK seeds with STARLING_QUICK in the environment
 *
 * The session's code, its threads and its agents are the library's own. A peer trains, mixes or
 * overlaps (begin and end), clamps its x in an exchange, asks for averages, and leaves, after more
 * rounds or fewer than the others, whom it goes on to answer. Held of each seed: all that its calls
 * leave has the bits of sl_simulate; all end well, and in time; no memory is left; the same seed is
 * the same run. A seed in two has a key; of these, one in two seals all frames. In seeds beyond
 * LIAR_SEEDS a peer forges frames: all end, and say why, whatever their numbers are.
 *
 * In seeds beyond JOIN_SEEDS others join while they train. In odd ones a peer aborts (a kill would
 * leave what libc itself has allocated), or has numbers that are none, and another process takes
 * its rank; in the others one joins that the run did not begin with. Held of each:
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
#include "../unit/secure_pairs.h"
#include "expected.h"
#include "liar.h"
#include "peers.h"
#include "seeds.h"
#include "starling/session.h"
#include "wire/checksum.h"

enum { QUICK = 200, BREAKS_MAX = 6 };
/* Where others join. */
enum { JOIN_SEEDS = 200000, PEERS_MAX = 6, ROUNDS = 400, LARGE = 1100, JOIN_BREAKS_MAX = 4 };
static const double most_s = 120, in_time_s = 8, grace_s = 1;

typedef struct break_at {
    uint32_t rank;
    uint64_t round; /* that it begins */
    double after_s;
    network_break how;
} break_at;

static scenario s;
static bool overlaps, meddles;
static uint64_t average_every;
static break_at breaks[BREAKS_MAX];
static int break_count;
static char key_folder[32], key[64];
static uint32_t forger; /* NODES_MAX: all are honest */
/* Of the peers, the last of which may join. */
static struct caller {
    sl_session_options options;
    uint64_t rounds; /* until it leaves */
    bool aborts;
    double began_s;
    float x[DIMENSION_MAX], at[DIMENSION_MAX];
} callers[NODES_MAX];
/* Where others join: */
static bool somebody_joins, replaces;
static uint32_t newcomer; /* its rank */
/* Checksums of what rounds have left, and of averages after rounds, by the ranks of the view, or as
 * simulated; 0: nothing yet. */
static uint64_t left[NODES_MAX][ROUNDS + 1], means[ROUNDS + 1][1 << PEERS_MAX];

/* ---- a caller's loop ---- */

static bool in_world(void) {
    return process_current() != NULL;
}

static uint32_t rank_of(const struct caller *c) {
    return (uint32_t)c->options.rank;
}

static uint64_t sum_of(const float *x) {
    return sl_checksum(x, s.dimension * sizeof *x) | 1;
}

/* Of two that have the same, the second one, or the simulated. */
static void hold(const struct caller *c, uint64_t round, const float *x, uint64_t *known,
                 const char *what) {
    const uint64_t sum = sum_of(x);
    if (in_world())
        world_note(what, rank_of(c), round, sum);
    if (*known == 0)
        *known = sum;
    else if (*known != sum && forger == NODES_MAX)
        world_fail("peer %u has another %s than %s after round %" PRIu64, rank_of(c), what,
                   somebody_joins ? "others" : "in sl_simulate", round);
}

static void break_now(void *of, uint64_t ignored) {
    const break_at *b = of;
    for (uint32_t other = 0; other < s.nodes; other++)
        if (other != b->rank)
            seeds_count("connections broken",
                        (uint64_t)network_break_between(b->rank, other, b->how));
}

static void compute(const struct caller *c, uint64_t round) {
    if (!in_world())
        return;
    for (int i = 0; i < break_count; i++)
        if (breaks[i].rank == rank_of(c) && breaks[i].round == round)
            world_at(world_now() + breaks[i].after_s, break_now, &breaks[i], 0);
    process_wait(world_now() + s.gradient_s * world_uniform());
}

static int one_round(struct caller *c, sl_session *session, uint64_t round, sl_error *error) {
    float *x = c->x, *at = c->at;
    memcpy(at, x, s.dimension * sizeof *x);
    if (!overlaps) {
        compute(c, round);
        descent_step(x, at, s.dimension, rank_of(c));
        return sl_session_mix(session, x, error);
    }
    int result = sl_session_begin(session, x, error);
    compute(c, round);
    for (size_t i = 0; i < s.dimension && meddles && round % 2 == 0; i++)
        x[i] = fmaxf(-0.5f, fminf(x[i], 0.5f)); /* which the round's result keeps */
    if (result == 0)
        result = sl_session_end(session, x, error);
    descent_step(x, at, s.dimension, rank_of(c));
    return result;
}

static uint64_t round_of(sl_session *session) {
    sl_session_report report = {.size = sizeof report};
    sl_error error;
    if (sl_session_status(session, &report, &error) != 0)
        world_fail("%s", error.text);
    return report.round;
}

/* It stands where the others do, with a model that one of them had. */
static void judge_start(const struct caller *c, sl_session *session) {
    const double took_s = world_now() - c->began_s;
    const uint64_t sum = sum_of(c->x), first = round_of(session) + 1;
    bool found = false;
    seeds_time("joined", took_s);
    world_note("joined", rank_of(c), first, sum);
    if (took_s > in_time_s)
        world_fail("peer %u is let in after %.2f s", rank_of(c), took_s);
    for (uint32_t i = 0; i < s.nodes; i++)
        for (uint64_t k = 1; k < first && i != rank_of(c); k++)
            found = found || left[i][k] == sum;
    if (!found && !overlaps) /* else its step is between */
        world_fail("peer %u begins in round %" PRIu64 " with a model that nobody had", rank_of(c),
                   first);
}

/* Two that have lost each other average alone. */
static uint64_t *mean_of_view(sl_session *session, uint64_t round) {
    uint64_t members[PEERS_MAX], ranks = 0;
    const size_t count = somebody_joins ? sl_session_members(session, members, PEERS_MAX) : 0;
    for (size_t i = 0; i < count; i++)
        ranks |= (uint64_t)1 << members[i];
    return &means[round][ranks];
}

/* Where others join, a loss may cut it for some: these have their own model. */
static int average(struct caller *c, sl_session *session, uint64_t round, sl_error *error) {
    double distance;
    const int result = sl_session_average(session, c->x, c->at, &distance, error);
    seeds_count("averages that are void", result == SL_EVOID);
    if (result == SL_EVOID && (sum_of(c->at) != sum_of(c->x) || !isnan(distance)))
        world_fail("peer %u gets no average, and not its own model after round %" PRIu64,
                   rank_of(c), round);
    if (result != 0)
        return result == SL_EVOID && somebody_joins ? 0 : result;
    seeds_count("averages", in_world());
    hold(c, round, c->at, mean_of_view(session, round), "average");
    return 0;
}

static int work(struct caller *c, sl_session *session, sl_error *error) {
    uint64_t round, members[PEERS_MAX];
    int result = sl_session_start(session, c->x, error);
    if (result == 0 && c->options.joins)
        judge_start(c, session);
    while (result == 0 && !c->aborts && (round = round_of(session) + 1) <= c->rounds) {
        uint64_t *known = &left[rank_of(c)][round];
        result = one_round(c, session, round, error);
        if (somebody_joins) /* nothing was simulated */
            *known = 0;
        if (result == 0)
            hold(c, round, c->x, known, "model");
        if (result == 0 && round % average_every == 0 && round <= s.rounds)
            result = average(c, session, round, error);
    }
    const uint64_t whole = replaces ? s.nodes : s.nodes + 1;
    if (result == 0 && somebody_joins && !c->aborts &&
        sl_session_members(session, members, PEERS_MAX) != whole)
        world_fail("peer %u ends in a view without somebody", rank_of(c));
    return result;
}

/* Who is asked to end aborts, or its numbers are none: that is its own error, and no more. */
static void give_up(struct caller *c, sl_session *session, sl_error *error) {
    if (world_chance(0.5)) {
        c->x[0] = NAN;
        if (sl_session_mix(session, c->x, error) != SL_EDIVERGED)
            world_fail("peer %u mixes what is no number", rank_of(c));
    }
    sl_session_abort(&session, "it was asked to");
}

/* ---- a peer, in the world or simulated ---- */

static int train(struct caller *c, const sl_session_options *options, sl_error *error) {
    sl_session *session;
    c->began_s = world_now();
    descent_fill(c->x, s.dimension, options->rank);
    int result = sl_session_join(&session, s.text, s.dimension, options, error);
    if (result != 0)
        return result;
    result = work(c, session, error);
    if (result == 0 && c->aborts)
        give_up(c, session, error);
    else if (result == 0)
        result = sl_session_leave(&session, error);
    else
        sl_session_abort(&session, NULL);
    return result;
}

static void *be_peer(void *of) {
    peer *p = of;
    struct caller *c = &callers[p - peers];
    sl_error error;
    if (train(c, &c->options, &error) != 0 && (forger == NODES_MAX || error.text[0] == '\0'))
        world_fail("peer %u ended: %s", p->rank, error.text);
    peer_ends(p);
    return NULL;
}

static int train_simulated(void *ignored, const sl_session_options *options, sl_error *error) {
    return train(&callers[options->rank], options, error);
}

/* ---- a seed ---- */

static sl_session_options draw_options(void) {
    sl_session_options o;
    sl_session_defaults(&o, sizeof o);
    o.nodes = s.nodes;
    o.same_start = world_chance(0.5);
    overlaps = strstr(s.text, "\"name\": \"d-psgd\"}") != NULL && world_chance(0.7);
    overlaps = overlaps && strstr(s.text, "\"overlap\": \"none\"") != NULL; /* of one kind */
    o.overlap = overlaps;
    average_every = 1 + world_draw() % 4;
    meddles = average_every > 2;
    return o;
}

/* Once an exchange has gone over each edge: one that still waits for others may run out of time. */
static void draw_breaks(void) {
    break_count = s.reconnect_s > 0 ? world_below(BREAKS_MAX + 1) : 0;
    for (int i = 0; i < break_count; i++)
        breaks[i] = (break_at){.rank = world_below(s.nodes),
                               .round = s.period + 1 + world_draw() % s.rounds,
                               .after_s = 0.02 * world_uniform(),
                               .how = (network_break)(world_draw() % 3)};
}

static void simulate(const sl_session_options *options) {
    sl_error error;
    sl_session_options o = *options;
    o.rank = -1;
    o.roster = NULL;
    if (sl_simulate(s.text, s.nodes, train_simulated, NULL, &o, &error) != 0)
        world_fail("%s\n%s", error.text, s.text);
}

/* Draws what its peers are, and simulates them. */
static void prepare(uint64_t seed) {
    static char roster[ROSTER_MAX];
    scenario_draw(&s, seed);
    expected_roster(roster, s.nodes, ",");
    const sl_session_options options = draw_options();
    draw_breaks();
    for (uint32_t i = 0; i < s.nodes; i++) {
        callers[i].options = options;
        callers[i].options.rank = i;
        callers[i].options.roster = roster;
        callers[i].options.key = seed % 2 == 1 ? key : NULL;
        callers[i].rounds = s.rounds + world_draw() % 4;
    }
    simulate(&options);
    if (seed > LIAR_SEEDS) {
        forger = (uint32_t)(seed % s.nodes);
        liar_is(forger, 0.5 * world_uniform() * world_uniform());
        network.forge = liar_forge_any;
    }
    peers_open(s.nodes, be_peer);
    for (uint32_t i = 0; i < s.nodes; i++)
        world_at(first_s + s.start_s[i], peer_start, &peers[i], 0);
}

static void draw_for_joiners(uint64_t seed) {
    static const char *const algorithms[] = {
        "\"name\": \"d-psgd\"",
        "\"name\": \"choco-sgd\", \"compressor\": {\"name\": \"qsgd\"}",
        "\"name\": \"gradient-tracking\"",
        "\"name\": \"all-reduce\"",
    };
    static const char *const families[] = {"ring", "complete", "path"};
    const uint64_t algorithm = world_draw() % 4;
    replaces = seed % 2 == 1;
    s.nodes = 2 + world_below(PEERS_MAX - 2);
    newcomer = replaces ? world_below(s.nodes) : s.nodes;
    s.rounds = ROUNDS;
    s.dimension = world_chance(0.5) ? 7 : LARGE;
    overlaps = algorithm == 0 && world_chance(0.5);
    average_every = 1 + world_draw() % 20;
    s.gradient_s = 0.03;
    network.latency_s = 1e-4 + 2e-3 * world_uniform();
    network.slow_wake_s = 1e-6;
    snprintf(
        s.text, sizeof s.text,
        "{\"seed\": %d, \"topology\": {\"nodes\": %u, \"family\": \"%s\"}, \"algorithm\": {%s},"
        " \"transport\": {\"chunk_bytes\": 4096, \"connect_timeout_s\": 20},"
        " \"membership\": {\"on_loss\": \"continue\", \"grace_s\": %g, \"joiners\": %d},"
        " \"security\": {\"mode\": \"none\"}}",
        world_below(1000000), s.nodes, families[world_draw() % 3], algorithms[algorithm], grace_s,
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
    callers[(peer *)of - peers].aborts = true; /* before its next round */
}

static void break_some(void *ignored, uint64_t how) {
    const uint32_t a = world_below(s.nodes);
    network_break_between(a, (a + 1) % s.nodes, (network_break)how);
}

static void plan_events(void) {
    const double at_s = first_s + 1 + world_uniform();
    for (uint32_t i = 0; i < s.nodes; i++)
        world_at(first_s + 0.1 * world_uniform(), peer_start, &peers[i], 0);
    peers[s.nodes] = (peer){.rank = newcomer, .joins = true};
    if (replaces)
        world_at(at_s, let_abort, &peers[newcomer], 0);
    world_at(at_s + world_uniform() * world_uniform(), start_joiner, &peers[s.nodes], 0);
    for (uint64_t i = world_draw() % (JOIN_BREAKS_MAX + 1); i > 0; i--)
        world_at(at_s + 2 * world_uniform(), break_some, NULL, world_draw() % 2);
}

/* Likewise. */
static void prepare_joiners(uint64_t seed) {
    static char rosters[2][ROSTER_MAX];
    draw_for_joiners(seed);
    expected_roster(rosters[0], s.nodes, ",");
    expected_roster(rosters[1], s.nodes + 1, ",");
    peers_open(s.nodes + 1, be_peer);
    plan_events();
    for (uint32_t i = 0; i <= s.nodes; i++) {
        sl_session_options *o = &callers[i].options;
        sl_session_defaults(o, sizeof *o);
        o->nodes = s.nodes;
        o->rank = peers[i].rank;
        o->roster = rosters[peers[i].rank == s.nodes];
        o->overlap = overlaps;
        o->joins = peers[i].joins;
        callers[i].rounds = s.rounds;
    }
}

static uint64_t run_seed(uint64_t number, bool verbose) {
    somebody_joins = number > JOIN_SEEDS;
    const uint64_t seed = somebody_joins ? number - JOIN_SEEDS : number;
    world_open(seed, verbose);
    memset(callers, 0, sizeof callers);
    memset(left, 0, sizeof left);
    memset(means, 0, sizeof means);
    s = (scenario){0};
    meddles = false;
    break_count = 0;
    forger = NODES_MAX;
    if (somebody_joins)
        prepare_joiners(seed);
    else
        prepare(seed);
    if (verbose)
        printf("%s\noverlap %d, an average every %" PRIu64 " rounds, %d breaks\n", s.text, overlaps,
               average_every, break_count);
    world_run(first_s + (somebody_joins ? most_s : s.connect_s + 60), peers_are_over);
    for (const peer *p = peers; p < peers + s.nodes + somebody_joins; p++)
        peer_judge(p, verbose);
    const uint64_t hash = world_hash();
    world_close();
    return hash;
}

static void remove_key(void) {
    unlink(key);
    rmdir(key_folder);
}

int main(int count, char **arguments) {
    make_key_folder(key_folder);
    snprintf(key, sizeof key, "%s/run.key", key_folder);
    if (sl_run_key_make(key, NULL) != 0)
        return 1;
    atexit(remove_key);
    return seeds_main(count, arguments, QUICK, run_seed);
}
