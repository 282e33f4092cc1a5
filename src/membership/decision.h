/* decision.h - decisions with memory of their own, and what follows from them. */
#ifndef SL_DECISION_H
#define SL_DECISION_H

#include "membership/membership.h"

typedef struct sl_kept_decision {
    sl_decision decision; /* its lists are the ones below; epoch.number 0: there is none */
    sl_member *members;   /* (ranks_max) */
    sl_pair *broken;      /* (sl_broken_max()) */
} sl_kept_decision;

/* How many broken edges a view of this room lists; there may be more. */
uint32_t sl_broken_max(uint32_t ranks_max);
/* Of none. 0, or SL_ENOMEM. */
int sl_decision_open(sl_kept_decision *d, uint32_t ranks_max);
void sl_decision_close(sl_kept_decision *d);
void sl_decision_copy(sl_kept_decision *to, const sl_decision *from);
/* Does it keep what the structs promise, with ranks below ranks_max? */
bool sl_decision_is_valid(const sl_decision *d, uint32_t ranks_max);
/* The entry of a rank; NULL: it is no member. */
const sl_member *sl_view_member(const sl_view *e, uint32_t rank);
/* Is this process a member? */
bool sl_view_has(const sl_view *e, uint32_t rank, uint64_t incarnation);
/* Have they a process in common? */
bool sl_view_meets(const sl_view *a, const sl_view *b);
/* How many exchanges were over after round `last` of a view that begins with `round`? */
uint64_t sl_view_exchange_at(uint64_t exchange, uint64_t round, uint64_t last, uint32_t period);

static inline int sl_ballot_compare(sl_ballot a, sl_ballot b) {
    if (a.counter != b.counter)
        return a.counter < b.counter ? -1 : 1;
    return a.rank < b.rank ? -1 : a.rank > b.rank;
}

#endif
