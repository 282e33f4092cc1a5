/* apart_world.c - agents whose nodes go at their own times, in a virtual world, each run from a
 * seed (docs/asynchronous.md#agents).
 *
 *   apart_world [-v] SEED [COUNT]    at most QUICK seeds with STARLING_QUICK in the environment
 *
 * Agents are killed, asked to leave, and stopped for a while, several of one seed at once;
 * connections break. One is slow in each third seed. In each seventh seed one joins that the run
 * did not begin with, and other processes take the ranks of killed ones; in half of these rounds
 * are shorter than what members need to agree. In each fifth all are
 * killed, or lose their power, and the members of the newest whole checkpoint go on from it; in a
 * third of these one is asked a second before to save, and all end. Held of each seed:
 *   - whoever was not struck ends well, after all its rounds, with finite numbers;
 *   - who was asked to leave has left, or has come to its end before;
 *   - who was stopped, or is of a pair that does not reach each other for a while or for good (in
 * each eleventh seed), has ended as well, or says that the others have gone on;
 *   - nobody waits for longer than that explains, and nobody tells of a round twice;
 *   - unless somebody was stopped in a run that ends with an average: what all did, done again in
 * the simulator in the order of their acts, has the same models, bit for bit;
 *   - where nothing else happens than that all are killed, and rates are 0: averages of two, and
 *     push-sum with what is on its way, keep the mean of the first models;
 *   - both of a pair have averaged the same parts of an ask, where none of them was struck;
 *   - the same seed is the same run.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "disk.h"
#include "expected.h"
#include "going_on.h"
#include "peers.h"
#include "seeds.h"
#include "wire/checksum.h"

enum { QUICK = 60, STRIKES_MAX = 4, ALGORITHMS = 18, SLOWER = 10 };
enum { MOST_ROUNDS = 600, FEW_ROUNDS = 40 };
static const double most_s = 100, leave_s = 2;

static scenario s;
static bool will_end, ends_saved, keeps_mean; /* all; as they are asked to; all that a node does */
static strike strikes[STRIKES_MAX];
static uint32_t strike_count, slow;
static uint64_t started[NODES_MAX]; /* in this round, as its log says */
static sl_history histories[NODES_MAX];
static uint64_t sums[NODES_MAX][MOST_ROUNDS + 1]; /* of models; 0: nobody has told of it */

static bool goes_on(void) {
    return s.seed % 5 == 2;
}

static bool may_join(void) {
    return s.seed % 7 == 3 && !goes_on();
}

/* Broken connections stay so, for a while or for good. */
static bool parts(void) {
    return s.seed % 11 == 4 && !goes_on() && !may_join();
}

/* Many rounds, each shorter than what members need to agree. */
static bool is_fast(void) {
    return may_join() && s.seed % 2 == 0;
}

/* Of push-sum, where neighbours tell each other that they rest. */
static bool kills_pushers(void) {
    return is_fast() && s.seed % 4 == 0;
}

static uint32_t rank_count(void) {
    return s.nodes + may_join();
}

static bool is_calm(void) {
    return s.seed % 10 == 2;
}

/* ---- what a seed is ---- */

static void draw_experiment(void) {
    static const char *const algorithms[ALGORITHMS] = {
        "\"name\": \"ad-psgd\"",
        "\"name\": \"ad-psgd\", \"average\": \"beside\"",
        "\"name\": \"ad-psgd\", \"pairing\": \"cyclic\", \"local_steps\": 2",
        "\"name\": \"ad-psgd\", \"bits\": 8, \"theta\": 4",
        "\"name\": \"d-psgd\", \"staleness\": 1",
        "\"name\": \"d-psgd\", \"staleness\": 3, \"local_steps\": 2",
        "\"name\": \"ssp\", \"staleness\": 1",
        "\"name\": \"ssp\", \"staleness\": 4, \"local_steps\": 2",
        "\"name\": \"ssp\", \"staleness\": \"unbounded\"",
        "\"name\": \"ssp\", \"staleness\": 1, \"staleness_max\": 6",
        "\"name\": \"round-robin\"",
        "\"name\": \"ssp\", \"staleness\": 1, \"server\": \"sharded\"",
        "\"name\": \"ssp\", \"staleness\": 2, \"server\": \"sharded\", \"local_steps\": 2,"
        " \"compressor\": \"qsgd\"",
        "\"name\": \"ssp\", \"staleness\": 2, \"compressor\": \"scaled-sign\"",
        "\"name\": \"parameter-server\", \"backup\": 1, \"compressor\": \"qsgd\"",
        "\"name\": \"parameter-server\", \"backup\": 1",
        "\"name\": \"sgp\", \"overlap_rounds\": 1",
        "\"name\": \"sgp\", \"overlap_rounds\": 3",
    };
    static const char *const families[] = {"ring", "path", "complete", "star"};
    static const size_t dimensions[] = {7, 1100, 3000};
    const uint32_t which =
        is_fast() && s.seed % 4 == 0 ? ALGORITHMS - 1 - world_below(2) : world_below(ALGORITHMS);
    keeps_mean = strstr(algorithms[which], "psgd\", \"st") == NULL &&
                 (strstr(algorithms[which], "ad-psgd") || strstr(algorithms[which], "sgp"));
    s.nodes = 2 + world_below(NODES_MAX - 1 - may_join());
    s.rounds = is_fast() ? MOST_ROUNDS / 2 + world_below(MOST_ROUNDS / 2)
                         : 10 + world_below(FEW_ROUNDS - 10);
    s.dimension = dimensions[world_below(3)];
    s.gradient_s = (is_fast() ? 0.01 * world_uniform() : may_join() ? 0.5 : 0.03) * world_uniform();
    slow = s.seed % 3 == 0 && !may_join() ? world_below(s.nodes) : NODES_MAX;
    snprintf(s.text, sizeof s.text,
             "{\"rounds\": %llu, \"seed\": %u, \"topology\": {\"nodes\": %u, \"family\": \"%s\"},"
             " \"algorithm\": {%s}, \"record\": {\"every\": 1}, \"optimizer\":"
             " {\"learning_rate\": %g}, \"transport\": {\"chunk_bytes\": 4096,"
             " \"window_chunks\": %u, \"connect_timeout_s\": 5, \"round_timeout_s\": 60},"
             " \"membership\": {\"grace_s\": %.3f, \"minority_s\": 30, \"joiners\": %d}, "
             "\"final_average\": %s,"
             " \"security\": {%s}%s}",
             (unsigned long long)s.rounds, world_below(1000000), s.nodes, families[world_below(4)],
             algorithms[which], is_calm() ? 0 : 0.05, 2 + world_below(4), 0.6 + world_uniform(),
             may_join(), s.seed % 8 == 5 || is_calm() ? "true" : "false",
             s.seed % 22 == 17 ? "\"mode\": \"auto\", \"seal\": \"on\"" : "\"mode\": \"none\"",
             goes_on() ? ", \"checkpoint\": {\"every\": 4, \"keep\": 4}" : "");
    network.latency_s = 1e-4 + 2e-3 * world_uniform() * world_uniform();
    network.jitter_s = world_chance(0.5) ? 5e-3 * world_uniform() : 0;
    network.slow_wake_s = 1e-6;
}

/* Somebody is never struck. */
static void draw_strikes(void) {
    static const strike_kind drawn[] = {STRIKE_KILL, STRIKE_LEAVE, STRIKE_CUT, STRIKE_STOP};
    const uint32_t spared = world_below(s.nodes), kinds = kills_pushers()                 ? 1
                                                          : s.seed % 4 == 1 && !goes_on() ? 4
                                                                                          : 3;
    strike_count = is_calm() ? 0 : world_below(STRIKES_MAX + 1);
    for (strike *k = strikes; k < strikes + strike_count; k++) {
        *k = (strike){.kind = parts() ? STRIKE_CUT : drawn[world_below(kinds)],
                      .a = (spared + 1 + world_below(s.nodes - 1)) % s.nodes,
                      .b = world_below(s.nodes),
                      .round = 2 + world_below((uint32_t)s.rounds),
                      .seconds = 5 * world_uniform()};
        if (world_chance(0.3)) /* two at once */
            k->round = strikes[0].round;
    }
}

/* ---- strikes ---- */

/* Another process, which joins. */
static void come(void *of, uint64_t ignored) {
    peer *p = of;
    *p = (peer){.rank = p->rank, .joins = true, .trains = true, .struck = true};
    peer_start(p, 0);
}

static void rejoin(void *of, uint64_t ignored) {
    const strike *k = of;
    network_part(k->a, k->b, false);
}

static void hit(void *of, uint64_t ignored) {
    strike *k = of;
    if (!peer_strike(k))
        return;
    if (k->kind == STRIKE_CUT && parts() && k->a != k->b) {
        network_part(k->a, k->b, true);
        if (s.seed % 2 == 0)
            world_at(world_now() + k->seconds, rejoin, k, 0);
        seeds_count("edges parted", 1);
    }
    if (k->kind == STRIKE_KILL && may_join())
        world_at(world_now() + 0.01 + (is_fast() ? 0.3 : 1) * world_uniform(), come, &peers[k->a],
                 0);
}

static void on_round(void *context, uint32_t rank, uint64_t round) {
    ((peer *)context)->trains = true;
    for (strike *k = strikes; k < strikes + strike_count; k++)
        if (k->round == round && k->a == rank)
            world_at(world_now() + 0.02 * world_uniform(), hit, k, 0);
}

/* ---- an agent ---- */

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    if (rank == slow && process_current() != NULL)
        process_wait(world_now() + SLOWER * s.gradient_s);
    return scenario_gradient(context, rank, round, x, g);
}

static void initial(void *ignored, uint32_t rank, float *x) {
    for (size_t i = 0; i < s.dimension; i++)
        x[i] = (float)(i % 13 + rank) / 8;
}

static void check_mean(uint32_t rank, const float *x) {
    for (size_t i = 0; i < s.dimension; i++) {
        const double mean = (i % 13 + (s.nodes - 1) / 2.0) / 8;
        if (fabs(x[i] - mean) > 1e-4)
            world_fail("agent %u: the mean of element %zu is %.7g, and was %.7g", rank, i, x[i],
                       mean);
    }
    seeds_count("means kept", 1);
}

static int on_record(void *context, const sl_record *record, const float *x) {
    peer *p = context;
    if (record->round.round == p->recorded)
        world_fail("agent %u tells of round %llu twice", p->rank, (unsigned long long)p->recorded);
    sums[p->rank][record->round.round] = peer_records(p, record, x);
    if (is_calm() && keeps_mean && record->averaged)
        check_mean(p->rank, x);
    return 0;
}

static void on_notice(void *context, const char *text) {
    world_say(((peer *)context)->rank, text);
    seeds_count("averages given up", strstr(text, "ends with its own model") != NULL);
}

static void on_returned(void *context, uint32_t rank, uint64_t round) {
    world_note("returns", rank, round, 0);
    seeds_count("returned", 1);
}

static void *copy(const void *data, size_t bytes) {
    void *out = world_allocate(bytes + 1);
    return bytes > 0 ? memcpy(out, data, bytes) : out;
}

/* With room for one more. */
static void *grow(void *list, size_t count, size_t bytes) {
    void *more = world_allocate((count + 1) * bytes);
    if (count > 0)
        memcpy(more, list, count * bytes);
    world_free(list);
    return more;
}

static void on_act(void *context, const sl_act *act) {
    const peer *p = context;
    sl_history *h = &histories[p->rank];
    world_note("acts", p->rank, act->kind << 8 | act->peer, act->number);
    h->acts = grow(h->acts, h->act_count, sizeof *act);
    h->acts[h->act_count] = *act;
    h->acts[h->act_count++].versions =
        copy(act->versions, act->version_count * sizeof *act->versions);
    seeds_count("acts", 1);
}

/* It goes on from what it had when that view began: the rest comes again. */
static void forget_after(const peer *p, const sl_log_entry *resume) {
    sl_history *h = &histories[p->rank];
    size_t kept = 0;
    while (kept < h->act_count &&
           !(h->acts[kept].kind == SL_ACT_VIEW && h->acts[kept].number == resume->exchange))
        kept++;
    if (kept < h->act_count && kept > 0 && h->acts[kept - 1].kind == SL_ACT_COMBINE &&
        h->acts[kept - 1].number == 0)
        kept--;
    for (size_t i = kept; i < h->act_count; i++)
        world_free((void *)h->acts[i].versions);
    h->act_count = kept;
    for (uint64_t round = resume->round + 1; round <= MOST_ROUNDS; round++)
        sums[p->rank][round] = 0;
}

static void on_log(void *context, const sl_log_entry *entry) {
    const uint32_t rank = ((peer *)context)->rank;
    sl_history *h = &histories[rank];
    started[rank] = entry->kind == SL_LOG_START ? entry->round : started[rank];
    if (entry->round + 1 < started[rank])
        world_fail("agent %u notes what was before the round that it began in", rank);
    if (entry->kind == SL_LOG_RESUME)
        forget_after(context, entry);
    if (entry->kind != SL_LOG_CUT && entry->kind != SL_LOG_VIEW)
        return;
    seeds_count("views", entry->kind == SL_LOG_VIEW);
    h->entries = grow(h->entries, h->count, sizeof *entry);
    sl_log_entry *kept = &h->entries[h->count++];
    *kept = *entry;
    if (entry->kind == SL_LOG_CUT)
        return;
    kept->ranks = copy(entry->ranks, entry->members * sizeof *entry->ranks);
    kept->broken = copy(entry->broken, entry->broken_count * sizeof *entry->broken);
}

static void forget_histories(void) {
    for (sl_history *h = histories; h < histories + NODES_MAX; h++) {
        for (size_t i = 0; i < h->act_count; i++)
            world_free((void *)h->acts[i].versions);
        for (size_t i = 0; i < h->count; i++)
            if (h->entries[i].kind == SL_LOG_VIEW) {
                world_free((void *)h->entries[i].ranks);
                world_free((void *)h->entries[i].broken);
            }
        world_free(h->acts);
        world_free(h->entries);
        *h = (sl_history){0};
    }
}

/* The cut is there, or all begin again. */
static void kill_all(void *ignored, uint64_t loses_power) {
    will_end = false;
    for (uint32_t i = 0; i < s.nodes; i++) {
        if (peer_is_up(&peers[i]) && ends_saved && strike_count == 0)
            world_fail("agent %u was to save and end, and has not within a second", i);
        if (peer_is_up(&peers[i]))
            peer_kill(&peers[i], loses_power != 0);
    }
    if (loses_power != 0)
        disk_lose_power();
    const going_on cut = going_on_find();
    const bool agree = strike_count == 0; /* all cuts are of all */
    if (cut.round == 0) {
        forget_histories();
        memset(sums, 0, sizeof sums);
    }
    for (peer *p = peers; p < peers + s.nodes; p++) {
        const bool is_member = cut.round == 0 || sl_checkpoint_view_has(&cut.view, p->rank);
        if (cut.round == 0)
            going_on_lose(p->rank);
        if (!is_member)
            continue;
        const bool struck = p->struck;
        *p = (peer){.rank = p->rank,
                    .struck = struck,
                    .checkpoints = peer_checkpoints(cut.round > 0, agree ? 0 : cut.round)};
        world_at(world_now() + 0.02 + 0.02 * world_uniform(), peer_start, p, 0);
    }
    seeds_count("runs gone on with", cut.round > 0);
}

static void end_saved(void *ignored, uint64_t ignored_too) {
    const peer *p = peers;
    while (p < peers + s.nodes && (p->agent == NULL || !peer_is_up(p)))
        p++;
    if (p < peers + s.nodes)
        sl_agent_checkpoint(p->agent, true);
}

static bool are_over(void) {
    return !will_end && peers_are_over();
}

static void *be_agent(void *of) {
    peer *p = of;
    const sl_agent_settings settings = {.rank = p->rank,
                                        .joins = p->joins,
                                        .checkpoints = goes_on() ? &p->checkpoints : NULL,
                                        .credentials = s.seed % 22 == 17 ? expected_key() : NULL,
                                        .observer = {.context = p,
                                                     .record = on_record,
                                                     .round = on_round,
                                                     .returned = on_returned,
                                                     .notice = on_notice,
                                                     .act = on_act,
                                                     .log = on_log}};
    p->result = expected_run(&p->agent, settings, rank_count(), &p->error);
    peer_ends(p);
    return NULL;
}

/* ---- what holds at the end ---- */

static bool is_any(strike_kind kind) {
    for (const strike *k = strikes; k < strikes + strike_count; k++)
        if (k->kind == kind)
            return true;
    return false;
}

static void judge(const peer *p, bool verbose) {
    if (!peer_judge(p, verbose)) /* it was killed */
        return;
    const bool stops = is_any(STRIKE_STOP) || parts();
    const bool is_right = p->result == 0 || (p->leaves_s > 0 && p->result == SL_ELEFT) ||
                          ((p->leaves_s > 0 || ends_saved) && p->result == SL_ESAVED) ||
                          (stops && strstr(p->error.text, "have gone on without") != NULL) ||
                          (parts() && strstr(p->error.text, "membership.quorum") != NULL) ||
                          (p->joins && strstr(p->error.text, "wants to join") != NULL) ||
                          (p->joins && p->leaves_s > 0 && p->result == SL_ESTOPPED);
    if (!is_right)
        world_fail("agent %u ended with code %d: %s", p->rank, p->result, p->error.text);
    peer_judge_end(p, s.rounds);
    const bool calm = !stops && !is_any(STRIKE_KILL) && !is_any(STRIKE_CUT);
    if (p->leaves_s > 0 && calm && p->ended_s - p->leaves_s > leave_s)
        world_fail("agent %u leaves after %.3f s", p->rank, p->ended_s - p->leaves_s);
    seeds_count("left", p->result == SL_ELEFT);
    seeds_count("joined", p->joins && p->result == 0);
}

static uint32_t parts_of(uint32_t rank, uint32_t server, const sl_act *answer) {
    const sl_history *h = &histories[rank];
    for (const sl_act *a = h->acts; a < h->acts + h->act_count; a++)
        if (a->kind == SL_ACT_AVERAGE && a->peer == server && a->number == answer->number)
            return a->to;
    return answer->to; /* nothing is known of it */
}

static void judge_averages(const peer *p) {
    const sl_history *h = &histories[p->rank];
    for (const sl_act *a = h->acts; a < h->acts + h->act_count; a++)
        if (a->kind == SL_ACT_ANSWER && !parts() && !p->struck && !peers[a->peer].struck &&
            parts_of(a->peer, p->rank, a) != a->to)
            world_fail("agent %u has averaged %u parts with agent %u, which has %u", p->rank, a->to,
                       a->peer, parts_of(a->peer, p->rank, a));
}

/* ---- once more ---- */

static uint64_t compared;

static int compare(void *context, const sl_record *record, const float *x) {
    const uint64_t sum = sums[record->rank][record->round.round];
    if (sum != 0 && sum != sl_checksum(x, s.dimension * sizeof *x))
        world_fail("once more, node %u has another model after round %llu", record->rank,
                   (unsigned long long)record->round.round);
    compared += sum != 0;
    return 0;
}

static void repeat(void) {
    const sl_observer observer = {.record = compare};
    const sl_checkpoints checkpoints = {.history = histories};
    uint64_t told = 0;
    sl_error error;
    compared = 0;
    if (sl_sim_run(experiment, &task, &observer, &checkpoints, NULL, NULL, &error) != 0)
        world_fail("once more: %s", error.text);
    for (uint32_t i = 0; i < rank_count(); i++)
        for (uint64_t round = 1; round <= s.rounds; round++)
            told += sums[i][round] != 0;
    if (compared != told)
        world_fail("once more, there are %llu of %llu records", (unsigned long long)compared,
                   (unsigned long long)told);
    seeds_count("runs repeated", 1);
}

/* ---- a seed ---- */

static uint64_t run_seed(uint64_t seed, bool verbose) {
    world_open(seed, verbose);
    disk_open();
    memset(sums, 0, sizeof sums);
    s = (scenario){.seed = seed};
    draw_experiment();
    draw_strikes();
    if (verbose)
        scenario_print(&s);
    expected_take(&s, NULL, 0);
    task.gradient = gradient;
    task.initial = initial;
    peers_open(rank_count(), be_agent);
    for (uint32_t i = 0; i < s.nodes; i++)
        world_at(first_s + 0.02 * world_uniform(), peer_start, &peers[i], 0);
    will_end = goes_on();
    ends_saved = goes_on() && s.seed % 3 == 1;
    if (will_end) {
        const double at_s = first_s + 0.1 + s.rounds * s.gradient_s * world_uniform();
        if (ends_saved)
            world_at(at_s, end_saved, NULL, 0);
        world_at(at_s + ends_saved, kill_all, NULL, world_below(2));
    }
    if (may_join())
        world_at(first_s + 0.05 + 0.5 * s.gradient_s * world_uniform(), come, &peers[s.nodes], 0);
    world_run(first_s + most_s, are_over);
    for (uint32_t i = 0; i < rank_count(); i++)
        judge(&peers[i], verbose);
    for (uint32_t i = 0; i < rank_count(); i++)
        judge_averages(&peers[i]);
    if (!is_any(STRIKE_STOP) || s.seed % 8 != 5) /* who wakes up averages among others, or alone */
        repeat();
    forget_histories();
    return expected_end();
}

int main(int count, char **arguments) {
    expected_key();
    return seeds_main(count, arguments, QUICK, run_seed);
}
