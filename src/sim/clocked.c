/* clocked.c - the simulator where nodes go at their own times: ad-psgd and its kin.
 *
 * One heap of events (heap.h), in nanoseconds. A gradient takes what network.* says of its node,
 * and a nanosecond at least; it is computed when it ends, at a point that stands still meanwhile. A
 * part of a message takes its way over the ports (ports.h). Where links take no time, what a
 * gradient sets off is over before the next one ends.
 *
 * Where all tasks wait for a cut, what is on its way comes, and a view of the same nodes begins.
 * All gradients are over then: whoever goes on from there ends them at once, too.
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sim/clocked.h"

/* ---- records ---- */

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
    sl_clocked_show(c, SL_SPAN_GRADIENT, rank, 0, c->since[rank]);
    c->since[rank] = c->now;
    return sl_clocked_deliver(c, rank, &(sl_event){.type = SL_EVENT_GRADIENT, .loss = p->loss},
                              error);
}

/* Those whose gradients wait no longer end them now. */
static int wake(clocked *c, sl_error *error) {
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
    return result == 0 ? wake(c, error) : result;
}

static bool wants_cut(const clocked *c) {
    const sl_checkpoints *k = c->s->checkpoints;
    return k != NULL && k->wants_cut != NULL && k->wants_cut(k->context);
}

/* Nothing happens any more. The node that waits, and has done the fewest rounds, goes on. */
static int go_on(clocked *c, sl_error *error) {
    const peer *peers = c->s->peers;
    uint32_t last = UINT32_MAX;
    const int result = wake(c, error);
    for (uint32_t i = 0; i < c->s->nodes; i++)
        if (c->held[i] &&
            (last == UINT32_MAX || peers[i].pending.round < peers[last].pending.round))
            last = i;
    if (result != 0 || last == UINT32_MAX || c->heap.count > 0 || wants_cut(c))
        return result;
    c->held[last] = false;
    return take_gradient(c, last, error);
}

/* All of a part is here. Its sender hears so a latency later. */
static int arrive(clocked *c, const body *b, sl_error *error) {
    sl_clocked_show(c, SL_SPAN_MESSAGE, b->peer, b->rank, b->left);
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
        return sl_clocked_add(
            c, sl_ports_enter(&c->ports, b->rank, sl_clocked_bytes(&b->part), c->now), &there,
            error);
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

static int take_event(clocked *c, sl_error *error) {
    sl_heap_entry first;
    sl_heap_take(&c->heap, &first);
    const body b = c->bodies[first.body];
    c->bodies[first.body].next_free = c->free_body;
    c->free_body = first.body;
    c->now = first.at;
    return happen(c, &b, error);
}

/* ---- cuts ---- */

/* What is on its way comes; of records only the next one is left. */
static int come_to_rest(clocked *c, sl_error *error) {
    int result = sl_changes_tell_all(c, &(sl_event){.type = SL_EVENT_REST}, error);
    while (result == 0 && c->heap.count > (size_t)(c->record_every > 0))
        result = take_event(c, error);
    for (uint32_t i = 0; i < c->s->nodes && result == 0; i++)
        if (!sl_async_rests(c->s->peers[i].async))
            result = sl_fail(error, SL_EPROTO, "node %u does not come to rest for a cut", i);
    return result == 0 ? sl_changes_tell_all(c, &(sl_event){.type = SL_EVENT_GATHER}, error)
                       : result;
}

static int begin_again(clocked *c, sl_error *error) {
    const simulator *s = c->s;
    const sl_node_view view = {.exchange = c->view,
                               .members = {c->everybody, s->nodes},
                               .topology = s->experiment->topology,
                               .plan = &s->plan};
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        result = sl_changes_begin_own(c, i, &view, sl_async_round(c->s->peers[i].async), error);
    return result;
}

/* The first round that no node has ended. */
static uint64_t latest_round(const clocked *c) {
    uint64_t latest = 1;
    for (uint32_t i = 0; i < c->s->nodes; i++)
        latest = sl_async_round(c->s->peers[i].async) > latest
                     ? sl_async_round(c->s->peers[i].async)
                     : latest;
    return latest;
}

static int make_cut(clocked *c, sl_error *error) {
    const sl_checkpoints *k = c->s->checkpoints;
    sl_checkpoint_view view = {.number = ++c->view};
    int result = come_to_rest(c, error);
    if (result != 0)
        return result;
    for (uint32_t i = 0; i < c->s->nodes; i++)
        view.members[i / 64] |= UINT64_C(1) << i % 64;
    c->cut = latest_round(c) > c->cut ? latest_round(c) : c->cut + 1;
    k->cut(k->context, c->cut, &view);
    result = begin_again(c, error);
    return result == 0 ? wake(c, error) : result;
}

/* From a cut: the view that had begun begins once more. */
static int go_on_from_cut(clocked *c, sl_error *error) {
    c->goes_on = true;
    c->cut = c->s->resumed;
    c->view = c->s->checkpoints->view->number;
    c->recorded.from = latest_round(c);
    int result = sl_changes_tell_all(c, &(sl_event){.type = SL_EVENT_START}, error);
    if (result == 0)
        result = begin_again(c, error);
    c->goes_on = false;
    return result;
}

/* ---- from beginning to end ---- */

static int run_events(clocked *c, const volatile int *stop, sl_error *error) {
    int result = 0;
    while (result == 0 && c->heap.count > 0) {
        result = take_event(c, error);
        do {
            while (result == 0 && wants_cut(c))
                result = make_cut(c, error);
            if (result == 0 && c->heap.count == 0)
                result = go_on(c, error);
        } while (result == 0 && wants_cut(c));
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
        result = go_on_from_cut(c, error);
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
                 .free_body = SL_NO_BODY,
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
    c.everybody = calloc(s->nodes, sizeof *c.everybody);
    for (uint32_t i = 0; c.everybody != NULL && i < s->nodes; i++)
        c.everybody[i] = i;
    if (result == 0)
        result = c.since != NULL && c.held != NULL && c.everybody != NULL
                     ? sl_changes_open(&c, error)
                     : sl_fail(error, SL_ENOMEM, "simulator: out of memory for %u nodes", s->nodes);
    if (result == 0)
        result = run(&c, stop, error);
    sl_recorded_close(&c.recorded);
    sl_ports_close(&c.ports);
    sl_heap_close(&c.heap);
    free(c.bodies);
    free(c.since);
    free(c.held);
    free(c.everybody);
    return result;
}
