/* cause.h - why there should be another epoch, and whose turn it is to lead. */
#ifndef SL_CAUSE_H
#define SL_CAUSE_H

#include "membership/state.h"

bool sl_cause_is_there(const sl_membership *m);
/* Has an edge of this member's broken, or is whole again, or has one stepped aside, and nothing is
 * agreed on that yet? Or does its node do without one that it reaches again? */
bool sl_cause_is_own(const sl_membership *m);
/* Is it this member's turn? Who reaches most leads, the lowest rank of these first, and one more
 * each grace_s. */
bool sl_cause_leads(const sl_membership *m);
/* Should it rather let somebody lead who would leave out fewer members? */
bool sl_cause_yields(const sl_membership *m);

#endif
