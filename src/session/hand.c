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
    if (s->fd < 0)
        return;
    if (s->handed || s->ended)
        sl_signal_give(s->fd);
    else
        sl_signal_take(s->fd);
}

/* ---- the driver's thread ---- */

static void do_chore(sl_session *s) {
    s->chore.taken = true;
    pthread_mutex_unlock(&s->mutex);
    s->chore.work(s->chore.context);
    pthread_mutex_lock(&s->mutex);
    s->chore.work = NULL;
    pthread_cond_broadcast(&s->changed);
}

void sl_session_hand(sl_session *s, const float *model) {
    sl_session_show_model(s);
    pthread_mutex_lock(&s->mutex);
    s->model = model;
    s->wish = WISH_NONE;
    s->handed = !s->ending;
    show(s);
    pthread_cond_broadcast(&s->changed);
    while (s->wish == WISH_NONE && !s->ending) {
        if (s->chore.work != NULL && !s->chore.taken)
            do_chore(s);
        else
            pthread_cond_wait(&s->changed, &s->mutex);
    }
    s->handed = false;
    pthread_mutex_unlock(&s->mutex);
    sl_session_follow_caller(s);
}

void sl_session_fail(sl_session *s, const sl_error *error) {
    pthread_mutex_lock(&s->mutex);
    if (s->error.code == 0)
        s->error = *error;
    __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
    if (s->agent != NULL)
        sl_agent_end(s->agent, &s->error);
    pthread_mutex_unlock(&s->mutex);
}

void sl_session_let_go(sl_session *s) {
    pthread_mutex_lock(&s->mutex);
    s->ending = true;
    s->agent = NULL;
    s->handed = false;
    show(s);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

void sl_session_end_driver(sl_session *s, const sl_error *error) {
    pthread_mutex_lock(&s->mutex);
    if (s->error.code == 0 && error != NULL)
        s->error = *error;
    s->ending = s->ended = true;
    s->handed = false;
    show(s);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

/* ---- the caller's thread ---- */

void sl_session_share_work(sl_session *s, void (*work)(void *context), void *context) {
    pthread_mutex_lock(&s->mutex);
    const bool shared = s->handed;
    if (shared)
        s->chore = (sl_chore){.work = work, .context = context};
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    work(context);
    pthread_mutex_lock(&s->mutex);
    if (!s->chore.taken) /* and will not be */
        s->chore.work = NULL;
    while (s->chore.work != NULL)
        pthread_cond_wait(&s->changed, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

void sl_session_wish(sl_session *s, sl_wish wish) {
    pthread_mutex_lock(&s->mutex);
    s->wish = wish;
    s->handed = false;
    show(s);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

static void wait_a_moment(sl_session *s) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&s->changed, &s->mutex, &until);
}

static void give_up(sl_session *s, uint64_t round, sl_error *error) {
    char whom[SL_SESSION_TEXT_MAX];
    pthread_mutex_lock(&s->mutex);
    sl_session_name_wait(s, whom);
    pthread_mutex_unlock(&s->mutex);
    sl_fail_node(error, SL_EPEER, s->rank, round,
                 "a call waited longer than options.deadline_s (%g s)%s%s", s->options.deadline_s,
                 whom[0] != '\0' ? ", for " : "", whom);
}

/* A wait of some seconds is told, once. The mutex is free. */
static void tell_wait(sl_session *s, double since_s) {
    char whom[SL_SESSION_TEXT_MAX], text[2 * SL_SESSION_TEXT_MAX];
    pthread_mutex_lock(&s->mutex);
    sl_session_name_wait(s, whom);
    const char *call = sl_session_name_wish(s);
    const uint64_t round = s->round;
    pthread_mutex_unlock(&s->mutex);
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
    else if (__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
        sl_fail_node(&error, SL_ESTOPPED, s->rank, round, "stopped on request");
    else if (deadline_s > 0 && sl_clock_seconds() - began_s > deadline_s)
        give_up(s, round, &error);
    if (error.code != 0)
        sl_session_fail(s, &error);
}

/* False: the session has ended. In a simulation only one peer runs, and the others look nowhere. */
static bool wait_for_turn(sl_session *s, bool turn) {
    const double began_s = sl_clock_seconds();
    bool told = s->options.log == NULL;
    if (s->simulation == NULL &&
        __atomic_load_n(&s->stop, __ATOMIC_RELAXED)) /* calls may be short */
        look_around(s, s->round, began_s);
    pthread_mutex_lock(&s->mutex);
    while (!s->ended && !(turn && s->handed)) {
        if (s->simulation != NULL) {
            pthread_cond_wait(&s->changed, &s->mutex);
            continue;
        }
        wait_a_moment(s);
        const uint64_t round = s->round;
        if (s->ended || (turn && s->handed) || s->error.code != 0)
            continue;
        pthread_mutex_unlock(&s->mutex);
        look_around(s, round, began_s);
        if (!told && sl_clock_seconds() - began_s >= tell_after_s) {
            tell_wait(s, sl_clock_seconds() - began_s);
            told = true;
        }
        pthread_mutex_lock(&s->mutex);
    }
    const double waited_s = sl_clock_seconds() - began_s;
    s->waited_s += waited_s;
    const bool ended = s->ended, failed = s->error.code != 0;
    pthread_mutex_unlock(&s->mutex);
    if (told && s->options.log != NULL && !failed)
        tell_end(s, waited_s);
    return !ended;
}

int sl_session_wait(sl_session *s, sl_error *error) {
    if (wait_for_turn(s, true))
        return 0;
    if (error != NULL)
        *error = s->error;
    return s->error.code;
}

void sl_session_wait_end(sl_session *s) {
    wait_for_turn(s, false);
}
