/* fold.h - a step without the peers that are lost: their weights stay with the node.
 *
 * Where rows of W sum to 1, a node that misses a part gives its weight to its own. Under a
 * symmetric W that is what the lost peer was to be given, so that the mean of those who are left
 * stays. Push-sum's columns sum to 1: there a node keeps what it would have given, and what does
 * not come is no part of the sum.
 */
#ifndef SL_FOLD_H
#define SL_FOLD_H

#include "node/route.h"

typedef struct sl_fold {
    bool *lost; /* (peers) by position among them; NULL: nobody is */
    uint32_t *to;
    double *weights; /* (peers) of the step's in-row, 0 for the lost */
    double *given;   /* (peers) of its out-row */
} sl_fold;

void sl_fold_close(sl_fold *fold);
/* The peer at this position among `count` is lost. SL_ENOMEM. */
int sl_fold_lose(sl_fold *fold, uint32_t slot, uint32_t count);
bool sl_fold_lacks(const sl_fold *fold, uint32_t slot);
/* Takes the lost out of a step; rows then point into the fold. peers: (count) sorted. */
void sl_fold_apply(sl_fold *fold, const sl_route *route, const uint32_t *peers, uint32_t count,
                   sl_exchange_step *step);

#endif
