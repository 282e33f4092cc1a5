/* cause.h - why there should be another view, and whose turn it is to lead. */
#ifndef SL_CAUSE_H
#define SL_CAUSE_H

#include "membership/state.h"

bool sl_cause_is_there(const sl_membership *m);
/* Does a member of the newest view say that it cannot reach the other one, or has it gone? */
bool sl_cause_is_cut(const sl_membership *m, uint32_t a, uint32_t b);
/* Is it this member's turn? The member that reaches most leads, the lowest rank of these first, and
 * one more each grace_s. */
bool sl_cause_leads(const sl_membership *m);
/* Should it rather let somebody lead who would leave out fewer members? */
bool sl_cause_yields(const sl_membership *m);

#endif
