/* owners.h - which server has what of the vector, and how commits to it are encoded; see commits.c.
 */
#ifndef SL_OWNERS_H
#define SL_OWNERS_H

#include "async/state.h"

enum { SL_COMMIT, SL_COMMIT_ANSWER }; /* steps of a commit's messages */

/* Those of the view; where one server has all, it may be another one now. n->own is this node's.
 * SL_ENOMEM. */
int sl_owners_open(sl_async *n, sl_error *error);
void sl_owners_close(sl_async *n);
/* What this rank serves; NULL: nothing. */
sl_owner *sl_owners_of(const sl_async *n, uint32_t server);
/* Does the edge to it hold, in this view? */
bool sl_owner_is_reached(const sl_async *n, const sl_owner *owner);
/* The next one that this node's commit is to go to; NULL: it is out. */
sl_owner *sl_owners_unsent(const sl_async *n);
/* Has all of the model come? */
bool sl_owners_have_come(const sl_async *n);
/* Encodes all of a commit to it. SL_EDIVERGED: it is not finite. */
int sl_owner_encode(sl_async *n, sl_owner *owner, const sl_source *source, uint64_t number,
                    uint32_t step, sl_error *error);
/* Of the model that comes back: elements of the vector. */
sl_range sl_owner_model_part(const sl_owner *owner, uint32_t part);
/* A part of the rank's commit to it, as the algorithm's hooks take it; one of this node's own. */
sl_part sl_owner_part(const sl_async *n, const sl_owner *owner, uint32_t rank, const sl_arrival *a,
                      float weight);
sl_arrival sl_owner_own_part(const sl_async *n, const sl_owner *owner, uint32_t part);

#endif
