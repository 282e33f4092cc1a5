/* history.c - see history.h. */
#include "run/history.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct reader {
    sl_history *of;
    size_t room;
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
    reader *r = context;
    (void)line;
    if (e->kind == SL_LOG_END)
        r->of->done = e->outcome == SL_LOG_DONE;
    const bool is_new = e->kind == SL_LOG_START && e->round == 0; /* it took the rank */
    if (is_new)
        r->of->done = false;
    const bool repeats =
        is_new || e->kind == SL_LOG_CUT || e->kind == SL_LOG_VIEW || e->kind == SL_LOG_JOIN;
    return repeats ? keep(r, e, error) : 0;
}

int history_open(sl_history **out, const char *folder, uint32_t nodes, sl_error *error) {
    sl_history *all = calloc(nodes, sizeof *all);
    int result = all != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for %u logs", nodes);
    for (uint32_t i = 0; i < nodes && result == 0; i++) {
        char path[SL_EVENT_LOG_PATH_MAX];
        reader r = {.of = &all[i]};
        sl_event_log_path(path, folder, i);
        if (access(path, F_OK) == 0) /* it may never have joined */
            result = sl_event_log_read(path, take_line, &r, NULL, error);
    }
    for (uint32_t i = 0; i < nodes && result == 0; i++) {
        char path[SL_EVENT_LOG_PATH_MAX];
        sl_act_log_path(path, folder, i);
        result = sl_act_log_read(&all[i].acts, &all[i].act_count, path, error);
    }
    if (result == 0)
        *out = all;
    else
        history_close(all, nodes);
    return result;
}

void history_close(sl_history *all, uint32_t nodes) {
    for (uint32_t i = 0; all != NULL && i < nodes; i++) {
        for (size_t k = 0; k < all[i].count; k++) {
            free((void *)all[i].entries[k].ranks);
            free((void *)all[i].entries[k].broken);
        }
        free(all[i].entries);
        sl_acts_free(all[i].acts, all[i].act_count);
    }
    free(all);
}
