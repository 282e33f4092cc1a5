/* live_view.c - the live view; see live_view.h. */
#include "run/live_view.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/log.h"
#include "cli/text_table.h"
#include "cli/tool.h"

#define REDRAW_SECONDS 0.2
enum { BAR_CELLS = 32, BAR_CELLS_MIN = 8, LINE_BYTES = 320 };

void live_view_open(live_view *v, uint64_t rounds, bool wide) {
    const char *kind = getenv("TERM");
    *v = (live_view){.rounds = rounds, .wide = wide};
    v->terminal =
        !log_is_json() && isatty(STDOUT_FILENO) && kind != NULL && strcmp(kind, "dumb") != 0;
}

void live_view_share(live_view *v, uint32_t rank) {
    v->terminal = false;
    snprintf(v->name, sizeof v->name, "agent %u: ", rank);
}

/* A line, and its maximal width. */
typedef struct line {
    char text[LINE_BYTES];
    size_t width;
} line;

/* Adds a piece if it fits. */
static void append(line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(line *l, const char *format, ...) {
    char piece[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    size_t used = strlen(l->text), gap = used > 0 ? 2 : 0;
    if (used + gap + strlen(piece) <= l->width)
        snprintf(l->text + used, LINE_BYTES - used, "%*s%s", (int)gap, "", piece);
}

static void append_quality(line *l, const measured *m) {
    append(l, "loss %.4g", m->loss);
    if (!isnan(m->accuracy))
        append(l, "accuracy %.2f %%", 100 * m->accuracy);
    if (!isnan(m->accuracy_mean_model))
        append(l, "averaged %.2f %%", 100 * m->accuracy_mean_model);
}

static void append_traffic(line *l, const measured *m) {
    append(l, "sent %.2f MB/node", 1e-6 * m->bytes_per_node);
    if (!isnan(m->consensus))
        append(l, "consensus %.3g", m->consensus);
}

static void append_speed(line *l, const live_view *v) {
    double elapsed = now_seconds() - v->began;
    if (v->round <= v->first || elapsed <= 0)
        return;
    double per_second = (double)(v->round - v->first) / elapsed;
    double left = (double)(v->rounds - v->round) / per_second;
    append(l, "left %.0f:%02.0f", floor(left / 60), floor(fmod(left, 60)));
    append(l, "%.1f rounds/s", per_second);
}

static line open_line(const live_view *v) {
    size_t width = output_width(v->wide);
    return (line){.width = width < LINE_BYTES ? width : LINE_BYTES - 1};
}

/* "[####----] round 20/400" */
static void append_bar(line *l, const live_view *v) {
    int cells = l->width / 3 < BAR_CELLS ? (int)l->width / 3 : BAR_CELLS;
    char bar[BAR_CELLS + 1];
    cells = cells < BAR_CELLS_MIN ? BAR_CELLS_MIN : cells;
    int full = v->rounds > 0 ? (int)((uint64_t)cells * v->round / v->rounds) : 0;
    memset(bar, '#', (size_t)full);
    memset(bar + full, '-', (size_t)(cells - full));
    bar[cells] = '\0';
    append(l, "[%s] round %llu/%llu", bar, (unsigned long long)v->round,
           (unsigned long long)v->rounds);
}

static void draw(live_view *v) {
    line first = open_line(v), second = open_line(v);
    append_bar(&first, v);
    append_speed(&first, v);
    if (v->has_measured) {
        append_quality(&second, &v->last);
        append_traffic(&second, &v->last);
    }
    live_view_clear(v);
    /* Turns automatic wrap off: a wrapped line would survive the next redraw. */
    printf("\033[?7l%s\n%s\n\033[?7h", first.text, second.text);
    fflush(stdout);
    v->lines_drawn = 2;
    v->drawn = now_seconds();
}

void live_view_clear(live_view *v) {
    for (; v->lines_drawn > 0; v->lines_drawn--)
        fputs("\033[1A\r\033[2K", stdout);
    fflush(stdout);
}

void live_view_round(live_view *v, uint64_t round) {
    if (v->began == 0) {
        v->began = now_seconds();
        v->first = round; /* who goes on, or joins, has not done those before */
    }
    if (round > v->round && round <= v->rounds)
        v->round = round;
}

static void print_line(const live_view *v) {
    line l = open_line(v);
    append(&l, "%sround %llu/%llu", log_is_json() ? "" : v->name, (unsigned long long)v->last.round,
           (unsigned long long)v->rounds);
    append_quality(&l, &v->last);
    append_speed(&l, v);
    append_traffic(&l, &v->last);
    if (log_is_json())
        log_say(&(log_about){LOG_INFO, LOG_ROUND, MYSELF, NOBODY, v->last.round}, "%s", l.text);
    else
        puts(l.text);
    fflush(stdout);
}

void live_view_measured(live_view *v, const measured *m) {
    live_view_round(v, m->round);
    v->last = *m;
    v->has_measured = true;
    if (v->terminal)
        draw(v);
    else if (!v->quiet)
        print_line(v);
}

void live_view_tick(live_view *v) {
    if (v->terminal && now_seconds() - v->drawn >= REDRAW_SECONDS)
        draw(v);
}
