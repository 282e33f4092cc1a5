/* act_log.c - see act_log.h. Lines hold numbers only: they are printed. */
#include "folder/act_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

enum { NUMBER_BYTES = 21, HEAD_BYTES = 256 };

/* What a line has beside its act and number. */
enum { PEER = 1, PARTS = 2, VERSIONS = 4 };

static const struct {
    const char *name;
    unsigned has;
} kinds[SL_ACT_KINDS] = {[SL_ACT_GRADIENT] = {"gradient", 0},
                         [SL_ACT_AVERAGE] = {"average", PEER | PARTS},
                         [SL_ACT_ANSWER] = {"answer", PEER | PARTS},
                         [SL_ACT_REFUSED] = {"refused", PEER},
                         [SL_ACT_REFUSES] = {"refuses", PEER},
                         [SL_ACT_COMBINE] = {"combine", VERSIONS},
                         [SL_ACT_COMMIT] = {"commit", PEER | PARTS},
                         [SL_ACT_SERVE] = {"serve", PEER | PARTS},
                         [SL_ACT_VIEW] = {"view", 0},
                         [SL_ACT_GATHER] = {"gather", VERSIONS},
                         [SL_ACT_ADD] = {"add", 0},
                         [SL_ACT_GIVES_UP] = {"gives up", 0},
                         [SL_ACT_GIVES] = {"gives", PEER | VERSIONS},
                         [SL_ACT_JOINS] = {"joins", PEER},
                         [SL_ACT_RETURNS] = {"returns", PEER}};

/* What a round that a view has ended leaves. */
static const char over[] = "{\"act\":\"combine\",\"number\":0,";

void sl_act_log_path(char out[SL_EVENT_LOG_PATH_MAX], const char *folder, uint32_t rank) {
    snprintf(out, SL_EVENT_LOG_PATH_MAX, "%s/acts-%u.jsonl", folder, rank);
}

/* ---- writing ---- */

static bool has(sl_act_kind kind, unsigned field) {
    return (kinds[kind].has & field) != 0;
}

static size_t print(char *out, size_t bytes, const sl_act *a) {
    size_t used = (size_t)snprintf(out, bytes, "{\"act\":\"%s\",\"number\":%" PRIu64,
                                   kinds[a->kind].name, a->number);
    if (has(a->kind, PEER))
        used += (size_t)snprintf(out + used, bytes - used, ",\"peer\":%u", a->peer);
    if (has(a->kind, PARTS))
        used +=
            (size_t)snprintf(out + used, bytes - used, ",\"from\":%u,\"to\":%u", a->from, a->to);
    if (has(a->kind, VERSIONS))
        used += (size_t)snprintf(out + used, bytes - used, ",\"versions\":[");
    for (uint32_t i = 0; i < a->version_count; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%" PRIu64, i > 0 ? "," : "",
                                 a->versions[i]);
    return used +
           (size_t)snprintf(out + used, bytes - used, "%s}\n", has(a->kind, VERSIONS) ? "]" : "");
}

int sl_act_log_add(sl_act_log *log, sl_files *files, const sl_act *act, sl_error *error) {
    char text[HEAD_BYTES];
    const size_t most = HEAD_BYTES + (size_t)act->version_count * NUMBER_BYTES;
    char *line = most > sizeof text ? malloc(most) : text;
    int result = log->lines.fd > 0 ? 0 : sl_lines_continue(files, &log->lines, log->path, error);
    if (line == NULL)
        result = sl_fail(error, SL_ENOMEM, "%s: out of memory", log->path);
    if (result == 0)
        result =
            sl_lines_append(files, &log->lines, log->path, line, print(line, most, act), error);
    if (line != text)
        free(line);
    return result;
}

/* Where the view's line begins, or what its node did as it began; the file's end: there is none. */
static off_t find_view(FILE *file, uint64_t view) {
    char *text = NULL;
    size_t room = 0;
    off_t at = 0, before = 0;
    uint64_t number = 0;
    bool is_there = false, was_over = false;
    for (ssize_t bytes; !is_there && (bytes = getline(&text, &room, file)) > 0;) {
        is_there =
            sscanf(text, "{\"act\":\"view\",\"number\":%" SCNu64, &number) == 1 && number == view;
        if (is_there)
            break;
        was_over = strncmp(text, over, strlen(over)) == 0;
        before = at;
        at += bytes;
    }
    free(text);
    return is_there && was_over ? before : at;
}

int sl_act_log_cut(const sl_act_log *log, uint64_t view, sl_error *error) {
    FILE *file = fopen(log->path, "re");
    if (file == NULL)
        return 0;
    const off_t end = find_view(file, view);
    fclose(file);
    return truncate(log->path, end) == 0 ? 0 : sl_files_fail(log->path, error);
}

/* ---- reading ---- */

static int wrong(const char *path, size_t line, const char *what, sl_error *error) {
    return sl_fail(error, SL_EFILE, "%s:%zu: %s", path, line, what);
}

/* False: it is not there, or no such number. */
static bool read_number(uint64_t *out, const json_t *value, uint64_t most) {
    const json_int_t number = json_integer_value(value);
    *out = (uint64_t)number;
    return json_is_integer(value) && number >= 0 && (uint64_t)number <= most;
}

static bool read_versions(sl_act *a, const json_t *list) {
    uint64_t *versions = calloc(json_array_size(list) + 1, sizeof *versions);
    bool right = versions != NULL && json_is_array(list);
    a->versions = versions;
    for (size_t i = 0; right && i < json_array_size(list); i++)
        right = read_number(&versions[i], json_array_get(list, i), INT64_MAX);
    a->version_count = (uint32_t)json_array_size(list);
    return right;
}

static const char *read_act(sl_act *a, const json_t *root) {
    uint64_t peer = 0, from = 0, to = 0;
    const char *name = json_string_value(json_object_get(root, "act"));
    int kind = 0;
    while (kind < SL_ACT_KINDS && (name == NULL || strcmp(name, kinds[kind].name) != 0))
        kind++;
    *a = (sl_act){.kind = (sl_act_kind)kind};
    if (kind == SL_ACT_KINDS)
        return "act: is none that a node does";
    if (!read_number(&a->number, json_object_get(root, "number"), INT64_MAX))
        return "number: must be a whole number";
    if (has(a->kind, PEER) && !read_number(&peer, json_object_get(root, "peer"), UINT32_MAX))
        return "peer: must be a rank";
    if (has(a->kind, PARTS) && (!read_number(&from, json_object_get(root, "from"), UINT32_MAX) ||
                                !read_number(&to, json_object_get(root, "to"), UINT32_MAX)))
        return "from, to: must be numbers of parts";
    a->peer = (uint32_t)peer;
    a->from = (uint32_t)from;
    a->to = (uint32_t)to;
    return has(a->kind, VERSIONS) && !read_versions(a, json_object_get(root, "versions"))
               ? "versions: must be a list of whole numbers"
               : NULL;
}

static int add_act(sl_act **acts, size_t *count, const json_t *root, const char *path, size_t line,
                   sl_error *error) {
    if ((*count & (*count - 1)) == 0) { /* a power of two: it is full */
        sl_act *more = realloc(*acts, (*count > 0 ? 2 * *count : 1) * sizeof *more);
        if (more == NULL)
            return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
        *acts = more;
    }
    const char *what = read_act(&(*acts)[(*count)++], root);
    return what == NULL ? 0 : wrong(path, line, what, error);
}

int sl_act_log_read(sl_act **out, size_t *count, const char *path, sl_error *error) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0, line = 0;
    int result = 0;
    *out = NULL;
    *count = 0;
    for (ssize_t bytes; file != NULL && result == 0 && (bytes = getline(&text, &room, file)) > 0;) {
        json_t *root = NULL;
        if (text[bytes - 1] != '\n')
            break; /* a process that was killed has left it */
        char where[SL_EVENT_LOG_PATH_MAX + 24];
        snprintf(where, sizeof where, "%s:%zu", path, ++line);
        result = sl_json_parse(&root, text, (size_t)bytes - 1, 0, where, SL_EFILE, error);
        if (result == 0)
            result = add_act(out, count, root, path, line, error);
        json_decref(root);
    }
    free(text);
    if (file != NULL)
        fclose(file);
    if (result != 0) {
        sl_acts_free(*out, *count);
        *out = NULL;
        *count = 0;
    }
    return result;
}

void sl_acts_free(sl_act *acts, size_t count) {
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)acts[i].versions);
    free(acts);
}
