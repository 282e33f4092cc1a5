/* patience.c - a thread that draws what takes so long; see patience.h. */
#include "cli/patience.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/names.h"

enum { TEXT_BYTES = 512, BAR_CELLS = 20, COLUMNS = 80, FIRST_MS = 1000, REDRAW_MS = 200 };

struct patience {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ended, hidden, drawn;
    char text[TEXT_BYTES];
    double began, part_began; /* part: since `share` was 0 */
    double share;             /* of the part; 0: not told */
    sl_watch watch;
};

static patience *now; /* the one that is under way */

static double seconds(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static int columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : COLUMNS;
}

/* ---- drawing, under the mutex ---- */

static void erase(patience *p) {
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

static void draw(patience *p) {
    char line[TEXT_BYTES + 96], duration[32], bar[BAR_CELLS + 1];
    const double at = seconds(), spent = at - p->part_began;
    const int full = (int)(p->share * BAR_CELLS);
    memset(bar, '#', (size_t)full);
    memset(bar + full, '-', (size_t)(BAR_CELLS - full));
    bar[BAR_CELLS] = '\0';
    if (p->share > 0) {
        name_duration(duration, sizeof duration, spent / p->share - spent);
        snprintf(line, sizeof line, "[%s] left %s  %s", bar, duration, p->text);
    } else {
        name_duration(duration, sizeof duration, at - p->began);
        snprintf(line, sizeof line, "%s  %s", duration, p->text);
    }
    fprintf(stderr, "\r%.*s\033[K", columns() - 1, line);
    p->drawn = true;
}

static void *tell(void *argument) {
    patience *p = argument;
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    pthread_mutex_lock(&p->mutex);
    for (long pause_ms = FIRST_MS; !p->ended; pause_ms = REDRAW_MS) {
        at.tv_nsec += pause_ms % 1000 * 1000000;
        at.tv_sec += pause_ms / 1000 + at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        while (!p->ended && pthread_cond_timedwait(&p->changed, &p->mutex, &at) == 0)
            continue;
        if (!p->ended && !p->hidden)
            draw(p);
    }
    erase(p);
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* ---- what is told ---- */

static void take_share(void *context, double share) {
    patience *p = context;
    pthread_mutex_lock(&p->mutex);
    if (share < p->share || share <= 0) /* another part begins */
        p->part_began = seconds();
    p->share = share < 0 ? 0 : share > 1 ? 1 : share;
    p->hidden = false;
    pthread_mutex_unlock(&p->mutex);
}

const sl_watch *patience_watch(void) {
    return now != NULL ? &now->watch : NULL;
}

void patience_tell(double share) {
    if (now != NULL)
        take_share(now, share);
}

void patience_hide(void) {
    if (now == NULL)
        return;
    pthread_mutex_lock(&now->mutex);
    erase(now);
    now->hidden = true;
    pthread_mutex_unlock(&now->mutex);
}

/* ---- its life ---- */

/* Signals are for the thread that works. */
static int start(patience *p) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(&p->thread, NULL, tell, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

static void free_patience(patience *p) {
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

patience *patience_begin(const char *format, ...) {
    const char *kind = getenv("TERM");
    const bool is_terminal =
        isatty(STDERR_FILENO) && kind != NULL && strcmp(kind, "dumb") != 0 && now == NULL;
    patience *p = is_terminal ? calloc(1, sizeof *p) : NULL;
    if (p == NULL)
        return NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->text, sizeof p->text, format, arguments);
    va_end(arguments);
    p->began = p->part_began = seconds();
    p->watch = (sl_watch){take_share, p};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (start(p) != 0) {
        free_patience(p);
        return NULL;
    }
    now = p;
    return p;
}

void patience_end(patience *p) {
    if (p == NULL)
        return;
    now = NULL;
    pthread_mutex_lock(&p->mutex);
    p->ended = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    pthread_join(p->thread, NULL);
    free_patience(p);
}
