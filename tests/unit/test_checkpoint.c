/* test_checkpoint.c - the files of checkpoints: disks that fail at any call, numbers that are not
 * finite, and which rounds stay. The disk's functions pass through the test. */
#include <errno.h>
#include <stdatomic.h>

#include "base/disk.h"
#include "starling/sim.h"
#include "temporary.h"
#include "wire/checksum.h"

enum { DIMENSION = 5, NODES = 3, ROUNDS = 8 };

static sl_error error;
static int notices;

/* ---- the disk ---- */

typedef enum disk_call { APPEND, SYNC, RENAME, SYNC_FOLDER, NO_CALL } disk_call;
static struct {
    disk_call fails;
    int at; /* this call and, if `ever`, all later ones */
    bool ever;
    int calls;
} fault = {.fails = NO_CALL};

static atomic_bool hangs; /* each sync, until somebody says that it waits */

static bool fails(disk_call call) {
    if (fault.fails != call)
        return false;
    const int number = fault.calls++;
    return number == fault.at || (fault.ever && number > fault.at);
}

int __real_sl_disk_append(int handle, const void *data, size_t bytes);
int __wrap_sl_disk_append(int handle, const void *data, size_t bytes) {
    if (!fails(APPEND))
        return __real_sl_disk_append(handle, data, bytes);
    __real_sl_disk_append(handle, data, bytes / 2);
    return ENOSPC;
}

int __real_sl_disk_sync(int handle);
int __wrap_sl_disk_sync(int handle) {
    for (int i = 0; i < 6000 && atomic_load(&hangs); i++)
        usleep(10000);
    return fails(SYNC) ? EIO : __real_sl_disk_sync(handle);
}

int __real_sl_disk_rename(const char *from, const char *to);
int __wrap_sl_disk_rename(const char *from, const char *to) {
    return fails(RENAME) ? EIO : __real_sl_disk_rename(from, to);
}

int __real_sl_disk_sync_folder(const char *path);
int __wrap_sl_disk_sync_folder(const char *path) {
    return fails(SYNC_FOLDER) ? EIO : __real_sl_disk_sync_folder(path);
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

static float ends[NODES][DIMENSION];

static int on_record(void *context, const sl_record *record, const float *x) {
    memcpy(ends[record->rank], x, sizeof ends[0]);
    return 0;
}

static const sl_observer observer = {.record = on_record, .notice = on_notice};

static sl_experiment *parse(void) {
    sl_experiment *e = NULL;
    int result = sl_experiment_parse(
        &e,
        "{\"rounds\": 8, \"optimizer\": {\"momentum\": 0.5}, \"checkpoint\": {\"every\": 1, "
        "\"keep\": 3}, \"topology\": {\"nodes\": 3, \"family\": \"path\"}}",
        "test", "/", NULL, 0, &error);
    ck_assert_msg(result == 0, "%s", error.text);
    return e;
}

static int simulate(const sl_experiment *e, uint64_t from) {
    const sl_checkpoints checkpoints = {
        .folder = base, .run_id = 7, .resume = from > 0, .round = from};
    notices = 0;
    return sl_sim_run(e, &task, &observer, &checkpoints, NULL, NULL, &error);
}

static int newest(const sl_experiment *e, uint64_t *round) {
    sl_checkpoint_owner owner;
    ck_assert_int_eq(sl_checkpoint_owner_of(&owner, e, &task, 7, &error), 0);
    return sl_checkpoint_newest(round, base, &owner, 0, NODES, UINT64_MAX, NULL, NULL, &error);
}

static void begin(void) {
    make_base();
    fault.fails = NO_CALL;
}

/* ---- tests ---- */

FIXTURES(begin, remove_base);

START_TEST(the_newest_rounds_stay) {
    sl_experiment *e = parse();
    sl_checkpoint_file *files;
    size_t count;
    ck_assert_msg(simulate(e, 0) == 0, "%s", error.text);
    ck_assert_int_eq(sl_checkpoint_list(&files, &count, base, &error), 0);
    ck_assert_uint_eq(count, 3 * NODES);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(files[i].round, ROUNDS - 2 + i / NODES);
        ck_assert_uint_eq(files[i].rank, i % NODES);
    }
    free(files);
    sl_experiment_close(&e);
}

/* One failure at the n-th call, for every n: training ends well and says it once; from what is
 * left a run ends with the same bits. */
START_LOOP_TEST(a_disk_that_fails_voids_a_file, NO_CALL) {
    sl_experiment *e = parse();
    float expected[NODES][DIMENSION];
    for (fault.at = 0; fault.at < NODES * ROUNDS; fault.at += 5) {
        uint64_t round;
        fault.fails = _i;
        fault.calls = 0;
        ck_assert_msg(simulate(e, 0) == 0, "%s", error.text);
        ck_assert_int_eq(notices, 1);
        memcpy(expected, ends, sizeof ends);
        fault.fails = NO_CALL;
        ck_assert_msg(newest(e, &round) == 0, "%s", error.text);
        ck_assert_uint_eq(round, fault.at / NODES + 1 == ROUNDS ? ROUNDS - 1 : ROUNDS);
        ck_assert_msg(simulate(e, round) == 0, "%s", error.text);
        ck_assert_mem_eq(ends, expected, sizeof ends);
        remove_base();
        begin();
    }
    sl_experiment_close(&e);
}

START_TEST(who_waits_for_a_disk_says_so) {
    sl_experiment *e = parse();
    atomic_store(&hangs, true);
    ck_assert_msg(simulate(e, 0) == 0, "%s", error.text);
    ck_assert_int_eq(notices, 1);
    ck_assert(!atomic_load(&hangs));
    sl_experiment_close(&e);
}

START_TEST(a_disk_that_stays_full_is_told_once) {
    sl_experiment *e = parse();
    uint64_t round;
    fault.fails = APPEND;
    fault.at = NODES; /* the first round is there */
    fault.ever = true;
    fault.calls = 0;
    ck_assert_msg(simulate(e, 0) == 0, "%s", error.text);
    ck_assert_int_eq(notices, 1);
    ck_assert_int_eq(newest(e, &round), 0);
    ck_assert_uint_eq(round, 1);
    fault.ever = false;
    sl_experiment_close(&e);
}

START_TEST(a_fresh_run_refuses_files_of_another) {
    sl_experiment *e = parse();
    ck_assert_int_eq(simulate(e, 0), 0);
    ck_assert_int_eq(simulate(e, 0), SL_EFILE);
    ck_assert_msg(strstr(error.text, "of an earlier run") != NULL, "%s", error.text);
    sl_experiment_close(&e);
}

int main(void) {
    return run_tests("checkpoint");
}
