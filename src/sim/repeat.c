/* repeat.c - repeats a stretch of a run that may have lost nodes: each node is cut where its log
 * says so, and begins the views that its log has.
 *
 * What a node would have combined beyond its cut does not come, and when all stand still, those are
 * cut who are there. So all that left before a cut has come. Who was lost is simulated under the
 * view that it had, as long as it has all that it needs: further than it came, never less far.
 * Whose numbers are not finite ends where it ended. Who returned goes after the round that it had
 * ended, and comes back with its view, as a new node with the model that its sponsor had. So does a
 * new process in the place of one that was lost, and who is not in the checkpoint.
 */
#include "sim/simulator.h"
#include "wire/frame.h"

static const sl_history *history_of(const simulator *s, uint32_t rank) {
    return &s->checkpoints->history[rank];
}

/* What is next in its log, if it is of that kind; NULL: it is not. */
static const sl_log_entry *next_of(const simulator *s, uint32_t rank, sl_log_kind kind) {
    const sl_history *h = history_of(s, rank);
    const size_t at = s->peers[rank].repeated;
    return at < h->count && h->entries[at].kind == kind ? &h->entries[at] : NULL;
}

/* When it comes back next; NULL: it does not. The view that it comes with follows. */
static const sl_log_entry *next_join(const simulator *s, uint32_t rank) {
    const sl_history *h = history_of(s, rank);
    size_t at = s->peers[rank].repeated;
    while (at < h->count && h->entries[at].kind != SL_LOG_JOIN)
        at++;
    return at < h->count ? &h->entries[at] : NULL;
}

/* ---- cuts ---- */

/* At the cut, or after it? */
static bool is_beyond(const sl_log_entry *cut, const sl_reach *at) {
    if (at->exchange != cut->exchange)
        return at->exchange > cut->exchange;
    return at->step != cut->step ? at->step > cut->step : at->part >= cut->part;
}

bool sl_sim_misses(const simulator *s, uint32_t rank, const sl_event *part) {
    const sl_log_entry *cut = next_of(s, rank, SL_LOG_CUT);
    return cut != NULL && is_beyond(cut, &(sl_reach){part->exchange, part->step, part->part});
}

/* The step that it is cut in is not over. */
bool sl_sim_keeps_back(const simulator *s, uint32_t rank, const sl_outbound *sent, uint32_t part) {
    const sl_log_entry *cut = next_of(s, rank, SL_LOG_CUT);
    return cut != NULL && cut->exchange == sent->exchange && cut->step == sent->step &&
           (part >= cut->part || part + 1 == sent->parts);
}

static bool is_due(const simulator *s, uint32_t rank) {
    const sl_log_entry *cut = next_of(s, rank, SL_LOG_CUT);
    sl_reach at;
    if (cut == NULL || s->peers[rank].node == NULL)
        return false;
    sl_node_reach(s->peers[rank].node, &at);
    return is_beyond(cut, &at) && sl_node_round(s->peers[rank].node) >= cut->round;
}

int sl_sim_cut(simulator *s, bool *any, sl_error *error) {
    int result = 0;
    *any = false;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++) {
        if (!is_due(s, i))
            continue;
        *any = true;
        s->peers[i].repeated++;
        s->peers[i].pending.publish = false;
        result = sl_sim_deliver(s, i, &(sl_event){.type = SL_EVENT_CUT}, error);
    }
    return result;
}

int sl_sim_deliver(simulator *s, uint32_t rank, const sl_event *event, sl_error *error) {
    const int result = sl_sim_step(s, rank, event, error);
    return sl_sim_ends_alone(s, rank, result) ? 0 : result;
}

/* ---- views ---- */

int sl_sim_turn(simulator *s, uint32_t rank, const sl_scene_view *v, sl_error *error) {
    const int result = sl_sim_enter(s, rank, v, error);
    return result == 0 ? sl_sim_deliver(s, rank,
                                        &(sl_event){.type = SL_EVENT_VIEW, .view = &v->view}, error)
                       : result;
}

static int begin_round(simulator *s, uint32_t rank, uint64_t round, sl_error *error) {
    const sl_log_entry *entry = next_of(s, rank, SL_LOG_VIEW);
    const sl_scene_view *v;
    if (entry == NULL || entry->round != round)
        return sl_sim_deliver(s, rank, &(sl_event){.type = SL_EVENT_RELEASED}, error);
    int result = sl_scene_repeat(&s->scene, entry, &v, error);
    if (result != 0)
        return result;
    s->peers[rank].repeated++;
    return sl_sim_turn(s, rank, v, error);
}

/* Its sponsor has just ended the round whose model it took. */
static int take_model(simulator *s, uint32_t rank, const sl_log_entry *join, sl_error *error) {
    const sl_scene_view *v;
    if (s->peers[join->peer].node == NULL)
        return sl_fail(error, SL_EFILE,
                       "round %llu: node %u took the model of node %u, which is not there",
                       (unsigned long long)join->after, rank, join->peer);
    const int result = sl_scene_repeat(&s->scene, join + 1, &v, error);
    return result == 0 ? sl_sim_take_model(s, v, rank, join->peer, error) : result;
}

static int take_models(simulator *s, uint64_t after, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < s->nodes && result == 0; i++) {
        const sl_log_entry *join = next_join(s, i);
        if (join != NULL && join->after == after)
            result = take_model(s, i, join, error);
    }
    return result;
}

/* ---- who goes ---- */

/* What is left of its log is of when it comes back: a new process, which has ended no round, counts
 * anew. */
static void go_out(simulator *s, uint32_t rank) {
    peer *p = &s->peers[rank];
    const sl_log_entry *join = next_join(s, rank);
    sl_node_close(&p->node);
    p->pending = (sl_update){0};
    p->repeated =
        join != NULL ? (size_t)(join - history_of(s, rank)->entries) : history_of(s, rank)->count;
    if (join != NULL && join->round == 0)
        p->record = (sl_record){.rank = rank};
}

/* Does the view begin that it returns with? Then it is a node again. */
static bool comes_back(simulator *s, uint32_t rank, uint64_t round) {
    peer *p = &s->peers[rank];
    const sl_log_entry *join = next_join(s, rank);
    if (p->aside == NULL || join == NULL || join[1].round != round)
        return false;
    go_out(s, rank);
    p->repeated++;
    p->node = p->aside;
    p->aside = NULL;
    return true;
}

int sl_sim_begin_repeated(simulator *s, uint64_t round, sl_error *error) {
    bool any;
    int result = sl_sim_cut(s, &any, error);
    if (result == 0)
        result = take_models(s, round - 1, error);
    if (result != 0)
        return result;
    any = false;
    for (uint32_t i = 0; i < s->nodes; i++)
        any = comes_back(s, i, round) || any;
    if (any)
        sl_sim_tell_members(s, round);
    for (uint32_t i = 0; i < s->nodes && result == 0; i++)
        if (s->peers[i].node != NULL && sl_node_round(s->peers[i].node) < round)
            result = begin_round(s, i, round, error);
    return result;
}

bool sl_sim_ends_alone(simulator *s, uint32_t rank, int result) {
    if (result != SL_EDIVERGED || !sl_sim_repeats(s))
        return false;
    const uint64_t round = sl_node_round(s->peers[rank].node);
    go_out(s, rank);
    sl_sim_tell_members(s, round);
    return true;
}

int sl_sim_close_lost(simulator *s, uint64_t round, sl_error *error) {
    bool any = false, is_left = false;
    for (uint32_t i = 0; i < s->nodes; i++) {
        peer *p = &s->peers[i];
        if (p->node == NULL)
            continue;
        if (p->pending.finished_round.round >= round) {
            is_left = true;
            continue;
        }
        go_out(s, i);
        any = true;
    }
    if (any)
        sl_sim_tell_members(s, round);
    return is_left ? 0
                   : sl_fail(error, SL_EFILE,
                             "round %llu: no node comes to its end as in the run; the logs of "
                             "events do not say why",
                             (unsigned long long)round);
}
