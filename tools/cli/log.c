/* log.c - see log.h. */
#include "cli/log.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/complain.h"
#include "starling/text.h"

enum { TIME_BYTES = 32 };

static const char *const levels[] = {"info", "notice", "warning", "error"};
static const struct {
    const char *name, *meaning;
} events[LOG_EVENTS] = {
#define LOG_ROW(constant, text, words) {text, words},
    SL_LOG_KINDS(LOG_ROW) LOG_OWN_EVENTS(LOG_ROW)
#undef LOG_ROW
};

/* Said before the first line, or between two. */
static struct {
    bool json;
    char run[SL_PATH_MAX];
    int64_t rank;
} now = {.rank = NOBODY};

bool log_is_json(void) {
    return now.json;
}

void log_use_json(bool json) {
    now.json = json;
}

void log_of(const char *run, int64_t rank) {
    sl_text_show(now.run, sizeof now.run, run, strlen(run)); /* JSON is UTF-8 */
    now.rank = rank;
}

/* RFC 3339, in UTC. */
static void name_time(char out[TIME_BYTES]) {
    struct timespec at;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &at);
    gmtime_r(&at.tv_sec, &parts);
    const size_t used = strftime(out, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out + used, TIME_BYTES - used, ".%03ldZ", at.tv_nsec / 1000000);
}

static json_t *number_or_null(int64_t value, int64_t none) {
    return value != none ? json_integer(value) : json_null();
}

/* One write a line: agents of a run have one output. */
static void put(FILE *out, const char *line) {
    fflush(stdout);
    for (size_t left = strlen(line); left > 0;) {
        const ssize_t written = write(fileno(out), line, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        line += written;
        left -= (size_t)written;
    }
}

static void put_json(FILE *out, const log_about *about, const char *message) {
    char when[TIME_BYTES], *line = NULL;
    name_time(when);
    json_t *object = json_pack(
        "{ss ss ss ss? so so so ss}", "time", when, "level", levels[about->level], "event",
        events[about->event].name, "run", now.run[0] != '\0' ? now.run : NULL, "rank",
        number_or_null(about->rank, NOBODY), "round", number_or_null((int64_t)about->round, 0),
        "peer", number_or_null(about->peer, NOBODY), "message", message);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (text != NULL && asprintf(&line, "%s\n", text) > 0)
        put(out, line);
    free(text);
    free(line);
}

static void put_text(FILE *out, const log_about *about, const char *message) {
    char when[TIME_BYTES], who[32] = "", *line = NULL;
    const time_t seconds = time(NULL);
    struct tm parts;
    localtime_r(&seconds, &parts);
    strftime(when, sizeof when, "%H:%M:%S", &parts);
    if (about->rank != NOBODY)
        snprintf(who, sizeof who, " rank %" PRId64, about->rank);
    if (asprintf(&line, "%s %s%s: %s\n", when, levels[about->level], who, message) > 0)
        put(out, line);
    free(line);
}

static void put_line(log_about about, const char *message) {
    FILE *out = about.level == LOG_INFO ? stdout : stderr;
    about.rank = about.rank == MYSELF ? now.rank : about.rank;
    if (now.json)
        put_json(out, &about, message);
    else
        put_text(out, &about, message);
}

void log_say(const log_about *about, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *message = shown_format(format, arguments);
    va_end(arguments);
    if (message != NULL)
        put_line(*about, message);
    free(message);
}

void log_notice(int64_t rank, const char *text) {
    const bool warns = is_warning(text);
    const char *rest = text + (warns ? WARNING_LENGTH : 0);
    log_about about = {LOG_INFO, LOG_SAYS, rank, NOBODY, 0};
    if (warns)
        about = (log_about){LOG_WARNING, LOG_WARNS, rank, NOBODY, 0};
    if (sscanf(rest, "round %" SCNu64 ": ", &about.round) != 1)
        about.round = 0;
    log_say(&about, "%s", rest);
}

static bool names_peer(sl_log_kind kind) {
    return kind == SL_LOG_EDGE || kind == SL_LOG_DOWN || kind == SL_LOG_UP || kind == SL_LOG_LOST ||
           kind == SL_LOG_JOIN;
}

static bool is_trouble(const sl_log_entry *e) {
    return e->kind == SL_LOG_DOWN || e->kind == SL_LOG_LOST ||
           ((e->kind == SL_LOG_CHECKPOINT || e->kind == SL_LOG_END) && e->why[0] != '\0');
}

void log_entry(const sl_log_entry *e) {
    const log_about about = {.level = is_trouble(e) ? LOG_WARNING : LOG_INFO,
                             .event = e->kind,
                             .rank = e->rank != SL_LOG_ALL ? (int64_t)e->rank : NOBODY,
                             .peer = names_peer(e->kind) ? (int64_t)e->peer : NOBODY,
                             .round = e->round};
    if (now.json)
        log_say(&about, "%s", e->why[0] != '\0' ? e->why : events[e->kind].meaning);
}

void log_plain(const char *text, bool fails) {
    log_about about = {LOG_INFO, LOG_BEGIN, MYSELF, NOBODY, 0};
    const bool warns = is_warning(text);
    if (warns)
        about = (log_about){LOG_WARNING, LOG_WARNS, MYSELF, NOBODY, 0};
    else if (fails)
        about = (log_about){LOG_ERROR, LOG_FAILS, MYSELF, NOBODY, 0};
    put_line(about, text + (warns ? WARNING_LENGTH : 0));
}

char *log_events_help(void) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    for (size_t i = 0; out != NULL && i < LOG_EVENTS; i++)
        fprintf(out, "%s  %s\n", events[i].name, events[i].meaning);
    if (out != NULL)
        fclose(out);
    return text;
}
