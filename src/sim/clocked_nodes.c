/* clocked_nodes.c - the clocked simulator's events and its nodes, one at a time; see clocked.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/clocked.h"

/* ---- events ---- */

static int no_memory(const clocked *c, sl_error *error) {
    return sl_fail(error, SL_ENOMEM, "simulator: out of memory for the events of %u nodes",
                   c->s->nodes);
}

static uint32_t take_body(clocked *c) {
    if (c->free_body == SL_NO_BODY) {
        const uint32_t room = 2 * c->body_room + 64;
        body *bodies = realloc(c->bodies, room * sizeof *bodies);
        if (bodies == NULL)
            return SL_NO_BODY;
        for (uint32_t i = c->body_room; i < room; i++)
            bodies[i].next_free = i + 1 < room ? i + 1 : SL_NO_BODY;
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
    if (place == SL_NO_BODY || !sl_heap_add(&c->heap, at, phases[b->kind], b->rank, place))
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

void sl_clocked_show(const clocked *c, sl_span_kind what, uint32_t rank, uint32_t to,
                     uint64_t begin) {
    const simulator *s = c->s;
    const sl_span span = {
        what, rank, to, s->peers[rank].pending.round, 1e-9 * (double)begin, 1e-9 * (double)c->now};
    if (s->observer->span != NULL && begin < c->now)
        s->observer->span(s->observer->context, &span);
}

static int end_round(clocked *c, uint32_t rank, const sl_round *round, sl_error *error) {
    sl_clocked_show(c, SL_SPAN_WAIT, rank, 0, c->since[rank]);
    c->s->peers[rank].record.virtual_s = c->is_timed ? 1e-9 * (double)c->now : 0;
    const int result = sl_apart_end_round(c->s, &c->recorded, rank, round, error);
    if (result != 0 || c->changes || c->fault == 0 || round->round + 1 < c->fault)
        return result;
    c->changes = true;
    return sl_clocked_add(c, c->now, &(body){.kind = CHANGE}, error);
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
            c, sl_ports_leave(&c->ports, rank, b.rank, sl_clocked_bytes(part), c->now), &b, error);
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

uint32_t sl_clocked_count_there(const clocked *c) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->s->nodes; i++)
        count += sl_sim_is_there(&c->s->peers[i]);
    return count;
}
