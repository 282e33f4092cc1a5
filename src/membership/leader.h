/* leader.h - who leads, why, and how it comes to a decision. */
#ifndef SL_LEADER_H
#define SL_LEADER_H

#include "membership/state.h"

/* With the time, and with all that was heard: begins a change, repeats, decides. */
void sl_leader_tick(sl_membership *m);
void sl_leader_on_answer(sl_membership *m, const sl_membership_message *message);
void sl_leader_on_refuse(sl_membership *m, const sl_membership_message *message);
void sl_leader_on_accepted(sl_membership *m, const sl_membership_message *message);

#endif
