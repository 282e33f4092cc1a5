/* state_transfer.c - the model that an agent returns with; see members.h. */
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"

enum { PARTS_AHEAD = 4 };
static const double repeat_s = 0.1; /* its turn may have come */

/* Elements of a part. */
static size_t elements_of(const sl_agent *a) {
    return sl_frame_sum_bytes_max(a->side.limits.part_bytes_max, a->side.direct) / sizeof(float);
}

void sl_state_transfer_close(sl_agent *a) {
    sl_state_transfer *f = &a->cohort.transfer;
    free(f->model);
    if (f->snapshot != NULL && !sl_side_shares(&a->side, f->snapshot))
        a->side.vec->release_host(f->snapshot);
    f->model = f->snapshot = NULL;
}

/* ---- taking ---- */

bool sl_state_transfer_is_whole(const sl_agent *a) {
    return a->cohort.transfer.model != NULL &&
           a->cohort.transfer.come == a->settings.task.dimension;
}

/* Of this request so many elements have come. */
static void acknowledge(sl_neighbour *n, uint32_t number, size_t come) {
    const sl_frame frame = {.type = SL_FRAME_FETCH, .step = number, .part = (uint32_t)come};
    sl_neighbour_send(n, frame, NULL, false);
}

static void ask(sl_agent *a) {
    sl_state_transfer *f = &a->cohort.transfer;
    f->asked_s = a->side.now_s;
    acknowledge(f->sponsor, f->number, f->come);
}

int sl_state_transfer_begin(sl_agent *a, sl_neighbour *sponsor, sl_error *error) {
    sl_state_transfer *f = &a->cohort.transfer;
    if (f->model == NULL)
        f->model = malloc(a->settings.task.dimension * sizeof *f->model);
    if (f->model == NULL)
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory for agent %u's model",
                       a->side.rank, sponsor->rank);
    f->sponsor = sponsor;
    f->number =
        f->number > 0 ? f->number + 1 : (uint32_t)a->side.incarnation | 1; /* as no other's */
    f->come = 0;
    ask(a);
    return 0;
}

void sl_state_transfer_end(sl_agent *a) {
    sl_state_transfer *f = &a->cohort.transfer;
    free(f->model);
    f->model = NULL;
    f->sponsor = NULL;
}

static void take(sl_agent *a, const sl_frame *frame, const uint8_t *payload) {
    sl_state_transfer *f = &a->cohort.transfer;
    const size_t left = a->settings.task.dimension - f->come, bytes = frame->payload_bytes;
    if (frame->part != f->come || bytes % sizeof(float) != 0 || bytes / sizeof(float) > left)
        return;
    memcpy(f->model + f->come, payload, bytes);
    f->come += bytes / sizeof(float);
    f->round = frame->exchange;
    a->times.progress_s = a->side.now_s;
    ask(a);
}

/* ---- giving ---- */

/* Memory that nothing is sent from any more. */
static bool take_place(sl_agent *a, sl_neighbour *n) {
    sl_state_transfer *f = &a->cohort.transfer;
    const size_t bytes = a->settings.task.dimension * sizeof *f->snapshot;
    sl_error error;
    if (f->receiver != NULL && (f->receiver != n || f->taken < f->sent))
        return false;
    if (f->snapshot == NULL)
        f->snapshot = sl_side_share(&a->side, bytes);
    if (f->snapshot == NULL)
        f->snapshot = a->side.vec->allocate_host(bytes);
    return f->snapshot != NULL &&
           sl_fabric_lend(a->side.fabric, f->snapshot, bytes, -1, &error) == 0;
}

static void hear_request(sl_agent *a, sl_neighbour *n, const sl_frame *frame) {
    sl_state_transfer *f = &a->cohort.transfer;
    if (f->receiver == n && f->asked == frame->step) {
        if (frame->part > f->taken && frame->part <= f->sent)
            f->taken = frame->part;
        if (f->taken == a->settings.task.dimension)
            f->receiver = NULL;
        return;
    }
    if (frame->part > 0 || sl_cohort_is_outside(&a->cohort) || sl_cohort_is_aside(&a->cohort) ||
        a->phase != PHASE_TRAINING || !take_place(a, n))
        return;
    f->receiver = n;
    f->asked = frame->step;
    f->copied = false;
    f->sent = f->taken = 0;
}

void sl_state_transfer_hear(sl_agent *a, sl_neighbour *n, const sl_frame *frame,
                            const uint8_t *payload) {
    if (a->cohort.membership == NULL)
        return;
    const sl_state_transfer *f = &a->cohort.transfer;
    if (frame->type == SL_FRAME_FETCH)
        hear_request(a, n, frame);
    else if (n != f->sponsor || frame->step != f->number) /* it serves nobody else before */
        acknowledge(n, frame->step, frame->part + frame->payload_bytes / sizeof(float));
    else if (!sl_state_transfer_is_whole(a))
        take(a, frame, payload);
}

void sl_state_transfer_offer(sl_agent *a, uint64_t round) {
    sl_state_transfer *f = &a->cohort.transfer;
    const bool averages = a->node.own != NULL && sl_async_averages(a->node.own);
    if (f->receiver == NULL || f->copied || averages) /* parts of it may be taken back */
        return;
    a->side.vec->copy_out(f->snapshot, sl_machine_model(&a->node),
                          a->settings.task.dimension * sizeof *f->snapshot);
    f->given = round;
    f->copied = true;
    if (a->node.own == NULL)
        return;
    sl_act act;
    sl_async_give(a->node.own, f->receiver->rank, f->asked, &act);
    sl_agent_act(a, &act);
}

bool sl_state_transfer_give(sl_agent *a) {
    sl_state_transfer *f = &a->cohort.transfer;
    const size_t elements = elements_of(a), d = a->settings.task.dimension;
    bool any = false;
    if (sl_cohort_rests(&a->cohort) && a->cohort.rested.round > 0)
        sl_state_transfer_offer(a, a->cohort.rested.round);
    while (f->receiver != NULL && f->copied && f->sent < d &&
           f->sent < f->taken + PARTS_AHEAD * elements) {
        const size_t count = d - f->sent < elements ? d - f->sent : elements;
        const sl_frame frame = {.type = SL_FRAME_MODEL,
                                .exchange = f->given,
                                .step = f->asked,
                                .part = (uint32_t)f->sent,
                                .payload_bytes = (uint32_t)(count * sizeof *f->snapshot)};
        if (!sl_neighbour_send(f->receiver, frame, f->snapshot + f->sent, false))
            break;
        f->sent += count;
        any = true;
    }
    return any;
}

/* ---- time ---- */

void sl_state_transfer_break(sl_agent *a, const sl_neighbour *n) {
    sl_state_transfer *f = &a->cohort.transfer;
    if (f->receiver == n) {
        sl_stream_void(&f->receiver->stream, 1u << SL_FRAME_MODEL);
        f->receiver = NULL;
    }
    if (f->sponsor == n && !sl_state_transfer_is_whole(a))
        sl_state_transfer_end(a);
}

void sl_state_transfer_tick(sl_agent *a) {
    sl_state_transfer *f = &a->cohort.transfer;
    if (f->receiver != NULL && !f->receiver->link.agreed)
        sl_state_transfer_break(a, f->receiver);
    if (f->sponsor != NULL && (!f->sponsor->link.agreed || f->sponsor->process.bye_received ||
                               sl_membership_is_out(a->cohort.membership, f->sponsor->rank, 0)))
        sl_state_transfer_break(a, f->sponsor);
    if (f->sponsor != NULL && a->side.now_s - f->asked_s >= repeat_s && f->come == 0)
        ask(a);
}
