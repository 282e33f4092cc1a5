/* run_info.c - see run_info.h. */
#include "run/run_info.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "run/last_words.h"

enum { COMMAND_BYTES_MAX = 1 << 16, HOST_BYTES = 256, INFO_BYTES_MAX = 1 << 20, WHY_BYTES = 800 };

/* The command line of this process. */
static json_t *command_line(void) {
    static char text[COMMAND_BYTES_MAX];
    json_t *words = json_array();
    FILE *file = fopen("/proc/self/cmdline", "rb");
    size_t bytes = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[bytes] = '\0';
    for (size_t at = 0; at < bytes; at += strlen(text + at) + 1) {
        json_t *word = json_string(text + at);
        json_array_append_new(words, word != NULL ? word : json_string("(not UTF-8)"));
    }
    return words;
}

static json_t *time_text(time_t when) {
    char text[32];
    struct tm utc;
    gmtime_r(&when, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_string(text);
}

/* What this process and those that it has started have cost. */
static void add_cost(json_t *root, const run_info *info) {
    struct rusage own, others;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &others);
    const struct timeval times[] = {own.ru_utime, own.ru_stime, others.ru_utime, others.ru_stime};
    double seconds = 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        seconds += (double)times[i].tv_sec + 1e-6 * (double)times[i].tv_usec;
    const long kilobytes = own.ru_maxrss > others.ru_maxrss ? own.ru_maxrss : others.ru_maxrss;
    json_object_set_new(root, "processor_s", json_real(seconds));
    json_object_set_new(root, "peak_memory_bytes", json_integer((json_int_t)kilobytes * 1024));
    json_object_set_new(root, "bytes_sent", json_integer((json_int_t)info->sent));
    json_object_set_new(root, "bytes_received", json_integer((json_int_t)info->received));
    if (info->diverged_in > 0)
        json_object_set_new(root, "diverged_in", json_integer((json_int_t)info->diverged_in));
}

/* ended 0: it goes on. */
static json_t *head_of(const char *outcome, const char *why, time_t ended) {
    char shown[WHY_BYTES] = "";
    if (why != NULL)
        sl_text_show(shown, sizeof shown, why, strlen(why));
    return json_pack("{ss so so}", "outcome", outcome, "ended",
                     ended > 0 ? time_text(ended) : json_null(), "why",
                     why != NULL ? json_string(shown) : json_null());
}

/* Without its last brace, and with spaces behind it. Takes `root`. */
static bool put_head(char head[RUN_HEAD_BYTES], json_t *root) {
    char *text = root != NULL ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    const size_t bytes = text != NULL ? strlen(text) - strlen("\n}") : RUN_HEAD_BYTES;
    const bool fits = bytes + strlen(",\n") <= RUN_HEAD_BYTES;
    if (fits) {
        memset(head, ' ', RUN_HEAD_BYTES);
        memcpy(head, text, bytes);
        head[bytes] = ',';
        head[RUN_HEAD_BYTES - 1] = '\n';
    }
    free(text);
    return fits;
}

static bool compose_crash(char head[RUN_HEAD_BYTES], const char *why) {
    return put_head(head, head_of(OUTCOME_CRASHED, why, time(NULL)));
}

/* What stays as it is. */
static char *tail_text(const run_info *info) {
    char host[HOST_BYTES] = "", id[24];
    snprintf(id, sizeof id, "%" PRIu64, info->run_id);
    gethostname(host, sizeof host - 1);
    json_t *root =
        json_pack("{ss ss si ss so ss so so}", "driver", info->driver, "version", sl_version(),
                  "protocol", (int)SL_PROTOCOL_VERSION, "run_id", id, "resumed_from",
                  info->resumed > 0 ? json_integer((json_int_t)info->resumed) : json_null(), "host",
                  host, "started", time_text(info->started), "command", command_line());
    char *text = root != NULL ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return text;
}

static bool write_all(int fd, const char *bytes, size_t count, off_t at) {
    for (size_t done = 0; done < count;) {
        const ssize_t took = pwrite(fd, bytes + done, count - done, at + (off_t)done);
        if (took <= 0 && errno != EINTR)
            return false;
        done += took > 0 ? (size_t)took : 0;
    }
    return true;
}

/* Not every file system can. */
static bool is_synced(int fd) {
    return fsync(fd) == 0 || errno == EINVAL;
}

static int fail_to_write(const run_info *info, sl_error *error) {
    return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", info->path, strerror(errno));
}

/* The lock comes before the name: no reader finds the file without. */
static int create(run_info *info, const char *head, const char *tail, sl_error *error) {
    char beside[sizeof info->path + 8];
    snprintf(beside, sizeof beside, "%s.new", info->path);
    info->fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (info->fd >= 0)
        flock(info->fd, LOCK_EX | LOCK_NB);
    if (info->fd >= 0 && write_all(info->fd, head, RUN_HEAD_BYTES, 0) &&
        write_all(info->fd, tail, strlen(tail), RUN_HEAD_BYTES) && is_synced(info->fd) &&
        rename(beside, info->path) == 0)
        return 0;
    const int result = fail_to_write(info, error);
    unlink(beside);
    if (info->fd >= 0)
        close(info->fd);
    return result;
}

bool run_info_is_there(const char *folder, int64_t rank) {
    char path[OUTCOME_PATH_MAX];
    outcome_path(path, folder, rank);
    return access(path, F_OK) == 0;
}

int run_info_read_id(uint64_t *out, uint64_t *resumed, const char *folder, int64_t rank,
                     sl_error *error) {
    char path[OUTCOME_PATH_MAX], *end = NULL;
    outcome_path(path, folder, rank);
    if (access(path, F_OK) != 0)
        return sl_fail(error, SL_EFILE,
                       "%s: %s; it must be there, for it says which run the checkpoints are of",
                       path, strerror(errno));
    char *json;
    const int result = sl_text_read(&json, path, INFO_BYTES_MAX, error);
    if (result != 0)
        return result;
    json_t *root = json_loads(json, 0, NULL);
    free(json);
    const char *text = json_string_value(json_object_get(root, "run_id"));
    const uint64_t id = text != NULL ? strtoull(text, &end, 10) : 0;
    const bool good = end != NULL && end != text && *end == '\0';
    if (resumed != NULL)
        *resumed = (uint64_t)json_integer_value(json_object_get(root, "resumed_from"));
    json_decref(root);
    if (!good)
        return sl_fail(error, SL_EFILE,
                       "%s: has no run_id; it must be the run.json of a run with checkpoints",
                       path);
    *out = id;
    return 0;
}

int run_info_begin(run_info *out, const char *folder, const char *driver, int64_t rank,
                   const sl_checkpoints *checkpoints, sl_error *error) {
    run_info info = {.driver = driver,
                     .started = time(NULL),
                     .run_id = checkpoints->run_id,
                     .resumed = checkpoints->resume ? checkpoints->round : 0};
    char head[RUN_HEAD_BYTES];
    outcome_path(info.path, folder, rank);
    char *tail = tail_text(&info);
    const int result = tail != NULL && put_head(head, head_of(OUTCOME_RUNNING, NULL, 0))
                           ? create(&info, head, tail + strlen("{\n"), error)
                           : sl_fail(error, SL_ENOMEM, "%s: out of memory", info.path);
    free(tail);
    if (result != 0)
        return result;
    last_words_prepare(info.fd, compose_crash);
    *out = info;
    return 0;
}

int run_info_end(run_info *info, const char *outcome, const char *why, sl_error *error) {
    char head[RUN_HEAD_BYTES];
    if (info->path[0] == '\0')
        return 0;
    json_t *root = head_of(outcome, why, time(NULL));
    if (root != NULL)
        add_cost(root, info);
    if (!put_head(head, root))
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", info->path);
    if (!write_all(info->fd, head, sizeof head, 0) || !is_synced(info->fd))
        return fail_to_write(info, error);
    last_words_forget(info->fd);
    close(info->fd);
    info->path[0] = '\0';
    return 0;
}
