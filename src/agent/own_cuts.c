/* own_cuts.c - checkpoints of nodes at their own times; see saving.h.
 *
 * They share no round. A view that all begin from what they have is a cut, though: nothing of the
 * view before is on its way. So each saves its node at rest as a view begins, and who wants a
 * checkpoint has all rest for a view of the same members. A file's number is the round of
 * membership.h before the view; who goes on from it begins that view.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"

/* Is it training, as far as this agent has heard? */
static bool trains(const sl_agent *a, const sl_neighbour *n) {
    return !n->absence.gone && sl_members_has(a, n->rank) &&
           n->link.beats.said.own.round < a->settings.task.rounds;
}

/* The lowest rank that trains, so that one asks for all. */
static bool is_first_to_train(const sl_agent *a) {
    bool first = true;
    for (const sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        first = first && !(n->near && n->rank < a->side.rank && trains(a, n));
    return first;
}

void sl_own_cut_round(sl_agent *a, uint64_t round) {
    const bool is_due = round % a->settings.experiment->checkpoint.every == 0;
    if (is_due && round < a->settings.task.rounds && is_first_to_train(a))
        a->saving.due = true;
}

static bool is_asked(const sl_saving *s) {
    return s->due || s->asked[SL_CUT_GO_ON] != 0 || s->asked[SL_CUT_LEAVE] != 0;
}

/* Where all have come to their last rounds, the run ends first. */
bool sl_own_cut_is_due(const sl_agent *a) {
    const bool wanted = is_asked(&a->saving) || sl_calls_want_cut(&a->calls);
    return a->node.own != NULL && wanted && a->phase == PHASE_TRAINING &&
           a->averaging.stage <= SL_AVERAGING_GATHERS && !sl_cohort_is_outside(&a->cohort) &&
           !sl_cohort_rests(&a->cohort) && !sl_membership_holds(a->cohort.membership);
}

/* What the file says of the view that begins. */
static sl_checkpoint_view members_of(const sl_view *view) {
    sl_checkpoint_view out = {.number = view->number};
    for (uint32_t i = 0; i < view->count; i++)
        out.members[view->members[i].rank / 64] |= UINT64_C(1) << view->members[i].rank % 64;
    return out;
}

static void save(sl_agent *a, const sl_view *view) {
    sl_piece pieces[SL_RECORD_PIECES + SL_VIEW_PIECES + 1];
    sl_checkpoint_view members = members_of(view);
    uint64_t round = view->round - 1;
    a->record.times.total = sl_clock_seconds() - a->times.began_s;
    sl_record_pieces(&a->record, pieces);
    sl_checkpoint_view_pieces(&members, pieces + SL_RECORD_PIECES);
    pieces[SL_RECORD_PIECES + SL_VIEW_PIECES] = (sl_piece){.name = "round", .whole = &round};
    a->saving.saved = a->record.round.round;
    sl_saver_take(a->saving.saver, &a->node, round, a->side.rank,
                  &(sl_image_extras){pieces, sizeof pieces / sizeof *pieces},
                  sl_saving_wait_share * a->settings.experiment->transport.timeout_s);
}

/* Has the view the members and edges of the one before? */
static bool is_same(const sl_agent *a, const sl_view *view) {
    uint32_t members = 0;
    bool same = view->broken_count == a->cohort.view.broken_count;
    for (uint32_t rank = 0; rank < a->side.ranks; rank++)
        members += sl_members_has(a, rank);
    for (uint32_t i = 0; i < view->count; i++)
        same = same && sl_members_has(a, view->members[i].rank);
    return same && members == view->count;
}

/* For the task, which waits for it. */
static void give(sl_agent *a, const sl_view *view) {
    const sl_checkpoints *c = a->settings.checkpoints;
    const sl_checkpoint_view members = members_of(view);
    a->calls.made = sl_calls_await_cut(&a->calls) && is_same(a, view);
    if (a->calls.made)
        c->cut(c->context, view->round - 1, &members);
}

bool sl_own_cut_view(sl_agent *a, const sl_view *view, bool last) {
    sl_saving *s = &a->saving;
    give(a, view);
    if (s->saver == NULL)
        return false;
    s->due = sl_cohort_is_outside(&a->cohort);
    if (s->due) /* its file would be of a node that has not begun: the next view is for that */
        return false;
    if (s->asked[SL_CUT_GO_ON] != 0)
        atomic_store(&s->awaited, view->round - 1);
    if (view->round - 1 != s->resumed)
        save(a, view);
    s->asked[SL_CUT_GO_ON] = 0;
    s->left = last; /* an agent that was asked after its answer asks for the next view */
    return last;
}
