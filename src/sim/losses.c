/* losses.c - plays faults between two rounds, where all nodes rest: a view of other members begins
 * with the next one; see starling/faults.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/simulator.h"
#include "vec/finite.h"

static void tell(const simulator *s, const sl_log_entry *entry) {
    if (s->checkpoints != NULL)
        sl_sim_log(s, entry);
    if (s->observer->notice != NULL)
        s->observer->notice(s->observer->context, entry->why);
}

void sl_sim_hold_before(simulator *s, uint64_t round) {
    const bool held = sl_sim_repeats(s) || sl_experiment_recovers(s->experiment) ||
                      sl_faults_touch(&s->experiment->faults, round);
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

/* Closes nodes that are not there, or rest, with all that they had. */
static void close_absent(simulator *s) {
    for (uint32_t i = 0; i < s->nodes; i++) {
        peer *p = &s->peers[i];
        if (sl_scene_has(&s->scene, i))
            continue;
        sl_node_close(&p->node);
        sl_node_close(&p->aside);
        p->pending = (sl_update){0};
    }
}

/* Those who were set aside stand where they stood. */
static void bring_back(simulator *s) {
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->peers[i].aside != NULL)
            s->scene.cast.sides[i] = s->peers[i].side;
}

static void play_faults(simulator *s, uint64_t round) {
    const sl_faults *faults = &s->experiment->faults;
    sl_scene_note(&s->scene);
    bring_back(s);
    sl_cast_play(&s->scene.cast, faults, round);
    sl_scene_let_rest(&s->scene);
    for (size_t i = 0; i < faults->count; i++)
        if (faults->items[i].round == round && faults->items[i].kind <= SL_FAULT_LEAVE)
            tell_lost(s, &faults->items[i]);
    close_absent(s);
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
    return a->route != SL_ROUTE_TOPOLOGY && a->route != SL_ROUTE_BOTH && !a->is_periodic;
}

/* The model; `whole`: momentum and the algorithm's own vectors, too. */
static void copy_state(simulator *s, sl_node *to, sl_node *from, bool whole) {
    sl_piece mine, theirs;
    for (size_t i = 0; sl_node_piece(to, i, &mine) && mine.vector != NULL &&
                       sl_node_piece(from, i, &theirs) && (whole || i == 0);
         i++)
        s->vec->combine(mine.vector, (const float *const[]){theirs.vector}, (const float[]){1}, 1,
                        s->task->dimension);
}

/* Whose model does a newcomer begin with? */
static sl_node *model_for(const simulator *s, const sl_scene_view *v, uint32_t rank) {
    const peer *p = &s->peers[rank];
    return p->aside != NULL ? p->aside : s->peers[sl_scene_sponsor(&s->scene, v, rank)].node;
}

/* Ranks beyond the first topology have none but the view's. */
static const sl_topology *topology_for(const simulator *s, const sl_scene_view *v, uint32_t rank) {
    const sl_topology *first = s->experiment->topology;
    return rank < sl_topology_nodes(first) ? first : v->view.topology;
}

/* Opens those of the view who were not there, with their sponsors' models; who was set aside, with
 * its own. Where all have one model, that of the largest side holds. */
static int let_in(simulator *s, const sl_scene_view *v, sl_error *error) {
    const bool one = shares_one_model(s);
    const uint32_t leader = sl_scene_leader(&s->scene, v);
    int result = 0;
    for (uint32_t k = 0; k < v->view.members.count && result == 0; k++) {
        const uint32_t rank = v->group.ranks[k];
        peer *p = &s->peers[rank];
        const bool joins = p->node == NULL;
        if (joins)
            result = sl_sim_open_node(s, rank, topology_for(s, v, rank), error);
        if (result == 0 && one && rank != leader)
            copy_state(s, p->node, s->peers[leader].node, true);
        else if (result == 0 && joins)
            copy_state(s, p->node, model_for(s, v, rank), false);
        sl_node_close(&p->aside);
    }
    return result;
}

/* The exchange that all nodes have ended. */
static uint64_t last_exchange(const simulator *s) {
    uint32_t i = 0;
    while (i < s->nodes && s->peers[i].node == NULL)
        i++;
    return i < s->nodes ? sl_node_exchange(s->peers[i].node) : 0;
}

static int turn_side(simulator *s, uint32_t side, uint64_t round, uint64_t exchange,
                     sl_error *error) {
    const sl_scene_view *v;
    int result = sl_scene_turn(&s->scene, side, round, exchange, &v, error);
    if (result != 0 || v == NULL)
        return result;
    tell_view(s, v);
    result = let_in(s, v, error);
    for (uint32_t k = 0; k < v->view.members.count && result == 0; k++)
        result = sl_sim_turn(s, v->group.ranks[k], v, error);
    return result;
}

int sl_sim_change_members(simulator *s, uint64_t round, sl_error *error) {
    int result = 0;
    if (sl_sim_repeats(s))
        return sl_sim_begin_repeated(s, round, error);
    const bool touched = s->set_aside > 0 || sl_faults_touch(&s->experiment->faults, round);
    if (!touched && !sl_experiment_recovers(s->experiment))
        return 0;
    play_faults(s, round);
    const bool turns = s->set_aside > 0 || sl_faults_turn(&s->experiment->faults, round);
    const uint64_t exchange = last_exchange(s);
    s->set_aside = 0;
    for (uint32_t side = 0; side < s->scene.cast.side_count && turns && result == 0; side++)
        result = turn_side(s, side, round, exchange, error);
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (s->peers[i].node != NULL && sl_node_round(s->peers[i].node) < round)
            result = sl_sim_deliver(s, i, &(sl_event){.type = SL_EVENT_RELEASED}, error);
    if (touched)
        sl_sim_tell_members(s, round);
    return result;
}

/* ---- numbers that are not finite ---- */

static bool is_spoiled(const simulator *s, uint32_t rank) {
    return sl_node_is_spoiled(s->peers[rank].node, s->peers[rank].loss);
}

static void tell_aside(const simulator *s, uint32_t rank, uint64_t round) {
    const peer *p = &s->peers[rank];
    sl_log_entry lost = {.kind = SL_LOG_LOST, .rank = SL_LOG_ALL, .round = round, .peer = rank};
    snprintf(lost.why, sizeof lost.why, "round %llu: node %u is lost: its %s is not finite; it %s",
             (unsigned long long)round, rank, isfinite(p->loss) ? "gradient" : "loss",
             p->aside != NULL ? "goes back to the model before"
                              : "ends, the third time in 100 rounds");
    tell(s, &lost);
}

static int set_one_aside(simulator *s, uint32_t rank, uint64_t round, sl_error *error) {
    peer *p = &s->peers[rank];
    p->side = s->scene.cast.sides[rank];
    s->scene.cast.sides[rank] = SL_ABSENT;
    if (sl_setbacks_add(&p->setbacks, round))
        sl_node_close(&p->node);
    p->aside = p->node;
    p->node = NULL;
    p->pending = (sl_update){0};
    tell_aside(s, rank, round);
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (s->peers[i].node != NULL)
            result = sl_sim_deliver(s, i, &(sl_event){.type = SL_EVENT_CUT}, error);
    return result;
}

int sl_sim_set_aside(simulator *s, uint64_t round, sl_error *error) {
    uint32_t living = 0, spoiled = 0, first = 0;
    for (uint32_t i = s->nodes; i-- > 0;)
        if (s->peers[i].node != NULL) {
            living++;
            if (is_spoiled(s, i)) {
                spoiled++;
                first = i;
            }
        }
    if (2 * spoiled > living)
        return sl_fail_node(error, SL_EDIVERGED, first, round,
                            "loss or gradient is not finite, as on %u of %u nodes; training "
                            "diverged: lower optimizer.learning_rate, or check the data",
                            spoiled, living);
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0 && spoiled > 0; i++)
        if (s->peers[i].node != NULL && is_spoiled(s, i))
            result = set_one_aside(s, i, round, error);
    s->set_aside = spoiled;
    if (spoiled > 0)
        sl_sim_tell_members(s, round);
    return result;
}
