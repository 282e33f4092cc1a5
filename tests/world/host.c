/* host.c - world/loop.h, base/clock.h and base/identity.h in virtual time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/identity.h"
#include "virtual.h"
#include "world/loop.h"

static const double pass_s = 1e-6; /* what a pass takes that does not block */
static const double for_ever = 1e301;

/* ---- clock ---- */

double sl_clock_seconds(void) {
    return world_now();
}

uint64_t sl_clock_epoch_us(void) {
    return (uint64_t)(1e6 * world_now());
}

/* Of three processes that begin one after the other any may have the largest. */
int sl_identity_draw(uint64_t *out, sl_error *error) {
    *out = 2 + (sl_hash_word(world_hash(), (uint64_t)process_current()->number) >> 12);
    return 0;
}

void sl_clock_sleep(double seconds) {
    const double until_s = world_now() + seconds;
    while (world_now() < until_s)
        process_wait(until_s);
}

/* Nobody has work meanwhile: some looks find what the first one did. */
bool sl_clock_yield(void) {
    enum { LOOKS = 4 };
    return ++process_current()->looks % LOOKS != 0;
}

/* ---- signals ---- */

enum { SIGNALS_MAX = 1024, FIRST_FD = 100 };
static struct {
    process *owner; /* NULL: free */
    int number;     /* of the owner */
    bool ready;
} signals[SIGNALS_MAX];

void signals_clear(void) {
    memset(signals, 0, sizeof signals);
}

static bool is_taken(int i) {
    const process *p = signals[i].owner;
    return p != NULL && p->alive && p->number == signals[i].number;
}

int sl_signal_open(void) {
    int i = 0;
    while (i < SIGNALS_MAX && is_taken(i))
        i++;
    if (i == SIGNALS_MAX)
        return -1;
    process *p = process_current();
    signals[i].owner = p;
    signals[i].number = p->number;
    signals[i].ready = false;
    return FIRST_FD + i;
}

void sl_signal_close(int fd) {
    if (fd >= 0)
        signals[fd - FIRST_FD].owner = NULL;
}

void sl_signal_give(int fd) {
    signals[fd - FIRST_FD].ready = true;
    process_wake(signals[fd - FIRST_FD].owner);
}

void sl_signal_take(int fd) {
    signals[fd - FIRST_FD].ready = false;
}

bool signal_is_ready(int fd) {
    const process *p = signals[fd - FIRST_FD].owner;
    return signals[fd - FIRST_FD].ready ||
           (p->fabric != NULL && fd == p->fabric_fd && fabric_has_news(p->fabric));
}

/* ---- the event loop ---- */

enum { WATCHES_MAX = 8, SPINS_MAX = 1000 };
typedef struct watch {
    int fd; /* -1: a tick */
    double interval_s, due_s;
    sl_loop_handler handler;
    void *context;
} watch;

struct sl_loop {
    watch watches[WATCHES_MAX];
    int count;
    int spins; /* passes on end that were to wait, and found something readable at once */
};

int sl_loop_open(sl_loop **out, sl_error *error) {
    *out = calloc(1, sizeof(sl_loop));
    return *out != NULL ? 0 : sl_fail(error, SL_ENOMEM, "event loop: out of memory");
}

void sl_loop_close(sl_loop **loop) {
    free(*loop);
    *loop = NULL;
}

static int add(sl_loop *loop, watch w, sl_error *error) {
    if (loop->count == WATCHES_MAX)
        return sl_fail(error, SL_EINVAL, "event loop: more than %d events", WATCHES_MAX);
    loop->watches[loop->count++] = w;
    return 0;
}

int sl_loop_watch(sl_loop *loop, int fd, sl_loop_handler handler, void *context, sl_error *error) {
    return add(loop, (watch){.fd = fd, .handler = handler, .context = context}, error);
}

int sl_loop_tick(sl_loop *loop, int interval_ms, sl_loop_handler handler, void *context,
                 sl_error *error) {
    const double interval_s = 1e-3 * interval_ms;
    return add(loop, (watch){-1, interval_s, world_now() + interval_s, handler, context}, error);
}

static bool is_ready(const watch *w) {
    return w->fd < 0 ? w->due_s <= world_now() : signal_is_ready(w->fd);
}

/* When to look again, if nothing wakes the process. */
static double next_look_s(const sl_loop *loop) {
    double at_s = for_ever;
    for (int i = 0; i < loop->count; i++) {
        const watch *w = &loop->watches[i];
        if (is_ready(w))
            return world_now();
        if (w->fd < 0 && w->due_s < at_s)
            at_s = w->due_s;
    }
    return at_s;
}

int sl_loop_pass(sl_loop *loop, bool block, int limit_ms, sl_error *error) {
    double until_s = block ? next_look_s(loop) : world_now() + pass_s;
    if (limit_ms > 0 && until_s > world_now() + 1e-3 * limit_ms)
        until_s = world_now() + 1e-3 * limit_ms;
    loop->spins = block && until_s <= world_now() ? loop->spins + 1 : 0;
    if (loop->spins > SPINS_MAX)
        world_fail("agent %u looks at a descriptor that stays readable again and again",
                   process_current()->rank);
    thread_wait(process_current(), fmax(until_s, world_now() + pass_s));
    for (int i = 0; i < loop->count; i++) {
        watch *w = &loop->watches[i];
        if (!is_ready(w))
            continue;
        if (w->fd < 0)
            w->due_s = world_now() + w->interval_s;
        if (w->handler != NULL)
            w->handler(w->context);
    }
    return 0;
}
