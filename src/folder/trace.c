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
    double origin_s;
    uint32_t from, to; /* ranks of whom there is something: below `to` */
    bool begun, failed;
};

int sl_trace_open(sl_trace **out, const char *path, double origin_s, sl_error *error) {
    sl_trace *t = calloc(1, sizeof *t);
    if (t == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    snprintf(t->path, sizeof t->path, "%s", path);
    t->origin_s = origin_s;
    t->from = UINT32_MAX;
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
                json_dumpf(event, t->file, JSON_COMPACT | JSON_REAL_PRECISION(17)) != 0;
    t->begun = true;
    json_decref(event);
}

/* Behind those of messages to all nodes: of messages from them, and of an agent's own work. */
enum { ROW_FROM = 1 << 24, ROW_WORK = 1 << 30 };

static json_int_t row_of(const sl_span *span) {
    switch (span->kind) {
    case SL_SPAN_GRADIENT:
    case SL_SPAN_WAIT:
        break;
    case SL_SPAN_MESSAGE:
    case SL_SPAN_SEND:
        return (json_int_t)span->peer + 1;
    case SL_SPAN_RECEIVE:
        return (json_int_t)span->peer + ROW_FROM;
    case SL_SPAN_ENCODE:
    case SL_SPAN_COMBINE:
        return ROW_WORK;
    }
    return 0;
}

static json_t *args_of(const sl_span *span) {
    const json_int_t peer = (json_int_t)span->peer, round = (json_int_t)span->round;
    if (span->kind == SL_SPAN_MESSAGE)
        return json_pack("{sI}", "to", peer);
    if (span->kind == SL_SPAN_SEND || span->kind == SL_SPAN_RECEIVE)
        return json_pack("{sI sI}", span->kind == SL_SPAN_SEND ? "to" : "from", peer, "exchange",
                         round);
    return json_pack("{sI}", "round", round);
}

void sl_trace_add(sl_trace *t, const sl_span *span) {
    static const char *const names[] = {
        [SL_SPAN_GRADIENT] = "gradient", [SL_SPAN_WAIT] = "wait",
        [SL_SPAN_MESSAGE] = "message",   [SL_SPAN_ENCODE] = "encode",
        [SL_SPAN_COMBINE] = "combine",   [SL_SPAN_SEND] = "send",
        [SL_SPAN_RECEIVE] = "receive"};
    t->from = span->rank < t->from ? span->rank : t->from;
    t->to = span->rank >= t->to ? span->rank + 1 : t->to;
    add(t, json_pack("{ss ss sI sI so so so}", "name", names[span->kind], "ph", "X", "pid",
                     (json_int_t)span->rank, "tid", row_of(span), "ts",
                     json_real(1e6 * (t->origin_s + span->begins_s)), "dur",
                     json_real(1e6 * (span->ends_s - span->begins_s)), "args", args_of(span)));
}

static void name_nodes(sl_trace *t) {
    char name[32];
    for (uint32_t i = t->from; i < t->to; i++) {
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
