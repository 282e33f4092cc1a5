/* nodes.c - the simulator's nodes, one at a time: opening, stepping, saving. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/simulator.h"

message *sl_sim_take_message(simulator *s) {
    message *m = s->free_messages;
    if (m != NULL) {
        s->free_messages = m->next_free;
        m->readers = 1;
        return m;
    }
    m = calloc(1, sizeof *m);
    void *data = m != NULL ? s->vec->allocate_host(s->message_bytes) : NULL;
    if (data == NULL) {
        free(m);
        return NULL;
    }
    m->data = data;
    m->readers = 1;
    m->next_made = s->made_messages;
    s->made_messages = m;
    return m;
}

void sl_sim_let_go(simulator *s, message *m) {
    if (--m->readers > 0)
        return;
    m->next_free = s->free_messages;
    s->free_messages = m;
}

float *sl_sim_model(const simulator *s, uint32_t rank) {
    const peer *p = &s->peers[rank];
    return p->async != NULL ? sl_async_model(p->async) : sl_node_model(p->node);
}

const float *sl_sim_recorded_model(const simulator *s, uint32_t rank) {
    const float *x = sl_host_task_view(&s->host, sl_sim_model(s, rank));
    return s->copies == NULL
               ? x
               : memcpy(s->copies + rank * s->task->dimension, x, s->task->dimension * sizeof *x);
}

double sl_sim_push_sum_weight(const simulator *s, uint32_t rank) {
    const peer *p = &s->peers[rank];
    return p->async != NULL ? sl_async_push_sum_weight(p->async) : sl_node_push_sum_weight(p->node);
}

void sl_sim_log(const simulator *s, const sl_log_entry *entry) {
    if (s->observer->log != NULL)
        s->observer->log(s->observer->context, entry);
}

void sl_sim_tell_members(simulator *s, uint64_t round) {
    uint32_t *ranks = s->scene.ranks, count = 0;
    for (uint32_t i = 0; i < s->nodes; i++)
        if (sl_sim_is_there(&s->peers[i]))
            ranks[count++] = i;
    if (s->observer->members != NULL)
        s->observer->members(s->observer->context, round, ranks, count);
}

/* ---- checkpoints ---- */

uint64_t sl_sim_end_after(const simulator *s) {
    return s->checkpoints != NULL ? s->checkpoints->end_after : 0;
}

static bool is_saved(const simulator *s, uint64_t round) {
    const uint64_t every = s->experiment->checkpoint.every;
    return s->saver != NULL && round != s->resumed &&
           (round == sl_sim_end_after(s) || round == s->asked_for ||
            (every > 0 && round % every == 0));
}

/* That it goes on from, as an agent says it; number 0: with all of the topology's. */
static sl_checkpoint_view view_of(const simulator *s, const peer *p) {
    const uint32_t nodes = sl_topology_nodes(s->experiment->topology);
    const sl_grouping *g = p->view != NULL ? &p->view->group : NULL;
    sl_checkpoint_view view = {0};
    if (g == NULL || (g->count == nodes && g->ranks[nodes - 1] == nodes - 1))
        return view;
    view.number = p->view->view.round;
    for (uint32_t i = 0; i < g->count && g->ranks[i] < SL_CHECKPOINT_RANKS_MAX; i++)
        view.members[g->ranks[i] / 64] |= UINT64_C(1) << g->ranks[i] % 64;
    return view;
}

/* Before anything else changes the node. */
static void save(simulator *s, uint32_t rank) {
    peer *p = &s->peers[rank];
    sl_piece pieces[SL_RECORD_PIECES + SL_VIEW_PIECES];
    sl_checkpoint_view view = view_of(s, p);
    p->record.times.total = sl_clock_seconds() - s->began;
    sl_record_pieces(&p->record, pieces);
    sl_checkpoint_view_pieces(&view, pieces + SL_RECORD_PIECES);
    const size_t count = SL_RECORD_PIECES + (view.number > 0 ? SL_VIEW_PIECES : 0);
    sl_saver_take(s->saver, &(sl_machine){.rounds = p->node}, sl_node_round(p->node), rank,
                  &(sl_image_extras){pieces, count}, INFINITY); /* nobody waits for this process */
}

/* ---- messages ---- */

int sl_sim_step(simulator *s, uint32_t rank, const sl_event *event, sl_error *error) {
    peer *p = &s->peers[rank];
    sl_update update;
    double before = sl_clock_seconds();
    int result = sl_node_step(p->node, event, &update, error);
    p->record.times.combine += sl_clock_seconds() - before;
    for (size_t i = 0; i < update.released_count; i++)
        sl_sim_let_go(s, update.released[i]);
    if (update.compute) {
        p->pending.compute = true;
        p->pending.round = update.round;
    }
    if (update.publish) {
        p->pending.publish = true;
        p->pending.message = update.message;
    }
    if (update.round_done) {
        p->pending.finished_round = update.finished_round;
        if (is_saved(s, update.finished_round.round))
            save(s, rank);
        if (s->timeline != NULL)
            sl_timeline_end_node_round(s->timeline, rank, update.finished_round.frames_received);
    }
    return result;
}

bool sl_sim_repeats(const simulator *s) {
    return s->checkpoints != NULL && s->checkpoints->history != NULL;
}

bool sl_sim_cuts(const simulator *s) {
    return s->checkpoints != NULL && s->checkpoints->cut != NULL &&
           s->nodes <= SL_CHECKPOINT_RANKS_MAX && sl_experiment_is_asynchronous(s->experiment);
}

sl_node_settings sl_sim_settings(const simulator *s, uint32_t rank) {
    const sl_experiment *e = s->experiment;
    sl_node_settings settings =
        sl_experiment_node(e, &s->plan, &s->sending, s->task->dimension, s->task->rounds);
    settings.rank = rank;
    settings.topology = e->topology;
    settings.epoch_rounds = s->task->epoch_rounds;
    settings.samples = s->task->samples != NULL ? s->task->samples(s->task->context, rank) : 1;
    settings.vec = s->vec;
    settings.gradient = s->gradient;
    settings.lends = s->task->lend != NULL;
    settings.turns = sl_sim_repeats(s) || sl_sim_cuts(s) ||
                     (e->faults.count > 0 && sl_experiment_is_asynchronous(e));
    settings.tensor_ends = s->task->tensor_ends;
    settings.tensor_count = s->task->tensor_count;
    settings.tensor_rows = s->task->tensor_rows;
    settings.measure_every = sl_record_every(&e->record, s->task->rounds);
    return settings;
}

/* Ranks beyond the first topology have none but a view's. */
int sl_sim_open_node(simulator *s, uint32_t rank, const sl_scene_view *v, sl_error *error) {
    sl_node_settings settings = sl_sim_settings(s, rank);
    sl_machine machine;
    if (rank >= sl_topology_nodes(settings.topology))
        settings.topology = v->view.topology;
    const int result = sl_machine_open(&machine, &settings, error);
    s->peers[rank].node = machine.rounds;
    s->peers[rank].async = machine.own;
    return result;
}

void sl_sim_close_node(peer *p) {
    sl_node_close(&p->node);
    sl_node_close(&p->aside);
    sl_async_close(&p->async);
    p->pending = (sl_update){0};
}

int sl_sim_take_model(simulator *s, const sl_scene_view *v, uint32_t rank, uint32_t sponsor,
                      sl_error *error) {
    peer *p = &s->peers[rank];
    sl_node *own = p->node;
    const float *model = sl_sim_model(s, sponsor);
    sl_node_close(&p->aside);
    const int result = sl_sim_open_node(s, rank, v, error);
    p->aside = p->node;
    p->node = own;
    if (result == 0)
        s->vec->copy(p->async != NULL ? sl_async_model(p->async) : sl_node_model(p->aside), model,
                     s->task->dimension * sizeof *model);
    return result;
}

int sl_sim_enter(simulator *s, uint32_t rank, const sl_scene_view *v, sl_error *error) {
    const sl_task *t = s->task;
    uint32_t place = 0;
    s->peers[rank].view = v;
    while (place < v->group.count && v->group.ranks[place] != rank)
        place++;
    return t->members != NULL ? t->members(t->context, rank, place, v->group.count, error) : 0;
}
