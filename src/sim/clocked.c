/* clocked.c - the simulator where nodes go at their own times: ad-psgd and its kin.
 *
 * One heap of events (heap.h), in nanoseconds. A gradient takes what network.* says of its node,
 * and a nanosecond at least; it is computed when it ends, at a point that stands still meanwhile. A
 * part of a message takes its way over the ports (ports.h). Where links take no time, what a
 * gradient sets off is over before the next one ends.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/clocked.h"
#include "wire/frame.h"

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

int sl_clocked_add(clocked *c, uint64_t at, const body *b, sl_error *error) {
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
    if (c->goes_on)
        return 0;
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
    return result == 0 ? sl_changes_round(c, round->round, error) : result;
}

static int begin_gradient(clocked *c, uint32_t rank, uint64_t round, sl_error *error) {
    const simulator *s = c->s;
    const sl_async *node = s->peers[rank].async;
    s->peers[rank].pending.round = round;
    c->since[rank] = c->now;
    if (s->task->ready != NULL)
        s->task->ready(s->task->context, rank, round, sl_async_point(node),
                       sl_async_push_sum_weight(node));
    return sl_clocked_add(c, c->now + gradient_ns(c, rank, round),
                          &(body){.kind = GRADIENT, .rank = rank}, error);
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
        result = sl_clocked_add(c, c->now, &(body){.kind = TURN, .rank = rank}, error);
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
        result = sl_clocked_add(
            c, sl_ports_leave(&c->ports, rank, b.rank, frame_bytes(part), c->now), &b, error);
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

int sl_clocked_deliver(clocked *c, uint32_t rank, const sl_event *event, sl_error *error) {
    const int result = step(c, rank, event, error);
    return result != 0 ? result : send_all(c, rank, error);
}

/* ---- records ---- */

uint32_t sl_clocked_count_there(const clocked *c) {
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
    return sum / sl_clocked_count_there(c);
}

/* That is the number of such a record. */
static int record_now(clocked *c, sl_error *error) {
    const uint64_t round = mean_gradients(c);
    int result = 0;
    if (round > c->last_recorded && round < c->s->task->rounds) {
        c->last_recorded = round;
        if (c->fault > 0 || c->view > 1)
            sl_sim_tell_members(c->s, round);
        result = sl_apart_report_all(c->s, &c->recorded, round, 1e-9 * (double)c->now);
    }
    return result == 0 && sl_changes_await(c)
               ? sl_clocked_add(c, c->now + c->record_every, &(body){.kind = RECORD}, error)
               : result;
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
    return sl_clocked_deliver(c, rank, &(sl_event){.type = SL_EVENT_GRADIENT, .loss = p->loss},
                              error);
}

/* Those whose gradients wait no longer end them now. */
int sl_clocked_wake(clocked *c, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < c->s->nodes && result == 0; i++) {
        if (!c->held[i] || waits(c, i))
            continue;
        c->held[i] = false;
        result = sl_clocked_add(c, c->now, &(body){.kind = GRADIENT, .rank = i}, error);
    }
    return result;
}

static int end_gradient(clocked *c, uint32_t rank, sl_error *error) {
    c->held[rank] = waits(c, rank);
    if (c->held[rank])
        return 0;
    const int result = take_gradient(c, rank, error);
    return result == 0 ? sl_clocked_wake(c, error) : result;
}

/* Nothing happens any more. The node that waits, and has done the fewest rounds, goes on. */
static int go_on(clocked *c, sl_error *error) {
    const peer *peers = c->s->peers;
    uint32_t last = NONE;
    const int result = sl_clocked_wake(c, error);
    for (uint32_t i = 0; i < c->s->nodes; i++)
        if (c->held[i] && (last == NONE || peers[i].pending.round < peers[last].pending.round))
            last = i;
    if (result != 0 || last == NONE || c->heap.count > 0 || sl_cuts_wanted(c))
        return result;
    c->held[last] = false;
    return take_gradient(c, last, error);
}

/* All of a part is here. Its sender hears so a latency later. */
static int arrive(clocked *c, const body *b, sl_error *error) {
    show(c, SL_SPAN_MESSAGE, b->peer, b->rank, b->left);
    const sl_event event = sl_apart_received(b->peer, &b->part, b->message);
    int result = sl_clocked_deliver(c, b->rank, &event, error);
    if (result == 0 && b->part.tells)
        result =
            sl_clocked_add(c, c->now + sl_ports_latency(&c->ports, b->rank, b->peer),
                           &(body){.kind = ACKNOWLEDGED, .rank = b->peer, .peer = b->rank}, error);
    return result;
}

static int happen(clocked *c, const body *b, sl_error *error) {
    switch (b->kind) {
    case COMES: {
        body there = *b;
        there.kind = ARRIVES;
        return sl_clocked_add(c, sl_ports_enter(&c->ports, b->rank, frame_bytes(&b->part), c->now),
                              &there, error);
    }
    case ARRIVES:
        return arrive(c, b, error);
    case ACKNOWLEDGED:
        return sl_clocked_deliver(
            c, b->rank, &(sl_event){.type = SL_EVENT_ACKNOWLEDGED, .peer = b->peer}, error);
    case START:
        return sl_clocked_deliver(c, b->rank, &(sl_event){.type = SL_EVENT_START}, error);
    case GRADIENT:
        return end_gradient(c, b->rank, error);
    case TURN:
        return sl_clocked_deliver(c, b->rank, &(sl_event){.type = SL_EVENT_TURN}, error);
    case CHANGE:
        return sl_changes_go_on(c, error);
    case RECORD:
        return record_now(c, error);
    case NOTHING:
        return 0;
    }
    return 0;
}

/* ---- the run ---- */

int sl_clocked_take_event(clocked *c, sl_error *error) {
    sl_heap_entry first;
    sl_heap_take(&c->heap, &first);
    const body b = c->bodies[first.body];
    c->bodies[first.body].next_free = c->free_body;
    c->free_body = first.body;
    c->now = first.at;
    return happen(c, &b, error);
}

static int run_events(clocked *c, const volatile int *stop, sl_error *error) {
    int result = 0;
    while (result == 0 && c->heap.count > 0) {
        result = sl_clocked_take_event(c, error);
        do {
            while (result == 0 && sl_cuts_wanted(c))
                result = sl_cuts_make(c, error);
            if (result == 0 && c->heap.count == 0)
                result = go_on(c, error);
        } while (result == 0 && sl_cuts_wanted(c));
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
    if (result == 0 && s->resumed > 0)
        result = sl_cuts_go_on(c, error);
    for (uint32_t i = 0; i < s->nodes && result == 0 && s->resumed == 0; i++)
        if (sl_sim_is_there(&s->peers[i]))
            result = sl_clocked_add(c, 0, &(body){.kind = START, .rank = i}, error);
    if (result == 0 && c->record_every > 0)
        result = sl_clocked_add(c, c->record_every, &(body){.kind = RECORD}, error);
    if (result == 0)
        result = run_events(c, stop, error);
    if (result == 0 && c->finished < sl_clocked_count_there(c))
        result = sl_fail(error, SL_EPROTO, "after %.6g s every node waits for another",
                         1e-9 * (double)c->now);
    if (result == 0 && s->experiment->final_average)
        result = sl_apart_average(s, &c->recorded, error);
    return result == 0 ? sl_apart_report_all(s, &c->recorded, s->task->rounds, -1) : result;
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
        result =
            c.since != NULL && c.held != NULL ? sl_changes_open(&c, error) : no_memory(&c, error);
    if (result == 0)
        result = run(&c, stop, error);
    sl_recorded_close(&c.recorded);
    sl_changes_close(&c);
    sl_ports_close(&c.ports);
    sl_heap_close(&c.heap);
    free(c.bodies);
    free(c.since);
    free(c.held);
    return result;
}
