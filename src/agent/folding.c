/* folding.c - see folding.h. */
#include "agent/folding.h"

#include "agent/state.h"

/* Parts that are to go out are given up with their connection, which may be connected anew. */
static void give_up(sl_agent *a, sl_neighbour *n) {
    if (n->connection != NULL && n->left < n->sent_ever) {
        sl_neighbour_drop(n, NULL);
        n->sought_s = a->side.now_s;
    }
    sl_neighbour_abandon(n);
}

static void tell_node(sl_agent *a, sl_neighbour *n) {
    n->to_void = false;
    sl_members_tell_fold(a, n->rank);
    sl_agent_deliver(a, &(sl_event){.type = SL_EVENT_LOST, .peer = n->rank});
}

void sl_folding_lose(sl_agent *a, sl_neighbour *n) {
    n->folded = true;
    give_up(a, n);
    sl_agent_forget_receiver(a, n);
    n->to_void = a->cohort.voids && !sl_agent_recall(a);
    if (n->to_void)
        return;
    tell_node(a, n);
    sl_agent_settle(a, false);
}

/* Does it take nothing more of this exchange? It has closed the connection, or left before. */
static bool takes_no_more(const sl_agent *a, const sl_neighbour *n) {
    return sl_waits_for_taker(a, n) && (!n->agreed || n->bye_exchange < a->outbox.message.exchange);
}

/* What the node waits for does not come from who has said BYE: its last exchanges were void, or
 * this agent was away, and waits in an epoch in which the other has never been. */
static void lose_ended(sl_agent *a) {
    for (uint32_t i = 0; i < a->neighbour_count && a->phase == PHASE_TRAINING; i++) {
        sl_neighbour *n = &a->neighbours[i];
        if (n->bye_received && n->near && !n->folded &&
            (sl_node_awaits(a->node, n->rank) || takes_no_more(a, n)))
            sl_folding_lose(a, n);
    }
}

void sl_folding_go_on(sl_agent *a) {
    if (a->cohort.membership != NULL)
        lose_ended(a);
    if (!a->outbox.recalled || !sl_agent_recall(a))
        return;
    a->outbox.recalled = false;
    for (uint32_t i = 0; i < a->neighbour_count; i++)
        if (a->neighbours[i].to_void)
            tell_node(a, &a->neighbours[i]);
}

void sl_folding_lose_absent(sl_agent *a, const sl_epoch *view) {
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        sl_neighbour *n = &a->neighbours[i];
        if (n->near && !n->folded && sl_epoch_place(view, n->rank) == view->count)
            sl_folding_lose(a, n);
    }
}

/* Has it folded this agent, in this epoch, stepped aside, or no part in it? */
static bool does_nothing_here(const sl_agent *a, const sl_neighbour *n) {
    const sl_membership *m = a->cohort.membership;
    const uint64_t number = a->cohort.number > 0 ? a->cohort.number : 1;
    return (n->folds && n->hash == a->cohort.hash) ||
           (m != NULL && (sl_membership_is_aside(m, n->rank, n->since) ||
                          sl_membership_is_out(m, n->rank, number)));
}

/* Has the view this neighbour, and not the process that had its rank before? */
static bool is_of(const sl_epoch *view, const sl_neighbour *n) {
    const uint32_t place = sl_epoch_place(view, n->rank);
    return place < view->count &&
           (n->process == 0 || n->process == view->members[place].incarnation);
}

/* Whoever is in a view and not connected, is looked for: also another process of a rank that has
 * left before, and one whom this agent has never met. */
static void seek(const sl_agent *a, sl_neighbour *n) {
    n->parted = false;
    if (!n->gone && n->lost_s == 0 && n->sought_s == 0)
        n->sought_s = a->side.now_s;
}

void sl_folding_turn(sl_agent *a, const sl_epoch *view) {
    const uint32_t *peers, count = sl_node_peers(a->node, &peers);
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        sl_neighbour *n = &a->neighbours[i];
        const bool member = is_of(view, n);
        n->near = false;
        for (uint32_t k = 0; k < count; k++)
            n->near = n->near || peers[k] == n->rank;
        n->since = member && !n->member ? view->number : n->since;
        n->member = member;
        n->folded = n->gone || !member || does_nothing_here(a, n) ||
                    sl_epoch_is_broken(view, a->side.rank, n->rank);
        if (!n->agreed && sl_epoch_place(view, n->rank) < view->count)
            seek(a, n);
        n->hash_at_view = n->hash;
        if (n->ends == SL_ABORT_DROPS)
            n->cause[0] = '\0';
        sl_neighbour_turn(n, a->cohort.hash,
                          view->number); /* also whoever is folded: it need not wait */
    }
    a->side.varies = sl_node_varies(a->node);
    sl_members_tell_broken(a, view);
}

void sl_folding_find_heirs(sl_agent *a) {
    const sl_epoch *view = sl_membership_epoch(a->cohort.membership);
    for (uint32_t i = 0; i < a->neighbour_count && a->cohort.alarmed; i++) {
        sl_neighbour *n = &a->neighbours[i];
        const uint32_t place = view != NULL ? sl_epoch_place(view, n->rank) : 0;
        n->heir =
            view == NULL || place == view->count ? SL_ANY_HEIR : view->members[place].incarnation;
        if (n->agreed && sl_neighbour_has_other(n, n->process) && n->sought_s == 0)
            n->sought_s = a->side.now_s; /* the other one */
    }
}

void sl_folding_repeat(sl_agent *a) {
    for (uint32_t i = 0; i < a->neighbour_count; i++)
        if (a->neighbours[i].near && a->neighbours[i].folded)
            sl_folding_lose(a, &a->neighbours[i]);
}

void sl_folding_lose_all(sl_agent *a) {
    for (uint32_t i = 0; i < a->neighbour_count; i++) {
        sl_neighbour *n = &a->neighbours[i];
        if (n->near && !n->folded)
            sl_folding_lose(a, n);
        n->turn_told = false;
        sl_neighbour_tell_turn(n);
    }
}

/* Who has ended all rounds of the epoch has sent all that belongs to them. Who has folded this
 * agent meanwhile has not. */
bool sl_folding_watch(sl_agent *a, sl_neighbour *n) {
    const sl_cohort *g = &a->cohort;
    const bool is_new = n->hash != n->hash_at_view; /* or it was there before this agent's view */
    const bool later = n->hash != g->hash && n->received >= n->hash_from &&
                       (is_new ? n->number >= g->number : n->number > g->number);
    const bool over = later || does_nothing_here(a, n);
    if (!over || !n->near || n->folded || a->phase != PHASE_TRAINING)
        return false;
    sl_folding_lose(a, n);
    return n->agreed && n->folds && n->hash == g->hash;
}
