/* disk_world.c - runs that are killed again and again, at any point of their checkpoints' way to
 * the disk, and go on; each from a seed, in the virtual world (docs/reliability.md).
 *
 *   disk_world [-v] SEED [COUNT]     at most QUICK seeds with STARLING_QUICK in the environment
 *
 * Held of each seed: every round that is recorded, again or not, has the models of a run that was
 * never stopped, bit for bit; a cut that was on the disk when the power went is not lost; what is
 * torn or rotten is not taken for good; a disk that fails does not end the run; the last start
 * comes to the end.
 */
#include <stdio.h>
#include <string.h>

#include "base/disk.h"
#include "disk.h"
#include "expected.h"
#include "seeds.h"
#include "virtual.h"

enum { QUICK = 100, LIVES_MAX = 6 };

static scenario s;
static process *life;
static uint64_t resumed, whole; /* whole: the newest cut that is surely on the disk */
static uint64_t rotten;
static bool ended;

/* ---- a life ---- */

static int record(void *context, const sl_record *of, const float *x) {
    expected_check(of->rank, of->round.round, x);
    return 0;
}

static void on_notice(void *context, const char *text) {
    world_note(text, 0, 0, 0);
}

static void *live(void *ignored) {
    sl_error error;
    resumed = expected_newest(on_notice);
    world_note("goes-on", resumed, 0, 0);
    if (resumed < whole && rotten == 0)
        world_fail("it goes on from round %llu, and %llu was on the disk",
                   (unsigned long long)resumed, (unsigned long long)whole);
    const sl_observer observer = {.record = record, .notice = on_notice};
    const sl_checkpoints checkpoints = {
        .folder = CHECKPOINTS, .run_id = RUN_ID, .resume = resumed > 0, .round = resumed};
    int result = sl_sim_run(experiment, &task, &observer, &checkpoints, NULL, NULL, &error);
    if (result != 0)
        world_fail("it ended with code %d: %s", result, error.text);
    ended = true;
    return ignored;
}

static void kill_life(void) {
    seeds_count("kills", 1);
    world_note("dies", disk_changes(), 0, 0);
    process_kill(life, true);
}

static bool is_over(void) {
    return life == NULL || !life->alive;
}

/* A cut is on the disk once something of a later one is written: then its own writing is over. Of
 * the one that a life went on from, who wrote it may have been killed before that. */
static void take_stock(void) {
    const uint64_t cut = expected_newest(NULL), latest = expected_latest();
    if (latest > cut && cut > whole && cut > resumed)
        whole = cut;
}

static void come_back(void) {
    if (disk.failing == 0)
        take_stock();
    if (world_chance(0.7))
        disk_lose_power();
    if (world_chance(0.1)) {
        rotten += disk_rot();
        whole = 0;
    }
}

static void run_lives(void) {
    const int lives = 1 + world_below(LIVES_MAX);
    ended = false;
    for (int i = 0; i < lives && !ended; i++) {
        const bool last = i + 1 == lives;
        disk.last = last ? 0 : disk_changes() + 1 + world_draw() % (6 * s.nodes * s.rounds);
        disk.failing = !last && world_chance(0.2) ? 0.2 * world_uniform() : 0;
        if (expected_newest(NULL) == 0 && whole == 0) /* nothing to go on from: it begins anew */
            disk_clear();
        life = process_start(0, live, NULL);
        world_run(1e9, is_over);
        if (!ended)
            come_back();
    }
    if (!ended)
        world_fail("it did not come to the end");
}

/* ---- a seed ---- */

static void open_run(void) {
    char set[3][48];
    const char *const overrides[] = {set[0], set[1], set[2]};
    snprintf(set[0], sizeof set[0], "checkpoint.every=%u", 1 + (unsigned)(world_draw() % 2));
    snprintf(set[1], sizeof set[1], "checkpoint.keep=16");
    snprintf(set[2], sizeof set[2], "optimizer.momentum=%s",
             strstr(s.text, "\"d-psgd\"") != NULL ? "0.5" : "0");
    s.gradient_s = 1e-3;
    expected_open(&s, overrides, 3);
}

static uint64_t run_seed(uint64_t seed, bool verbose) {
    world_open(seed, verbose);
    disk_open();
    scenario_draw(&s, seed);
    whole = rotten = 0;
    open_run();
    disk.stop = kill_life;
    disk.write_s = 2e-3 * world_uniform();
    run_lives();
    return expected_end();
}

int main(int count, char **arguments) {
    return seeds_main(count, arguments, QUICK, run_seed);
}
