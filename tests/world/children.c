/* children.c - see children.h. The linker sends sigaction here (meson.build). */
#include "children.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

#include "cli/signals.h"
#include "run/child.h"
#include "run/pipe.h"

enum { KIDS_MAX = 64, ROOM = 4096, SIGNALS = 32 };
static const double for_ever_s = 1e301;

typedef struct stream {
    char bytes[ROOM];
    size_t count;
} stream;

typedef struct kid {
    process *process;
    uint32_t rank;
    bool joins;
    double started_s;
    const sl_checkpoints *checkpoints;
    stream streams[2]; /* from the run; to it */
    bool closed[2];    /* the run's end of the pipe; the kid's */
    bool (*handler)(void *context, int number);
    void *context;
    bool asked;                 /* a signal asks it to stop */
    unsigned pending;           /* signals that came while it was stopped */
    bool has_news;              /* it was stopped, or goes on */
    bool ended, reaped, killed; /* killed: by the run */
    int status;                 /* waitpid's */
} kid;

static kid kids[KIDS_MAX];
static int kid_count;
static child_body *kid_body;
static process *run;
static bool run_interrupted;
static void (*run_handlers[SIGNALS])(int number);

void children_open(child_body *body) {
    kid_count = 0;
    kid_body = body;
    memset(run_handlers, 0, sizeof run_handlers);
}

/* ---- pipes: the run's end of kid i is 2 i, the kid's 2 i + 1 ---- */

static void wake_other(int pipe) {
    process *other = pipe % 2 == 0 ? kids[pipe / 2].process : run;
    if (other != NULL && other->alive)
        process_wake(other);
}

static void put(int pipe, const void *data, size_t bytes) {
    stream *s = &kids[pipe / 2].streams[pipe % 2];
    memcpy(s->bytes + s->count, data, bytes);
    s->count += bytes;
    wake_other(pipe);
}

static size_t room(int pipe) {
    return ROOM - kids[pipe / 2].streams[pipe % 2].count;
}

static bool other_has_closed(int pipe) {
    assert(pipe >= 0);
    return kids[pipe / 2].closed[1 - pipe % 2];
}

int pipe_send(int pipe, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        if (other_has_closed(pipe))
            return SL_ESTOPPED;
        const size_t part = bytes < room(pipe) ? bytes : room(pipe);
        if (part > 0)
            put(pipe, at, part);
        else
            thread_wait(process_current(), for_ever_s);
        at += part;
        bytes -= part;
    }
    return 0;
}

bool pipe_try(int pipe, const void *data, size_t bytes, int wait_ms) {
    const double until_s = world_now() + 1e-3 * wait_ms;
    while (room(pipe) < bytes && !other_has_closed(pipe) && world_now() < until_s)
        thread_wait(process_current(), until_s);
    if (room(pipe) < bytes || other_has_closed(pipe))
        return false;
    put(pipe, data, bytes);
    return true;
}

ssize_t pipe_take(int pipe, void *data, size_t bytes) {
    stream *s = &kids[pipe / 2].streams[1 - pipe % 2];
    const size_t part = bytes < s->count ? bytes : s->count;
    if (part == 0)
        return other_has_closed(pipe) ? -1 : 0;
    memcpy(data, s->bytes, part);
    s->count -= part;
    memmove(s->bytes, s->bytes + part, s->count);
    wake_other(pipe);
    return (ssize_t)part;
}

int pipe_receive(int pipe, void *data, size_t bytes) {
    const kid *k = &kids[pipe / 2];
    char *at = data;
    while (bytes > 0) {
        const ssize_t got = pipe_take(pipe, at, bytes);
        if (got < 0 || (got == 0 && k->asked))
            return SL_ESTOPPED;
        if (got == 0)
            thread_wait(process_current(), for_ever_s);
        at += got;
        bytes -= (size_t)got;
    }
    return 0;
}

void children_wait(const int *pipes, bool *ready, uint32_t count, int wait_ms) {
    const double until_s = world_now() + 1e-3 * wait_ms;
    process_wait(world_now() + 1e-6 + 1e-4 * world_uniform()); /* what came before takes a while */
    for (bool found = false;;) {
        for (uint32_t i = 0; i < count; i++) {
            ready[i] = kids[pipes[i] / 2].streams[1].count > 0 || other_has_closed(pipes[i]);
            found = found || ready[i];
        }
        if (found || run_interrupted || world_now() >= until_s)
            break;
        thread_wait(process_current(), until_s);
    }
    run_interrupted = false;
}

/* ---- lives ---- */

static void close_end(kid *k, int end) {
    k->closed[end] = true;
    wake_other(2 * (int)(k - kids) + end);
}

static void finish(kid *k, int status) {
    k->ended = true;
    k->status = status;
    world_note("exits", k->rank, (uint64_t)status, 0);
    close_end(k, 1);
}

static void *live(void *of) {
    kid *k = of;
    finish(k, kid_body(k->rank, k->joins, 2 * (int)(k - kids) + 1, k->checkpoints) << 8);
    return NULL;
}

int child_start(child *out, uint32_t rank, bool joins, const char *path,
                const sl_checkpoints *checkpoints, sl_error *error) {
    if (kid_count == KIDS_MAX)
        world_fail("more than %d children", KIDS_MAX);
    kid *k = &kids[kid_count];
    *k = (kid){.rank = rank, .joins = joins, .started_s = world_now(), .checkpoints = checkpoints};
    run = process_current();
    k->process = process_start(rank, live, k);
    *out = (child){.pid = kid_count + 1, .pipe = 2 * kid_count};
    kid_count++;
    return 0;
}

/* ---- signals ---- */

static void die(kid *k, int number) {
    process_kill(k->process, false);
    finish(k, number);
}

static void hear(kid *k, int number) {
    if (k->handler == NULL && (number == SIGTERM || number == SIGUSR2 || number == SIGNAL_END))
        die(k, number);
    else if (k->handler != NULL && k->handler(k->context, number)) {
        k->asked = true;
        process_wake(k->process);
    }
}

static void stop_or_go_on(kid *k, bool stop) {
    k->has_news = true;
    k->status = stop ? SIGSTOP << 8 | 0x7f : 0xffff;
    if (stop)
        process_stop(k->process);
    else
        process_go_on(k->process);
    for (int number = 1; number < SIGNALS && !stop && !k->ended; number++)
        if ((k->pending >> number & 1) != 0)
            hear(k, number);
    k->pending = stop ? k->pending : 0;
}

static void deliver(kid *k, int number) {
    world_note("signal", k->rank, (uint64_t)number, 0);
    if (k->ended)
        return;
    if (number == SIGKILL)
        die(k, number);
    else if (number == SIGSTOP || number == SIGCONT)
        stop_or_go_on(k, number == SIGSTOP);
    else if (k->process->stopped)
        k->pending |= 1u << number;
    else
        hear(k, number);
}

void child_catch(bool (*handler)(void *context, int number), void *context) {
    for (int i = 0; i < kid_count; i++)
        if (kids[i].process == process_current()) {
            kids[i].handler = handler;
            kids[i].context = context;
        }
}

void child_receive(uint32_t rank, int number) {
    for (int i = kid_count - 1; i >= 0; i--)
        if (kids[i].rank == rank) {
            deliver(&kids[i], number);
            return;
        }
}

int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    run_handlers[number] = action->sa_handler != SIG_IGN ? action->sa_handler : NULL;
    return 0;
}

void run_receive(int number) {
    world_note("asks", (uint64_t)number, 0, 0);
    if (run_handlers[number] == NULL || run == NULL || !run->alive)
        return;
    run_handlers[number](number);
    run_interrupted = true;
    process_wake(run);
}

/* ---- the rest of run/child.h ---- */

void child_signal(const child *c, int number) {
    kid *k = c->pid > 0 ? &kids[c->pid - 1] : NULL;
    if (k == NULL)
        return;
    k->killed = k->killed || (number == SIGKILL && !k->ended);
    deliver(k, number);
}

bool child_was_killed(uint32_t rank) {
    for (int i = kid_count - 1; i >= 0; i--)
        if (kids[i].rank == rank)
            return kids[i].killed;
    return false;
}

bool child_look(child *c, int *status) {
    kid *k = c->pid > 0 ? &kids[c->pid - 1] : NULL;
    if (k == NULL || (!k->ended && !k->has_news))
        return false;
    *status = k->status;
    k->has_news = false;
    k->reaped = k->ended;
    if (k->ended)
        c->pid = 0;
    return true;
}

void child_hang_up(child *c) {
    if (c->pipe >= 0)
        close_end(&kids[c->pipe / 2], 0);
    c->pipe = -1;
}

void child_close(child *c) {
    int status;
    child_signal(c, SIGKILL);
    child_look(c, &status);
    child_hang_up(c);
}

double child_started_s(uint32_t rank, uint32_t n) {
    for (int i = 0; i < kid_count; i++)
        if (kids[i].rank == rank && n-- == 0)
            return kids[i].started_s;
    return 0;
}

void child_hide_memory(void) {}

unsigned long child_starved(void) {
    return 0;
}

uint32_t children_left(void) {
    uint32_t left = 0;
    for (int i = 0; i < kid_count; i++)
        left += !kids[i].reaped || !kids[i].closed[0] || kids[i].process->alive;
    return left;
}
