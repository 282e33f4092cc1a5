/* first_view.c - see members.h. */
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "route/route.h"

static bool at_own_times(const sl_agent *a) {
    return sl_experiment_is_asynchronous(a->settings.experiment);
}

bool sl_first_view_has(const sl_agent *a, uint32_t rank) {
    const sl_checkpoint_view *resumed = &a->cohort.resumed;
    return resumed->number == 0 ? rank < sl_topology_nodes(a->settings.experiment->topology)
                                : sl_checkpoint_view_has(resumed, rank);
}

bool sl_members_has(const sl_agent *a, uint32_t rank) {
    const sl_grouping *now = &a->cohort.grouping;
    return now->count == 0 ? sl_first_view_has(a, rank)
                           : sl_peer_index(now->ranks, now->count, rank) < now->count;
}

/* As processes of one age. */
sl_view sl_first_view_members(const sl_agent *a, sl_member *members) {
    const uint64_t number = a->cohort.resumed.number;
    const bool again = number > 0 && at_own_times(a); /* who rested for it begins that one */
    sl_view first = {.number = number + !again, .round = a->saving.resumed + 1, .members = members};
    for (uint32_t rank = 0; rank < a->side.ranks; rank++)
        if (sl_first_view_has(a, rank))
            members[first.count++] = (sl_member){rank, SL_FOUNDER};
    return first;
}

/* ---- in checkpoints ---- */

/* All of the topology's go on as they began. */
static bool is_of_all(const sl_agent *a, const sl_checkpoint_view *view) {
    const uint32_t nodes = sl_topology_nodes(a->settings.experiment->topology);
    bool all = true;
    for (uint32_t rank = 0; rank < a->side.ranks; rank++)
        all = all && sl_checkpoint_view_has(view, rank) == (rank < nodes);
    return view->number == 0 || (all && !at_own_times(a));
}

/* Of the round that is known, or of the newest file that can be read. */
static int read_view(sl_agent *a, const sl_checkpoint_file *files, size_t count, sl_error *error) {
    const sl_checkpoints *c = a->settings.checkpoints;
    for (size_t i = count; i-- > 0;) {
        if (files[i].rank != a->settings.rank || (c->round > 0 && files[i].round != c->round))
            continue;
        const int result = sl_checkpoint_view_of(&a->cohort.resumed, c->folder, files[i], error);
        if (result == 0 || c->round > 0)
            return result;
    }
    return 0;
}

int sl_first_view_find(sl_agent *a, sl_error *error) {
    const sl_checkpoints *c = a->settings.checkpoints;
    sl_checkpoint_file *files = NULL;
    size_t count = 0;
    if (c == NULL || !c->resume || !a->side.goes_on)
        return 0;
    int result = 0;
    if (c->view != NULL)
        a->cohort.resumed = *c->view;
    else if (c->folder != NULL)
        result = sl_checkpoint_list(&files, &count, c->folder, error);
    if (result == 0)
        result = read_view(a, files, count, error);
    free(files);
    if (result == 0 && is_of_all(a, &a->cohort.resumed))
        a->cohort.resumed = (sl_checkpoint_view){0};
    for (uint32_t rank = sl_topology_nodes(a->settings.experiment->topology);
         rank < SL_CHECKPOINT_RANKS_MAX; rank++) /* these join, again */
        a->cohort.resumed.members[rank / 64] &= ~(UINT64_C(1) << rank % 64);
    return result;
}

/* Has it the members that this agent was opened with? At own times each cut has a view of its own.
 */
static bool is_as_found(const sl_agent *a, const sl_checkpoint_view *view) {
    const sl_checkpoint_view *found = &a->cohort.resumed;
    return at_own_times(a) ? memcmp(view->members, found->members, sizeof found->members) == 0
                           : (is_of_all(a, view) ? 0 : view->number) == found->number;
}

/* The members' files of one round are of one view; an older one may be of another. */
int sl_first_view_check(sl_agent *a, sl_error *error) {
    const sl_checkpoint_file file = {a->saving.resumed, a->side.rank};
    sl_checkpoint_view view = {0};
    if (!a->side.goes_on)
        return 0;
    const int result = sl_checkpoint_view_of(&view, a->settings.checkpoints->folder, file, error);
    if (result == 0 && at_own_times(a) && is_as_found(a, &view))
        a->cohort.resumed = view;
    return result != 0 || is_as_found(a, &view)
               ? result
               : sl_fail_node(
                     error, SL_EFILE, a->side.rank, file.round,
                     "the newest round that all members have a checkpoint of is of another "
                     "view than this agent's newest; start the agents that were members "
                     "then, too");
}

/* Of the node's view; number 0: all are in it, or there are too many for the file. */
sl_checkpoint_view sl_first_view_now(const sl_agent *a) {
    const sl_grouping *g = &a->cohort.grouping;
    sl_checkpoint_view view = {0};
    if (a->cohort.view.members.count == 0 || a->side.ranks > SL_CHECKPOINT_RANKS_MAX)
        return view;
    view.number = a->side.now.view;
    for (uint32_t i = 0; i < g->count; i++)
        view.members[g->ranks[i] / 64] |= UINT64_C(1) << g->ranks[i] % 64;
    return is_of_all(a, &view) ? (sl_checkpoint_view){0} : view;
}
