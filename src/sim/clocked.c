/* clocked.c - the simulator where nodes go at their own times: ad-psgd and its kin.
 *
 * One heap of events (heap.h), in nanoseconds. A gradient takes what network.* says of its node,
 * and a nanosecond at least; it is computed when it ends, at a point that stands still meanwhile. A
 * part of a message takes its way over the ports (ports.h). Where links take no time, what a
 * gradient sets off is over before the next one ends.
 *
 * A fault's round comes when the first node has ended the one before. Then all rest: at a loss they
 * are cut, else what is open ends, and what is on its way comes. A view begins when that is so; to
 * notice, and to agree, takes no time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/heap.h"
#include "sim/ports.h"
#include "sim/recorded.h"
#include "sim/simulator.h"
#include "wire/frame.h"

typedef enum kind {
    COMES,
    ARRIVES,
    ACKNOWLEDGED,
    START,
    GRADIENT,
    TURN,
    CHANGE,
    RECORD,
    NOTHING /* it was to happen to a node that is gone, or is on its way no more */
} kind;

/* What an event is, beside its time and rank. */
typedef struct body {
    kind kind;
    uint32_t rank, peer; /* whom it happens to; the sender */
    message *message;    /* NULL: a silent part */
    sl_async_part part;
    uint64_t left; /* of a message: when it was handed over */
    uint32_t next_free;
} body;

typedef struct clocked {
    simulator *s;
    sl_heap heap;
    sl_ports ports;
    sl_recorded recorded;
    body *bodies; /* (body_room) */
    uint32_t body_room, free_body;
    uint64_t now;
    uint64_t *since;                      /* (nodes) when its gradient began, or was there */
    uint64_t record_every, last_recorded; /* nanoseconds, 0: by rounds; the number of the last */
    bool is_timed;                        /* does the experiment say how long anything takes? */
    bool *held;                           /* (nodes) its gradient waits for what other nodes do */
    uint32_t finished;
    uint64_t fault, views; /* the next round that has one, 0: none has; views that have begun */
    bool changes, rests;   /* its round has come; all are to rest */
} clocked;

static const uint32_t NONE = UINT32_MAX;

/* ---- events ---- */

static int no_memory(const clocked *c, sl_error *error) {
    return sl_fail(error, SL_ENOMEM, "simulator: out of memory for the events of %u nodes",
                   c->s->nodes);
}

static uint32_t take_body(clocked *c) {
    if (c->free_body == NONE) {
        const uint32_t room = 2 * c->body_room + 64;
        body *bodies = realloc(c->bodies, room * sizeof *bodies);
        if (bodies == NULL)
            return NONE;
        for (uint32_t i = c->body_room; i < room; i++)
            bodies[i].next_free = i + 1 < room ? i + 1 : NONE;
        c->free_body = c->body_room;
        c->bodies = bodies;
        c->body_room = room;
    }
    const uint32_t at = c->free_body;
    c->free_body = c->bodies[at].next_free;
    return at;
}

static int add(clocked *c, uint64_t at, const body *b, sl_error *error) {
    static const sl_phase phases[] = {
        [COMES] = SL_PHASE_MESSAGE,        [ARRIVES] = SL_PHASE_MESSAGE,
        [ACKNOWLEDGED] = SL_PHASE_MESSAGE, [START] = SL_PHASE_GRADIENT,
        [GRADIENT] = SL_PHASE_GRADIENT,    [TURN] = SL_PHASE_TURN,
        [CHANGE] = SL_PHASE_CHANGE,        [RECORD] = SL_PHASE_RECORD};
    const uint32_t place = take_body(c);
    if (place == NONE || !sl_heap_add(&c->heap, at, phases[b->kind], b->rank, place))
        return no_memory(c, error);
    c->bodies[place] = *b;
    return 0;
}

/* How long the node's gradient of this round takes. */
static uint64_t gradient_ns(const clocked *c, uint32_t rank, uint64_t round) {
    const sl_network_config *n = &c->s->experiment->network;
    const double ms =
        sl_network_gradient_ms(n, n->gradient_ms, c->s->experiment->seed, rank, round);
    const uint64_t ns = (uint64_t)llround(1e6 * ms);
    return ns > 0 ? ns : 1;
}

/* ---- what a node asks for ---- */

static void show(const clocked *c, sl_span_kind what, uint32_t rank, uint32_t to, uint64_t begin) {
    const simulator *s = c->s;
    const sl_span span = {
        what, rank, to, s->peers[rank].pending.round, 1e-9 * (double)begin, 1e-9 * (double)c->now};
    if (s->observer->span != NULL && begin < c->now)
        s->observer->span(s->observer->context, &span);
}

static int end_round(clocked *c, uint32_t rank, const sl_round *round, sl_error *error) {
    show(c, SL_SPAN_WAIT, rank, 0, c->since[rank]);
    c->s->peers[rank].record.virtual_s = c->is_timed ? 1e-9 * (double)c->now : 0;
    const int result = sl_apart_end_round(c->s, &c->recorded, rank, round, error);
    if (result != 0 || c->changes || c->fault == 0 || round->round + 1 < c->fault)
        return result;
    c->changes = true;
    return add(c, c->now, &(body){.kind = CHANGE}, error);
}

static int begin_gradient(clocked *c, uint32_t rank, uint64_t round, sl_error *error) {
    const simulator *s = c->s;
    const sl_async *node = s->peers[rank].async;
    s->peers[rank].pending.round = round;
    c->since[rank] = c->now;
    if (s->task->ready != NULL)
        s->task->ready(s->task->context, rank, round, sl_async_point(node),
                       sl_async_push_sum_weight(node));
    return add(c, c->now + gradient_ns(c, rank, round), &(body){.kind = GRADIENT, .rank = rank},
               error);
}

static int step(clocked *c, uint32_t rank, const sl_event *event, sl_error *error) {
    simulator *s = c->s;
    sl_update update;
    sl_event timed = *event;
    timed.now_ns = c->now;
    int result = sl_async_step(s->peers[rank].async, &timed, &update, error);
    for (size_t i = 0; i < update.released_count; i++)
        if (update.released[i] != NULL)
            sl_sim_let_go(s, update.released[i]);
    if (result == 0 && update.round_done)
        result = end_round(c, rank, &update.finished_round, error);
    c->finished += update.finished;
    if (result == 0 && update.compute)
        result = begin_gradient(c, rank, update.round, error);
    if (result == 0 && update.turn)
        result = add(c, c->now, &(body){.kind = TURN, .rank = rank}, error);
    return result;
}

static message *copy_of(clocked *c, const sl_payload *payload) {
    message *m = sl_sim_take_message(c->s);
    if (m != NULL)
        memcpy(m->data, payload->data, payload->bytes);
    return m;
}

static double frame_bytes(const sl_async_part *part) {
    return (double)(part->payload.bytes + SL_FRAME_HEADER_BYTES);
}

static int send(clocked *c, uint32_t rank, const sl_async_part *part, const sl_row *to,
                sl_error *error) {
    message *m = part->silent || to->count == 0 ? NULL : copy_of(c, &part->payload);
    if (m == NULL && !part->silent && to->count > 0)
        return no_memory(c, error);
    body b = {.kind = sl_ports_take_time(&c->ports) ? COMES : ARRIVES,
              .peer = rank,
              .message = m,
              .part = *part,
              .left = c->now};
    if (m != NULL)
        b.part.payload.data = m->data;
    uint32_t first = 0;
    while (first < to->count && to->peers[first] < rank)
        first++;
    int result = 0;
    for (uint32_t k = 0; k < to->count && result == 0; k++) {
        b.rank = to->peers[(first + k) % to->count];
        if (!sl_sim_is_there(&c->s->peers[b.rank])) /* an account of what was cut */
            continue;
        if (m != NULL)
            m->readers++;
        result =
            add(c, sl_ports_leave(&c->ports, rank, b.rank, frame_bytes(part), c->now), &b, error);
    }
    if (m != NULL)
        sl_sim_let_go(c->s, m);
    return result;
}

/* What may leave has left at once: it is copied, and waits for its link there. */
static int send_all(clocked *c, uint32_t rank, sl_error *error) {
    sl_async_part part;
    sl_row to;
    int result = 0, any = 0;
    while (result == 0 && (any = sl_async_next(c->s->peers[rank].async, &part, &to, error)) > 0) {
        result = send(c, rank, &part, &to, error);
        if (result == 0)
            result = step(c, rank, &(sl_event){.type = SL_EVENT_SENT}, error);
    }
    return result == 0 ? any : result;
}

static int deliver(clocked *c, uint32_t rank, const sl_event *event, sl_error *error) {
    const int result = step(c, rank, event, error);
    return result != 0 ? result : send_all(c, rank, error);
}

/* ---- records ---- */

static uint32_t count_there(const clocked *c) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->s->nodes; i++)
        count += sl_sim_is_there(&c->s->peers[i]);
    return count;
}

/* How many a node has done, mean over nodes. */
static uint64_t mean_gradients(const clocked *c) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->s->nodes; i++)
        if (sl_sim_is_there(&c->s->peers[i]))
            sum += c->s->peers[i].pending.finished_round.round;
    return sum / count_there(c);
}

/* Is anything to happen but records and a change that waits? */
static bool goes_on(const clocked *c) {
    bool any = false;
    for (size_t i = 0; i < c->heap.count && !any; i++)
        any = c->bodies[c->heap.entries[i].body].kind < CHANGE;
    return any;
}

/* That is the number of such a record. */
static int record_now(clocked *c, sl_error *error) {
    const uint64_t round = mean_gradients(c);
    int result = 0;
    if (round > c->last_recorded && round < c->s->task->rounds) {
        c->last_recorded = round;
        if (c->views > 0)
            sl_sim_tell_members(c->s, round);
        result = sl_apart_report_all(c->s, &c->recorded, round, 1e-9 * (double)c->now);
    }
    return result == 0 && goes_on(c)
               ? add(c, c->now + c->record_every, &(body){.kind = RECORD}, error)
               : result;
}

/* ---- faults ---- */

static bool is_message(const body *b) {
    return b->kind <= ACKNOWLEDGED;
}

static bool is_any_on_its_way(const clocked *c) {
    for (size_t i = 0; i < c->heap.count; i++)
        if (is_message(&c->bodies[c->heap.entries[i].body]))
            return true;
    return false;
}

/* Nothing comes of what is on its way, and of what nodes that are gone would have done. */
static void forget(clocked *c) {
    for (size_t i = 0; i < c->heap.count; i++) {
        body *b = &c->bodies[c->heap.entries[i].body];
        const bool of_node = b->kind == GRADIENT || b->kind == TURN;
        if (is_message(b) && b->message != NULL)
            sl_sim_let_go(c->s, b->message);
        if (is_message(b) || (of_node && !sl_sim_is_there(&c->s->peers[b->rank])))
            b->kind = NOTHING;
    }
}

static int close_gone(clocked *c, bool leavers, bool *any) {
    simulator *s = c->s;
    *any = sl_sim_close_gone(s, c->fault, leavers) > 0;
    if (!*any)
        return 0;
    forget(c);
    for (uint32_t i = 0; i < s->nodes; i++)
        if (!sl_sim_is_there(&s->peers[i]))
            sl_recorded_let(&c->recorded, i, UINT64_MAX);
    sl_sim_tell_members(s, c->fault);
    return sl_recorded_flush(&c->recorded);
}

static int tell_all(clocked *c, const sl_event *event, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < c->s->nodes && result == 0; i++)
        if (sl_sim_is_there(&c->s->peers[i]))
            result = deliver(c, i, event, error);
    return result;
}

/* Others are to be there. Who leaves takes part until the view. */
static int begin_to_rest(clocked *c, sl_error *error) {
    simulator *s = c->s;
    bool cuts;
    sl_cast_play(&s->scene.cast, &s->experiment->faults, c->fault);
    c->rests = true;
    int result = close_gone(c, false, &cuts);
    if (result == 0)
        result = tell_all(c, &(sl_event){.type = cuts ? SL_EVENT_CUT : SL_EVENT_REST}, error);
    for (uint32_t i = 0; i < s->nodes && result == 0 && cuts; i++)
        if (!sl_sim_is_there(&s->peers[i]))
            result = tell_all(c, &(sl_event){.type = SL_EVENT_PEER_DOWN, .peer = i}, error);
    return result;
}

static bool do_all_rest(const clocked *c) {
    for (uint32_t i = 0; i < c->s->nodes; i++)
        if (sl_sim_is_there(&c->s->peers[i]) && !sl_async_rests(c->s->peers[i].async))
            return false;
    return !is_any_on_its_way(c);
}

/* A newcomer begins with the fault's round, whatever round its sponsor is in. */
static int turn(clocked *c, uint32_t rank, const sl_scene_view *v, sl_error *error) {
    peer *p = &c->s->peers[rank];
    const bool is_new = sl_async_round(p->async) == 0;
    p->own_view = v->view;
    p->own_view.round = is_new ? c->fault : sl_async_round(p->async);
    if (is_new) {
        sl_recorded_let(&c->recorded, rank, c->fault);
        p->pending.finished_round.round = c->fault - 1;
    }
    const int result = sl_sim_enter(c->s, rank, v, error);
    return result == 0
               ? deliver(c, rank, &(sl_event){.type = SL_EVENT_VIEW, .view = &p->own_view}, error)
               : result;
}

static int begin_view(clocked *c, sl_error *error) {
    simulator *s = c->s;
    const sl_scene_view *v;
    bool any;
    int result = tell_all(c, &(sl_event){.type = SL_EVENT_GATHER}, error);
    if (result == 0)
        result = close_gone(c, true, &any);
    if (result == 0)
        result = sl_sim_next_view(s, c->fault, ++c->views, &v, error);
    if (result == 0)
        sl_sim_tell_members(s, c->fault);
    for (uint32_t k = 0; result == 0 && k < v->group.count; k++)
        result = turn(c, v->group.ranks[k], v, error);
    c->fault = sl_faults_next(&s->experiment->faults, c->fault);
    c->changes = c->rests = false;
    return result;
}

/* Looks again after the next instant. */
static int change(clocked *c, sl_error *error) {
    const int result = c->rests ? 0 : begin_to_rest(c, error);
    if (result != 0 || do_all_rest(c))
        return result != 0 ? result : begin_view(c, error);
    return goes_on(c) ? add(c, c->heap.entries[0].at, &(body){.kind = CHANGE}, error) : 0;
}

/* ---- what happens ---- */

static bool waits(const clocked *c, uint32_t rank) {
    const sl_task *task = c->s->task;
    return task->waits != NULL && task->waits(task->context, rank);
}

static int take_gradient(clocked *c, uint32_t rank, sl_error *error) {
    simulator *s = c->s;
    peer *p = &s->peers[rank];
    sl_apart_gradient(s, rank);
    show(c, SL_SPAN_GRADIENT, rank, 0, c->since[rank]);
    c->since[rank] = c->now;
    return deliver(c, rank, &(sl_event){.type = SL_EVENT_GRADIENT, .loss = p->loss}, error);
}

/* Those whose gradients wait no longer end them now. */
static int wake(clocked *c, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < c->s->nodes && result == 0; i++) {
        if (!c->held[i] || waits(c, i))
            continue;
        c->held[i] = false;
        result = add(c, c->now, &(body){.kind = GRADIENT, .rank = i}, error);
    }
    return result;
}

static int end_gradient(clocked *c, uint32_t rank, sl_error *error) {
    c->held[rank] = waits(c, rank);
    if (c->held[rank])
        return 0;
    const int result = take_gradient(c, rank, error);
    return result == 0 ? wake(c, error) : result;
}

/* Nothing happens any more. The node that waits, and has done the fewest rounds, goes on. */
static int go_on(clocked *c, sl_error *error) {
    const peer *peers = c->s->peers;
    uint32_t last = NONE;
    const int result = wake(c, error);
    for (uint32_t i = 0; i < c->s->nodes; i++)
        if (c->held[i] && (last == NONE || peers[i].pending.round < peers[last].pending.round))
            last = i;
    if (result != 0 || last == NONE || c->heap.count > 0)
        return result;
    c->held[last] = false;
    return take_gradient(c, last, error);
}

/* All of a part is here. Its sender hears so a latency later. */
static int arrive(clocked *c, const body *b, sl_error *error) {
    show(c, SL_SPAN_MESSAGE, b->peer, b->rank, b->left);
    const sl_event event = sl_apart_received(b->peer, &b->part, b->message);
    int result = deliver(c, b->rank, &event, error);
    if (result == 0 && b->part.tells)
        result = add(c, c->now + sl_ports_latency(&c->ports, b->rank, b->peer),
                     &(body){.kind = ACKNOWLEDGED, .rank = b->peer, .peer = b->rank}, error);
    return result;
}

static int happen(clocked *c, const body *b, sl_error *error) {
    switch (b->kind) {
    case COMES: {
        body there = *b;
        there.kind = ARRIVES;
        return add(c, sl_ports_enter(&c->ports, b->rank, frame_bytes(&b->part), c->now), &there,
                   error);
    }
    case ARRIVES:
        return arrive(c, b, error);
    case ACKNOWLEDGED:
        return deliver(c, b->rank, &(sl_event){.type = SL_EVENT_ACKNOWLEDGED, .peer = b->peer},
                       error);
    case START:
        return deliver(c, b->rank, &(sl_event){.type = SL_EVENT_START}, error);
    case GRADIENT:
        return end_gradient(c, b->rank, error);
    case TURN:
        return deliver(c, b->rank, &(sl_event){.type = SL_EVENT_TURN}, error);
    case CHANGE:
        return change(c, error);
    case RECORD:
        return record_now(c, error);
    case NOTHING:
        return 0;
    }
    return 0;
}

/* ---- the run ---- */

static int take_event(clocked *c, const sl_heap_entry *first, sl_error *error) {
    const body b = c->bodies[first->body];
    c->bodies[first->body].next_free = c->free_body;
    c->free_body = first->body;
    c->now = first->at;
    return happen(c, &b, error);
}

static int run_events(clocked *c, const volatile int *stop, sl_error *error) {
    sl_heap_entry first;
    int result = 0;
    while (result == 0 && c->heap.count > 0) {
        sl_heap_take(&c->heap, &first);
        result = take_event(c, &first, error);
        if (result == 0 && c->heap.count == 0)
            result = go_on(c, error);
        if (result == 0 && stop != NULL && *stop)
            return sl_fail(error, SL_ESTOPPED,
                           "stopped on request when nodes had done %llu gradients, on average",
                           (unsigned long long)mean_gradients(c));
    }
    return result;
}

static int run(clocked *c, const volatile int *stop, sl_error *error) {
    simulator *s = c->s;
    int result = sl_apart_report_start(s);
    s->began = sl_clock_seconds();
    if (c->fault > 0)
        sl_sim_tell_members(s, 1);
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (sl_sim_is_there(&s->peers[i]))
            result = add(c, 0, &(body){.kind = START, .rank = i}, error);
    if (result == 0 && c->record_every > 0)
        result = add(c, c->record_every, &(body){.kind = RECORD}, error);
    if (result == 0)
        result = run_events(c, stop, error);
    if (result == 0 && c->finished < count_there(c))
        result = sl_fail(error, SL_EPROTO, "after %.6g s every node waits for another",
                         1e-9 * (double)c->now);
    if (result == 0 && s->experiment->final_average)
        result = sl_apart_average(s, &c->recorded, error);
    return result == 0 ? sl_apart_report_all(s, &c->recorded, s->task->rounds, -1) : result;
}

/* false: out of memory. */
static bool open_faults(clocked *c) {
    const simulator *s = c->s;
    c->fault = sl_faults_next(&s->experiment->faults, 0);
    if (c->fault == 0)
        return true;
    c->recorded.first = malloc(s->nodes * sizeof *c->recorded.first);
    for (uint32_t i = 0; c->recorded.first != NULL && i < s->nodes; i++)
        c->recorded.first[i] = sl_sim_is_there(&s->peers[i]) ? 0 : UINT64_MAX;
    return c->recorded.first != NULL;
}

int sl_sim_run_clocked(simulator *s, const volatile int *stop, sl_error *error) {
    clocked c = {.s = s,
                 .free_body = NONE,
                 .record_every = (uint64_t)llround(1e6 * s->experiment->record.every_ms),
                 .recorded = sl_apart_recorded(s)};
    c.recorded.by_time = c.record_every > 0;
    const sl_network_config *network = &s->experiment->network;
    const sl_link usual = {network->bandwidth_mbit, network->latency_ms};
    int result = sl_ports_open(&c.ports, usual, &network->links, s->nodes, error);
    c.is_timed =
        network->gradient_ms > 0 || network->compute_ms.rows > 0 || sl_ports_take_time(&c.ports);
    c.since = calloc(s->nodes, sizeof *c.since);
    c.held = calloc(s->nodes, sizeof *c.held);
    if (result == 0)
        result = c.since != NULL && c.held != NULL && open_faults(&c) ? 0 : no_memory(&c, error);
    if (result == 0)
        result = run(&c, stop, error);
    sl_recorded_close(&c.recorded);
    sl_ports_close(&c.ports);
    sl_heap_close(&c.heap);
    free(c.bodies);
    free(c.since);
    free(c.held);
    return result;
}
