/* refusals.c - see refusals.h. */
#include "agent/refusals.h"

#include <inttypes.h>
#include <stdio.h>

static const double second_s = 1;
enum { LINES = 9 }; /* in a second, and one of those without */

void sl_refusals_tick(sl_refusals *r, double now_s) {
    char text[96];
    if (r->told == 0 || now_s - r->since_s < second_s)
        return;
    snprintf(text, sizeof text, "warning: %" PRIu64 " more connections were refused", r->untold);
    if (r->untold > 0)
        r->notice(r->context, text);
    r->told = 0;
    r->untold = 0;
}

void sl_refusals_note(sl_refusals *r, double now_s, sl_refused kind, uint64_t count,
                      const char *text) {
    r->counts[kind] += count;
    if (r->notice == NULL)
        return;
    sl_refusals_tick(r, now_s);
    if (r->told == 0)
        r->since_s = now_s;
    if (r->told < LINES) {
        r->told++;
        r->notice(r->context, text);
    } else {
        r->untold += count;
    }
}
