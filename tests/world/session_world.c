/* session_world.c - sessions in the virtual world: loops of callers' own, each on its agent's side
 * of a thread, under breaks of connections; each from a seed (docs/reliability.md).
 *
 *   session_world [-v] SEED [COUNT]     at most QUICK seeds with STARLING_QUICK in the environment
 *
 * The session's code, its threads and its agents are the library's own. A peer trains, mixes or
 * overlaps (begin and end), clamps its x in an exchange, asks for averages, and leaves, after more
 * rounds or fewer than the others, whom it goes on to answer. Held of each seed: all that its calls
 * leave has the bits of sl_simulate; all end well, and in time; no memory is left; the same seed is
 * the same run. A seed in two has a key; of these, one in two seals all frames. In seeds beyond
 * LIAR_SEEDS a peer forges frames: all end, and say why, whatever their numbers are.
 */
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

enum { QUICK = 200, CALLS_MAX = 64, BREAKS_MAX = 6 };

typedef struct break_at {
    uint32_t rank;
    uint64_t round; /* that it begins */
    double after_s;
    network_break how;
} break_at;

static scenario s;
static bool overlaps, meddles;
static uint64_t average_every;
static sl_session_options own_options[NODES_MAX];
static uint64_t rounds[NODES_MAX]; /* until it leaves */
static break_at breaks[BREAKS_MAX];
static int break_count;
static uint64_t sums[NODES_MAX][CALLS_MAX]; /* of what sl_simulate's calls left */
static uint64_t calls[NODES_MAX];           /* so far */
static char key_folder[32], key[64];
static uint32_t forger; /* NODES_MAX: all are honest */

/* ---- a caller's loop ---- */

static bool in_world(void) {
    return process_current() != NULL;
}

/* The next call of this rank has left x. */
static void check(uint32_t rank, const float *x) {
    const uint64_t sum = sl_checksum(x, s.dimension * sizeof *x), at = calls[rank]++;
    if (at >= CALLS_MAX)
        world_fail("more than %d calls", CALLS_MAX);
    if (!in_world()) {
        sums[rank][at] = sum;
        return;
    }
    world_note("leaves", rank, at, sum);
    if (sum != sums[rank][at] && forger == NODES_MAX)
        world_fail("peer %u: call %llu left other numbers than in sl_simulate", rank,
                   (unsigned long long)at);
}

static void break_now(void *of, uint64_t ignored) {
    const break_at *b = of;
    for (uint32_t other = 0; other < s.nodes; other++)
        if (other != b->rank)
            seeds_count("connections broken",
                        (uint64_t)network_break_between(b->rank, other, b->how));
}

static void compute(uint32_t rank, uint64_t round) {
    if (!in_world())
        return;
    for (int i = 0; i < break_count; i++)
        if (breaks[i].rank == rank && breaks[i].round == round)
            world_at(world_now() + breaks[i].after_s, break_now, &breaks[i], 0);
    process_wait(world_now() + s.gradient_s * world_uniform());
}

static int one_round(sl_session *session, uint32_t rank, uint64_t round, float *x, float *at,
                     sl_error *error) {
    memcpy(at, x, s.dimension * sizeof *x);
    if (!overlaps) {
        compute(rank, round);
        descent_step(x, at, s.dimension, rank);
        return sl_session_mix(session, x, error);
    }
    int result = sl_session_begin(session, x, error);
    compute(rank, round);
    for (size_t i = 0; i < s.dimension && meddles && round % 2 == 0; i++)
        x[i] = fmaxf(-0.5f, fminf(x[i], 0.5f)); /* which the round's result keeps */
    if (result == 0)
        result = sl_session_end(session, x, error);
    descent_step(x, at, s.dimension, rank);
    return result;
}

static int work(sl_session *session, uint32_t rank, float *x, float *at, sl_error *error) {
    int result = sl_session_start(session, x, error);
    for (uint64_t k = 1; k <= rounds[rank] && result == 0; k++) {
        result = one_round(session, rank, k, x, at, error);
        if (result == 0)
            check(rank, x);
        if (result == 0 && k % average_every == 0 && k <= s.rounds &&
            (result = sl_session_average(session, x, at, NULL, error)) == 0)
            check(rank, at);
    }
    return result;
}

static int train(void *ignored, const sl_session_options *options, sl_error *error) {
    const uint32_t rank = (uint32_t)options->rank;
    static float xs[NODES_MAX][DIMENSION_MAX], ats[NODES_MAX][DIMENSION_MAX];
    sl_session *session;
    calls[rank] = 0;
    descent_fill(xs[rank], s.dimension, rank);
    int result = sl_session_join(&session, s.text, s.dimension, options, error);
    if (result != 0)
        return result;
    result = work(session, rank, xs[rank], ats[rank], error);
    if (result == 0)
        return sl_session_leave(&session, error);
    sl_session_abort(&session, NULL);
    return result;
}

static void *be_peer(void *of) {
    peer *p = of;
    sl_error error;
    if (train(NULL, &own_options[p->rank], &error) != 0 &&
        (forger == NODES_MAX || error.text[0] == '\0'))
        world_fail("peer %u ended: %s", p->rank, error.text);
    peer_ends(p);
    return NULL;
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
    if (sl_simulate(s.text, s.nodes, train, NULL, &o, &error) != 0)
        world_fail("%s\n%s", error.text, s.text);
}

static uint64_t run_seed(uint64_t seed, bool verbose) {
    char roster[ROSTER_MAX];
    world_open(seed, verbose);
    scenario_draw(&s, seed);
    expected_roster(roster, s.nodes, ",");
    const sl_session_options options = draw_options();
    draw_breaks();
    if (verbose)
        printf("%s\noverlap %d, an average every %llu rounds, %d breaks\n", s.text, overlaps,
               (unsigned long long)average_every, break_count);
    for (uint32_t i = 0; i < s.nodes; i++) {
        own_options[i] = options;
        own_options[i].rank = i;
        own_options[i].roster = roster;
        own_options[i].key = seed % 2 == 1 ? key : NULL;
        rounds[i] = s.rounds + world_draw() % 4;
    }
    simulate(&options);
    forger = seed > LIAR_SEEDS ? (uint32_t)(seed % s.nodes) : NODES_MAX;
    if (forger < NODES_MAX) {
        liar_is(forger, 0.5 * world_uniform() * world_uniform());
        network.forge = liar_forge_any;
    }
    peers_open(s.nodes, be_peer);
    for (uint32_t i = 0; i < s.nodes; i++)
        world_at(first_s + s.start_s[i], peer_start, &peers[i], 0);
    world_run(first_s + s.connect_s + 60, peers_are_over);
    for (uint32_t i = 0; i < s.nodes; i++)
        peer_judge(&peers[i], verbose);
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
