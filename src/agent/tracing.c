/* tracing.c - what the observer hears of where the time goes: spans (record.trace); see state.h.
 *
 * A message to a neighbour: from its first part, handed over, until its last has left. One from it:
 * from the first part that the node took to the last one, told when the next message begins.
 */
#include "agent/state.h"
#include "base/clock.h"

/* Work that follows so soon is told with the work before. */
static const double gap_s = 1e-4;

static bool traces(const sl_agent *a) {
    return a->settings.observer.span != NULL;
}

static void tell(const sl_agent *a, sl_span *span) {
    span->rank = a->side.rank;
    a->settings.observer.span(a->settings.observer.context, span);
}

void sl_tracing_work(sl_agent *a, sl_span_kind kind, double ends_s, double seconds) {
    sl_span *work = &a->times.work;
    const double begins_s = ends_s - seconds;
    if (!traces(a) || seconds <= 0)
        return;
    if (work->ends_s > 0 && work->kind == kind && begins_s - work->ends_s < gap_s) {
        work->ends_s = ends_s;
        return;
    }
    if (work->ends_s > 0)
        tell(a, work);
    *work =
        (sl_span){.kind = kind, .round = a->side.now.round, .begins_s = begins_s, .ends_s = ends_s};
}

void sl_tracing_gradient(const sl_agent *a, double ends_s, double seconds) {
    if (traces(a))
        tell(a, &(sl_span){.kind = SL_SPAN_GRADIENT,
                           .round = a->side.now.round,
                           .begins_s = ends_s - seconds,
                           .ends_s = ends_s});
}

void sl_tracing_round(const sl_agent *a, uint64_t round, double ends_s) {
    if (traces(a) && a->times.gradient_ended_s > 0)
        tell(a, &(sl_span){.kind = SL_SPAN_WAIT,
                           .round = round,
                           .begins_s = a->times.gradient_ended_s,
                           .ends_s = ends_s});
}

void sl_tracing_send(const sl_agent *a, sl_neighbour *n, uint64_t exchange) {
    if (!traces(a) || n->out.ends_s > 0)
        return;
    const double now_s = sl_clock_seconds();
    n->out = (sl_span){.kind = SL_SPAN_SEND,
                       .peer = n->rank,
                       .round = exchange,
                       .begins_s = now_s,
                       .ends_s = now_s};
}

void sl_tracing_sent(const sl_agent *a) {
    const sl_outbox *box = &a->outbox;
    if (!traces(a) || (box->open && box->encoded < box->message.parts))
        return;
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        if (n->out.ends_s == 0 || !sl_neighbour_has_left(n))
            continue;
        n->out.ends_s = sl_clock_seconds();
        tell(a, &n->out);
        n->out = (sl_span){0};
    }
}

void sl_tracing_receive(const sl_agent *a, sl_neighbour *n, const sl_event *event) {
    if (!traces(a))
        return;
    const double now_s = sl_clock_seconds();
    if (event->part == 0) {
        if (n->in.ends_s > 0)
            tell(a, &n->in);
        n->in = (sl_span){
            .kind = SL_SPAN_RECEIVE, .peer = n->rank, .round = event->exchange, .begins_s = now_s};
    }
    n->in.ends_s = now_s;
}
