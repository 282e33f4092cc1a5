/* peer.c - the agent behind a session; see state.h.
 *
 * A thread of its own finds the peers, runs the agent and closes it. The task's hooks run on the
 * agent's worker.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collectives/collective.h"
#include "agent/lending.h"
#include "session/state.h"

/* ---- the task, on the agent's worker ---- */

static int add_up(void *context, const sl_share *share, sl_error *error) {
    const sl_session *s = context;
    return sl_agent_sum(s->process.meets, share, error);
}

/* Rank 0's x is the sum: the others add zeros. Who joins takes a model later. A node that goes on
 * has its model, but x is a copy of it where it is on a device. */
static void initial(void *context, uint32_t rank, float *x) {
    sl_session *s = context;
    const size_t d = s->layout.dimension;
    sl_error error;
    if (s->caller.beginning.state != NULL && !s->memory.vec->on_host)
        s->memory.vec->copy_out(x, sl_machine_model(&s->driver.node), d * sizeof *x);
    if (s->caller.beginning.state != NULL)
        return;
    sl_session_follow_caller(s);
    memcpy(x, sl_session_view(s, s->caller.beginning.x), d * sizeof *x);
    if (!s->options.same_start || s->options.joins)
        return;
    if (rank != 0)
        memset(x, 0, d * sizeof *x);
    const sl_share share = {.x = x, .count = d, .divisor = 1};
    if (sl_agent_meet(s->process.meets, 0, SL_MEET_SUM, &error) == SL_MEET_SUM)
        sl_agent_sum(s->process.meets, &share, &error);
}

static void ready(void *context, uint32_t rank, uint64_t round, const float *x, double weight) {
    (void)rank;
    sl_session_take(context, round, x, weight);
}

/* What ends a session of a peer's own mistake ends here; of an agent, there. */
static int fulfil(sl_session *s, uint64_t round) {
    sl_error error = {.code = 0};
    sl_share share;
    int result = sl_session_fulfil(&s, 1, add_up, s, &share, &error);
    if (result == 0 && sl_session_saves(s))
        result = sl_agent_meet(s->process.meets, round, SL_MEET_CUT, &error);
    if (result < 0)
        sl_session_fail(s, &error);
    if (result == 0) /* a view may have begun */
        s->shared.push_sum_weight = sl_machine_push_sum_weight(&s->driver.node);
    return result;
}

/* Comes to the others for what the caller wishes. False: they train on, all have come to leave, or
 * the run has failed. */
static bool meet(sl_session *s, uint64_t round) {
    sl_error error;
    if (!sl_session_asks(s->driver.wish) && s->driver.wish != WISH_LEAVE)
        return false;
    const sl_meet purpose = s->driver.wish == WISH_LEAVE ? SL_MEET_END : SL_MEET_SUM;
    int result = sl_agent_meet(s->process.meets, round, purpose, &error);
    if (result == SL_MEET_SUM)
        result = fulfil(s, round);
    else if (result != SL_SUM_VOID)
        return false;
    s->shared.asked.is_void = result == SL_SUM_VOID;
    if (s->shared.asked.is_void)
        sl_session_keep_own(s);
    return result >= 0;
}

static bool save(sl_session *s) {
    sl_error error;
    if (sl_agent_rest(s->process.meets, &error) != 0)
        return false;
    sl_session_write(s);
    return true;
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    sl_session *s = context;
    (void)rank;
    const bool apart = sl_experiment_is_asynchronous(s->experiment);
    while (s->driver.wish == WISH_SAVE && !apart ? save(s) : meet(s, round))
        if (s->driver.wish != WISH_LEAVE)
            sl_session_hand(s, x);
    sl_session_answer(s, x, g);
    return 0;
}

static const float *lend(void *context, uint32_t rank) {
    sl_session *s = context;
    (void)rank;
    sl_session_hear_rooms(s, sl_agent_free_rooms(s->process.meets));
    return s->driver.lent;
}

static int vouch(void *context, const float *piece, size_t count, sl_error *error) {
    sl_session *s = context;
    const float *borrowed = s->caller.round.borrowed;
    if (borrowed == NULL || piece < borrowed || piece >= borrowed + s->layout.dimension)
        return 0; /* none of the caller's */
    const size_t from = (size_t)(piece - borrowed);
    return sl_session_check_borrowed(s, from, from + count, error);
}

static void watch(void *context, const sl_progress *progress) {
    sl_session *s = context;
    s->driver.progress = progress;
}

/* On the agent's loop. */
static void mixed(void *context, uint32_t rank, const float *x, size_t from, size_t count) {
    (void)rank;
    sl_session_take_mixed(context, x, from, count);
}

static int record(void *context, const sl_record *record, const float *x) {
    sl_session *s = context;
    (void)x;
    pthread_mutex_lock(&s->shared.mutex);
    s->shared.record.round.neighbour_distance = record->round.neighbour_distance;
    pthread_mutex_unlock(&s->shared.mutex);
    return 0;
}

/* No sum is under way: a view begins between two rounds. */
static void take_members(void *context, uint64_t round, const uint32_t *ranks, uint32_t count) {
    sl_session *s = context;
    (void)round;
    pthread_mutex_lock(&s->shared.mutex);
    memcpy(s->shared.members.ranks, ranks, count * sizeof *ranks);
    s->shared.members.count = count;
    s->shared.members.epoch++;
    pthread_mutex_unlock(&s->shared.mutex);
}

static void notice(void *context, const char *text) {
    const sl_session *s = context;
    if (s->options.log != NULL)
        s->options.log(s->options.context, text);
}

/* ---- the agent's thread ---- */

static int opened(void *context, uint32_t rank, const sl_machine *node, sl_error *error) {
    (void)rank;
    return sl_session_open_node(context, node, error);
}

/* The worker waits for it, and the caller for the worker. */
static void cut(void *context, uint64_t round, const sl_checkpoint_view *view) {
    sl_session_cut(context, round, view);
}

static int open_agent(sl_session *s, sl_agent **agent, sl_error *error) {
    s->process.checkpoints =
        (sl_checkpoints){.resume = s->caller.beginning.state != NULL,
                         .round = s->caller.moment.round,
                         .opened = opened,
                         .cut = cut,
                         .view = s->caller.moment.view.number > 0 ? &s->caller.moment.view : NULL,
                         .context = s};
    sl_agent_settings settings = {
        .experiment = s->experiment,
        .task = sl_session_task(s),
        .rank = s->rank,
        .place = sl_launch_place(s->process.launch),
        .run_id = sl_launch_run_id(s->process.launch),
        .credentials = s->process.credentials,
        .observer = {.context = s, .record = record, .notice = notice, .members = take_members},
        .checkpoints = &s->process.checkpoints,
        .meets = true,
        .joins = s->options.joins != 0,
    };
    settings.task.context = s;
    settings.task.initial = initial;
    settings.task.ready = ready;
    settings.task.gradient = gradient;
    settings.task.watch = watch;
    settings.task.mixed = mixed;
    settings.task.lend = sl_session_lends(s) ? lend : NULL;
    settings.task.vouch = s->options.borrow && s->memory.vec->on_host ? vouch : NULL;
    int result = sl_launch_listen(s->process.launch, &settings.host, &settings.port, error);
    if (result == 0)
        result = sl_agent_open(agent, &settings, error);
    if (result == 0 && settings.task.lend != NULL)
        sl_session_open_rooms(s, *agent);
    return result;
}

/* From here on other threads see the agent, and may end it. */
static void show_agent(sl_session *s, sl_agent *agent) {
    pthread_mutex_lock(&s->shared.mutex);
    s->process.agent = s->process.meets = agent;
    if (s->shared.error.code != 0)
        sl_agent_end(agent, &s->shared.error);
    pthread_mutex_unlock(&s->shared.mutex);
}

static int run_agent(sl_session *s, sl_agent **agent, sl_roster **roster, sl_error *error) {
    int result = open_agent(s, agent, error);
    if (result == 0)
        result = sl_launch_meet(s->process.launch, sl_agent_port(*agent), roster, error);
    if (result != 0)
        return result;
    show_agent(s, *agent);
    return sl_agent_run(*agent, *roster, error);
}

/* The agent does not run any more, so that they end. */
static void await_uses(sl_session *s) {
    pthread_mutex_lock(&s->shared.mutex);
    while (s->process.uses > 0)
        pthread_cond_wait(&s->shared.changed, &s->shared.mutex);
    pthread_mutex_unlock(&s->shared.mutex);
}

static void *run(void *context) {
    sl_session *s = context;
    sl_agent *agent = NULL;
    sl_roster *roster = NULL;
    sl_error error = {.code = 0};
    error.code = run_agent(s, &agent, &roster, &error);
    sl_session_let_go(s);
    await_uses(s);
    sl_monitor_close(&s->process.monitor);
    sl_agent_close(&agent);
    sl_roster_close(&roster);
    sl_session_end_driver(s, &error);
    return NULL;
}

/* ---- the caller's thread ---- */

static int check_joining(const sl_session *s, const sl_session_options *o, sl_error *error) {
    if (o->joins && s->experiment->membership.on_loss == SL_ON_LOSS_STOP)
        return sl_fail(error, SL_EINVAL,
                       "options.joins: nobody can, as membership.on_loss is \"stop\" and the run "
                       "ended when a peer was lost; a run with \"continue\" can be joined");
    return !o->joins || o->roster != NULL || getenv("STARLING_ROSTER") != NULL
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "options.joins: needs options.roster, with which the others were started");
}

static int take_rank(sl_session *s, sl_error *error) {
    s->rank = sl_launch_rank(s->process.launch);
    return s->rank < sl_session_nodes(s) || s->options.joins
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "rank %u: the %u nodes of the topology begin the run; further ranks join "
                         "it (options.joins)",
                         s->rank, sl_session_nodes(s));
}

static void tell_alone(const sl_session *s, const sl_session_options *o) {
    if (sl_session_nodes(s) == 1 && s->experiment->membership.joiners == 0 && o->log != NULL)
        o->log(o->context, "warning: this run has one peer, which trains alone and exchanges "
                           "nothing; for more, start them with torchrun --nproc_per_node N, "
                           "mpirun or srun, or give each its rank and the size");
}

int sl_peer_open(sl_session *s, const sl_session_options *o, sl_error *error) {
    const sl_transport_config *t = &s->experiment->transport;
    const sl_launch_settings settings = {
        .has_rank = o->rank >= 0,
        .rank = o->rank >= 0 ? (uint32_t)o->rank : 0,
        .joiners = s->experiment->membership.joiners,
        .roster = o->roster,
        .master = o->master,
        .listen = o->listen,
        .run_id = o->run_id,
        .experiment = sl_experiment_hash(s->experiment),
        .certificates = sl_security_mode_of(&s->experiment->security) == SL_SECURITY_CERTIFICATES,
        .authority = s->experiment->security.ca[0] != '\0',
        .trusted_network = sl_security_goes_out(&s->experiment->security),
        .timeout_s = t->connect_timeout_s,
        .stop = &s->shared.stop,
        .notice = o->log,
        .context = o->context,
    };
    int result = check_joining(s, o, error);
    if (result == 0)
        result = sl_launch_find(&s->process.launch, &settings, sl_session_nodes(s), error);
    if (result == 0)
        result = take_rank(s, error);
    if (result == 0)
        result =
            sl_security_load(&s->process.credentials, &s->experiment->security, s->rank, error);
    if (result == 0)
        tell_alone(s, o);
    return result;
}

/* Before libfabric opens verbs: memory that is registered there would else be gone from this
 * process once a DataLoader's worker has been forked. Other providers do not care, and other
 * threads may read the environment. */
static void allow_forks(const sl_session *s) {
    if (strncmp(s->experiment->transport.provider, "tcp", 3) != 0)
        setenv("RDMAV_FORK_SAFE", "1", 0);
}

/* Signals are for the caller's threads. */
int sl_peer_start(sl_session *s, sl_error *error) {
    sigset_t all, before;
    allow_forks(s);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&s->shared.mutex); /* others ask for the status */
    const bool runs = s->process.runs = pthread_create(&s->process.runner, NULL, run, s) == 0;
    pthread_mutex_unlock(&s->shared.mutex);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (runs)
        return 0;
    sl_fail(error, SL_ENOMEM, "start: no thread could be started");
    sl_session_end_driver(s, error);
    return SL_ENOMEM;
}

void sl_peer_close(sl_session *s) {
    if (s->process.runs)
        pthread_join(s->process.runner, NULL);
    sl_launch_close(&s->process.launch);
}
