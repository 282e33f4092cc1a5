/* simulate.c - all peers of an experiment in one process; see sl_simulate in starling/session.h.
 *
 * Peers join, train and leave together; then their functions go on, one after the other, until they
 * return or, all of them, join once more.
 *
 * Each peer's function has a thread, and the simulator one: the caller's of sl_simulate. One of
 * them runs; the others wait. A peer's thread runs from its turn (sl_session_hand) to its next
 * wish. Between a round's turns and the next ones the simulator computes the round, with the nodes
 * and in the order of src/sim.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/recording.h"
#include "session/state.h"
#include "starling/sim.h"
#include "task/layout_text.h"

typedef struct place {
    sl_simulation *simulation;
    uint32_t rank;
    sl_session_options options;
    sl_session *session; /* NULL: has not joined; until it joins again, the one that it has left */
    pthread_t thread;
    bool parked, done; /* under the simulation's mutex: in start; returned */
    bool over;         /* done, and its thread has ended */
    bool has_come;     /* to what all come for; where peers go at their own times */
    int result;
    sl_error error;
} place;

struct sl_simulation {
    sl_experiment *experiment;
    int (*peer)(void *context, const sl_session_options *options, sl_error *error);
    void *context;
    uint32_t nodes;
    place *places;         /* (nodes) */
    sl_session **sessions; /* (nodes) once all have started */
    sl_share *shares;      /* (nodes) */
    sl_tree tree;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int stop;            /* no more rounds */
    bool left;           /* because all have left */
    bool ending;         /* nobody joins again */
    uint64_t answered;   /* the last round whose meetings are over */
    bool apart, follows; /* peers go at their own times; and meet in the same round nevertheless */
    bool saves;          /* at their own times: what they have come for is a cut */
    sl_recording *recording; /* NULL: there is no run folder */
    sl_error error;
};

static void fail(sl_simulation *m, const sl_error *error) {
    if (m->error.code == 0)
        m->error = *error;
    m->stop = 1;
}

/* ---- the peers' threads ---- */

static void *run_peer(void *argument) {
    place *p = argument;
    p->result = p->simulation->peer(p->simulation->context, &p->options, &p->error);
    if (p->result != 0 && p->error.code == 0)
        p->result = sl_fail(&p->error, SL_EINVAL,
                            "simulate: the function of rank %u returned %d, and did not say why",
                            p->rank, p->result);
    pthread_mutex_lock(&p->simulation->mutex);
    p->done = true;
    pthread_cond_broadcast(&p->simulation->changed);
    pthread_mutex_unlock(&p->simulation->mutex);
    if (p->session != NULL)
        sl_session_wish(p->session, WISH_GONE);
    return NULL;
}

int sl_simulation_join(sl_session *s, const sl_session_options *o, sl_error *error) {
    sl_simulation *m = o->simulation;
    if (m->ending)
        return sl_fail(error, SL_ESTOPPED, "join: the simulation is ending");
    place *p = o->rank >= 0 && o->rank < m->nodes ? &m->places[o->rank] : NULL;
    if (p == NULL || (p->session != NULL && !sl_session_has_ended(p->session)))
        return sl_fail(error, SL_EINVAL,
                       "options.rank: %lld is not this peer's rank in the simulation, or it has "
                       "joined before, and not left",
                       (long long)o->rank);
    if (o->overlap != p->options.overlap)
        return sl_fail(error, SL_EINVAL,
                       "options.overlap: differs from that of sl_simulate; give it there");
    if (o->joins)
        return sl_fail(error, SL_EINVAL,
                       "options.joins: a simulation's peers all begin with it; leave it 0");
    s->experiment = m->experiment;
    int result = sl_session_count_members(s, m->nodes, error);
    if (result == 0)
        result = sl_session_open_memory(s, error);
    if (result != 0)
        return result;
    s->rank = p->rank;
    if (p->session != NULL)
        sl_session_free(p->session);
    p->session = s;
    return 0;
}

void sl_simulation_park(sl_session *s) {
    sl_simulation *m = s->options.simulation;
    pthread_mutex_lock(&m->mutex);
    m->places[s->rank].parked = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->mutex);
}

/* ---- until all have started ---- */

/* Lets the one thread run that is awake, until its peer is in start, or has returned. */
static bool await_peer(place *p) {
    sl_simulation *m = p->simulation;
    pthread_mutex_lock(&m->mutex);
    while (!p->parked && !p->done)
        pthread_cond_wait(&m->changed, &m->mutex);
    const bool parked = p->parked;
    pthread_mutex_unlock(&m->mutex);
    if (!parked) {
        pthread_join(p->thread, NULL);
        p->over = true;
    }
    return parked;
}

static int start_peer(place *p, sl_error *error) {
    if (pthread_create(&p->thread, NULL, run_peer, p) != 0)
        return sl_fail(error, SL_ENOMEM, "simulate: no thread could be started");
    if (await_peer(p))
        return 0;
    if (p->result == 0)
        return sl_fail(error, SL_EINVAL, "simulate: the peer of rank %u returned without start",
                       p->rank);
    *error = p->error;
    return p->result;
}

static sl_layout_text text_of(const sl_layout *l) {
    return (sl_layout_text){l->text, strlen(l->text)};
}

static int check_layouts(const sl_simulation *m, sl_error *error) {
    const sl_layout *first = &m->sessions[0]->layout;
    for (uint32_t i = 1; i < m->nodes; i++) {
        const sl_layout *l = &m->sessions[i]->layout;
        char text[SL_ERROR_TEXT_MAX / 2];
        if (sl_layout_text_differs(text_of(first), text_of(l), text, sizeof text))
            return sl_fail(error, SL_EINVAL,
                           "simulate: the tensors of rank 0 (there) and rank %u (here) differ: %s",
                           i, text);
        if (l->dimension != first->dimension)
            return sl_fail(error, SL_EINVAL,
                           "simulate: the dimension of ranks 0 and %u differs: %zu and %zu", i,
                           first->dimension, l->dimension);
        if (m->sessions[i]->caller.moment.round != m->sessions[0]->caller.moment.round)
            return sl_fail(error, SL_EINVAL,
                           "simulate: the round to go on from (0: none) of ranks 0 and %u differs: "
                           "%" PRIu64 " and %" PRIu64,
                           i, m->sessions[0]->caller.moment.round,
                           m->sessions[i]->caller.moment.round);
        if (m->sessions[i]->options.same_start != m->sessions[0]->options.same_start)
            return sl_fail(error, SL_EINVAL, "options.same_start: differs between ranks 0 and %u",
                           i);
    }
    return 0;
}

/* ---- meetings: what all peers do at the same point ---- */

static int add_up(void *context, const sl_share *shares, sl_error *error) {
    const sl_simulation *m = context;
    return sl_tree_sum(&m->tree, shares, error);
}

/* WISH_ROUND: some still train. An average or a sum: none does, and some ask for it. WISH_LEAVE:
 * all do. */
static sl_wish common_wish(const sl_simulation *m) {
    sl_wish common = WISH_LEAVE;
    for (uint32_t i = 0; i < m->nodes; i++) {
        if (m->sessions[i]->driver.wish == WISH_ROUND)
            return WISH_ROUND;
        if (sl_session_asks(m->sessions[i]->driver.wish))
            common = m->sessions[i]->driver.wish;
    }
    return common;
}

static void fail_at_once(sl_simulation *m, int code, uint32_t rank, const char *what) {
    sl_error error;
    sl_fail_node(&error, code, rank, m->sessions[rank]->shared.round, "%s", what);
    fail(m, &error);
}

/* The functions that ended too early, calls that failed, and who is to stop. */
static void notice_failures(sl_simulation *m) {
    for (uint32_t i = 0; i < m->nodes; i++) {
        if (m->sessions[i]->shared.error.code != 0)
            fail(m, &m->sessions[i]->shared.error);
        else if (m->places[i].done && m->places[i].result != 0)
            fail(m, &m->places[i].error);
        else if (m->sessions[i]->driver.wish == WISH_GONE)
            fail_at_once(m, SL_EINVAL, i, "the peer's function returned without leave");
        else if (__atomic_load_n(&m->sessions[i]->shared.stop, __ATOMIC_RELAXED))
            fail_at_once(m, SL_ESTOPPED, i, "stopped on request");
    }
}

static void fulfil(sl_simulation *m) {
    sl_error error;
    int result = sl_session_fulfil(m->sessions, m->nodes, add_up, m, m->shares, &error);
    if (result != 0)
        fail(m, &error);
    m->saves = result == 0 && sl_session_saves(m->sessions[0]);
    for (uint32_t i = 0; i < m->nodes && result == 0 && !m->saves; i++)
        if (sl_session_asks(m->sessions[i]->driver.wish))
            sl_session_hand(m->sessions[i], m->sessions[i]->shared.model);
}

/* The cause is told by run(). */
static int told(sl_simulation *m, int result, const sl_error *error) {
    if (result != 0)
        fail(m, error);
    return result;
}

/* All peers have a wish. Fulfils those that they have in common. */
static void meet(sl_simulation *m) {
    notice_failures(m);
    sl_wish wish = common_wish(m);
    while (m->stop == 0 && sl_session_asks(wish)) {
        fulfil(m);
        if (m->saves)
            return;
        notice_failures(m);
        wish = common_wish(m);
    }
    if (m->stop == 0 && wish == WISH_LEAVE) {
        sl_error error;
        m->left =
            m->recording == NULL || told(m, sl_recording_finish(m->recording, &error), &error) == 0;
        m->stop = 1;
    }
}

/* ---- the task of the simulator ---- */

static void initial(void *context, uint32_t rank, float *x) {
    const sl_simulation *m = context;
    const sl_session *s = m->sessions[rank];
    sl_session *from = m->sessions[s->options.same_start ? 0 : rank];
    sl_session_follow_caller(from);
    memcpy(x, sl_session_view(from, from->caller.beginning.x), s->layout.dimension * sizeof *x);
}

/* Rounds of its slowest neighbour, behind this one. */
static uint64_t count_ahead(const sl_simulation *m, uint32_t rank, uint64_t round) {
    const uint32_t *peers;
    const uint32_t count = sl_topology_peers(m->experiment->topology, rank, &peers);
    uint64_t slowest = round;
    for (uint32_t i = 0; i < count; i++)
        if (m->sessions[peers[i]]->shared.round < slowest)
            slowest = m->sessions[peers[i]]->shared.round;
    return round - slowest;
}

static void ready(void *context, uint32_t rank, uint64_t round, const float *x, double weight) {
    sl_simulation *m = context;
    if (m->stop != 0)
        return;
    if (m->apart)
        m->sessions[rank]->shared.ahead = count_ahead(m, rank, round);
    sl_session_take(m->sessions[rank], round, x, weight);
}

/* The latest round in which somebody has come, if all have; else 0. */
static uint64_t round_of_meeting(const sl_simulation *m) {
    uint64_t latest = 0;
    for (uint32_t i = 0; i < m->nodes; i++) {
        if (!m->places[i].has_come)
            return 0;
        if (m->sessions[i]->shared.round > latest)
            latest = m->sessions[i]->shared.round;
    }
    return latest;
}

static bool comes(const sl_session *s) {
    return sl_session_asks(s->driver.wish) || s->driver.wish == WISH_LEAVE;
}

/* At their own times: who comes for what all come for waits there. */
static bool waits(void *context, uint32_t rank) {
    sl_simulation *m = context;
    if (m->saves)
        return true;
    notice_failures(m);
    m->places[rank].has_come = comes(m->sessions[rank]);
    const uint64_t round = round_of_meeting(m);
    bool all_here = m->stop == 0 && round > 0;
    for (uint32_t i = 0; i < m->nodes && m->follows; i++)
        all_here = all_here && m->sessions[i]->shared.round == round;
    if (all_here)
        meet(m);
    else if (m->follows && m->sessions[rank]->shared.round < round)
        m->places[rank].has_come = false;
    for (uint32_t i = 0; i < m->nodes && all_here && !m->saves; i++)
        m->places[i].has_come = comes(m->sessions[i]);
    return m->places[rank].has_come;
}

static bool wants_cut(void *context) {
    const sl_simulation *m = context;
    return m->saves && m->stop == 0;
}

/* All nodes rest. Each caller has its state when its save returns. */
static void cut(void *context, uint64_t round, const sl_checkpoint_view *view) {
    sl_simulation *m = context;
    m->saves = false;
    for (uint32_t i = 0; i < m->nodes; i++)
        sl_session_cut(m->sessions[i], round, view);
    for (uint32_t i = 0; i < m->nodes; i++) {
        sl_session *s = m->sessions[i];
        s->shared.push_sum_weight = sl_machine_push_sum_weight(&s->driver.node);
        if (s->driver.wish == WISH_SAVE)
            sl_session_hand(s, s->shared.model);
        m->places[i].has_come = comes(s);
    }
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    sl_simulation *m = context;
    m->places[rank].has_come = false;
    if (m->answered < round && !m->apart) {
        m->answered = round;
        meet(m);
    }
    sl_session_answer(m->sessions[rank], x, g);
    if (m->sessions[rank]->shared.error.code != 0)
        fail(m, &m->sessions[rank]->shared.error);
    return 0;
}

static const float *lend(void *context, uint32_t rank) {
    const sl_simulation *m = context;
    return m->sessions[rank]->driver.lent;
}

static int record(void *context, const sl_record *record, const float *x) {
    sl_simulation *m = context;
    sl_error error;
    m->sessions[record->rank]->shared.record = *record;
    return m->recording == NULL
               ? 0
               : told(m, sl_recording_take(m->recording, record, x, &error), &error);
}

static void take_end(void *context, const sl_record *record) {
    const sl_simulation *m = context;
    m->sessions[record->rank]->shared.record = *record;
}

static int parameters(void *context, uint64_t round, uint32_t rank, const float *x, double weight) {
    sl_simulation *m = context;
    sl_error error;
    return told(m, sl_recording_parameters(m->recording, round, rank, x, weight, &error), &error);
}

static int opened(void *context, uint32_t rank, const sl_machine *node, sl_error *error) {
    const sl_simulation *m = context;
    return sl_session_open_node(m->sessions[rank], node, error);
}

static int run(sl_simulation *m, sl_error *error) {
    sl_task task = sl_session_task(m->sessions[0]);
    task.context = m;
    task.initial = initial;
    task.ready = ready;
    task.gradient = gradient;
    task.waits = waits;
    task.lend = sl_session_lends(m->sessions[0]) ? lend : NULL;
    const sl_observer observer = {.context = m,
                                  .record = m->apart && m->recording == NULL ? NULL : record,
                                  .ended = take_end,
                                  .parameters = m->recording != NULL ? parameters : NULL};
    const uint64_t round = m->sessions[0]->caller.moment.round;
    const sl_checkpoint_view view = m->sessions[0]->caller.moment.view; /* saving overwrites it */
    const sl_checkpoints checkpoints = {.resume = round > 0,
                                        .round = round,
                                        .opened = opened,
                                        .cut = cut,
                                        .wants_cut = wants_cut,
                                        .view = &view,
                                        .context = m};
    sl_timeline *timeline = NULL;
    int result = sl_sim_run(m->experiment, &task, &observer, &checkpoints,
                            m->recording != NULL ? &timeline : NULL, &m->stop, error);
    if (m->error.code != 0) {
        *error = m->error;
        result = m->error.code;
    } else if (m->left) {
        result = m->recording != NULL ? sl_recording_summarise(m->recording, timeline, error) : 0;
    }
    sl_timeline_close(&timeline);
    return result;
}

/* ---- from beginning to end ---- */

/* One after the other, each peer's call returns the error. */
static void end_peers(sl_simulation *m, uint32_t started, const sl_error *error) {
    m->ending = true;
    for (uint32_t i = 0; i < started; i++) {
        if (m->places[i].over)
            continue;
        sl_session_end_driver(m->places[i].session, error);
        pthread_join(m->places[i].thread, NULL);
    }
    for (uint32_t i = 0; i < m->nodes; i++)
        if (m->places[i].session != NULL)
            sl_session_free(m->places[i].session);
}

static int start_all(sl_simulation *m, uint32_t *started, sl_error *error) {
    int result = 0;
    for (*started = 0; *started < m->nodes && result == 0; *started += result == 0)
        result = start_peer(&m->places[*started], error);
    return result;
}

/* All have left: one after the other, each peer's leave returns, and its function goes on. Do all
 * join again? */
static int go_on(sl_simulation *m, bool *again, sl_error *error) {
    uint32_t rank = 0, other = 0, parked = 0; /* one that has joined, one that has returned */
    for (uint32_t i = 0; i < m->nodes; i++) {
        place *p = &m->places[i];
        p->parked = false;
        sl_session_end_driver(p->session, NULL);
        const bool joined = await_peer(p);
        if (!joined && p->result != 0)
            fail(m, &p->error);
        parked += joined;
        *(joined ? &rank : &other) = i;
    }
    *again = parked == m->nodes;
    if (m->error.code != 0) {
        *error = m->error;
        return m->error.code;
    }
    if (parked > 0 && !*again)
        return sl_fail(error, SL_EPEER,
                       "simulate: rank %u has joined again, but the function of rank %u has "
                       "returned: all peers join again, or none",
                       rank, other);
    return 0;
}

/* From start until all have left. */
static int run_once(sl_simulation *m, sl_error *error) {
    m->stop = 0;
    m->left = m->saves = false;
    m->answered = 0;
    for (uint32_t i = 0; i < m->nodes; i++) {
        m->sessions[i] = m->places[i].session;
        m->places[i].has_come = false;
    }
    int result = check_layouts(m, error);
    if (result == 0 && m->recording != NULL)
        result = sl_recording_begin(m->recording, m->sessions[0]->layout.dimension, error);
    return result != 0 ? result : run(m, error);
}

static int run_all(sl_simulation *m, sl_error *error) {
    uint32_t started;
    bool again = true;
    sl_error why = {.code = 0};
    int result = start_all(m, &started, &why);
    while (result == 0 && again) {
        result = run_once(m, &why);
        if (result == 0)
            result = go_on(m, &again, &why);
    }
    why.code = result;
    sl_recording_close(&m->recording, result != 0 ? why.text : NULL);
    end_peers(m, started, &why);
    if (result != 0 && error != NULL)
        *error = why;
    return result;
}

static int open_simulation(sl_simulation *m, const char *experiment, uint64_t n,
                           const sl_session_options *o, sl_error *error) {
    sl_session_options all = *o;
    all.nodes = (int64_t)n;
    int result = sl_session_read(&m->experiment, experiment, &all, true, error);
    if (result != 0)
        return result;
    m->nodes = sl_topology_nodes(m->experiment->topology);
    const sl_algorithm_config *c = &m->experiment->algorithm;
    const sl_algorithm *algorithm = sl_algorithm_of(c, error);
    result = sl_tree_open(&m->tree, algorithm, c, m->experiment->topology, NULL, error);
    if (result != 0)
        return result;
    m->apart = algorithm->async != NULL;
    m->follows = m->apart && algorithm->async->pattern != SL_PATTERN_PAIRS;
    m->places = calloc(n, sizeof *m->places);
    m->sessions = calloc(n, sizeof *m->sessions);
    m->shares = calloc(n, sizeof *m->shares);
    if (m->places == NULL || m->sessions == NULL || m->shares == NULL)
        return sl_fail(error, SL_ENOMEM, "simulate: out of memory for %u peers", m->nodes);
    for (uint32_t i = 0; i < m->nodes; i++) {
        m->places[i] = (place){.simulation = m, .rank = i, .options = *o};
        m->places[i].options.rank = i;
        m->places[i].options.nodes = (int64_t)n;
        m->places[i].options.simulation = m;
    }
    return 0;
}

int sl_simulate(const char *experiment, uint64_t n,
                int (*peer)(void *context, const sl_session_options *options, sl_error *error),
                void *context, const sl_session_options *options, sl_error *error) {
    sl_session_options o;
    int result = sl_session_take_options(&o, options, error);
    if (result != 0)
        return result;
    if (n == 0 || n > SL_NODES_MAX || experiment == NULL || peer == NULL)
        return sl_fail(error, SL_EINVAL,
                       "simulate: n is %llu, from 1 to %u; experiment and peer may not be NULL",
                       (unsigned long long)n, SL_NODES_MAX);
    sl_simulation m = {.peer = peer, .context = context};
    pthread_mutex_init(&m.mutex, NULL);
    pthread_cond_init(&m.changed, NULL);
    result = open_simulation(&m, experiment, n, &o, error);
    if (result == 0 && o.out != NULL)
        result = sl_recording_open(&m.recording, m.experiment, &o, error);
    if (result == 0)
        result = run_all(&m, error);
    sl_tree_close(&m.tree);
    free(m.places);
    free(m.sessions);
    free(m.shares);
    sl_experiment_close(&m.experiment);
    pthread_cond_destroy(&m.changed);
    pthread_mutex_destroy(&m.mutex);
    return result;
}
