/* parent.c - see parent.h. */
#include "parent.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "blame.h"
#include "children.h"
#include "cli/log.h"
#include "expected.h"
#include "seeds.h"

parent run;
static const sl_checkpoints *saved;
static uint32_t node_count;

/* ---- what agents.c needs of the command, beside collector_record ---- */

double now_seconds(void) {
    return world_now();
}

void tell_line(const char *format, ...) {
    (void)format;
}

static void judge(const char *format, va_list arguments, size_t used, char *text) {
    vsnprintf(text + used, SL_ERROR_TEXT_MAX - used, format, arguments);
    run.complained = run.complained || blame_is_right(text);
}

/* An agent that could not tell the run. */
void complain(const char *format, ...) {
    char text[SL_ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    judge(format, arguments, 0, text);
    va_end(arguments);
}

void log_say(const log_about *about, const char *format, ...) {
    char text[SL_ERROR_TEXT_MAX] = "";
    va_list arguments;
    va_start(arguments, format);
    if (about->rank != NOBODY)
        snprintf(text, sizeof text, "agent %u: ", (unsigned)about->rank);
    judge(format, arguments, strlen(text), text);
    va_end(arguments);
}

void log_notice(int64_t rank, const char *text) {
    (void)rank;
    run.complained = run.complained || (is_warning(text) && blame_is_right(text));
}

void log_entry(const sl_log_entry *entry) {
    (void)entry;
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

int collector_lose(collector *c, const sl_loss *loss, sl_error *why) {
    (void)c, (void)why;
    world_note("lost", loss->rank, loss->left, 0);
    seeds_count("losses", 1);
    run.losses++;
    return 0;
}

void collector_restart(collector *c, uint32_t rank) {
    (void)c;
    world_note("again", rank, 0, 0);
    run.restarts++;
}

void collector_return(collector *c, uint32_t rank, uint64_t round) {
    (void)c;
    world_note("returns", rank, round, 0);
    seeds_count("times one has returned", 1);
    run.is_back[rank] = true;
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

void parent_judge(bool verbose) {
    if (verbose)
        printf("the run ended with %d at %.3f: %s\n", run.result, run.ended_s - first_s,
               run.result != 0 ? run.error.text : "");
    if (!parent_is_over())
        world_fail("the run goes on at %.3f s", world_now() - first_s);
}
