/* parent.c - see parent.h. */
#include "parent.h"

#include "children.h"
#include "expected.h"

parent run;
static const sl_checkpoints *saved;
static uint32_t node_count;

/* ---- what agents.c needs of the command, beside collector_... ---- */

double now_seconds(void) {
    return world_now();
}

void live_view_round(live_view *v, uint64_t round) {
    (void)v, (void)round;
}

void live_view_tick(live_view *v) {
    (void)v;
}

void live_view_clear(live_view *v) {
    (void)v;
}

void collector_explain(collector *c, const sl_error *cause) {
    (void)c, (void)cause;
}

int collector_finish(collector *c, sl_summary *summary, sl_error *why) {
    (void)c, (void)summary, (void)why;
    run.finished = true;
    return 0;
}

/* ---- the run ---- */

static void *be_run(void *ignored) {
    bool waiting[NODES_MAX] = {false};
    const trial t = {.experiment = experiment, .task = task, .nodes = node_count};
    collector c = {.trial = &t, .waiting = waiting, .checkpoints = saved};
    sl_summary summary;
    stop_requested = 0;
    catch_signals(NULL);
    run.result = agents_run(&c, "/run", true, &summary, &run.error);
    run.ended_s = world_now();
    world_note("ended", (uint64_t)(int64_t)run.result, 0, 0);
    if (children_left() > 0)
        world_fail("the run ends, and %u agents or pipes are left", children_left());
    return ignored;
}

void parent_begin(const sl_checkpoints *checkpoints, uint32_t nodes) {
    run = (parent){0};
    saved = checkpoints;
    node_count = nodes;
    run.process = process_start(NODES_MAX, be_run, NULL);
}

bool parent_is_over(void) {
    return !run.process->alive;
}
