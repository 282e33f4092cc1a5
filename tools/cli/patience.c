/* patience.c - a thread that says what takes so long; see patience.h. */
#include "cli/patience.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/tool.h"

enum { LINE_SECONDS = 5, TEXT_BYTES = 512 };

struct patience {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ended;
    char text[TEXT_BYTES];
};

static void *tell(void *argument) {
    patience *p = argument;
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    pthread_mutex_lock(&p->mutex);
    for (int seconds = LINE_SECONDS; !p->ended; seconds += LINE_SECONDS) {
        at.tv_sec += LINE_SECONDS;
        while (!p->ended && pthread_cond_timedwait(&p->changed, &p->mutex, &at) == 0)
            continue;
        if (!p->ended)
            complain("still %s (%d s)", p->text, seconds);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* Signals are for the thread that works. */
static int start(patience *p) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(&p->thread, NULL, tell, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

void patience_change(patience *p, const char *format, ...) {
    if (p == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&p->mutex);
    vsnprintf(p->text, sizeof p->text, format, arguments);
    pthread_mutex_unlock(&p->mutex);
    va_end(arguments);
}

patience *patience_begin(const char *format, ...) {
    patience *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->text, sizeof p->text, format, arguments);
    va_end(arguments);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (start(p) == 0)
        return p;
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    free(p);
    return NULL;
}

void patience_end(patience *p) {
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->mutex);
    p->ended = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}
