/* agents.c - a run with one agent process per node on this machine; see agents.h. */
#include "run/agents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/log.h"
#include "run/fleet.h"

enum { MATTER_MAX = 96, WARNINGS_KEPT = 16 };
static const double again_s = 10;

typedef struct warning {
    double at;
    char matter[MATTER_MAX];
} warning;

typedef struct live_run {
    collector *collector;
    fleet fleet;
    const trial *trial;
    float *models; /* (nodes, d) recorded last */
    bool quiet;
    double noticed;   /* seconds; when a notice was last shown */
    unsigned unshown; /* notices since */
    warning warnings[WARNINGS_KEPT];
    unsigned warned;
    uint64_t rounds[CHILDREN_MAX]; /* under way, by rank */
    sl_error error;                /* of the collector */
    sl_error cause;                /* the error of the first agent that failed on its own */
} live_run;

static void on_round(void *context, uint32_t rank, uint64_t round) {
    live_run *r = context;
    r->rounds[rank] = round;
    uint64_t least = round;
    for (uint32_t i = 0; i < r->trial->nodes; i++)
        if (r->rounds[i] < least)
            least = r->rounds[i];
    if (least > 0)
        live_view_round(r->collector->view, least - 1);
}

/* on_ready has waited until the collector no longer needs the last model. */
static float *on_model(void *context, uint32_t rank) {
    live_run *r = context;
    return r->models + rank * r->trial->task.dimension;
}

static int on_report(void *context, uint32_t rank, const report *told) {
    live_run *r = context;
    const float *x = on_model(r, rank);
    if (told->type == REPORT_PARAMETERS)
        return sl_folder_parameters(r->collector->folder, told->round, rank, x,
                                    r->trial->task.dimension, told->weight, &r->error);
    sl_record record = told->record;
    record.rank = rank;
    return collector_record(r->collector, &record, x, &r->error);
}

/* Of the round that others have recorded: a member has ended before it. */
static bool lacks_record(const live_run *r) {
    const collector *c = r->collector;
    bool lacks = false;
    for (uint32_t k = 0; k < c->member_count && c->waiting_count > 0; k++)
        lacks = lacks || (r->fleet.members[c->members[k]].ended && !c->waiting[c->members[k]]);
    return lacks;
}

static bool on_ready(void *context, uint32_t rank) {
    live_run *r = context;
    /* That round will never be complete. Agents must be able to send their reports, or they do not
     * end. */
    if (r->fleet.failed || r->fleet.interrupted || (r->fleet.saved > 0 && lacks_record(r)))
        r->collector->incomplete = true;
    return r->collector->incomplete || !r->collector->waiting[rank];
}

static void on_failed(void *context, uint32_t rank, const sl_error *error) {
    live_run *r = context;
    if (r->cause.code == 0 || (r->cause.code == SL_EPEER && error->code != SL_EPEER)) {
        r->cause = *error;
        sl_fail_prefix(&r->cause, error->code, "agent %u", rank);
    }
    if (r->quiet)
        return;
    live_view_clear(r->collector->view);
    log_say(&(log_about){LOG_ERROR, LOG_FAILED, rank, NOBODY, 0}, "%s", error->text);
}

static int on_lost(void *context, uint32_t rank, const sl_error *error) {
    live_run *r = context;
    sl_loss loss = {.rank = rank, .round = r->rounds[rank], .left = error->code == SL_ELEFT};
    snprintf(loss.why, sizeof loss.why, "%s", error->text);
    live_view_clear(r->collector->view);
    if (!r->quiet && loss.left)
        log_say(&(log_about){LOG_NOTICE, LOG_LEFT, NOBODY, rank, loss.round},
                "agent %u has left, the others go on", rank);
    else if (!r->quiet && r->rounds[rank] == UINT64_MAX)
        log_say(&(log_about){LOG_WARNING, LOG_RESTART, NOBODY, rank, 0},
                "agent %u was started again, and has not joined the others: %s", rank, error->text);
    else if (!r->quiet)
        log_say(&(log_about){LOG_WARNING, SL_LOG_LOST, NOBODY, rank, loss.round},
                "agent %u is lost, the others go on: %s", rank, error->text);
    r->rounds[rank] = UINT64_MAX; /* it holds the view up no more */
    return collector_lose(r->collector, &loss, &r->error);
}

static void on_returned(void *context, uint32_t rank, uint64_t round) {
    live_run *r = context;
    r->rounds[rank] = round;
    collector_return(r->collector, rank, round);
    live_view_clear(r->collector->view);
    if (!r->quiet)
        log_say(&(log_about){LOG_NOTICE, LOG_RETURN, NOBODY, rank, round},
                "agent %u has returned in round %llu", rank, (unsigned long long)round);
}

static void on_restarted(void *context, uint32_t rank, const sl_error *why_not) {
    live_run *r = context;
    if (why_not == NULL)
        collector_restart(r->collector, rank);
    live_view_clear(r->collector->view);
    if (!r->quiet && why_not != NULL)
        log_say(&(log_about){LOG_WARNING, LOG_RESTART, NOBODY, rank, 0},
                "agent %u is not started again: %s", rank, why_not->text);
    else if (!r->quiet)
        log_say(&(log_about){LOG_NOTICE, LOG_RESTART, NOBODY, rank, 0},
                "agent %u is started again, to join the others", rank);
}

static void tell_unshown(live_run *r) {
    if (r->unshown == 0)
        return;
    live_view_clear(r->collector->view);
    log_say(&(log_about){LOG_INFO, LOG_SAYS, NOBODY, NOBODY, 0}, "and %u more of what agents say",
            r->unshown);
    r->unshown = 0;
}

/* "3 of 4 nodes go on, as a family of so many": what several agents say of the same. */
static void take_matter(char out[MATTER_MAX], const char *text) {
    const char *after = strncmp(text, "round ", 6) == 0 ? strstr(text, ": ") : NULL;
    snprintf(out, MATTER_MAX, "%s", after != NULL ? after + 2 : text);
    out[strcspn(out, ":;")] = '\0';
}

/* Shows each once, though several agents say it. */
static void warn(live_run *r, uint32_t rank, const char *text) {
    const double now = now_seconds();
    char matter[MATTER_MAX];
    take_matter(matter, text + WARNING_LENGTH);
    for (unsigned i = 0; i < WARNINGS_KEPT; i++)
        if (strcmp(r->warnings[i].matter, matter) == 0 && now - r->warnings[i].at < again_s)
            return;
    warning *place = &r->warnings[r->warned++ % WARNINGS_KEPT];
    place->at = now;
    memcpy(place->matter, matter, sizeof matter);
    live_view_clear(r->collector->view);
    log_notice(rank, text);
}

/* Agents that wait for each other all say so. Shows one a second, and the number of the others. */
static void on_notice(void *context, uint32_t rank, const char *text) {
    live_run *r = context;
    if (r->quiet)
        return;
    if (is_warning(text)) {
        warn(r, rank, text);
        return;
    }
    if (now_seconds() - r->noticed < 1) {
        r->unshown++;
        return;
    }
    tell_unshown(r);
    r->noticed = now_seconds();
    live_view_clear(r->collector->view);
    log_notice(rank, text);
}

static void on_tick(void *context) {
    live_run *r = context;
    if (now_seconds() - r->noticed >= 1)
        tell_unshown(r);
    live_view_tick(r->collector->view);
}

static int run_fleet(live_run *r, const char *path, sl_summary *summary, sl_error *error) {
    const fleet_handlers handlers = {r,         on_round, on_model,    on_report,    on_ready,
                                     on_failed, on_lost,  on_returned, on_restarted, on_notice,
                                     on_tick};
    int result = fleet_open(&r->fleet, r->trial, path, r->collector->checkpoints, &handlers, error);
    if (result != 0)
        return result;
    result = fleet_run(&r->fleet, error);
    tell_unshown(r);
    if (result == SL_EPEER && r->error.code == 0 && r->cause.code != 0)
        collector_explain(r->collector, &r->cause);
    if (result != 0 && r->error.code != 0)
        *error = r->error;
    else if (result == SL_EPEER && r->quiet && r->cause.code != 0)
        *error = r->cause;
    live_view_clear(r->collector->view);
    fleet_close(&r->fleet);
    return result == 0 ? collector_finish(r->collector, summary, error) : error->code;
}

int agents_run(collector *c, const char *path, bool quiet, sl_summary *summary, sl_error *error) {
    live_run *r = calloc(1, sizeof *r);
    if (r == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    r->collector = c;
    r->trial = c->trial;
    r->quiet = quiet;
    r->models = calloc((size_t)c->trial->nodes * c->trial->task.dimension, sizeof *r->models);
    int result = r->models != NULL
                     ? 0
                     : sl_fail(error, SL_ENOMEM,
                               "out of memory for the models of %u nodes with %zu parameters each",
                               c->trial->nodes, c->trial->task.dimension);
    if (result == 0)
        result = run_fleet(r, path, summary, error);
    free(r->models);
    free(r);
    return result;
}
