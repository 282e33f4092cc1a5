/* test_checkpoint.c - the files of checkpoints: which rounds stay, and what is said of slow and
 * full disks. sweep_world.c has disks that fail at any call. The disk's functions pass through the
 * test.
 */
#include <errno.h>
#include <stdatomic.h>

#include "base/disk.h"
#include "experiments.h"
#include "starling/sim.h"
#include "temporary.h"
#include "wire/checksum.h"

enum { DIMENSION = 5, NODES = 3, ROUNDS = 8 };

static sl_error error;
static int notices;

/* ---- the disk ---- */

static bool is_full;
static int appends;
static atomic_bool hangs; /* each sync, until somebody says that it waits */

int __real_sl_disk_append(int handle, const void *data, size_t bytes);
int __wrap_sl_disk_append(int handle, const void *data, size_t bytes) {
    if (!is_full || appends++ < NODES) /* the first round is there */
        return __real_sl_disk_append(handle, data, bytes);
    __real_sl_disk_append(handle, data, bytes / 2);
    return ENOSPC;
}

int __real_sl_disk_sync(int handle);
int __wrap_sl_disk_sync(int handle) {
    for (int i = 0; i < 6000 && atomic_load(&hangs); i++)
        usleep(10000);
    return __real_sl_disk_sync(handle);
}

/* ---- a run ---- */

static void initial(void *context, uint32_t rank, float *x) {
    for (int i = 0; i < DIMENSION; i++)
        x[i] = 1 + (float)rank;
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    for (int i = 0; i < DIMENSION; i++)
        g[i] = x[i] + 0.1f * (float)round;
    return x[0] * x[0];
}

static sl_evaluation evaluate(void *context, const float *x) {
    return (sl_evaluation){.loss = x[0] * x[0], .accuracy = NAN};
}

static const sl_task task = {.dimension = DIMENSION,
                             .rounds = ROUNDS,
                             .initial = initial,
                             .gradient = gradient,
                             .evaluate = evaluate};

static void on_notice(void *context, const char *text) {
    if (strcmp(text, "waiting for the disk: the checkpoint of round 1 is still being written") == 0)
        atomic_store(&hangs, false);
    else
        ck_assert_msg(strstr(text, "training goes on") != NULL, "%s", text);
    notices++;
}

static const sl_observer observer = {.notice = on_notice};

static sl_experiment *parse(void) {
    return experiment_of("{'rounds': %d, 'optimizer': {'momentum': 0.5}, 'checkpoint': {'every': "
                         "1, 'keep': 3}, 'topology': {'nodes': %d, 'family': 'path'}}",
                         ROUNDS, NODES);
}

static int simulate(const sl_experiment *e) {
    const sl_checkpoints checkpoints = {.folder = base, .run_id = 7};
    notices = 0;
    return sl_sim_run(e, &task, &observer, &checkpoints, NULL, NULL, &error);
}

static int newest(const sl_experiment *e, uint64_t *round) {
    sl_checkpoint_owner owner;
    EXPECT_WELL(sl_checkpoint_owner_of(&owner, e, &task, 7, &error));
    return sl_checkpoint_newest(round, base, &owner, 0, NODES, UINT64_MAX, NULL, NULL, &error);
}

/* ---- tests ---- */

FIXTURES(make_base, remove_base);

START_TEST(the_newest_rounds_stay) {
    sl_experiment *e = parse();
    sl_checkpoint_file *files;
    size_t count;
    EXPECT_WELL(simulate(e));
    EXPECT_WELL(sl_checkpoint_list(&files, &count, base, &error));
    ck_assert_uint_eq(count, 3 * NODES);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(files[i].round, ROUNDS - 2 + i / NODES);
        ck_assert_uint_eq(files[i].rank, i % NODES);
    }
    free(files);
}

START_TEST(who_waits_for_a_disk_says_so) {
    sl_experiment *e = parse();
    atomic_store(&hangs, true);
    EXPECT_WELL(simulate(e));
    ck_assert_int_eq(notices, 1);
    ck_assert(!atomic_load(&hangs));
}

START_TEST(a_disk_that_stays_full_is_told_once) {
    sl_experiment *e = parse();
    uint64_t round;
    is_full = true;
    EXPECT_WELL(simulate(e));
    ck_assert_int_eq(notices, 1);
    ck_assert_int_eq(newest(e, &round), 0);
    ck_assert_uint_eq(round, 1);
    is_full = false;
}
