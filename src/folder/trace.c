/* trace.c - see starling/trace.h. The format is Chrome's array of events, one in a line. */
#include "starling/trace.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

struct sl_trace {
    FILE *file;
    char path[SL_PATH_MAX];
    uint32_t nodes; /* of whom there is something */
    bool begun, failed;
};

int sl_trace_open(sl_trace **out, const char *path, sl_error *error) {
    sl_trace *t = calloc(1, sizeof *t);
    if (t == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    snprintf(t->path, sizeof t->path, "%s", path);
    t->file = fopen(path, "we");
    if (t->file == NULL) {
        const int reason = errno;
        free(t);
        return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(reason));
    }
    *out = t;
    return 0;
}

/* Takes the object. */
static void add(sl_trace *t, json_t *event) {
    t->failed = t->failed || event == NULL || fputs(t->begun ? ",\n" : "[\n", t->file) < 0 ||
                json_dumpf(event, t->file, JSON_COMPACT | JSON_REAL_PRECISION(15)) != 0;
    t->begun = true;
    json_decref(event);
}

void sl_trace_add(sl_trace *t, const sl_span *span) {
    static const char *const names[] = {
        [SL_SPAN_GRADIENT] = "gradient", [SL_SPAN_WAIT] = "wait", [SL_SPAN_MESSAGE] = "message"};
    const bool is_message = span->kind == SL_SPAN_MESSAGE;
    t->nodes = span->rank >= t->nodes ? span->rank + 1 : t->nodes;
    json_t *args = is_message ? json_pack("{sI}", "to", (json_int_t)span->peer)
                              : json_pack("{sI}", "round", (json_int_t)span->round);
    add(t, json_pack("{ss ss sI sI so so so}", "name", names[span->kind], "ph", "X", "pid",
                     (json_int_t)span->rank, "tid", is_message ? (json_int_t)span->peer + 1 : 0,
                     "ts", json_real(1e6 * span->begins_s), "dur",
                     json_real(1e6 * (span->ends_s - span->begins_s)), "args", args));
}

static void name_nodes(sl_trace *t) {
    char name[32];
    for (uint32_t i = 0; i < t->nodes; i++) {
        snprintf(name, sizeof name, "node %u", i);
        add(t, json_pack("{ss ss sI s{ss}}", "name", "process_name", "ph", "M", "pid",
                         (json_int_t)i, "args", "name", name));
    }
}

int sl_trace_close(sl_trace **trace, sl_error *error) {
    sl_trace *t = *trace;
    if (t == NULL)
        return 0;
    name_nodes(t);
    t->failed = fputs(t->begun ? "\n]\n" : "[]\n", t->file) < 0 || t->failed;
    t->failed = fclose(t->file) != 0 || t->failed;
    const int result =
        t->failed ? sl_fail(error, SL_EFILE, "%s: could not be written whole", t->path) : 0;
    free(t);
    *trace = NULL;
    return result;
}
