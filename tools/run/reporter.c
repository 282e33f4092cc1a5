/* reporter.c - see reporter.h. */
#include "run/reporter.h"

#include <stdlib.h>
#include <time.h>

#include "cli/log.h"

static const double round_report_s = 0.1;
enum { failure_report_ms = 1000 };

/* On the worker's thread. */
static int tell(reporter *r, const report *what, const float *x) {
    pthread_mutex_lock(&r->telling);
    int result = report_send(r->fd, what, x, r->dimension);
    pthread_mutex_unlock(&r->telling);
    return result;
}

static int on_record(void *context, const sl_record *record, const float *x) {
    const report what = {.type = REPORT_RECORD, .round = record->round.round, .record = *record};
    return tell(context, &what, x);
}

static int on_parameters(void *context, uint64_t round, uint32_t rank, const float *x,
                         double weight) {
    const report what = {.type = REPORT_PARAMETERS, .round = round, .weight = weight};
    (void)rank;
    return tell(context, &what, x);
}

static void on_round(void *context, uint32_t rank, uint64_t round) {
    reporter *r = context;
    const report what = {.type = REPORT_ROUND, .round = round};
    const double now = now_seconds();
    (void)rank;
    if (now - r->told_round < round_report_s)
        return;
    r->told_round = now;
    tell(r, &what, NULL); /* the next record notices if nobody listens */
}

static void on_aside(void *context, uint32_t rank, uint64_t round, const char *why) {
    report what = {.type = REPORT_ASIDE, .round = round};
    sl_fail_node(&what.error, SL_EPEER, rank, round, "%s", why);
    tell(context, &what, NULL); /* likewise */
}

static void on_returned(void *context, uint32_t rank, uint64_t round) {
    const report what = {.type = REPORT_RETURNED, .round = round};
    (void)rank;
    tell(context, &what, NULL); /* likewise */
}

/* On the loop's thread, which never waits. */
static void on_notice(void *context, const char *text) {
    reporter *r = context;
    report what = {.type = REPORT_NOTICE};
    sl_fail(&what.error, 0, "%s", text);
    if (pthread_mutex_trylock(&r->telling) != 0)
        return;
    report_try(r->fd, &what, 0);
    pthread_mutex_unlock(&r->telling);
}

/* Written here: a report might wait. */
static void on_log(void *context, const sl_log_entry *entry) {
    const reporter *r = context;
    sl_event_log_write(r->log, entry);
    log_entry(entry);
}

static void on_act(void *context, const sl_act *act) {
    const reporter *r = context;
    sl_event_log_act(r->log, act);
}

static void on_span(void *context, const sl_span *span) {
    const reporter *r = context;
    if (r->trace != NULL)
        sl_trace_add(r->trace, span);
}

sl_observer reporter_observer(reporter *r) {
    return (sl_observer){.context = r,
                         .record = on_record,
                         .parameters = on_parameters,
                         .round = on_round,
                         .aside = on_aside,
                         .returned = on_returned,
                         .notice = on_notice,
                         .log = on_log,
                         .act = on_act,
                         .span = on_span};
}

int reporter_join(reporter *r, uint16_t port, sl_roster **out, sl_error *error) {
    const report what = {.type = REPORT_LISTENING, .port = port};
    char *text = NULL;
    int result = report_send(r->fd, &what, NULL, 0);
    if (result != 0)
        return sl_fail(error, result, "nobody listens to the reports");
    result = report_wait_roster(r->fd, &text, error);
    if (result == 0)
        result = sl_roster_parse(out, text, "roster", error);
    free(text);
    return result;
}

/* The run may not read: it waits for a record that an agent cannot make any more. Then this agent's
 * exit code says to it that nobody will, and the cause goes to standard error. */
static void tell_failure(reporter *r, const report *what) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += failure_report_ms / 1000;
    bool told = false;
    if (pthread_mutex_clocklock(&r->telling, CLOCK_MONOTONIC, &until) == 0) {
        told = report_try(r->fd, what, failure_report_ms);
        pthread_mutex_unlock(&r->telling);
    }
    if (!told)
        complain("%s", what->error.text);
}

void reporter_end(reporter *r, int result, const sl_error *error) {
    const report what = {.type = result == 0 ? REPORT_FINISHED : REPORT_FAILED, .error = *error};
    if (result == 0)
        tell(r, &what, NULL);
    else
        tell_failure(r, &what);
}
