/* apart.c - nodes that go at their own times: what both of their drivers share; see simulator.h. */
#include <stdlib.h>

#include "base/clock.h"
#include "sim/simulator.h"
#include "wire/frame.h"

sl_recorded sl_apart_recorded(const simulator *s) {
    return (sl_recorded){
        .experiment = s->experiment, .task = s->task, .observer = s->observer, .nodes = s->nodes};
}

int sl_apart_report_start(const simulator *s) {
    int result = 0;
    const bool due = s->resumed == 0 && s->observer->parameters != NULL &&
                     sl_record_parameters_due(&s->experiment->record, 0);
    for (uint32_t i = 0; i < sl_topology_nodes(s->experiment->topology) && due && result == 0; i++)
        result = s->observer->parameters(s->observer->context, 0, i,
                                         sl_host_task_view(&s->host, sl_sim_model(s, i)), 1);
    return result;
}

sl_event sl_apart_received(uint32_t from, const sl_async_part *part, message *token) {
    return (sl_event){.type = SL_EVENT_RECEIVED,
                      .peer = from,
                      .exchange = part->number,
                      .step = part->step,
                      .part = part->part,
                      .scalar = part->scalar,
                      .silent = part->silent,
                      .payload = part->payload,
                      .token = token};
}

void sl_apart_gradient(simulator *s, uint32_t rank) {
    peer *p = &s->peers[rank];
    if (s->observer->round != NULL)
        s->observer->round(s->observer->context, rank, p->pending.round);
    const double before = sl_clock_seconds();
    p->loss = sl_host_task_gradient(&s->host, rank, p->pending.round, sl_async_point(p->async),
                                    sl_async_gradient(p->async));
    p->record.times.gradient += sl_clock_seconds() - before;
}

static int take(const simulator *s, sl_recorded *recorded, uint32_t rank, sl_error *error) {
    return sl_recorded_take(recorded, &s->peers[rank].record,
                            sl_host_task_view(&s->host, sl_sim_model(s, rank)),
                            sl_sim_push_sum_weight(s, rank), error);
}

int sl_apart_end_round(simulator *s, sl_recorded *recorded, uint32_t rank, const sl_round *round,
                       sl_error *error) {
    peer *p = &s->peers[rank];
    sl_record_take_round(&p->record, round, SL_FRAME_HEADER_BYTES);
    p->record.times.total = sl_clock_seconds() - s->began;
    p->pending.finished_round = *round;
    if (s->observer->ended != NULL)
        s->observer->ended(s->observer->context, &p->record);
    if (s->experiment->final_average && round->round == s->task->rounds)
        return 0; /* its model is another one then */
    return take(s, recorded, rank, error);
}

int sl_apart_report_all(const simulator *s, const sl_recorded *recorded, uint64_t round,
                        double virtual_s) {
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++) {
        sl_record record = s->peers[i].record;
        if (s->peers[i].async == NULL)
            continue;
        record.round.round = round;
        if (virtual_s >= 0)
            record.virtual_s = virtual_s;
        result = sl_recorded_report(recorded, &record, sl_sim_recorded_model(s, i));
    }
    return result;
}

int sl_apart_average(simulator *s, sl_recorded *recorded, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (s->peers[i].async != NULL && sl_sim_ends_with(s, i) && !s->peers[i].added &&
            !s->peers[i].gave_up)
            result = sl_async_drain(s->peers[i].async, error);
    if (result == 0)
        result = sl_sim_average(s, error);
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (s->peers[i].async != NULL)
            result = take(s, recorded, i, error);
    return result;
}
