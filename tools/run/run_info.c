/* run_info.c - see run_info.h. */
#include "run/run_info.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { COMMAND_BYTES_MAX = 1 << 16, HOST_BYTES = 256, INFO_BYTES_MAX = 1 << 20 };

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
}

static int write_info(const run_info *info, time_t ended, const char *outcome, sl_error *error) {
    char host[HOST_BYTES] = "", beside[sizeof info->path + 8], id[24];
    snprintf(id, sizeof id, "%" PRIu64, info->run_id);
    gethostname(host, sizeof host - 1);
    json_t *root =
        json_pack("{ss ss si ss so ss so so so ss}", "driver", info->driver, "version",
                  sl_version(), "protocol", (int)SL_PROTOCOL_VERSION, "run_id", id, "resumed_from",
                  info->resumed > 0 ? json_integer((json_int_t)info->resumed) : json_null(), "host",
                  host, "command", command_line(), "started", time_text(info->started), "ended",
                  ended > 0 ? time_text(ended) : json_null(), "outcome", outcome);
    if (root != NULL && ended > 0)
        add_cost(root, info);
    snprintf(beside, sizeof beside, "%s.new", info->path);
    bool good = root != NULL && json_dump_file(root, beside, JSON_INDENT(2)) == 0 &&
                rename(beside, info->path) == 0;
    int why = errno;
    json_decref(root);
    if (good)
        return 0;
    unlink(beside);
    return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", info->path, strerror(why));
}

static void choose_path(run_info *info, const char *folder, int64_t rank) {
    if (rank < 0)
        snprintf(info->path, sizeof info->path, "%s/run.json", folder);
    else
        snprintf(info->path, sizeof info->path, "%s/run-%lld.json", folder, (long long)rank);
}

bool run_info_is_there(const char *folder, int64_t rank) {
    run_info info;
    choose_path(&info, folder, rank);
    return access(info.path, F_OK) == 0;
}

int run_info_read_id(uint64_t *out, uint64_t *resumed, const char *folder, int64_t rank,
                     sl_error *error) {
    run_info info;
    char *end = NULL;
    choose_path(&info, folder, rank);
    if (access(info.path, F_OK) != 0)
        return sl_fail(error, SL_EFILE,
                       "%s: %s; it must be there, for it says which run the checkpoints are of",
                       info.path, strerror(errno));
    char *json;
    const int result = sl_text_read(&json, info.path, INFO_BYTES_MAX, error);
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
                       info.path);
    *out = id;
    return 0;
}

int run_info_begin(run_info *out, const char *folder, const char *driver, int64_t rank,
                   const sl_checkpoints *checkpoints, sl_error *error) {
    run_info info = {.driver = driver,
                     .started = time(NULL),
                     .run_id = checkpoints->run_id,
                     .resumed = checkpoints->resume ? checkpoints->round : 0};
    choose_path(&info, folder, rank);
    int result = write_info(&info, 0, "running", error);
    if (result == 0)
        *out = info;
    return result;
}

int run_info_end(run_info *info, const char *outcome, sl_error *error) {
    if (info->path[0] == '\0')
        return 0;
    int result = write_info(info, time(NULL), outcome, error);
    info->path[0] = '\0';
    return result;
}
