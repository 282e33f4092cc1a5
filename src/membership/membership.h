/* membership.h - who takes part, as a pure step function: step(event) -> update.
 *
 * No I/O, no clock, no threads. Time is in every event; equal events give equal updates. A driver
 * (the agent) carries messages between members, says whom it reaches, and asks before each round.
 *
 *   TICK       at least each 100 ms   -> messages to repeat; a leader that is silent is replaced
 *   MESSAGE    from a peer            -> answers
 *   LOST       a peer cannot be reached: its port refuses, or grace_s went by in silence
 *   REACHED    it can again
 *   READY      the node is through with its round -> begin: the next one, now or in a later update
 *   LEAVE      the process wants to go            -> left: after the last round that it owes, or
 *                                                    SL_LEAVE_S later, in the midst of a round
 *   ASIDE      the node can use nothing of its round -> dropped: once the others have agreed
 *   JOIN       it has the model of `peer`, and wants to take part -> begin
 *
 * What an update asks for:
 *
 *   messages   to be sent, each to one peer; none needs to arrive
 *   begin      round `round`; if `view` is there, it is the first one under that epoch: deliver
 *              it to the node as its view first. Data of an epoch that has not begun waits.
 *   committed  an epoch is agreed on (log it before any message of this update leaves): open
 *              connections to its new members. `view` says later when it begins
 *   dropped    the others went on without this member: fetch a sponsor's model, then JOIN
 *   ask_again  the sponsor is gone: fetch another's model, then JOIN
 *   replaced   the others went on with another process of this rank: exit
 *   diverged   most of those of its epoch have stepped aside: end
 *   left       end after the round under way, with 75; after ASIDE, nobody lets it go
 *   nobody_stays  with `left`: so do all others, after the same round
 *
 * What else the driver has to do: keep trying to reach whom it has lost, or parts of a network
 * never merge. Say LOST of a rank, then REACHED, when another process of it comes; let that in only
 * if the newest epoch lacks the rank, or has that process, and pass on no message that an earlier
 * one has sent: incarnations have no order, so an epoch says who follows whom. For the node, a
 * member is lost from LOST on until the next view begins, even if REACHED comes earlier; so is one
 * that is not, or not any more, on its way through the epoch of the round. After `dropped` the node
 * rests. READY may be given once after each `begin`, and after open; JOIN needs none. What cannot
 * be folded (all-reduce, servers) would not come to the end of its epoch: it is not covered yet.
 *
 * How it works. All tell all, each second and at once when something changes, what they know
 * (NEWS). Whoever sees a cause - a member that somebody cannot reach, a process that joins, a
 * member that leaves, an edge that is whole again, members of another epoch - waits for the
 * lowest living rank to lead, of those who reach most of the members, of other epochs, too, that
 * anybody reaches; each grace_s without a decision the next one may. The leader asks
 * all it knows (PREPARE), the suspected too. Who answers promises not to begin a round after
 * `limit`, and tells what it has accepted. Those who answered are the view, which all of them
 * accept (ACCEPT, ACCEPTED) before it holds (COMMIT). If nothing would change, RELEASE takes the
 * promises back. Who has lost somebody itself goes no further than that limit without any promise,
 * until something is agreed: the others may have dropped it, and what it trains alone is lost.
 *
 * A proposal may hold somewhere unless somebody of its view has not accepted it: so a later leader
 * takes over what all that answer have accepted, and nothing else. Members that cannot reach each
 * other may agree on different views. Their hashes differ, so they do not mix; when they hear of
 * each other they merge. Each *side* (those whose newest epoch is the same) ends at a round of its
 * own, the largest limit of its members; the new epoch begins after the largest of these, so the
 * side behind goes forward in its round counter.
 *
 * Who finds itself left out by more than half of its own epoch is dropped. Otherwise, both are
 * sides of a partition. Who steps aside leaves, and is dropped by whatever epoch leaves it out.
 */
#ifndef SL_MEMBERSHIP_H
#define SL_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/epoch.h"
#include "starling/error.h"

#define SL_ANSWER_S 1.0 /* that a leader waits for those who cannot be reached */
#define SL_REPEAT_S 0.2 /* between repetitions of what was not answered */
#define SL_NEWS_S 1.0   /* between two NEWS to everybody */
#define SL_AGREE_S 2.0  /* in which all have agreed, if no more than one is silent */
#define SL_BRISK_S 0.5  /* likewise, if nobody is */
#define SL_SETTLE_S 1.0 /* another epoch that a peer has for so long is one to merge with */
#define SL_LEAVE_S 5.0  /* that who leaves waits for the others to agree */
/* That who joins waits for a sponsor, or until it is let in. */
#define SL_PATIENCE_S(grace_s) (3 * ((grace_s) + SL_ANSWER_S))

/* The incarnation, as epochs call it, of all who begin with the run. */
#define SL_FOUNDER 1

typedef struct sl_ballot {
    uint64_t counter; /* 0: none */
    uint32_t rank;    /* of the leader */
} sl_ballot;

/* Members whose newest epoch is the same end it together. */
typedef struct sl_epoch_side {
    uint64_t hash; /* of that epoch */
    uint64_t last; /* round under it */
} sl_epoch_side;

typedef struct sl_decision {
    sl_ballot ballot; /* under which it was last proposed */
    sl_epoch epoch;
    const sl_epoch_side *sides; /* (side_count) */
    uint32_t side_count;
} sl_decision;

typedef enum sl_membership_type {
    SL_MEMBERSHIP_NEWS,
    SL_MEMBERSHIP_PREPARE,
    SL_MEMBERSHIP_ANSWER,
    SL_MEMBERSHIP_REFUSE, /* ballot: the higher one that was promised */
    SL_MEMBERSHIP_ACCEPT,
    SL_MEMBERSHIP_ACCEPTED,
    SL_MEMBERSHIP_COMMIT,
    SL_MEMBERSHIP_RELEASE
} sl_membership_type;

/* Pointers are borrowed: of a received message for the step, of one to send until the next step. */
typedef struct sl_membership_message {
    sl_membership_type type;
    uint32_t from;
    uint64_t incarnation; /* of the sender */
    uint64_t number;      /* of the newest epoch that it was part of; 0: none yet */
    uint64_t hash;        /* of that; 0: it is out, or has not joined yet */
    sl_ballot ballot;     /* NEWS: of the promise that it is bound by */
    uint64_t limit;       /* ANSWER: the last round that it begins before COMMIT or RELEASE */
    bool joins, leaves, aside;
    bool mends;       /* it reaches a member again that its node does without in this epoch */
    uint32_t sponsor; /* if it joins */
    const uint32_t *unreachable; /* NEWS, ANSWER: (unreachable_count) ranks, rising */
    uint32_t unreachable_count;
    const uint32_t *reached; /* NEWS, ANSWER: (reached_count) ranks, rising; of others it has not
                                heard, or not yet */
    uint32_t reached_count;
    const sl_decision *decision; /* ACCEPT, COMMIT: that; ANSWER: its newest epoch; else NULL */
    const sl_decision *accepted; /* ANSWER: and not known to hold; NULL: none */
} sl_membership_message;

typedef struct sl_membership_settings {
    uint32_t rank;
    uint64_t incarnation;
    uint32_t ranks_max;    /* all ranks are below it */
    uint32_t slack;        /* the most rounds that may begin between a promise and COMMIT; no more
                              than SL_AGREE_S takes */
    uint32_t period;       /* rounds an exchange, at least 1; an epoch begins after a multiple */
    double grace_s;        /* a leader's, to decide */
    const sl_epoch *first; /* the epoch that the run begins with, or goes on with; copied. NULL:
                              this process joins */
    uint64_t round;        /* the last one that is finished; 0: none */
} sl_membership_settings;

typedef enum sl_membership_event_type {
    SL_MEMBERSHIP_TICK,
    SL_MEMBERSHIP_MESSAGE,
    SL_MEMBERSHIP_LOST,
    SL_MEMBERSHIP_REACHED,
    SL_MEMBERSHIP_READY,
    SL_MEMBERSHIP_LEAVE,
    SL_MEMBERSHIP_ASIDE,
    SL_MEMBERSHIP_JOIN
} sl_membership_event_type;

typedef struct sl_membership_event {
    sl_membership_event_type type;
    double now_s;  /* never falls */
    uint32_t peer; /* LOST, REACHED; JOIN: the sponsor */
    bool folded;   /* REACHED: the node does without it, until a view begins */
    const sl_membership_message *message; /* MESSAGE; checked: any content is taken */
} sl_membership_event;

typedef struct sl_membership_update {
    const struct sl_membership_post {
        uint32_t to;
        sl_membership_message message;
    } * messages; /* (message_count) valid until the next step */
    size_t message_count;
    const sl_decision *committed; /* NULL: none */
    bool begin;
    uint64_t round;       /* of begin */
    const sl_epoch *view; /* of begin; NULL: the same as before */
    uint32_t sides;       /* of view: members come from so many epochs */
    bool dropped, ask_again, replaced, diverged, left, nobody_stays;
} sl_membership_update;

typedef struct sl_membership sl_membership;

int sl_membership_open(sl_membership **out, const sl_membership_settings *settings,
                       sl_error *error);
void sl_membership_close(sl_membership **membership);
/* Overwrites *update. */
void sl_membership_step(sl_membership *m, const sl_membership_event *event,
                        sl_membership_update *update);

/* The newest epoch; NULL: it is out, or has not joined yet. */
const sl_epoch *sl_membership_epoch(const sl_membership *m);
/* The epoch of the others that have dropped it. */
const sl_epoch *sl_membership_others(const sl_membership *m);
/* The round that began last. */
uint64_t sl_membership_round(const sl_membership *m);
/* Is it agreed after which round this member leaves? */
bool sl_membership_is_let_go(const sl_membership *m);
/* Has this peer stepped aside from an epoch of that number, or a later one? */
bool sl_membership_is_aside(const sl_membership *m, uint32_t rank, uint64_t number);
/* Has this peer heard of an epoch of that number, or a later one, and takes part in none? */
bool sl_membership_is_out(const sl_membership *m, uint32_t rank, uint64_t number);
/* Has this peer said that it leaves? */
bool sl_membership_leaves(const sl_membership *m, uint32_t rank);

#endif
