/* calls.c - what the caller of a session calls; see starling/session.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "session/state.h"
#include "wire/checksum.h"

/* ---- who may call, and when ---- */

static bool is_forked(const sl_session *s) {
    return s->process != getpid();
}

static int check_process(const sl_session *s, const char *call, sl_error *error) {
    if (!is_forked(s))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%s: process %ld was forked from process %ld, which joined: the session stayed "
                   "there",
                   call, (long)getpid(), (long)s->process);
}

static int check_caller(const sl_session *s, const char *call, sl_error *error) {
    int result = check_process(s, call, error);
    if (result != 0 || pthread_equal(s->thread, pthread_self()))
        return result;
    return sl_fail(error, SL_EINVAL,
                   "%s: was called on another thread than the one that joined; calls of a session "
                   "come from that one",
                   call);
}

/* The error of a session that has ended. */
static int check_alive(sl_session *s, sl_error *error) {
    pthread_mutex_lock(&s->mutex);
    int result = s->ended ? s->error.code : 0;
    pthread_mutex_unlock(&s->mutex);
    if (result != 0 && error != NULL)
        *error = s->error;
    return result;
}

static int check_round(sl_session *s, const char *call, bool in_round, sl_error *error) {
    int result = check_caller(s, call, error);
    if (result == 0)
        result = check_alive(s, error);
    if (result != 0)
        return result;
    if (!s->started)
        return sl_fail(error, SL_EINVAL, "%s: start comes first", call);
    if (in_round && !s->in_round)
        return sl_fail(error, SL_EINVAL, "%s: no round is under way; begin or offer comes first",
                       call);
    if (!in_round && s->in_round)
        return sl_fail(error, SL_EINVAL, "%s: a round is under way since %s; end comes first", call,
                       s->begun ? "begin" : "offer");
    return 0;
}

static int check_vector(const char *call, const float *x, sl_error *error) {
    if (x == NULL || (uintptr_t)x % sizeof *x != 0)
        return sl_fail(error, SL_EINVAL, "%s: x is %s", call,
                       x == NULL ? "NULL" : "not aligned to 4 bytes");
    return 0;
}

/* ---- joining ---- */

static bool is_checking(const sl_session_options *o) {
    const char *said = getenv("STARLING_CHECK");
    return o->check != 0 || (said != NULL && said[0] != '\0' && strcmp(said, "0") != 0);
}

/* What stays of the options: nothing that the caller may free. */
static void keep_options(sl_session *s, const sl_session_options *o) {
    s->options = *o;
    s->options.check = is_checking(o);
    s->options.roster = s->options.master = s->options.listen = NULL;
    s->options.overrides = NULL;
    s->options.tensors = NULL;
}

static void log_lines(const sl_session_options *o, const char *lines) {
    char line[SL_ERROR_TEXT_MAX];
    while (o->log != NULL && *lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, lines);
        o->log(o->context, line);
        lines += length + (lines[length] == '\n');
    }
}

static int check_overlap(const sl_algorithm_config *c, const sl_session_options *o,
                         sl_error *error) {
    if (!o->overlap || strcmp(c->name, "d-psgd") == 0)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "options.overlap: algorithm '%s' sends vectors of its own, and cannot send from "
                   "x; only d-psgd can: leave it 0, and call mix",
                   c->name);
}

static int check_nodes(const sl_experiment *e, int64_t nodes, sl_error *error) {
    if (nodes <= 0 || nodes == sl_topology_nodes(e->topology))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%lld peers, but the topology has %u nodes; they must be equal",
                   (long long)nodes, sl_topology_nodes(e->topology));
}

static const uint64_t measure_every = 10; /* rounds */

int sl_session_read(sl_experiment **out, const char *experiment, const sl_session_options *o,
                    sl_error *error) {
    if (experiment == NULL)
        return sl_fail(error, SL_EINVAL, "experiment: is NULL; it must be a path, or JSON");
    const sl_session_reading how = {.overrides = o->overrides,
                                    .override_count = o->override_count,
                                    .overlap = o->overlap,
                                    .nodes = o->nodes > 0 ? (uint32_t)o->nodes : 0};
    int result = sl_experiment_load_session(out, experiment, &how, error);
    if (result != 0)
        return result;
    if ((*out)->record.every == 0)
        (*out)->record.every = measure_every;
    result = check_nodes(*out, o->nodes, error);
    if (result == 0)
        result = check_overlap(&(*out)->algorithm, o, error);
    if (result == 0)
        log_lines(o, (*out)->warnings);
    else
        sl_experiment_close(out);
    return result;
}

void sl_session_free(sl_session *s) {
    if (s->simulation == NULL)
        sl_experiment_close(&s->experiment);
    sl_layout_close(&s->layout);
    free(s->base);
    if (s->fd >= 0)
        close(s->fd);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static int open_session(sl_session *s, const char *experiment, const sl_session_options *o,
                        sl_error *error) {
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, &clock);
    pthread_condattr_destroy(&clock);
    s->process = getpid();
    s->thread = pthread_self();
    s->fd = -1;
    s->measured = NAN;
    s->simulation = o->simulation;
    keep_options(s, o);
    if (s->simulation != NULL)
        return sl_simulation_join(s, o, error);
    int result = sl_session_read(&s->experiment, experiment, o, error);
    if (result == 0)
        s->nodes = sl_topology_nodes(s->experiment->topology);
    if (result == 0 && (s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        result = sl_fail(error, SL_ENOMEM, "join: no descriptor left");
    return result != 0 ? result : sl_peer_open(s, o, error);
}

int sl_session_join(sl_session **out, const char *experiment, uint64_t dimension,
                    const sl_session_options *options, sl_error *error) {
    sl_session_options o;
    sl_session_defaults(&o, sizeof o);
    if (options != NULL) /* of this release, or of an older one that has fewer */
        memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    sl_session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return sl_fail(error, SL_ENOMEM, "join: out of memory");
    int result = sl_layout_open(&s->layout, &o, dimension, error);
    if (result != 0) {
        free(s);
        return result;
    }
    result = open_session(s, experiment, &o, error);
    if (result != 0) {
        sl_session_free(s);
        return result;
    }
    const sl_variant variant = s->experiment->algorithm.variant;
    s->mixes_by_sum = s->options.overlap && variant != SL_VARIANT_COMBINE_WHILE_ADAPT;
    *out = s;
    return 0;
}

/* ---- rounds ---- */

int sl_session_start(sl_session *s, float *x, sl_error *error) {
    int result = check_caller(s, "start", error);
    if (result == 0)
        result = check_alive(s, error);
    if (result == 0)
        result = check_vector("start", x, error);
    if (result != 0)
        return result;
    if (s->started)
        return sl_fail(error, SL_EINVAL, "start: the session has started");
    s->started = true;
    s->start = x;
    if (s->simulation != NULL)
        sl_simulation_park(s);
    else
        result = sl_peer_start(s, error);
    if (result == 0)
        result = sl_session_wait(s, error);
    if (result == 0 && s->options.same_start)
        memcpy(x, s->model, s->layout.dimension * sizeof *x);
    return result;
}

static size_t bytes_of(const sl_session *s) {
    return s->layout.dimension * sizeof(float);
}

/* In a simulation the round begins with end: until then the caller runs alone. */
static void begin_round(sl_session *s, const float *x, bool begun) {
    s->in_round = true;
    s->begun = begun;
    s->offered = x;
    s->given = x;
    s->lends = begun || s->mixes_by_sum;
    if (s->options.check)
        s->sum = sl_checksum(x, bytes_of(s));
    if (s->simulation == NULL)
        sl_session_wish(s, WISH_ROUND);
}

int sl_session_offer(sl_session *s, const float *x, sl_error *error) {
    int result = check_round(s, "offer", false, error);
    if (result == 0)
        result = check_vector("offer", x, error);
    if (result == 0)
        begin_round(s, x, false);
    return result;
}

int sl_session_begin(sl_session *s, const float *x, sl_error *error) {
    int result = check_round(s, "begin", false, error);
    if (result == 0 && !s->options.overlap)
        result =
            sl_fail(error, SL_EINVAL, "begin: join was not told; set options.overlap, or call mix");
    if (result == 0)
        result = check_vector("begin", x, error);
    if (result == 0)
        begin_round(s, x, true);
    return result;
}

static int find_change(sl_session *s, sl_error *error) {
    if (!s->options.check || sl_checksum(s->offered, bytes_of(s)) == s->sum)
        return 0;
    sl_error change;
    sl_fail_node(&change, SL_EINVAL, s->rank, s->round,
                 "x was changed between %s and end, while the exchange read it",
                 s->begun ? "begin" : "offer");
    sl_session_fail(s, &change);
    sl_session_wait_end(s);
    if (error != NULL)
        *error = s->error;
    return s->error.code;
}

static int end_round(sl_session *s, float *x, sl_error *error) {
    if (s->simulation != NULL)
        sl_session_wish(s, WISH_ROUND);
    int result = sl_session_wait(s, error);
    if (result == 0)
        result = find_change(s, error);
    s->in_round = false;
    if (result == 0)
        memcpy(x, s->model, bytes_of(s));
    return result;
}

int sl_session_end(sl_session *s, float *x, sl_error *error) {
    int result = check_round(s, "end", true, error);
    if (result == 0 && x != s->offered)
        result =
            sl_fail(error, SL_EINVAL, "end: x is other memory than %s had; it must be the same",
                    s->begun ? "begin" : "offer");
    return result != 0 ? result : end_round(s, x, error);
}

int sl_session_mix(sl_session *s, float *x, sl_error *error) {
    int result = check_round(s, "mix", false, error);
    if (result == 0)
        result = check_vector("mix", x, error);
    if (result != 0)
        return result;
    begin_round(s, x, false);
    return end_round(s, x, error);
}

int sl_session_average(sl_session *s, float *average, double *distance, sl_error *error) {
    int result = check_round(s, "average", false, error);
    if (result != 0)
        return result;
    float *vector = average != NULL ? average : malloc(bytes_of(s));
    if (vector == NULL)
        return sl_fail(error, SL_ENOMEM, "average: out of memory for %zu parameters",
                       s->layout.dimension);
    s->average = vector;
    sl_session_wish(s, WISH_AVERAGE);
    result = sl_session_wait(s, error);
    if (result == 0 && distance != NULL)
        *distance = s->distance;
    if (average == NULL)
        free(vector);
    return result;
}

/* ---- ending ---- */

static uint64_t round_of(sl_session *s) {
    pthread_mutex_lock(&s->mutex);
    const uint64_t round = s->round;
    pthread_mutex_unlock(&s->mutex);
    return round;
}

/* The driver has ended, or never began. */
static void close_session(sl_session *s) {
    if (s->simulation != NULL)
        return; /* which frees it */
    sl_peer_close(s);
    sl_session_free(s);
}

int sl_session_leave(sl_session **session, sl_error *error) {
    sl_session *s = *session;
    if (s == NULL)
        return 0;
    int result = check_process(s, "leave", error);
    if (result != 0) {
        *session = NULL;
        return result;
    }
    result = check_caller(s, "leave", error);
    if (result != 0)
        return result;
    if (s->in_round)
        result = check_alive(s, error);
    if (s->in_round && result == 0)
        return check_round(s, "leave", false, error);
    *session = NULL;
    if (s->started) {
        sl_session_wish(s, WISH_LEAVE);
        sl_session_wait_end(s);
        result = s->error.code;
        if (result != 0 && error != NULL)
            *error = s->error;
    }
    close_session(s);
    return result;
}

void sl_session_abort(sl_session **session, const char *why) {
    sl_session *s = *session;
    if (s == NULL)
        return;
    *session = NULL;
    if (is_forked(s))
        return;
    sl_error error;
    sl_fail_node(&error, SL_ESTOPPED, s->rank, round_of(s), "%.*s", SL_SESSION_TEXT_MAX,
                 why != NULL ? why : "the session was aborted");
    if (s->started) {
        sl_session_fail(s, &error);
        sl_session_wish(s, WISH_GONE);
        if (s->simulation == NULL)
            sl_session_wait_end(s);
    }
    close_session(s);
}

void sl_session_stop(sl_session *s) {
    __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
}
