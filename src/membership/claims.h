/* claims.h - what others say, held against what this member can know. Letters come from processes
 * that hold a key, and may be wrong all the same. */
#ifndef SL_CLAIMS_H
#define SL_CLAIMS_H

#include "membership/state.h"

/* Has the message what its type needs, in bounds? Else it is dropped. */
bool sl_claims_are_sound(const sl_membership *m, const sl_membership_message *message);
/* Can a member of the newest view be in this round? */
bool sl_claims_round(const sl_membership *m, uint64_t round);
/* Can the next view after the newest one be this? */
bool sl_claims_next(const sl_membership *m, const sl_decision *d);

#endif
