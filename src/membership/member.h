/* member.h - what every member does: promise, accept, take a view, begin rounds. */
#ifndef SL_MEMBER_H
#define SL_MEMBER_H

#include "membership/state.h"

/* Promises to the ballot, unless a higher one has been promised. False: it has, or the ballot was
 * settled. */
bool sl_member_promise(sl_membership *m, sl_ballot ballot);
void sl_member_on_prepare(sl_membership *m, const sl_membership_message *message);
void sl_member_on_accept(sl_membership *m, const sl_membership_message *message);
/* Accepts it under that ballot, if it can. */
bool sl_member_accept(sl_membership *m, const sl_decision *d, sl_ballot ballot);
/* The promise to this ballot, and to lower ones, binds no more. */
void sl_member_release(sl_membership *m, sl_ballot ballot);
/* A view that holds, as `from` says: takes it, if it is newer and has this member; or notes that it
 * is left out. */
void sl_member_consider(sl_membership *m, uint32_t from, const sl_decision *d);
/* The same, of a peer that is in that view: is it this member's? Parts of a network that go on as
 * small ones may have views of one number; the smaller part hears of the other's. */
bool sl_member_shares(sl_membership *m, uint32_t from, const sl_decision *d);
/* Begins the next round, if the node is ready and it may. */
void sl_member_begin(sl_membership *m);

#endif
