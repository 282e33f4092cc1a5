/* decision.h - decisions with memory of their own, and what follows from them. */
#ifndef SL_DECISION_H
#define SL_DECISION_H

#include "membership/membership.h"

typedef struct sl_kept_decision {
    sl_decision decision; /* its lists are the ones below; epoch.number 0: there is none */
    uint64_t hash;        /* of the epoch */
    sl_member *members;   /* (ranks_max) */
    sl_pair *broken;      /* (sl_broken_max()) */
    sl_epoch_side *sides; /* (ranks_max) */
} sl_kept_decision;

/* How many broken edges an epoch of this room lists; there may be more. */
uint32_t sl_broken_max(uint32_t ranks_max);
/* Of none. 0, or SL_ENOMEM. */
int sl_decision_open(sl_kept_decision *d, uint32_t ranks_max);
void sl_decision_close(sl_kept_decision *d);
void sl_decision_copy(sl_kept_decision *to, const sl_decision *from);
/* Does it keep what the structs promise, with ranks below ranks_max? */
bool sl_decision_is_valid(const sl_decision *d, uint32_t ranks_max);
const sl_epoch_side *sl_decision_side(const sl_decision *d, uint64_t hash);
/* The entry of a rank; NULL: it is no member. */
const sl_member *sl_epoch_member(const sl_epoch *e, uint32_t rank);
/* Is this process a member? */
bool sl_epoch_has(const sl_epoch *e, uint32_t rank, uint64_t incarnation);
/* Are more than half of the members of `old` members of `e`? */
bool sl_epoch_has_most_of(const sl_epoch *e, const sl_epoch *old);
/* How many exchanges were over after round `last` of this epoch? */
uint64_t sl_epoch_exchange_at(uint64_t exchange, uint64_t round, uint64_t last, uint32_t period);

static inline int sl_ballot_compare(sl_ballot a, sl_ballot b) {
    if (a.counter != b.counter)
        return a.counter < b.counter ? -1 : 1;
    return a.rank < b.rank ? -1 : a.rank > b.rank;
}

#endif
