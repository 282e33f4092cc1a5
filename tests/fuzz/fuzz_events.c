/* fuzz_events.c - logs of events, and what a replay makes of them. The input is the logs of two
 * agents and of a simulation, with a byte 0xff between. */
#include <stdint.h>

#include "folder.h"
#include "run/replay_plan.h"

enum { NODES = 2, RANKS = NODES + 1, LOGS = NODES + 1, RUN_ID = 7 };
static const char *const names[LOGS] = {"events-0.jsonl", "events-1.jsonl", "events.jsonl"};

static void tell(const char *text) {
    assert(text[0] != '\0');
}

/* Rounds rise from stretch to stretch, and nothing follows the last. */
static void check_plan(const replay_plan *plan) {
    uint64_t from = 0;
    assert(plan->count > 0 && plan->starts > 0);
    for (size_t i = 0; i < plan->count; i++) {
        const replay_stretch *s = &plan->stretches[i];
        assert(i == 0 ? s->from == 0 : s->from > from);
        assert(s->to >= s->from && s->to <= s->rounds && s->unlike < NODES);
        assert(i + 1 == plan->count || s->to == plan->stretches[i + 1].from);
        assert(memchr(s->kernels, '\0', sizeof s->kernels) != NULL);
        assert(memchr(s->blas, '\0', sizeof s->blas) != NULL);
        assert(memchr(s->settings, '\0', sizeof s->settings) != NULL);
        from = s->from;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    replay_plan plan;
    sl_error error = {0};
    for (int i = 0; i < LOGS && size > 0; i++) {
        const uint8_t *end = memchr(data, 0xff, size);
        const size_t bytes = end != NULL ? (size_t)(end - data) : size;
        if (bytes > 0)
            folder_write(names[i], data, bytes);
        data += bytes + (end != NULL);
        size -= bytes + (end != NULL);
    }
    if (replay_plan_open(&plan, folder_path(), NODES, RANKS, RUN_ID, tell, &error) != 0) {
        assert(error.text[0] != '\0');
    } else {
        check_plan(&plan);
        replay_plan_close(&plan);
    }
    folder_clear();
    return 0;
}
