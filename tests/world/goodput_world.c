/* goodput_world.c - how much of a run is left where learners fail at a rate: agents in the virtual
 * world are killed, and started again after the time that a repair takes (docs/reliability.md).
 *
 *   goodput_world CHIPS REPAIR_S HOURS LEAST [SEED]   fails below LEAST % of what can be: of that
 *                                                     seed, or else in the mean of the first eight
 *
 * Eight learners of so many chips each train on a ring, in rounds of about a second. A chip fails
 * once a year, and a learner with any of its chips; then its port refuses. The time to the next
 * failure is drawn from an exponential distribution. Whoever was repaired joins the others, with a
 * neighbour's model. The last one that lives is spared. Goodput: rounds that learners have ended,
 * over those of eight learners that never fail in the same time. It cannot be more than the share
 * of time in which learners have a process, which hangs on the failures drawn.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk.h"
#include "expected.h"
#include "peers.h"

enum { LEARNERS = 8, SEEDS = 8 };
static const double year_s = 365.0 * 24 * 3600, round_s = 1, clean_s = 600;

static scenario s;
static double started_s[LEARNERS];
static uint64_t rounds[LEARNERS];  /* that they have begun, and were not killed in */
static double between_s, repair_s; /* between_s: INFINITY: nobody fails */
static uint64_t failures;
static double up_s; /* of all learners' processes */

/* ---- an agent ---- */

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    process_wait(world_now() + round_s * (0.95 + 0.1 * world_uniform()));
    for (size_t i = 0; i < s.dimension; i++)
        g[i] = x[i] - (float)rank;
    return 1;
}

static void on_round(void *context, uint32_t rank, uint64_t round) {
    ((peer *)context)->trains = true;
    rounds[rank]++;
}

static void *be_learner(void *of) {
    peer *p = of;
    const sl_agent_settings settings = {
        .rank = p->rank, .joins = p->joins, .observer = {.context = of, .round = on_round}};
    expected_run(&p->agent, settings, LEARNERS, &p->error);
    world_fail("learner %u ended at %.3f s: %s", p->rank, world_now() - first_s, p->error.text);
}

/* ---- failures ---- */

static void start(void *of, uint64_t ignored);

static uint32_t count_training(void) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < LEARNERS; i++)
        count += peers[i].trains;
    return count;
}

static void fail(void *of, uint64_t start_number) {
    peer *p = of;
    if (p->process->number != (int)start_number)
        return;
    if (p->trains && count_training() == 1) { /* it is spared */
        world_at(world_now() - between_s * log1p(-world_uniform()), fail, p, start_number);
        return;
    }
    failures++;
    up_s += world_now() - started_s[p->rank];
    rounds[p->rank] -= p->trains; /* the one under way */
    p->trains = false;
    p->joins = true;
    peer_kill(p, false);
    world_at(world_now() + repair_s, start, p, 0);
}

static void start(void *of, uint64_t ignored) {
    peer *p = of;
    started_s[p->rank] = world_now();
    peer_start(p, ignored);
    if (isfinite(between_s))
        world_at(world_now() - between_s * log1p(-world_uniform()), fail, p,
                 (uint64_t)p->process->number);
}

/* ---- a run ---- */

static void open_experiment(void) {
    s = (scenario){.nodes = LEARNERS, .rounds = 100000000, .dimension = 16};
    strcpy(s.text,
           "{\"rounds\": 100000000, \"topology\": {\"nodes\": 8, \"family\": \"ring\"},"
           " \"algorithm\": {\"name\": \"d-psgd\"}, \"optimizer\": {\"learning_rate\": 0.1},"
           " \"record\": {\"every\": 1000}, \"transport\": {\"connect_timeout_s\": 600},"
           " \"membership\": {\"on_loss\": \"continue\", \"grace_s\": 5},"
           " \"security\": {\"mode\": \"none\"}}");
    expected_take(&s, NULL, 0);
    task.gradient = gradient;
}

static bool never(void) {
    return false;
}

/* Rounds of all in so many seconds. */
static uint64_t play(uint64_t seed, double seconds) {
    uint64_t all = 0;
    world_open(seed, false);
    disk_open();
    memset(rounds, 0, sizeof rounds);
    peers_open(LEARNERS, be_learner);
    failures = 0;
    up_s = 0;
    network.latency_s = 0.01;
    network.slow_wake_s = 1e-6;
    open_experiment();
    for (uint32_t i = 0; i < LEARNERS; i++)
        world_at(first_s, start, &peers[i], 0);
    world_run(first_s + seconds, never);
    for (uint32_t i = 0; i < LEARNERS; i++) {
        all += rounds[i];
        up_s += peer_is_up(&peers[i]) ? world_now() - started_s[i] : 0;
    }
    expected_end();
    return all;
}

/* In per cent, and how much of the time was there. */
static double find_goodput(double chips, double repair, double seconds, uint64_t seed,
                           double *there) {
    between_s = INFINITY;
    const double clean = (double)play(seed, clean_s) / clean_s;
    between_s = year_s / chips;
    repair_s = repair;
    const double repaired = (double)play(seed, seconds) / seconds;
    *there = 100 * up_s / (LEARNERS * seconds);
    return 100 * repaired / clean;
}

int main(int count, char **arguments) {
    if (count < 5)
        return 2;
    const double chips = atof(arguments[1]), repair = atof(arguments[2]),
                 seconds = 3600 * atof(arguments[3]), least = atof(arguments[4]);
    const uint64_t first = count > 5 ? strtoull(arguments[5], NULL, 10) : 1,
                   seeds = count > 5 ? 1 : SEEDS;
    double mean = 0, most = 0, there;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        const double goodput = find_goodput(chips, repair, seconds, seed, &there);
        printf("%" PRIu64 " failures in %g h, one of a learner each %.0f s, repaired in %g s: "
               "goodput %.1f %%, at most %.1f %%\n",
               failures, seconds / 3600, year_s / chips, repair, goodput, there);
        mean += goodput / (double)seeds;
        most += there / (double)seeds;
    }
    return 100 * mean >= least * most ? 0 : 1;
}
