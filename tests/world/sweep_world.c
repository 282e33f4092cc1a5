/* sweep_world.c - one small run, and a fault at every n-th call, for every n: an allocation of an
 * agent fails, a change of the disk fails, the power goes, and a bit of a file turns; in the
 * virtual world (docs/reliability.md).
 *
 * The run has what there is to go wrong: a connection breaks, all agents are killed and go on from
 * their checkpoints. Held of each n: training goes on, or ends with one error and frees all memory;
 * all models are those of an undisturbed run, bit for bit; from what is on the disk a run goes on,
 * and from no older cut than the newest that was surely there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "disk.h"
#include "expected.h"
#include "peers.h"

enum { NODES = 3, ROUNDS = 4, HIT = 1, CUT_IN = 2, KILL_IN = 3 };

static scenario s;
static bool disturbed;   /* connections break, agents are killed */
static uint64_t resumed; /* of the simulator */
static bool ended;
static process *life;
static uint64_t states;       /* of the disk, when the power had gone */
static uint64_t went_on_from; /* of the agents */

/* ---- agents ---- */

static void cut(void *ignored, uint64_t number) {
    network_break_between(HIT, 0, BREAK_RESET);
}

static void kill_all(void *ignored, uint64_t number) {
    for (int i = 0; i < NODES; i++)
        peer_kill(&peers[i], false);
}

static void on_round(void *context, uint32_t rank, uint64_t round) {
    if (disturbed && rank == HIT && round == CUT_IN)
        world_at(world_now() + 1e-4, cut, NULL, 0);
    if (disturbed && rank == HIT && round == KILL_IN && !peers[HIT].checkpoints.resume)
        world_at(world_now() + 1e-4, kill_all, NULL, 0);
}

static int on_record(void *context, const sl_record *record, const float *x) {
    expected_check(record->rank, record->round.round, x);
    return 0;
}

static int on_resumed(void *context, uint64_t round) {
    went_on_from = round;
    return 0;
}

static void *be_agent(void *of) {
    peer *p = of;
    const sl_agent_settings settings = {
        .rank = p->rank,
        .checkpoints = &p->checkpoints,
        .observer = {.record = on_record, .round = on_round, .resumed = on_resumed}};
    p->result = expected_run(&p->agent, settings, NODES, &p->error);
    return NULL;
}

static void start_agents(bool resume) {
    peers_open(NODES, be_agent);
    for (uint32_t i = 0; i < NODES; i++) {
        peers[i].checkpoints.resume = resume;
        peer_start(&peers[i], 0);
    }
    world_run(world_now() + 100, peers_are_over);
    if (!peers_are_over())
        world_fail("an agent still waits");
}

/* ---- the simulator ---- */

static void *simulate(void *ignored) {
    sl_error error;
    const sl_observer observer = {.record = on_record};
    const sl_checkpoints checkpoints = {
        .folder = CHECKPOINTS, .run_id = RUN_ID, .resume = resumed > 0, .round = resumed};
    if (sl_sim_run(experiment, &task, &observer, &checkpoints, NULL, NULL, &error) != 0)
        world_fail("it ended: %s", error.text);
    ended = true;
    return ignored;
}

static bool is_over(void) {
    return !life->alive;
}

static void kill_life(void) {
    process_kill(life, true);
}

static void run_simulator(void) {
    ended = false;
    life = process_start(0, simulate, NULL);
    world_run(world_now() + 1000, is_over);
}

/* From what is there, to the end. Where nothing is, it begins anew. */
static void go_on_from(uint64_t at_least) {
    disk.last = disk.fails = 0;
    resumed = expected_newest(NULL);
    if (resumed < at_least)
        world_fail("it goes on from round %" PRIu64 ", and %" PRIu64 " was on the disk", resumed,
                   at_least);
    if (resumed == 0)
        disk_clear();
    run_simulator();
    if (!ended)
        world_fail("it did not come to the end");
}

/* ---- a world for each n ---- */

static void open_world(bool disturb) {
    world_open(1, false);
    disk_open();
    network = (network_habits){.latency_s = 1e-3, .slow = NODES, .slow_wake_s = 1e-6};
    shortage = (nth_call){.rank = HIT};
    disturbed = disturb;
    s = (scenario){.nodes = NODES, .rounds = ROUNDS, .dimension = 1100, .gradient_s = 1e-3};
    strcpy(s.text,
           "{\"rounds\": 4, \"topology\": {\"nodes\": 3, \"family\": \"path\"}, \"algorithm\":"
           " {\"name\": \"choco-sgd\", \"compressor\": {\"name\": \"qsgd\"}}, \"record\":"
           " {\"every\": 1}, \"optimizer\": {\"learning_rate\": 0.1, \"momentum\": 0.5}, "
           "\"checkpoint\": {\"every\":"
           " 1, \"keep\": 3}, \"transport\": {\"chunk_bytes\": 4096, \"timeout_s\": 1,"
           " \"connect_timeout_s\": 2, \"round_timeout_s\": 10, \"reconnect_s\": 3},"
           " \"membership\": {\"on_loss\": \"stop\"}}");
    expected_open(&s, NULL, 0);
    resumed = 0;
}

/* ---- the sweeps: each returns whether there is an n-th call ---- */

/* The n-th change of the disk fails: agents train to the end, and the cut before is there at least.
 */
static bool fail_agents_disk(uint64_t n) {
    open_world(false);
    disk.fails = n;
    start_agents(false);
    for (int i = 0; i < NODES; i++)
        if (peers[i].result != 0)
            world_fail("change %" PRIu64 " failed, and agent %d ended: %s", n, i,
                       peers[i].error.text);
    const bool there = disk_changes() >= n;
    go_on_from(ROUNDS - 1);
    expected_end();
    return there;
}

/* The power goes at the n-th change, in every state that it may leave. */
static bool lose_power(uint64_t n) {
    bool there = false;
    for (int names = 0, names_max = 0; names <= names_max; names++)
        for (int tear = TEAR_ALL; tear <= TEARS; tear++) {
            const bool rots = tear == TEARS; /* nothing is torn, and one bit turns */
            open_world(false);
            disk.last = n;
            disk.stop = kill_life;
            run_simulator();
            there = !ended;
            names_max = disk_loose_names();
            /* A cut is on the disk once something of a later one is written. */
            const uint64_t cut = expected_newest(NULL), latest = expected_latest();
            disk_lose_power_to(names, rots ? TEAR_ALL : (disk_tear)tear);
            if (rots)
                disk_rot();
            states++;
            go_on_from(latest > cut && !rots ? cut : 0);
            expected_end();
        }
    return there;
}

/* The n-th allocation of an agent fails: it says so, or goes on without a checkpoint. */
static bool fail_allocation(uint64_t n) {
    open_world(true);
    shortage.fails = n;
    start_agents(false);
    const peer *hit = &peers[HIT];
    const uint64_t cut = hit->result == 0 ? expected_newest(NULL) : 0;
    if (cut > 0)
        start_agents(true);
    if (cut > 0 && hit->result == 0 && went_on_from < cut)
        world_fail("allocation %" PRIu64 " failed, and the agents went on from round %" PRIu64
                   ", where %" PRIu64 " was whole",
                   n, went_on_from, cut);
    const bool there = shortage.made >= n;
    if (there && hit->result != 0 && (hit->result != SL_ENOMEM || hit->error.text[0] == '\0'))
        world_fail("allocation %" PRIu64 " failed, and the agent ended with %d: %s", n, hit->result,
                   hit->error.text);
    if (!there && hit->result != 0)
        world_fail("the agent ended with %d: %s", hit->result, hit->error.text);
    expected_end();
    return there;
}

static void sweep(const char *what, bool (*with)(uint64_t n)) {
    uint64_t n = 1;
    while (with(n))
        n++;
    printf("%s: %" PRIu64 "\n", what, n - 1);
    fflush(stdout);
}

int main(void) {
    sweep("changes of the disk that fail", fail_agents_disk);
    sweep("changes of the disk at which the power goes", lose_power);
    printf("states that it leaves: %" PRIu64 "\n", states);
    sweep("allocations that fail", fail_allocation);
    return 0;
}
