/* expected.c - simulates a seed's experiment before its agents begin; see expected.h. */
#include "expected.h"

#include <stdlib.h>
#include <string.h>

#include "virtual.h"
#include "wire/checksum.h"

sl_experiment *experiment;
sl_task task;
static uint64_t sums[NODES_MAX][ROUNDS_MAX + 1]; /* of models */

static uint64_t sum_of(const float *x) {
    return sl_checksum(x, task.dimension * sizeof *x);
}

static int note(void *context, const sl_record *record, const float *x) {
    (void)context;
    sums[record->rank][record->round.round] = sum_of(x);
    return 0;
}

void expected_open(scenario *s, const char *const *set, size_t set_count) {
    sl_error error;
    memset(sums, 0, sizeof sums);
    if (sl_experiment_parse(&experiment, s->text, "seed", "/", set, set_count, &error) != 0)
        world_fail("%s\n%s", error.text, s->text);
    task = scenario_task(s);
    const sl_observer observer = {.record = note};
    if (sl_sim_run(experiment, &task, &observer, NULL, NULL, NULL, &error) != 0)
        world_fail("%s\n%s", error.text, s->text);
}

void expected_close(void) {
    sl_experiment_close(&experiment);
}

const sl_credentials *expected_key(void) {
    static sl_credentials *credentials;
    static const char text[] = "starling run key 1 "
                               "000102030405060708090a0b0c0d0e0f"
                               "101112131415161718191a1b1c1d1e1f\n";
    if (credentials == NULL &&
        sl_credentials_take_key(&credentials, text, sizeof text - 1, NULL) != 0)
        abort();
    return credentials;
}

void expected_check(uint32_t rank, uint64_t round, const float *x) {
    const uint64_t sum = sum_of(x);
    world_note("records", rank, round, sum);
    if (sum != sums[rank][round])
        world_fail("agent %u has other models than the simulator after round %llu", rank,
                   (unsigned long long)round);
}

uint64_t expected_newest(void (*notice)(void *context, const char *text)) {
    sl_checkpoint_owner owner;
    sl_error error;
    uint64_t round = 0;
    if (sl_checkpoint_owner_of(&owner, experiment, &task, RUN_ID, &error) != 0 ||
        sl_checkpoint_newest(&round, CHECKPOINTS, &owner, 0,
                             sl_topology_nodes(experiment->topology), UINT64_MAX, notice, NULL,
                             &error) != 0)
        return 0;
    return round;
}
