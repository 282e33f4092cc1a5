/* commits.h - what the server's files share; see commits.c. */
#ifndef SL_COMMITS_H
#define SL_COMMITS_H

#include "async/state.h"

#define SL_TAKES_NO_PART UINT64_MAX

/* Is all of the rank's commit here, and not applied? */
bool sl_commits_has(const sl_async *n, uint32_t rank);
/* That one. */
int sl_commits_apply(sl_async *n, uint32_t rank, sl_error *error);
/* All of it has come to what it comes to. */
void sl_commits_count(sl_async *n, uint32_t rank, uint64_t number);

/* Applies, or drops, the next commit that is due. */
int sl_batch_take(sl_async *n, sl_error *error);
/* Is one to be applied, or dropped, or noted as early? */
bool sl_batch_has_work(const sl_async *n);

#endif
