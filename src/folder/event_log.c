/* event_log.c - the log of events: its files; see starling/event_log.h. */
#include "starling/event_log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "folder/act_log.h"
#include "folder/event_text.h"
#include "folder/files.h"
#include "starling/kernels.h"
#include "starling/learner.h"
#include "starling/text.h"
#include "starling/version.h"

static const double microsecond_s = 1e-6;

struct sl_event_log {
    char path[SL_EVENT_LOG_PATH_MAX], simulated[SL_EVENT_LOG_PATH_MAX]; /* its own, the simulator's
                                                                         */
    pthread_mutex_t mutex; /* of the loop, and of the thread that writes checkpoints */
    sl_files files;
    sl_lines lines;
    sl_act_log acts;
    bool told;
    void (*notice)(void *context, const char *text);
    void *context;
};

void sl_event_log_path(char out[SL_EVENT_LOG_PATH_MAX], const char *folder, int64_t rank) {
    if (rank < 0)
        snprintf(out, SL_EVENT_LOG_PATH_MAX, "%s/events.jsonl", folder);
    else
        snprintf(out, SL_EVENT_LOG_PATH_MAX, "%s/events-%" PRId64 ".jsonl", folder, rank);
}

/* ---- writing ---- */

int sl_event_log_open(sl_event_log **out, const char *folder, int64_t rank,
                      void (*notice)(void *context, const char *text), void *context,
                      sl_error *error) {
    sl_event_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for the log of events", folder);
    sl_event_log_path(log->path, folder, rank);
    sl_event_log_path(log->simulated, folder, -1);
    sl_act_log_path(log->acts.path, folder, rank < 0 ? 0 : (uint32_t)rank);
    pthread_mutex_init(&log->mutex, NULL);
    sl_files_open(&log->files);
    log->notice = notice;
    log->context = context;
    *out = log;
    return 0;
}

static int open_to_read(FILE **out, const char *path, sl_error *error) {
    const int fd = sl_file_open(path, error);
    if (fd < 0)
        return fd;
    *out = fdopen(fd, "r");
    if (*out != NULL)
        return 0;
    close(fd);
    return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
}

/* Agents and simulations of a run have logs of their own. This tells which came first: a clock may
 * have been set meanwhile. */
static uint64_t count_starts(const char *path) {
    static const char start[] = "{\"event\":\"start\",";
    FILE *file = NULL;
    open_to_read(&file, path, NULL); /* whoever reads it says what is wrong with it */
    char *text = NULL;
    size_t room = 0;
    uint64_t count = 0;
    for (ssize_t bytes; file != NULL && (bytes = getline(&text, &room, file)) > 0;)
        count += text[bytes - 1] == '\n' && strncmp(text, start, sizeof start - 1) == 0;
    free(text);
    if (file != NULL)
        fclose(file);
    return count;
}

/* What only this process knows about itself. */
static sl_log_entry with_process(const sl_event_log *log, const sl_log_entry *entry) {
    sl_log_entry whole = *entry;
    if (entry->kind == SL_LOG_START)
        whole.simulations = count_starts(log->simulated);
    snprintf(whole.version, sizeof whole.version, "%s", sl_version());
    snprintf(whole.kernels, sizeof whole.kernels, "%s", sl_kernels_name());
    snprintf(whole.blas, sizeof whole.blas, "%s", sl_learner_blas());
    return whole;
}

static int append(sl_event_log *log, const sl_log_entry *entry, sl_error *error) {
    const sl_log_entry whole = with_process(log, entry);
    char *text = sl_event_text_write(&whole, microsecond_s * (double)sl_clock_epoch_us());
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", log->path);
    const size_t bytes = strlen(text);
    int result =
        log->lines.fd > 0 ? 0 : sl_lines_continue(&log->files, &log->lines, log->path, error);
    text[bytes] = '\n'; /* in place of its end */
    if (result == 0)
        result = sl_lines_append(&log->files, &log->lines, log->path, text, bytes + 1, error);
    free(text);
    return result;
}

/* A line more: entry, or act. */
static void write_one(sl_event_log *log, const sl_log_entry *entry, const sl_act *act) {
    char text[SL_ERROR_TEXT_MAX + 128];
    sl_error error;
    pthread_mutex_lock(&log->mutex);
    int result = entry != NULL ? append(log, entry, &error)
                               : sl_act_log_add(&log->acts, &log->files, act, &error);
    if (result == 0 && entry != NULL && entry->kind == SL_LOG_RESUME && entry->exchange > 0)
        result = sl_act_log_cut(&log->acts, entry->exchange, &error);
    const bool tells = result != 0 && !log->told;
    log->told = log->told || tells;
    pthread_mutex_unlock(&log->mutex);
    if (!tells)
        return;
    snprintf(text, sizeof text, "warning: the log of events lacks a line: %s; training goes on",
             error.text);
    log->notice(log->context, text);
}

void sl_event_log_write(sl_event_log *log, const sl_log_entry *entry) {
    write_one(log, entry, NULL);
}

void sl_event_log_act(sl_event_log *log, const sl_act *act) {
    write_one(log, NULL, act);
}

void sl_event_log_close(sl_event_log **out) {
    sl_event_log *log = *out;
    if (log == NULL)
        return;
    *out = NULL;
    sl_lines_close(&log->files, &log->acts.lines);
    sl_lines_close(&log->files, &log->lines);
    sl_files_close(&log->files);
    pthread_mutex_destroy(&log->mutex);
    free(log);
}

/* ---- reading ---- */

typedef int line_reader(void *context, uint64_t line, const sl_log_entry *entry, sl_error *error);

static int read_line(const char *path, const char *text, size_t bytes, uint64_t line,
                     line_reader *each, void *context, sl_error *error) {
    sl_log_entry entry;
    const int read = sl_event_text_read(&entry, text, bytes, error);
    int result = read;
    if (result == 0)
        result = each(context, line, &entry, error);
    if (read == 0)
        sl_event_text_free(&entry);
    return result != 0 ? sl_fail_prefix(error, result, "%s:%" PRIu64, path, line) : 0;
}

static int read_lines(FILE *file, const char *path, line_reader *each, void *context, bool *torn,
                      sl_error *error) {
    char *text = NULL;
    size_t room = 0;
    uint64_t line = 0;
    int result = 0;
    for (ssize_t bytes; result == 0 && (bytes = getline(&text, &room, file)) > 0;) {
        *torn = text[bytes - 1] != '\n';
        if (!*torn)
            result = read_line(path, text, (size_t)bytes - 1, ++line, each, context, error);
    }
    if (result == 0 && ferror(file))
        result = sl_fail(error, SL_EFILE, "%s: cannot be read: %s", path, strerror(errno));
    free(text);
    return result;
}

int sl_event_log_read(const char *path, line_reader *each, void *context, bool *torn,
                      sl_error *error) {
    bool is_torn = false;
    FILE *file = NULL;
    const int opened = open_to_read(&file, path, error);
    if (opened != 0)
        return opened;
    int result = sl_lines_are_busy(fileno(file))
                     ? sl_fail(error, SL_EFILE,
                               "%s: a process still writes to it; wait until the "
                               "run has ended",
                               path)
                     : read_lines(file, path, each, context, &is_torn, error);
    fclose(file);
    if (result == 0 && torn != NULL)
        *torn = is_torn;
    return result;
}
