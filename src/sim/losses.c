/* losses.c - plays faults between two rounds, as all nodes rest: a view tells those who are left of
 * other members; see starling/faults.h. */
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
                      sl_faults_turn(&s->experiment->faults, round);
    for (uint32_t i = 0; i < s->nodes && held; i++)
        if (s->peers[i].node != NULL)
            sl_node_hold(s->peers[i].node, round - 1);
}

static void tell_lost(const simulator *s, uint32_t rank, uint64_t round) {
    sl_log_entry lost = {.kind = SL_LOG_LOST, .rank = SL_LOG_ALL, .round = round, .peer = rank};
    snprintf(lost.why, sizeof lost.why, "round %llu: node %u %s", (unsigned long long)round, rank,
             sl_faults_leaves(&s->experiment->faults, round, rank) ? "has left" : "is lost");
    tell(s, &lost);
}

uint32_t sl_sim_close_gone(simulator *s, uint64_t round, bool leavers) {
    uint32_t gone = 0;
    for (uint32_t i = 0; i < s->nodes; i++) {
        peer *p = &s->peers[i];
        if (s->scene.cast.of[i] == SL_THERE ||
            (!leavers && sl_faults_leaves(&s->experiment->faults, round, i)))
            continue;
        if (sl_sim_is_there(p)) {
            tell_lost(s, i, round);
            gone++;
        }
        sl_sim_close_node(p);
    }
    return gone;
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

static bool was_there(const peer *p) {
    return p->node != NULL || (p->async != NULL && sl_async_round(p->async) > 0);
}

/* The lowest neighbour of a newcomer that was there before, or else the lowest member. */
static uint32_t sponsor_of(const simulator *s, const sl_scene_view *v, uint32_t rank) {
    const uint32_t *peers, count = sl_topology_peers(v->group.topology, rank, &peers);
    uint32_t k = 0;
    for (uint32_t i = 0; i < count; i++)
        if (was_there(&s->peers[peers[i]]))
            return peers[i];
    while (k + 1 < v->group.count && !was_there(&s->peers[v->group.ranks[k]]))
        k++;
    return v->group.ranks[k];
}

/* A newcomer waits aside, with its sponsor's model; who was set aside has its own. */
static int prepare(simulator *s, const sl_scene_view *v, uint32_t rank, sl_error *error) {
    peer *p = &s->peers[rank];
    if (p->aside != NULL) {
        sl_node_forget(p->aside);
        return 0;
    }
    const uint32_t sponsor = sponsor_of(s, v, rank);
    return was_there(&s->peers[sponsor])
               ? sl_sim_take_model(s, v, rank, sponsor, error)
               : sl_fail(error, SL_EINVAL, "faults: in round %llu nobody has a model for node %u",
                         (unsigned long long)v->view.round, rank);
}

static int let_in(simulator *s, const sl_scene_view *v, sl_error *error) {
    int result = 0;
    for (uint32_t k = 0; k < v->group.count && result == 0; k++)
        if (!sl_sim_is_there(&s->peers[v->group.ranks[k]]))
            result = prepare(s, v, v->group.ranks[k], error);
    for (uint32_t k = 0; k < v->group.count && result == 0; k++) {
        peer *p = &s->peers[v->group.ranks[k]];
        if (p->node == NULL) {
            p->node = p->aside;
            p->aside = NULL;
        }
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

int sl_sim_next_view(simulator *s, uint64_t round, uint64_t exchange, const sl_scene_view **out,
                     sl_error *error) {
    const int result = sl_scene_turn(&s->scene, round, exchange, out, error);
    if (result != 0)
        return result;
    tell_view(s, *out);
    return let_in(s, *out, error);
}

static int begin_view(simulator *s, uint64_t round, sl_error *error) {
    const uint64_t exchange = last_exchange(s);
    const sl_scene_view *v;
    sl_cast_play(&s->scene.cast, &s->experiment->faults, round);
    sl_sim_close_gone(s, round, true);
    int result = sl_sim_next_view(s, round, exchange, &v, error);
    if (result != 0)
        return result;
    for (uint32_t k = 0; k < v->group.count && result == 0; k++)
        result = sl_sim_turn(s, v->group.ranks[k], v, error);
    s->set_aside = 0;
    sl_sim_tell_members(s, round);
    return result;
}

static int release(simulator *s, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (s->peers[i].node != NULL)
            result = sl_sim_deliver(s, i, &(sl_event){.type = SL_EVENT_RELEASED}, error);
    return result;
}

int sl_sim_change_members(simulator *s, uint64_t round, sl_error *error) {
    if (sl_sim_repeats(s))
        return sl_sim_begin_repeated(s, round, error);
    if (s->set_aside > 0 || sl_faults_turn(&s->experiment->faults, round))
        return begin_view(s, round, error);
    /* In round 1, and where nothing can happen between rounds, nobody rests. */
    return sl_experiment_recovers(s->experiment) && round > 1 ? release(s, error) : 0;
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
    const bool ends = sl_setbacks_add(&p->setbacks, round);
    const int result = sl_sim_step(s, rank, &(sl_event){.type = SL_EVENT_ASIDE}, error);
    p->aside = p->node;
    p->node = NULL;
    p->pending = (sl_update){0};
    if (ends) {
        sl_node_close(&p->aside);
        s->scene.cast.of[rank] = SL_ABSENT;
    }
    tell_aside(s, rank, round);
    return result;
}

static int cut_others(simulator *s, sl_error *error) {
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
    if (result != 0 || spoiled == 0)
        return result;
    sl_sim_tell_members(s, round);
    return cut_others(s, error);
}
