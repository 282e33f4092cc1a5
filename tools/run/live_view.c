/* live_view.c - the live view; see live_view.h. */
#include "run/live_view.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"

#define REDRAW_SECONDS 0.2
enum { BAR_CELLS = 32, LINE_BYTES = 320 };

void live_view_open(live_view *p, uint64_t rounds) {
    const char *kind = getenv("TERM");
    *p = (live_view){.rounds = rounds};
    p->terminal = isatty(STDOUT_FILENO) && kind != NULL && strcmp(kind, "dumb") != 0;
}

static void append(char line[LINE_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void append(char line[LINE_BYTES], const char *format, ...) {
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, LINE_BYTES - used, format, arguments);
    va_end(arguments);
}

static void append_measured(char line[LINE_BYTES], const measured *m) {
    append(line, "loss %.4g", m->loss);
    if (!isnan(m->accuracy))
        append(line, "   accuracy %.2f %%", 100 * m->accuracy);
    if (!isnan(m->accuracy_mean_model))
        append(line, " (averaged model %.2f %%)", 100 * m->accuracy_mean_model);
    if (!isnan(m->consensus))
        append(line, "   consensus %.3g", m->consensus);
    append(line, "   sent %.2f MB/node", 1e-6 * m->bytes_per_node);
}

static void append_speed(char line[LINE_BYTES], const live_view *p) {
    double elapsed = now_seconds() - p->began;
    if (p->round == 0 || elapsed <= 0)
        return;
    double per_second = (double)p->round / elapsed;
    double left = (double)(p->rounds - p->round) / per_second;
    append(line, "%.1f rounds/s   left %.0f:%02.0f", per_second, floor(left / 60),
           floor(fmod(left, 60)));
}

static void draw(live_view *p) {
    char first[LINE_BYTES] = "", second[LINE_BYTES] = "";
    int full = p->rounds > 0 ? (int)(BAR_CELLS * p->round / p->rounds) : 0;
    append(first, "[");
    for (int i = 0; i < BAR_CELLS; i++)
        append(first, "%s", i < full ? "#" : "-");
    append(first, "] round %llu/%llu   ", (unsigned long long)p->round,
           (unsigned long long)p->rounds);
    append_speed(first, p);
    if (p->has_measured)
        append_measured(second, &p->last);
    live_view_clear(p);
    /* No automatic wrap: a long line must not become two that the next redraw would not find. */
    printf("\033[?7l%s\n%s\n\033[?7h", first, second);
    fflush(stdout);
    p->lines_drawn = 2;
    p->drawn = now_seconds();
}

void live_view_clear(live_view *p) {
    for (; p->lines_drawn > 0; p->lines_drawn--)
        fputs("\033[1A\r\033[2K", stdout);
    fflush(stdout);
}

void live_view_round(live_view *p, uint64_t round) {
    if (p->began == 0)
        p->began = now_seconds();
    if (round > p->round && round <= p->rounds)
        p->round = round;
}

static void print_line(const live_view *p) {
    char line[LINE_BYTES] = "";
    append(line, "round %llu/%llu   ", (unsigned long long)p->last.round,
           (unsigned long long)p->rounds);
    append_measured(line, &p->last);
    append(line, "   ");
    append_speed(line, p);
    puts(line);
    fflush(stdout);
}

void live_view_measured(live_view *p, const measured *m) {
    live_view_round(p, m->round);
    p->last = *m;
    p->has_measured = true;
    if (p->terminal)
        draw(p);
    else if (!p->quiet)
        print_line(p);
}

void live_view_tick(live_view *p) {
    if (p->terminal && now_seconds() - p->drawn >= REDRAW_SECONDS)
        draw(p);
}
