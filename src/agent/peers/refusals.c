/* refusals.c - see refusals.h. */
#include "agent/peers/refusals.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const double minute_s = 60;
static const char warning[] = "warning: ";

static void tell_more(const sl_refusals *r, uint64_t count, const char *what) {
    char text[SL_MATTER_TEXT_MAX + 64];
    snprintf(text, sizeof text, "%s%" PRIu64 " more times within a minute: %s", warning, count,
             what);
    r->notice(r->context, text);
}

static void tick_matter(const sl_refusals *r, sl_matter *m, double now_s) {
    if (m->text[0] == '\0' || now_s - m->told_s < minute_s)
        return;
    if (m->more > 0) {
        tell_more(r, m->more, m->text);
        m->told_s = now_s;
        m->more = 0;
    } else if (now_s - m->came_s >= minute_s) {
        m->text[0] = '\0'; /* it is news, if it comes again */
    }
}

void sl_refusals_tick(sl_refusals *r, double now_s) {
    if (r->notice == NULL)
        return;
    for (int i = 0; i < SL_MATTERS_MAX; i++)
        tick_matter(r, &r->matters[i], now_s);
    if (r->told == 0 || now_s - r->since_s < minute_s)
        return;
    if (r->untold > 0)
        tell_more(r, r->untold, "other connections were refused");
    r->told = 0;
    r->untold = 0;
}

/* The matter with this text, or a place for it; NULL: there is none. */
static sl_matter *find(sl_refusals *r, const char *text) {
    sl_matter *free = NULL;
    for (int i = 0; i < SL_MATTERS_MAX; i++) {
        sl_matter *m = &r->matters[i];
        if (strncmp(m->text, text, sizeof m->text - 1) == 0)
            return m;
        if (m->text[0] == '\0' && free == NULL)
            free = m;
    }
    return free;
}

void sl_refusals_note(sl_refusals *r, double now_s, sl_refused kind, uint64_t count,
                      const char *text) {
    r->counts[kind] += count;
    if (r->notice == NULL)
        return;
    sl_refusals_tick(r, now_s);
    sl_matter *m = find(r, text);
    if (m != NULL && m->text[0] != '\0') {
        m->more += count;
        m->came_s = now_s;
        return;
    }
    if (r->told == 0)
        r->since_s = now_s;
    if (m == NULL || ++r->told > SL_MATTERS_MAX) {
        r->untold += count;
        return;
    }
    *m = (sl_matter){.told_s = now_s, .came_s = now_s, .more = count - 1};
    snprintf(m->text, sizeof m->text, "%s", text);
    char line[SL_MATTER_TEXT_MAX + 16];
    snprintf(line, sizeof line, "%s%s", warning, m->text);
    r->notice(r->context, line);
}
