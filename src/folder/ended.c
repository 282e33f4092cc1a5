/* ended.c - what is said of a whole run at its end, where no command wrote it at the beginning; see
 * sl_folder_end in starling/folder.h. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "folder/files.h"
#include "starling/folder.h"
#include "starling/version.h"

enum { HOST_BYTES = 256, TIME_BYTES = 32 };

/* Takes the text; NULL: there was no memory. */
static int put(const char *folder, const char *name, char *text, sl_error *error) {
    char path[SL_PATH_MAX + 32];
    sl_files files;
    sl_whole whole;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    sl_files_open(&files);
    int result = sl_whole_open(&whole, &files, path, error);
    if (result == 0)
        result = sl_whole_add(&whole, text, strlen(text), error);
    if (result == 0)
        result = sl_whole_add(&whole, "\n", 1, error);
    if (result == 0)
        result = sl_whole_commit(&whole, SL_SYNC_NAME, error);
    sl_files_close(&files);
    free(text);
    return result;
}

static const char *utc(char out[TIME_BYTES], double seconds) {
    const time_t when = (time_t)seconds;
    struct tm parts;
    gmtime_r(&when, &parts);
    strftime(out, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return out;
}

static char *run_text(const sl_run_end *end) {
    char host[HOST_BYTES] = "", began[TIME_BYTES], ended[TIME_BYTES];
    gethostname(host, sizeof host - 1);
    json_t *root = json_pack("{ss ss ss? sI sI ss ss ss so ss ss s[]}", "outcome",
                             end->why == NULL ? "done" : "failed", "ended", utc(ended, end->ended),
                             "why", end->why, "bytes_sent", (json_int_t)end->sent, "bytes_received",
                             (json_int_t)end->received, "driver", end->driver, "version",
                             sl_version(), "run_id", "0", "resumed_from", json_null(), "host", host,
                             "started", utc(began, end->began), "command");
    char *text = root != NULL ? sl_json_text(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return text;
}

int sl_folder_end(const char *path, const sl_experiment *experiment, const sl_run_end *end,
                  sl_error *error) {
    int result = put(path, "config.json", sl_experiment_json(experiment), error);
    return result == 0 ? put(path, "run.json", run_text(end), error) : result;
}
