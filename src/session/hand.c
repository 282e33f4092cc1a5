/* hand.c - the model goes to the caller, a wish comes back; see state.h. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "session/state.h"
#include "world/loop.h"

enum { LOOK_NS = 100000000 }; /* how often a waiting caller looks at stop and deadline */
static const double tell_after_s = 5;

/* `fd` is readable while there is nothing to wait for. */
static void show(sl_session *s) {
    if (s->shared.fd < 0)
        return;
    if (s->shared.handed || sl_session_has_ended(s))
        sl_signal_give(s->shared.fd);
    else
        sl_signal_take(s->shared.fd);
}

/* ---- the driver's thread ---- */

static void do_chore(sl_session *s) {
    s->shared.chore.taken = true;
    pthread_mutex_unlock(&s->shared.mutex);
    s->shared.chore.work(s->shared.chore.context);
    pthread_mutex_lock(&s->shared.mutex);
    s->shared.chore.work = NULL;
    pthread_cond_broadcast(&s->shared.changed);
}

void sl_session_hand(sl_session *s, const float *model) {
    sl_session_show_model(s);
    sl_session_leave_next(s, model);
    pthread_mutex_lock(&s->shared.mutex);
    s->shared.model = model;
    if (s->shared.wish != WISH_GONE) /* which it may wish amid a round, and for good */
        s->shared.wish = WISH_NONE;
    s->shared.handed = s->shared.driving == DRIVING;
    show(s);
    pthread_cond_broadcast(&s->shared.changed);
    while (s->shared.wish == WISH_NONE && s->shared.driving == DRIVING) {
        if (s->shared.chore.work != NULL && !s->shared.chore.taken)
            do_chore(s);
        else
            pthread_cond_wait(&s->shared.changed, &s->shared.mutex);
    }
    s->shared.handed = false;
    s->driver.wish = s->shared.wish;
    pthread_mutex_unlock(&s->shared.mutex);
    sl_session_follow_caller(s);
}

void sl_session_fail(sl_session *s, const sl_error *error) {
    pthread_mutex_lock(&s->shared.mutex);
    if (s->shared.error.code == 0)
        s->shared.error = *error;
    __atomic_store_n(&s->shared.stop, 1, __ATOMIC_RELAXED);
    if (s->process.agent != NULL)
        sl_agent_end(s->process.agent, &s->shared.error);
    pthread_mutex_unlock(&s->shared.mutex);
}

void sl_session_let_go(sl_session *s) {
    pthread_mutex_lock(&s->shared.mutex);
    s->shared.driving = DRIVING_ENDING;
    s->process.agent = NULL;
    s->shared.handed = false;
    show(s);
    pthread_cond_broadcast(&s->shared.changed);
    pthread_mutex_unlock(&s->shared.mutex);
}

void sl_session_end_driver(sl_session *s, const sl_error *error) {
    pthread_mutex_lock(&s->shared.mutex);
    if (s->shared.error.code == 0 && error != NULL)
        s->shared.error = *error;
    s->shared.driving = DRIVING_ENDED;
    s->shared.handed = false;
    show(s);
    pthread_cond_broadcast(&s->shared.changed);
    pthread_mutex_unlock(&s->shared.mutex);
}

/* ---- the caller's thread ---- */

void sl_session_share_work(sl_session *s, void (*work)(void *context), void *context) {
    pthread_mutex_lock(&s->shared.mutex);
    const bool shared = s->shared.handed;
    if (shared)
        s->shared.chore = (sl_chore){.work = work, .context = context};
    pthread_cond_broadcast(&s->shared.changed);
    pthread_mutex_unlock(&s->shared.mutex);
    work(context);
    pthread_mutex_lock(&s->shared.mutex);
    if (!s->shared.chore.taken) /* and will not be */
        s->shared.chore.work = NULL;
    while (s->shared.chore.work != NULL)
        pthread_cond_wait(&s->shared.changed, &s->shared.mutex);
    pthread_mutex_unlock(&s->shared.mutex);
}

void sl_session_wish(sl_session *s, sl_wish wish) {
    pthread_mutex_lock(&s->shared.mutex);
    s->shared.wish = wish;
    s->shared.handed = false;
    show(s);
    pthread_cond_broadcast(&s->shared.changed);
    pthread_mutex_unlock(&s->shared.mutex);
}

static void wait_a_moment(sl_session *s) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&s->shared.changed, &s->shared.mutex, &until);
}

static void give_up(sl_session *s, uint64_t round, sl_error *error) {
    char whom[SL_SESSION_TEXT_MAX];
    pthread_mutex_lock(&s->shared.mutex);
    sl_session_name_wait(s, whom);
    pthread_mutex_unlock(&s->shared.mutex);
    sl_fail_node(error, SL_EPEER, s->rank, round,
                 "a call waited longer than options.deadline_s (%g s)%s%s", s->options.deadline_s,
                 whom[0] != '\0' ? ", for " : "", whom);
}

/* A wait of some seconds is told, once. The mutex is free. */
static void tell_wait(sl_session *s, double since_s) {
    char whom[SL_SESSION_TEXT_MAX], text[2 * SL_SESSION_TEXT_MAX];
    pthread_mutex_lock(&s->shared.mutex);
    sl_session_name_wait(s, whom);
    const char *call = sl_session_name_wish(s);
    const uint64_t round = s->shared.round;
    pthread_mutex_unlock(&s->shared.mutex);
    snprintf(text, sizeof text, "warning: %s has waited %.0f s, %s %" PRIu64 "%s%s", call, since_s,
             round > 0 ? "in round" : "before round", round > 0 ? round : 1,
             whom[0] != '\0' ? ": " : ", for all others to call it too, or to leave", whom);
    s->options.log(s->options.context, text);
}

static void tell_end(const sl_session *s, double waited_s) {
    char text[SL_SESSION_TEXT_MAX];
    snprintf(text, sizeof text, "the wait is over, after %.0f s", waited_s);
    s->options.log(s->options.context, text);
}

/* Is there a reason not to wait any longer? The mutex is free. */
static void look_around(sl_session *s, uint64_t round, double began_s) {
    const double deadline_s = s->options.deadline_s;
    sl_error error = {.code = 0};
    if (s->options.waiting != NULL && s->options.waiting(s->options.context) != 0)
        sl_fail_node(&error, SL_ESTOPPED, s->rank, round, "interrupted while a call waited");
    else if (__atomic_load_n(&s->shared.stop, __ATOMIC_RELAXED))
        sl_fail_node(&error, SL_ESTOPPED, s->rank, round, "stopped on request");
    else if (deadline_s > 0 && sl_clock_seconds() - began_s > deadline_s)
        give_up(s, round, &error);
    if (error.code != 0)
        sl_session_fail(s, &error);
}

/* What a call waits for, beside the end. */
typedef struct awaited {
    bool turn;
    size_t first, count; /* tensors; count 0: none */
} awaited;

/* The mutex is held. */
static bool is_there(const sl_session *s, const awaited *what) {
    bool come = what->count > 0;
    for (size_t t = what->first; come && t < what->first + what->count; t++)
        come = s->caller.left[t] || s->shared.parts.missing[t] == 0;
    return come || (what->turn && s->shared.handed);
}

/* False: the session has ended. In a simulation only one peer runs, and the others look nowhere. */
static bool wait_until_there(sl_session *s, const awaited *what) {
    const double began_s = sl_clock_seconds();
    bool told = s->options.log == NULL;
    if (s->options.simulation == NULL &&
        __atomic_load_n(&s->shared.stop, __ATOMIC_RELAXED)) /* calls may be short */
        look_around(s, s->shared.round, began_s);
    pthread_mutex_lock(&s->shared.mutex);
    while (!sl_session_has_ended(s) && !is_there(s, what)) {
        if (s->options.simulation != NULL) {
            pthread_cond_wait(&s->shared.changed, &s->shared.mutex);
            continue;
        }
        wait_a_moment(s);
        const uint64_t round = s->shared.round;
        if (sl_session_has_ended(s) || is_there(s, what) || s->shared.error.code != 0)
            continue;
        pthread_mutex_unlock(&s->shared.mutex);
        look_around(s, round, began_s);
        if (!told && sl_clock_seconds() - began_s >= tell_after_s) {
            tell_wait(s, sl_clock_seconds() - began_s);
            told = true;
        }
        pthread_mutex_lock(&s->shared.mutex);
    }
    const double waited_s = sl_clock_seconds() - began_s;
    s->shared.waited_s += waited_s;
    const bool ended = sl_session_has_ended(s), failed = s->shared.error.code != 0;
    pthread_mutex_unlock(&s->shared.mutex);
    if (told && s->options.log != NULL && !failed)
        tell_end(s, waited_s);
    return !ended;
}

int sl_session_wait_for(sl_session *s, size_t first, size_t count, sl_error *error) {
    if (wait_until_there(s, &(awaited){.turn = true, .first = first, .count = count}))
        return 0;
    if (error != NULL)
        *error = s->shared.error;
    return s->shared.error.code;
}

int sl_session_wait(sl_session *s, sl_error *error) {
    return sl_session_wait_for(s, 0, 0, error);
}

void sl_session_wait_end(sl_session *s) {
    wait_until_there(s, &(awaited){0});
}
