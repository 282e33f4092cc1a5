/* sessions.h - what tests of sessions share: calls one after the other, both drivers, and what is
 * said of failures. Included once by each program.
 */
#ifndef STARLING_TEST_SESSIONS_H
#define STARLING_TEST_SESSIONS_H

#include "harness.h"
#include "peers.h"

static sl_error error;
static sl_session_options options;
static peer_thread threads[PEERS_MAX];

/* The session's last call: it leaves if all went well. */
static inline int end_session(sl_session *s, int result, sl_error *e) {
    if (result == 0)
        return sl_session_leave(&s, e);
    sl_session_abort(&s, NULL);
    return result;
}

static inline void set_options(const char *const *overrides, uint64_t count) {
    options.overrides = overrides;
    options.override_count = count;
}

static inline void expect_text(int result, int code, const char *text, const sl_error *e) {
    ck_assert_msg(result == code && strstr(e->text, text) != NULL, "%s: %d, %s", text, result,
                  e->text);
}

static inline void expect_refused(int result, const char *text, const sl_error *e) {
    expect_text(result, SL_EINVAL, text, e);
}

static inline void run_as_agents(int n, peer_function peer, void *context) {
    run_agents(threads, n, peer, context, &options);
    for (int i = 0; i < n; i++)
        ck_assert_msg(threads[i].result == 0, "%d: %s", i, threads[i].error.text);
}

static inline void run_simulated(const char *experiment, int n, peer_function peer, void *context) {
    const int result = sl_simulate(experiment, n, peer, context, &options, &error);
    ck_assert_msg(result == 0, "%s: %s", experiment, error.text);
}

static inline void run_both(const char *experiment, int n, peer_function peer, void *context) {
    run_simulated(experiment, n, peer, context);
    run_as_agents(n, peer, context);
}

#endif
