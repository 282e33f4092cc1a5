/* losses.c - plays faults between two rounds: who is lost is folded by the others, until a view
 * tells them of other members; see starling/faults.h. */
#include <stdio.h>
#include <string.h>

#include "sim/simulator.h"

static void tell(const simulator *s, const sl_log_entry *entry) {
    if (s->checkpoints != NULL)
        sl_sim_log(s, entry);
    if (s->observer->notice != NULL)
        s->observer->notice(s->observer->context, entry->why);
}

void sl_sim_hold_before(simulator *s, uint64_t round) {
    const bool held = sl_sim_repeats(s) || sl_faults_touch(&s->experiment->faults, round);
    for (uint32_t i = 0; i < s->nodes && held; i++)
        if (s->peers[i].node != NULL)
            sl_node_hold(s->peers[i].node, round - 1);
}

static void tell_lost(const simulator *s, const sl_fault *f) {
    for (size_t k = 0; k < f->count; k++) {
        sl_log_entry lost = {
            .kind = SL_LOG_LOST, .rank = SL_LOG_ALL, .round = f->round, .peer = f->ranks[k]};
        snprintf(lost.why, sizeof lost.why, "round %llu: node %u %s", (unsigned long long)f->round,
                 f->ranks[k], f->kind == SL_FAULT_LEAVE ? "has left" : "is lost");
        tell(s, &lost);
    }
}

/* What happens as the round begins: the dead are closed with all that they had. */
static void play_faults(simulator *s, uint64_t round) {
    const sl_faults *faults = &s->experiment->faults;
    sl_cast *cast = &s->scene.cast;
    memcpy(s->scene.sides_before, cast->sides, s->nodes * sizeof *cast->sides);
    sl_cast_play(cast, faults, round);
    for (size_t i = 0; i < faults->count; i++)
        if (faults->items[i].round == round && faults->items[i].kind <= SL_FAULT_LEAVE)
            tell_lost(s, &faults->items[i]);
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->peers[i].node != NULL && !sl_scene_has(&s->scene, i)) {
            sl_node_close(&s->peers[i].node);
            s->peers[i].pending = (sl_update){0};
        }
}

static void tell_view(const simulator *s, const sl_scene_view *v) {
    sl_log_entry view = {.kind = SL_LOG_VIEW,
                         .rank = SL_LOG_ALL,
                         .round = v->view.round,
                         .exchange = v->view.exchange,
                         .ranks = v->group.ranks,
                         .members = v->view.members.count,
                         .gap = v->group.gap};
    sl_grouping_describe(&v->group, s->experiment, v->view.round, view.why, sizeof view.why);
    tell(s, &view);
}

/* Do all nodes have the same model in every round? Then whoever comes has to take it, with what
 * the algorithm keeps beside it. */
static bool shares_one_model(const simulator *s) {
    const sl_algorithm_config *c = &s->experiment->algorithm;
    const sl_algorithm *a = sl_algorithm_of(c, NULL);
    return a->route != SL_ROUTE_TOPOLOGY && !a->is_periodic;
}

/* The model; `whole`: momentum and the algorithm's own vectors, too. */
static void copy_state(simulator *s, uint32_t to, uint32_t from, bool whole) {
    sl_piece mine, theirs;
    for (size_t i = 0; sl_node_piece(s->peers[to].node, i, &mine) && mine.vector != NULL &&
                       sl_node_piece(s->peers[from].node, i, &theirs) && (whole || i == 0);
         i++)
        s->vec->combine(mine.vector, (const float *const[]){theirs.vector}, (const float[]){1}, 1,
                        s->task->dimension);
}

/* Opens those of the view who were not there, with their sponsors' models. Where all have one
 * model, that of the largest side holds. */
static int let_in(simulator *s, const sl_scene_view *v, sl_error *error) {
    const bool one = shares_one_model(s);
    const uint32_t leader = sl_scene_leader(&s->scene, v);
    int result = 0;
    for (uint32_t k = 0; k < v->view.members.count && result == 0; k++) {
        const uint32_t rank = v->group.ranks[k];
        const bool joins = s->peers[rank].node == NULL;
        if (joins)
            result = sl_sim_open_node(s, rank, error);
        if (result == 0 && one && rank != leader)
            copy_state(s, rank, leader, true);
        else if (result == 0 && joins)
            copy_state(s, rank, sl_scene_sponsor(&s->scene, v, rank), false);
    }
    return result;
}

/* The exchange that the nodes of a side have all ended. */
static uint64_t exchange_of(const simulator *s, uint32_t side) {
    uint32_t i = 0;
    while (i < s->nodes && (s->scene.cast.sides[i] != side || s->peers[i].node == NULL))
        i++;
    return i < s->nodes ? sl_node_exchange(s->peers[i].node) : 0;
}

static int turn_side(simulator *s, uint32_t side, uint64_t round, sl_error *error) {
    const sl_scene_view *v;
    int result = sl_scene_turn(&s->scene, side, round, exchange_of(s, side), &v, error);
    if (result != 0 || v == NULL)
        return result;
    tell_view(s, v);
    result = let_in(s, v, error);
    for (uint32_t k = 0; k < v->view.members.count && result == 0; k++)
        result = sl_sim_deliver(s, v->group.ranks[k],
                                &(sl_event){.type = SL_EVENT_VIEW, .view = &v->view}, error);
    return result;
}

/* A node under no new view goes on without those whom it has lost. */
static int go_on(simulator *s, uint32_t rank, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (sl_scene_parts(&s->scene, rank, i))
            result = sl_sim_deliver(s, rank, &(sl_event){.type = SL_EVENT_LOST, .peer = i}, error);
    return result == 0 ? sl_sim_deliver(s, rank, &(sl_event){.type = SL_EVENT_RELEASED}, error)
                       : result;
}

int sl_sim_change_members(simulator *s, uint64_t round, sl_error *error) {
    int result = 0;
    if (sl_sim_repeats(s))
        return sl_sim_begin_repeated(s, round, error);
    if (!sl_faults_touch(&s->experiment->faults, round))
        return 0;
    play_faults(s, round);
    const bool turns = sl_faults_turn(&s->experiment->faults, round);
    for (uint32_t side = 0; side < s->scene.cast.side_count && turns && result == 0; side++)
        result = turn_side(s, side, round, error);
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (s->peers[i].node != NULL && sl_node_round(s->peers[i].node) < round)
            result = go_on(s, i, error);
    sl_sim_tell_members(s, round);
    return result;
}
