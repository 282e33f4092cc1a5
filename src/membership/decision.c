/* decision.c - decisions with memory of their own; see decision.h. */
#include "membership/decision.h"

#include <stdlib.h>
#include <string.h>

uint32_t sl_broken_max(uint32_t ranks_max) {
    const uint64_t pairs = (uint64_t)ranks_max * (ranks_max - 1) / 2;
    return pairs < 4096 ? (uint32_t)pairs : 4096;
}

int sl_decision_open(sl_kept_decision *d, uint32_t ranks_max) {
    *d = (sl_kept_decision){0};
    d->members = calloc(ranks_max, sizeof *d->members);
    d->broken = calloc(sl_broken_max(ranks_max) + 1, sizeof *d->broken);
    return d->members == NULL || d->broken == NULL ? SL_ENOMEM : 0;
}

void sl_decision_close(sl_kept_decision *d) {
    free(d->members);
    free(d->broken);
    *d = (sl_kept_decision){0};
}

static void copy(void *to, const void *from, size_t bytes) {
    if (bytes > 0 && to != from)
        memmove(to, from, bytes);
}

void sl_decision_copy(sl_kept_decision *to, const sl_decision *from) {
    copy(to->members, from->view.members, from->view.count * sizeof *to->members);
    copy(to->broken, from->view.broken, from->view.broken_count * sizeof *to->broken);
    to->decision = *from;
    to->decision.view.members = to->members;
    to->decision.view.broken = to->broken;
}

/* Where nobody stays there is no view, only its number and round. */
bool sl_decision_is_valid(const sl_decision *d, uint32_t ranks_max) {
    const sl_view *e = &d->view;
    if (e->count > ranks_max || e->broken_count > sl_broken_max(ranks_max))
        return false;
    return e->count > 0 ? sl_view_is_valid(e) && e->members[e->count - 1].rank < ranks_max
                        : e->number > 0 && e->round > 0 && e->broken_count == 0;
}

const sl_member *sl_view_member(const sl_view *e, uint32_t rank) {
    const uint32_t place = sl_view_place(e, rank);
    return place < e->count ? &e->members[place] : NULL;
}

bool sl_view_has(const sl_view *e, uint32_t rank, uint64_t incarnation) {
    const sl_member *member = sl_view_member(e, rank);
    return member != NULL && member->incarnation == incarnation;
}

bool sl_view_meets(const sl_view *a, const sl_view *b) {
    for (uint32_t i = 0; i < a->count; i++)
        if (sl_view_has(b, a->members[i].rank, a->members[i].incarnation))
            return true;
    return false;
}

uint64_t sl_view_exchange_at(uint64_t exchange, uint64_t round, uint64_t last, uint32_t period) {
    return exchange + last / period - (round - 1) / period;
}
