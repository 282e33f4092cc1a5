/* quorum.h - which members may decide on the next view. */
#ifndef SL_QUORUM_H
#define SL_QUORUM_H

#include "membership/state.h"

/* Members of the newest view of whom something holds. */
typedef bool (*sl_quorum_of)(const sl_membership *m, const sl_member *member);

/* Are those of whom `holds` is true a quorum of the newest view? Members whose processes have ended
 * do not count. */
bool sl_quorum_has(const sl_membership *m, sl_quorum_of holds);
/* Do other members, a quorum or all that have not ended, know a view of that number? */
bool sl_quorum_knows(const sl_membership *m, uint64_t number);
/* How many members a quorum needs now. */
uint32_t sl_quorum_needed(const sl_membership *m);

#endif
