/* test_collector.c - whose records `starling run` counts to which round, as agents go and come
 * back; records arrive in any order of agents. */
#include "cli/signals.h"
#include "harness.h"
#include "run/collector.h"
#include "run/forecast.h"

enum { NODES = 4, EVERY = 20, ROUNDS_MAX = 32 };

static collector c;
static uint64_t complete[ROUNDS_MAX]; /* the rounds, */
static uint32_t counted[ROUNDS_MAX];  /* and of how many nodes */
static size_t count;
static uint64_t next[NODES]; /* round that it records next */
static sl_error error;

/* ---- what the collector needs of the command, and files that are none ---- */

volatile sig_atomic_t stop_requested;

double now_seconds(void) {
    return 0;
}

void live_view_clear(live_view *v) {}

void live_view_measured(live_view *v, const measured *m) {}

int run_info_begin(run_info *out, const char *folder, const char *driver, int64_t rank,
                   const sl_checkpoints *checkpoints, sl_error *why) {
    return 0;
}

int run_info_end(run_info *info, const char *outcome, const char *reason, sl_error *why) {
    return 0;
}

node_cost forecast_measured(const sl_record *records, size_t ranks, const sl_task *task) {
    return (node_cost){0};
}

sl_platform forecast_platform(const sl_experiment *experiment, const node_cost *cost) {
    return (sl_platform){0};
}

int __wrap_sl_folder_metrics(sl_folder *folder, const sl_record *record, sl_error *why) {
    return 0;
}

int __wrap_sl_folder_remember(sl_folder *folder, uint64_t round, const sl_evaluation *evaluation,
                              const float *x, size_t dimension, sl_error *why) {
    return 0;
}

void timeline_path(char out[TIMELINE_PATH_MAX], const char *folder) {}

int __wrap_sl_folder_best(sl_folder *folder, int64_t rank, uint64_t round,
                          const sl_evaluation *evaluation, const float *x, size_t dimension,
                          sl_error *why) {
    return 0;
}

int __wrap_sl_folder_consensus(sl_folder *folder, uint64_t round, const sl_consensus *consensus,
                               sl_error *why) {
    for (uint32_t k = 0; k < c.member_count; k++)
        ck_assert_msg(c.records[c.members[k]].round.round == round,
                      "round %llu counts agent %u's record of round %llu",
                      (unsigned long long)round, c.members[k],
                      (unsigned long long)c.records[c.members[k]].round.round);
    complete[count] = round;
    counted[count++] = c.member_count;
    return 0;
}

/* ---- a run ---- */

static sl_evaluation evaluate(void *context, const float *x) {
    return (sl_evaluation){0};
}

static bool waiting[NODES];
static sl_record records[NODES];
static const float *models[NODES], *present[NODES];
static uint32_t members[NODES];
static uint64_t since[NODES];
static float mean[1], model[1];
static const trial run = {
    .task = {.dimension = 1, .rounds = 100000, .evaluate = evaluate},
    .nodes = NODES,
};

static void begin(void) {
    c = (collector){.trial = &run,
                    .records = records,
                    .waiting = waiting,
                    .models = models,
                    .present = present,
                    .members = members,
                    .member_count = NODES,
                    .since = since,
                    .mean = mean};
    count = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        waiting[i] = false;
        since[i] = 0;
        members[i] = i;
        next[i] = EVERY;
    }
}

static void end(void) {
    free(c.losses);
}

/* Its next record comes, if it may. */
static bool record(uint32_t rank) {
    if (waiting[rank])
        return false;
    const sl_record r = {.rank = rank, .round.round = next[rank]};
    EXPECT_WELL(collector_record(&c, &r, model, &error));
    next[rank] += EVERY;
    return true;
}

/* All that can record, up to this round, in an order of ranks. */
static void record_up_to(uint64_t round, const uint32_t *order, uint32_t ranks) {
    bool any = true;
    while (any) {
        any = false;
        for (uint32_t k = 0; k < ranks; k++)
            any |= next[order[k]] <= round && record(order[k]);
    }
}

static void lose(uint32_t rank) {
    const sl_loss loss = {.rank = rank};
    EXPECT_WELL(collector_lose(&c, &loss, &error));
}

static void come_back(uint32_t rank, uint64_t round) {
    collector_return(&c, rank, round);
    next[rank] = (round + EVERY - 1) / EVERY * EVERY;
}

static const uint32_t all[] = {0, 1, 2, 3}, last_first[] = {3, 2, 1, 0};

static void expect_all_complete(uint64_t rounds) {
    ck_assert_uint_eq(count, rounds / EVERY);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(complete[i], (i + 1) * EVERY);
}

/* The others' records before its return are still in their pipes when its first one is read. */
START_TEST(who_returns_records_ahead_of_the_others_records) {
    for (int between = 0; between < 3; between++) { /* of the others, in the round under way */
        begin();
        record_up_to(60, all, NODES);
        lose(3);
        record_up_to(100, all, 3);
        for (int k = 0; k < between; k++)
            record((uint32_t)k);
        come_back(3, 165);
        ck_assert(record(3));
        ck_assert_msg(waiting[3], "its record of round 180 waits for nobody");
        record_up_to(300, between == 1 ? last_first : all, NODES);
        expect_all_complete(300);
        for (size_t i = 0; i < count; i++)
            ck_assert_uint_eq(counted[i], complete[i] <= 60 || complete[i] >= 180 ? 4 : 3);
        end();
    }
}

/* The others have recorded rounds since its return before it has. */
START_TEST(who_returns_records_behind_the_others_records) {
    begin();
    record_up_to(60, all, NODES);
    lose(3);
    record_up_to(200, all, 3);
    come_back(3, 165);
    record_up_to(300, last_first, NODES);
    expect_all_complete(300);
    ck_assert_uint_eq(counted[count - 1], 4);
    end();
}

/* Then it goes on alone: its record waits for nobody. */
START_TEST(all_others_are_lost_while_one_returns) {
    begin();
    record_up_to(60, all, NODES);
    lose(3);
    come_back(3, 165);
    ck_assert(record(3));
    for (uint32_t i = 0; i < 3; i++)
        lose(i);
    record_up_to(300, all + 3, 1);
    ck_assert_uint_eq(complete[count - 1], 300);
    ck_assert_uint_eq(counted[count - 1], 1);
    end();
}
