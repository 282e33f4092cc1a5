/* history.c - see history.h. */
#include "run/history.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A log, of which what is of the stretch is marked. */
typedef struct reader {
    sl_history *of;
    size_t room;
    bool *taken; /* (of->count) */
} reader;

static int keep(reader *r, const sl_log_entry *e, sl_error *error) {
    sl_history *h = r->of;
    if (h->count == r->room) {
        const size_t room = r->room > 0 ? 2 * r->room : 8;
        sl_log_entry *entries = realloc(h->entries, room * sizeof *entries);
        if (entries == NULL)
            return sl_fail(error, SL_ENOMEM, "out of memory for %zu events", room);
        h->entries = entries;
        r->room = room;
    }
    sl_log_entry *kept = &h->entries[h->count];
    *kept = *e;
    if (e->ranks != NULL) {
        uint32_t *ranks = malloc(e->members * sizeof *ranks);
        if (ranks == NULL)
            return sl_fail(error, SL_ENOMEM, "out of memory for %zu members", (size_t)e->members);
        kept->ranks = memcpy(ranks, e->ranks, e->members * sizeof *ranks);
    }
    kept->broken = NULL;
    h->count++;
    if (e->broken_count > 0) {
        sl_pair *broken = malloc(e->broken_count * sizeof *broken);
        if (broken == NULL)
            return sl_fail(error, SL_ENOMEM, "out of memory for %zu edges",
                           (size_t)e->broken_count);
        kept->broken = memcpy(broken, e->broken, e->broken_count * sizeof *broken);
    }
    return 0;
}

static int take_line(void *context, uint64_t line, const sl_log_entry *e, sl_error *error) {
    (void)line;
    const bool repeats = e->kind == SL_LOG_START || e->kind == SL_LOG_CUT ||
                         e->kind == SL_LOG_VIEW || e->kind == SL_LOG_JOIN;
    return repeats ? keep(context, e, error) : 0;
}

static int read_log(reader *r, const char *folder, uint32_t rank, sl_error *error) {
    char path[SL_EVENT_LOG_PATH_MAX];
    sl_event_log_path(path, folder, rank);
    int result = access(path, F_OK) == 0 /* it may never have joined */
                     ? sl_event_log_read(path, take_line, r, NULL, error)
                     : 0;
    if (result == 0 && (r->taken = calloc(r->of->count + 1, sizeof *r->taken)) == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for %zu events", r->of->count);
    sl_act_log_path(path, folder, rank);
    return result == 0 ? sl_act_log_read(&r->of->acts, &r->of->act_count, path, error) : result;
}

/* ---- one stretch ---- */

static bool is_new(const sl_log_entry *e) {
    return e->kind == SL_LOG_START || e->kind == SL_LOG_JOIN;
}

/* From `at` until the process ends, or is out. */
static void take(const reader *r, size_t at) {
    do
        r->taken[at++] = true;
    while (at < r->of->count && !is_new(&r->of->entries[at]));
}

static void take_founder(const reader *r, uint64_t from) {
    for (size_t i = r->of->count; i-- > 0;) {
        const sl_log_entry *e = &r->of->entries[i];
        if (e->kind != SL_LOG_START || e->round != from + 1)
            continue;
        if (i + 1 < r->of->count && !is_new(e + 1))
            take(r, i + 1);
        return;
    }
}

/* Has it begun this view? */
static bool has_view(const reader *r, const sl_log_entry *v) {
    for (size_t i = 0; i < r->of->count; i++) {
        const sl_log_entry *e = &r->of->entries[i];
        if (r->taken[i] && e->kind == SL_LOG_VIEW && e->round == v->round &&
            e->exchange == v->exchange && e->members == v->members &&
            memcmp(e->ranks, v->ranks, e->members * sizeof *e->ranks) == 0)
            return true;
    }
    return false;
}

/* Does what it does after `at` begin with a view? */
static bool is_let_in(const reader *r, size_t at) {
    return r->of->entries[at].kind == SL_LOG_JOIN && at + 1 < r->of->count &&
           r->of->entries[at + 1].kind == SL_LOG_VIEW;
}

/* Returns that lead to a view of others. Of two, of the same, the former was computed anew. */
static bool take_returns(const reader *logs, uint32_t rank, uint32_t nodes) {
    const reader *r = &logs[rank];
    bool any = false;
    for (size_t i = r->of->count; i-- > 0;) {
        const sl_log_entry *view = &r->of->entries[i + 1];
        bool is_theirs = false;
        if (!is_let_in(r, i) || has_view(r, view))
            continue;
        for (uint32_t k = 0; k < nodes && !is_theirs; k++)
            is_theirs = has_view(&logs[k], view);
        if (is_theirs)
            take(r, i);
        any = any || is_theirs;
    }
    return any;
}

static void free_entry(sl_log_entry *e) {
    free((void *)e->ranks);
    free((void *)e->broken);
}

static void leave_out_others(const reader *r) {
    size_t kept = 0;
    for (size_t i = 0; i < r->of->count; i++) {
        if (r->taken[i])
            r->of->entries[kept++] = r->of->entries[i];
        else
            free_entry(&r->of->entries[i]);
    }
    r->of->count = kept;
}

static void choose(const reader *logs, uint32_t nodes, const sl_checkpoint_view *founders,
                   uint64_t from) {
    for (uint32_t i = 0; i < nodes; i++)
        if (logs[i].of->act_count > 0) /* they say which view comes next */
            memset(logs[i].taken, true, logs[i].of->count * sizeof *logs[i].taken);
        else if (sl_checkpoint_view_has(founders, i))
            take_founder(&logs[i], from);
    bool any = true;
    while (any) {
        any = false;
        for (uint32_t i = 0; i < nodes; i++)
            any = take_returns(logs, i, nodes) || any;
    }
    for (uint32_t i = 0; i < nodes; i++)
        leave_out_others(&logs[i]);
}

int history_open(sl_history **out, const char *folder, uint32_t nodes,
                 const sl_checkpoint_view *founders, uint64_t from, sl_error *error) {
    sl_history *all = calloc(nodes, sizeof *all);
    reader *logs = calloc(nodes, sizeof *logs);
    int result = all != NULL && logs != NULL
                     ? 0
                     : sl_fail(error, SL_ENOMEM, "out of memory for %u logs", nodes);
    for (uint32_t i = 0; i < nodes && result == 0; i++) {
        logs[i].of = &all[i];
        result = read_log(&logs[i], folder, i, error);
    }
    if (result == 0)
        choose(logs, nodes, founders, from);
    for (uint32_t i = 0; logs != NULL && i < nodes; i++)
        free(logs[i].taken);
    free(logs);
    if (result == 0)
        *out = all;
    else
        history_close(all, nodes);
    return result;
}

void history_close(sl_history *all, uint32_t nodes) {
    for (uint32_t i = 0; all != NULL && i < nodes; i++) {
        for (size_t k = 0; k < all[i].count; k++)
            free_entry(&all[i].entries[k]);
        free(all[i].entries);
        sl_acts_free(all[i].acts, all[i].act_count);
    }
    free(all);
}
