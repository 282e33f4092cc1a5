/* fold.h - the steps of a view without its broken edges: their weights stay with the node.
 *
 * Where rows of W sum to 1, a node gives the weight of a peer that it does not reach to its own
 * vector. Under a symmetric W that is what the peer was to be given, so that the mean stays.
 * Push-sum's columns sum to 1: there a node keeps what it would have given.
 */
#ifndef SL_FOLD_H
#define SL_FOLD_H

#include "route/route.h"
#include "starling/node.h"

typedef struct sl_fold {
    bool *lost;         /* (peers) by position among them; NULL: all edges are whole */
    uint32_t *peers[2]; /* (peers) of the step's in-row and its out-row without the lost */
    double *weights[2];
} sl_fold;

/* The node's own edges among those that the view does without. SL_ENOMEM. */
int sl_fold_open(sl_fold *out, const sl_node_view *view, const sl_route *route);
void sl_fold_close(sl_fold *fold);
bool sl_fold_lacks(const sl_fold *fold, uint32_t slot);
/* Takes the lost out of a step; rows then point into the fold. */
void sl_fold_apply(sl_fold *fold, const sl_route *route, sl_exchange_step *step);

#endif
