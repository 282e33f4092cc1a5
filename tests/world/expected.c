/* expected.c - simulates a seed's experiment before its agents begin; see expected.h. */
#include "expected.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk.h"
#include "config/buffers.h"
#include "disk.h"
#include "starling/roster.h"
#include "wire/checksum.h"

sl_experiment *experiment;
sl_task task;
static uint64_t sums[NODES_MAX][ROUNDS_MAX + 1]; /* of models */

static uint64_t sum_of(const float *x) {
    return sl_checksum(x, task.dimension * sizeof *x);
}

static int note(void *context, const sl_record *record, const float *x) {
    sums[record->rank][record->round.round] = sum_of(x);
    return 0;
}

void expected_take(scenario *s, const char *const *set, size_t set_count) {
    sl_error error;
    if (sl_experiment_parse(&experiment, s->text, "seed", "/", set, set_count, &error) != 0)
        world_fail("%s\n%s", error.text, s->text);
    task = scenario_task(s);
}

void expected_open(scenario *s, const char *const *set, size_t set_count) {
    const sl_observer observer = {.record = note};
    sl_error error;
    memset(sums, 0, sizeof sums);
    expected_take(s, set, set_count);
    if (sl_sim_run(experiment, &task, &observer, NULL, NULL, NULL, &error) != 0)
        world_fail("%s\n%s", error.text, s->text);
}

static void expected_close(void) {
    sl_experiment_close(&experiment);
}

uint64_t expected_end(void) {
    const uint64_t hash = world_hash();
    world_close();
    disk_close();
    expected_close();
    return hash;
}

void expected_roster(char out[ROSTER_MAX], uint32_t agents, const char *between) {
    size_t used = 0;
    for (uint32_t i = 0; i < agents && used < ROSTER_MAX; i++)
        used += (size_t)snprintf(out + used, ROSTER_MAX - used, "%s127.0.0.1:%u",
                                 i > 0 ? between : "", 7000 + i);
}

int expected_run(sl_agent **agent, sl_agent_settings settings, uint32_t agents, sl_error *error) {
    char text[ROSTER_MAX];
    sl_roster *roster = NULL;
    settings.experiment = experiment;
    settings.task = task;
    settings.host = "127.0.0.1";
    settings.port = (uint16_t)(7000 + settings.rank);
    expected_roster(text, agents, "\n");
    int result = sl_roster_parse(&roster, text, "roster", error);
    if (result == 0)
        result = sl_agent_open(agent, &settings, error);
    if (result == 0)
        result = sl_agent_run(*agent, roster, error);
    sl_agent *ended = *agent;
    *agent = NULL;
    sl_agent_close(&ended);
    sl_roster_close(&roster);
    return result;
}

/* Room for more than two messages, which a forecast leaves out: no page of it is ever touched. */
static size_t untouched_bytes(uint32_t rank) {
    const size_t chunk = experiment->transport.chunk_bytes,
                 two = 2 * (task.dimension * sizeof(float) / chunk + 1),
                 window = sl_receive_window(experiment, rank, false);
    return window > two ? sl_receive_degree(experiment, rank) * (window - two) * chunk : 0;
}

void expected_memory(const process *of, uint32_t rank, bool saves, bool has_key, size_t more) {
    /* of a checkpoint; a connection's first message; greetings, and for each of at most as many as
     * there are nodes four sealed payloads, which may be a HELLO */
    static const size_t head_bytes = 48 << 10, connection_bytes = 18 << 10,
                        sealed_bytes = (20 << 10) + NODES_MAX * 4 * (16 << 10);
    sl_plan plan;
    sl_error error;
    sl_run_memory forecast;
    if (sl_algorithm_plan(&plan, &experiment->algorithm, experiment->topology, task.dimension,
                          &error) != 0)
        world_fail("%s", error.text);
    sl_experiment_memory(&forecast, experiment, &plan, task.dimension, 0);
    more += untouched_bytes(rank) + (saves ? head_bytes : 0) + (has_key ? sealed_bytes : 0) +
            of->connections_max * connection_bytes;
    if (of->bytes_max > forecast.agent + more)
        world_fail("agent %u held %zu bytes; with %u connections at a time, at most %zu are right",
                   rank, of->bytes_max, of->connections_max, forecast.agent + more);
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

static int find_latest(void *context, const char *name) {
    uint64_t round, *latest = context;
    if (sscanf(name, "round-%" SCNu64, &round) == 1 && round > *latest)
        *latest = round;
    return 0;
}

uint64_t expected_latest(void) {
    uint64_t latest = 0;
    sl_disk_list(CHECKPOINTS, find_latest, &latest);
    return latest;
}
