/* repeat_views.c - of a run that is repeated: views, and who comes with one; see repeated.h. */
#include <stdlib.h>

#include "sim/repeated.h"

/* A model that one node has given to another, as number `number` that it asked for. */
struct sl_given {
    struct sl_given *next;
    uint32_t from, to;
    uint64_t number;
    float model[]; /* (dimension) */
};

/* Of its log of events the last one of that number: a run that went on has begun it again. A later
 * process of its rank, or one that returned to others, may have been in another of that number.
 * NULL: there is none. */
const sl_log_entry *sl_repeated_next_view(const repeated *r, uint32_t rank) {
    const sl_history *h = &r->s->checkpoints->history[rank];
    size_t at = r->done[rank], later = 0;
    while (at < h->act_count && h->acts[at].kind != SL_ACT_VIEW)
        at++;
    for (size_t i = at + 1; i < h->act_count; i++)
        later += h->acts[i].kind == SL_ACT_VIEW && h->acts[i].number == h->acts[at].number;
    for (size_t i = h->count; i-- > 0 && at < h->act_count;)
        if (h->entries[i].kind == SL_LOG_VIEW && h->entries[i].exchange == h->acts[at].number &&
            later-- == 0)
            return &h->entries[i];
    return NULL;
}

static int find_view(repeated *r, uint32_t rank, const sl_scene_view **out, sl_error *error) {
    const sl_log_entry *view = sl_repeated_next_view(r, rank);
    if (view == NULL)
        return sl_repeated_fail_at(r, rank, "its log of events has no such view", error);
    return sl_scene_repeat(&r->s->scene, view, out, error);
}

/* Had it begun this round then? The first one of a server's neighbour waits for the model. */
bool sl_repeated_has_begun(const repeated *r, uint32_t rank) {
    const sl_log_entry *view = sl_repeated_next_view(r, rank);
    return view == NULL || r->comes[rank] || sl_async_round(r->s->peers[rank].async) >= view->round;
}

/* What was cut holds as far as it was done again. */
int sl_repeated_view(repeated *r, uint32_t rank, bool *any, sl_error *error) {
    simulator *s = r->s;
    const sl_scene_view *v;
    int result = 0;
    *any = true;
    if (!r->comes[rank])
        result = sl_repeated_deliver(r, rank, &(sl_event){.type = SL_EVENT_CUT}, error);
    if (result == 0)
        result = find_view(r, rank, &v, error);
    if (result == 0)
        result = sl_sim_enter(s, rank, v, error);
    r->comes[rank] = false;
    return result == 0 ? sl_repeated_deliver(
                             r, rank, &(sl_event){.type = SL_EVENT_VIEW, .view = &v->view}, error)
                       : result;
}

/* ---- what is on its way ---- */

/* Has it had the gradient of its round? The round was over then. */
static bool had_gradient(const repeated *r, uint32_t rank) {
    const sl_history *h = &r->s->checkpoints->history[rank];
    size_t next = r->done[rank] + 1;
    while (next < h->act_count &&
           (h->acts[next].kind == SL_ACT_GIVES || h->acts[next].kind == SL_ACT_GATHER))
        next++;
    return next < h->act_count && h->acts[next].kind == SL_ACT_COMBINE && h->acts[next].number == 0;
}

/* Whoever was lost then may have published more, here. */
static bool has_versions(const repeated *r, uint32_t rank, const sl_act *act) {
    const uint64_t *newest = sl_async_newest(r->s->peers[rank].async);
    const uint32_t *peers, count = sl_async_peers(r->s->peers[rank].async, &peers);
    bool all = act->version_count == count;
    for (uint32_t i = 0; i < count && all; i++)
        all = newest[i] >= act->versions[i];
    return all;
}

int sl_repeated_gather(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    *any = true;
    if (r->computes[rank] && had_gradient(r, rank))
        return sl_repeated_give_gradient(r, rank, error);
    if (has_versions(r, rank, act))
        return sl_repeated_deliver(r, rank, &(sl_event){.type = SL_EVENT_GATHER}, error);
    letter **at = sl_repeated_find_any(r, rank);
    *any = at != NULL;
    return at != NULL ? sl_repeated_take(r, at, rank, error) : 0;
}

/* ---- who comes ---- */

int sl_repeated_give(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    *any = true;
    if (r->pattern == SL_PATTERN_VERSIONS && act->version_count > 0 && act->versions[0] > 0) {
        if (r->computes[rank])
            return sl_repeated_give_gradient(r, rank, error);
        *any = sl_async_is_over(r->s->peers[rank].async); /* it has published */
        if (!*any)
            return 0;
    }
    const size_t bytes = r->s->task->dimension * sizeof(float);
    sl_given *one = malloc(sizeof *one + bytes);
    if (one == NULL)
        return sl_fail(error, SL_ENOMEM, "simulator: out of memory for a model that is given");
    *one = (sl_given){.next = r->given, .from = rank, .to = act->peer, .number = act->number};
    r->s->vec->copy_out(one->model, sl_sim_model(r->s, rank), bytes);
    r->given = one;
    r->done[rank]++;
    return 0;
}

static const sl_given *find_given(const repeated *r, uint32_t rank, const sl_act *act) {
    const sl_given *one = r->given;
    while (one != NULL && (one->from != act->peer || one->to != rank || one->number != act->number))
        one = one->next;
    return one;
}

void sl_repeated_forget_given(repeated *r) {
    while (r->given != NULL) {
        sl_given *next = r->given->next;
        free(r->given);
        r->given = next;
    }
}

/* Does somebody still do what its former process had a part in? */
static bool is_needed(const repeated *r, uint32_t rank) {
    bool any = false;
    for (uint32_t i = 0; i < r->s->nodes && r->s->peers[rank].async != NULL; i++) {
        const sl_act *act = sl_repeated_next_act(r, i);
        any = any || (i != rank && r->s->peers[i].async != NULL && act != NULL &&
                      act->kind < SL_ACT_JOINS && sl_repeated_share_view(r, i, rank));
    }
    return any;
}

static int open_anew(repeated *r, uint32_t rank, const sl_scene_view *v, sl_error *error) {
    peer *p = &r->s->peers[rank];
    sl_async_close(&p->async);
    r->computes[rank] = false;
    p->record = (sl_record){.rank = rank};
    return sl_sim_open_node(r->s, rank, v, error);
}

int sl_repeated_come(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error) {
    peer *p = &r->s->peers[rank];
    const sl_given *given = find_given(r, rank, act);
    const bool is_new = act->kind == SL_ACT_JOINS;
    const sl_scene_view *v;
    int result = 0;
    *any = given != NULL && !(is_new && is_needed(r, rank));
    if (!*any)
        return 0;
    if (sl_repeated_next_view(r, rank) == NULL) { /* it was not let in */
        r->done[rank]++;
        return 0;
    }
    if (!is_new)
        result = sl_repeated_deliver(r, rank, &(sl_event){.type = SL_EVENT_CUT}, error);
    if (!is_new && r->computes[rank] && result == 0) /* it let its own model's gradient end */
        result = sl_repeated_give_gradient(r, rank, error);
    if (result == 0)
        result = find_view(r, rank, &v, error);
    if (result == 0 && is_new)
        result = open_anew(r, rank, v, error);
    if (result != 0)
        return result;
    r->s->vec->copy_in(sl_async_model(p->async), given->model,
                       r->s->task->dimension * sizeof(float));
    r->comes[rank] = true;
    r->done[rank]++;
    return 0;
}
