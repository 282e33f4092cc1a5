/* simulation.c - a run in this process; see simulation.h. */
#include "run/simulation.h"

#include <stdio.h>

/* Of the signal handler, which the simulator reads. */
static volatile int save_requested;

/* SIGTERM and SIGUSR2 stop it: a simulation goes on from its newest checkpoint. */
static bool note_saving(save_wish wish) {
    save_requested += wish == SAVE_GO_ON;
    return wish == SAVE_GO_ON;
}

typedef struct simulation {
    collector *collector;
    sl_event_log *log;
    sl_trace *trace; /* NULL: none is asked for */
    sl_error error;  /* of the observer: sl_sim_run only passes its code on */
} simulation;

static int on_record(void *context, const sl_record *record, const float *x) {
    simulation *s = context;
    return collector_record(s->collector, record, x, &s->error);
}

static int on_parameters(void *context, uint64_t round, uint32_t rank, const float *x,
                         double weight) {
    simulation *s = context;
    return sl_folder_parameters(s->collector->folder, round, rank, x,
                                s->collector->trial->task.dimension, weight, &s->error);
}

/* A round begins when the first node computes. */
static void on_round(void *context, uint32_t rank, uint64_t round) {
    simulation *s = context;
    if (rank != s->collector->members[0])
        return;
    live_view_round(s->collector->view, round - 1);
    live_view_tick(s->collector->view);
}

/* On the thread that writes checkpoints, too. */
static void on_notice(void *context, const char *text) {
    (void)context;
    complain("%s", text);
}

static void on_members(void *context, uint64_t round, const uint32_t *ranks, uint32_t count) {
    const simulation *s = context;
    sl_error error;
    if (collector_members(s->collector, round, ranks, count, &error) != 0)
        complain("warning: %s", error.text);
}

static void on_span(void *context, const sl_span *span) {
    const simulation *s = context;
    sl_trace_add(s->trace, span);
}

/* Of nodes that share rounds it follows from their messages, once all are known. */
static int open_trace(simulation *s, const char *path, sl_error *error) {
    char file[SL_PATH_MAX + 16];
    snprintf(file, sizeof file, "%.*s/trace.json", SL_PATH_MAX, path);
    return s->collector->trial->experiment->record.trace ? sl_trace_open(&s->trace, file, 0, error)
                                                         : 0;
}

static int close_trace(simulation *s, int result, sl_error *error) {
    sl_error why;
    if (result == 0 && s->trace != NULL && s->collector->timeline != NULL)
        result = collector_spans(s->collector, on_span, s, error);
    const int closed = sl_trace_close(&s->trace, &why);
    if (result == 0 && closed != 0)
        *error = why;
    return result != 0 ? result : closed;
}

static void on_log(void *context, const sl_log_entry *entry) {
    const simulation *s = context;
    sl_event_log_write(s->log, entry);
}

int simulation_run(collector *c, const char *path, bool predicts, sl_summary *summary,
                   sl_error *error) {
    simulation s = {.collector = c};
    const trial *t = c->trial;
    int result = sl_event_log_open(&s.log, path, -1, on_notice, NULL, error);
    if (result == 0)
        result = open_trace(&s, path, error);
    if (result != 0) {
        sl_event_log_close(&s.log);
        return result;
    }
    sl_observer observer = {.context = &s,
                            .record = on_record,
                            .parameters = on_parameters,
                            .round = on_round,
                            .notice = on_notice,
                            .log = on_log,
                            .members = on_members,
                            .span = s.trace != NULL ? on_span : NULL};
    sl_checkpoints checkpoints = *c->checkpoints;
    checkpoints.asked = &save_requested;
    catch_saving(note_saving);
    /* else there are no messages of the first rounds */
    const bool whole = !checkpoints.resume && checkpoints.history == NULL;
    result = sl_sim_run(t->experiment, &t->task, &observer, &checkpoints,
                        (predicts || s.trace != NULL) && whole ? &c->timeline : NULL,
                        &stop_requested, error);
    sl_event_log_close(&s.log);
    if (result != 0 && s.error.code != 0)
        *error = s.error;
    result = close_trace(&s, result, error);
    if (result == 0)
        result = collector_finish(c, summary, error);
    live_view_clear(c->view);
    return result;
}
