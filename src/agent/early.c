/* early.c - data of epochs that the node has not come to; see members.h. */
#include "agent/state.h"

static bool has_passed(const sl_cohort *g, uint64_t hash) {
    const uint64_t count = g->passed < SL_EPOCHS_BEFORE ? g->passed : SL_EPOCHS_BEFORE;
    for (uint64_t i = 0; i < count; i++)
        if (g->before[i] == hash)
            return true;
    return false;
}

/* Will the node never come to this epoch? It has been in it, or another part of the network was. */
static bool is_past(const sl_cohort *g, uint64_t hash, uint64_t number) {
    return hash != g->hash && (number <= g->number || has_passed(g, hash));
}

void sl_members_deliver_early(sl_agent *a) {
    sl_cohort *g = &a->cohort;
    const uint32_t count = g->early_count;
    g->early_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const sl_early early = g->early[i]; /* its place may be taken again */
        if (early.hash == g->hash && !early.from->folded)
            sl_agent_deliver(a, &early.event);
        else if (early.hash == g->hash || is_past(g, early.hash, early.number))
            sl_neighbour_consumed(early.from, early.event.token);
        else
            g->early[g->early_count++] = early;
    }
}

void sl_members_drop_early(sl_agent *a) {
    sl_cohort *g = &a->cohort;
    const uint32_t count = g->early_count;
    g->early_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (g->early[i].hash == g->hash)
            g->early[g->early_count++] = g->early[i];
        else
            sl_neighbour_consumed(g->early[i].from, g->early[i].event.token);
}

void sl_members_take(sl_agent *a, sl_neighbour *n, const sl_event *event) {
    sl_cohort *g = &a->cohort;
    uint64_t number;
    const uint64_t hash = sl_neighbour_hash(n, &number);
    if (hash == g->hash && !n->folded)
        sl_agent_deliver(a, event);
    else if (hash == g->hash || is_past(g, hash, number) || g->early_count == g->early_max)
        sl_neighbour_consumed(n, event->token);
    else
        g->early[g->early_count++] = (sl_early){n, hash, number, *event};
}
