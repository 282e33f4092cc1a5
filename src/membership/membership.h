/* membership.h - who takes part, as a pure step function: step(event) -> update.
 *
 * No I/O, no clock, no threads. Time is in every event; equal events give equal updates. A driver
 * (the agent) carries messages between members, says whom it reaches, and asks before each round.
 *
 *   TICK       at least each 100 ms   -> messages to repeat; a leader that is silent is replaced
 *   MESSAGE    from a peer            -> answers
 *   LOST       a peer cannot be reached: its port refuses, or grace_s went by in silence
 *   REACHED    it can again
 *   DONE       it has ended its last round, or leaves: it has sent all that it owes
 *   READY      the node has ended its round -> begin: the next one, now or in a later update
 *   LEAVE      the process wants to go      -> left: after the last round that it owes, or
 *                                              SL_LEAVE_S later, in the midst of a round
 *   ASIDE      the node can use nothing of its round -> dropped: once the others have agreed
 *   JOIN       it has the model of `peer`, and wants to take part -> begin
 *   RENEW      the next view is to begin soon, though nobody is lost or comes: this member leads
 *
 * What an update asks for, in this order:
 *
 *   messages   to be sent, each to one peer; none needs to arrive
 *   committed  a view is agreed on (log it before any message of this update leaves): open
 *              connections to its new members. `view` says later when it begins
 *   cut        nothing is exchanged any more until the next view begins: SL_EVENT_CUT
 *   order      BEGIN: round `round`; if `view` is there, it is the first one under that view:
 *              deliver it to the node first. RETURN, ASK_AGAIN: fetch a sponsor's model, another's,
 *              then JOIN. LEAVE: with 75; after ASIDE, nobody lets it go
 *
 * What else the driver has to do: keep trying to reach whom it has lost. Say LOST of a rank, then
 * REACHED, when another process of it comes; let that in only if the newest view lacks the rank, or
 * has that process, and pass on no message that an earlier one has sent. READY may be given once
 * after each BEGIN, and after open; JOIN needs none.
 *
 * How it works. There is one view at a time; views are numbered. All tell all, each second and at
 * once when something changes, what they know (NEWS). A *cause* is a member that somebody cannot
 * reach, a process that joins, a member that leaves, an edge that is whole again, a node that
 * was cut, or a driver that wants a view. A member that sees a cause waits for the
 * lowest living rank to lead, of those that reach most members; each grace_s without a decision the
 * next one may. The leader asks all members, the suspected too, and all who join (PREPARE). A
 * member that answers begins no round after the one that it is in, until it hears COMMIT or
 * RELEASE. The next view is those who answered, but for those who leave; its first round is one
 * after the latest that any of them is in. Members accept it (ACCEPT, ACCEPTED) before it holds
 * (COMMIT); then each goes on to the round before the view's first, and begins the view. If nothing
 * would change, RELEASE takes the promises back.
 *
 * Members decide as acceptors do in Paxos (Lamport, The Part-Time Parliament, 1998), one instance a
 * view: a leader needs a quorum of the newest view, more than half of its members, or an even half
 * with the lowest rank; members whose processes are known to have ended do not count. What an
 * acceptor of a quorum has accepted, a later leader proposes again. So views are one sequence. A
 * part without a quorum rests, and waits until it reaches the others.
 *
 * A loss *cuts*: a member that hears of one exchanges nothing more under the view, and says so; so
 * do all that hear that. A change without a loss lets the rounds under way end first.
 *
 * A member that finds itself left out is dropped, and joins again. Settings may allow smaller
 * quorums; then parts of a network can go on as views of their own, which have no member in common.
 * When they meet, the smaller one is dropped (of two alike that without the lowest rank).
 */
#ifndef SL_MEMBERSHIP_H
#define SL_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"
#include "starling/view.h"

#define SL_ANSWER_S 1.0 /* that a leader waits for those who cannot be reached, or join */
#define SL_REPEAT_S 0.2 /* between repetitions of what was not answered */
#define SL_NEWS_S 1.0   /* between two NEWS to everybody */
#define SL_LEAVE_S 5.0  /* that a member which leaves waits for the others to agree */
/* That a process which joins waits for a sponsor, or until it is let in. */
#define SL_PATIENCE_S(grace_s) (3 * ((grace_s) + SL_ANSWER_S))

/* The incarnation, as views call it, of all who begin with the run. */
#define SL_FOUNDER 1

typedef struct sl_ballot {
    uint64_t counter; /* 0: none */
    uint32_t rank;    /* of the leader */
} sl_ballot;

typedef struct sl_decision {
    sl_ballot ballot; /* under which it was last proposed */
    sl_view view;
    bool cut;  /* nothing more is exchanged under the view before */
    bool last; /* all save and end as it begins */
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

/* What a process is to the newest view that it knows of. */
typedef enum sl_standing_of {
    SL_OUT,    /* it takes no part, and does not ask to */
    SL_JOINS,  /* it asks to */
    SL_MEMBER, /* it takes part */
    SL_LEAVES, /* a member that wants to go */
    SL_ASIDE   /* a member whose node rests in the midst of a round, until it is left out */
} sl_standing_of;

/* Pointers are borrowed: of a received message for the step, of one to send until the next step. */
typedef struct sl_membership_message {
    sl_membership_type type;
    uint32_t from;
    uint64_t incarnation; /* of the sender */
    uint64_t number;      /* of the newest view that it knows of; 0: none yet */
    sl_standing_of standing;
    uint64_t cut;                /* number of the latest view that was cut for it; 0: none was */
    uint64_t renews;             /* number of the view that it wants another one after; 0: none */
    sl_ballot ballot;            /* NEWS: of the promise that it is bound by */
    uint64_t round;              /* ANSWER: that it is in */
    bool last;                   /* ANSWER: it wants that of the next view */
    uint32_t sponsor;            /* if it joins */
    const uint32_t *unreachable; /* NEWS, ANSWER: (unreachable_count) ranks, rising */
    uint32_t unreachable_count;
    const uint32_t *reached; /* NEWS, ANSWER: (reached_count) ranks, rising; of others it has not
                                heard, or not yet */
    uint32_t reached_count;
    const sl_decision *decision; /* ACCEPT, COMMIT: that; ANSWER: its newest view; else NULL */
    const sl_decision *accepted; /* ANSWER: and not known to hold; NULL: none */
} sl_membership_message;

typedef struct sl_membership_settings {
    uint32_t rank;
    uint64_t incarnation;
    uint32_t ranks_max;   /* all ranks are below it */
    uint32_t quorum;      /* members that a view needs of the one before; 0: the majority */
    uint32_t period;      /* rounds an exchange, at least 1 */
    double grace_s;       /* a leader's, to decide */
    const sl_view *first; /* the view that the run begins with, or is resumed with; copied. NULL:
                              this process joins */
    bool first_begins;    /* it is a new one for the node: READY begins it */
    uint64_t round;       /* the last one that is finished; 0: none */
} sl_membership_settings;

typedef enum sl_membership_event_type {
    SL_MEMBERSHIP_TICK,
    SL_MEMBERSHIP_MESSAGE,
    SL_MEMBERSHIP_LOST,
    SL_MEMBERSHIP_REACHED,
    SL_MEMBERSHIP_DONE,
    SL_MEMBERSHIP_READY,
    SL_MEMBERSHIP_LEAVE,
    SL_MEMBERSHIP_ASIDE,
    SL_MEMBERSHIP_JOIN,
    SL_MEMBERSHIP_RENEW,
    SL_MEMBERSHIP_ENDS /* all end with the node's view: none follows that, unless it is cut */
} sl_membership_event_type;

typedef struct sl_membership_event {
    sl_membership_event_type type;
    double now_s;  /* never falls */
    uint32_t peer; /* LOST, REACHED, DONE; JOIN: the sponsor */
    bool last;     /* RENEW: that view is to be the last */
    bool ended;    /* LOST: its process has ended. May be said of one that is lost already */
    const sl_membership_message *message; /* MESSAGE; checked: any content is taken */
} sl_membership_event;

/* What the driver is to do. Of several the last one here holds. */
typedef enum sl_membership_order {
    SL_ORDER_NONE,
    SL_ORDER_BEGIN,     /* round `round` */
    SL_ORDER_LEAVE,     /* end after the round under way */
    SL_ORDER_LEAVE_ALL, /* the same, as all others do */
    SL_ORDER_ASK_AGAIN, /* the sponsor is gone */
    SL_ORDER_RETURN,    /* the others went on without this member */
    SL_ORDER_DIVERGED   /* end: most of the view have stepped aside */
} sl_membership_order;

typedef struct sl_membership_update {
    const struct sl_membership_post {
        uint32_t to;
        sl_membership_message message;
    } * messages; /* (message_count) valid until the next step */
    size_t message_count;
    const sl_decision *committed; /* NULL: none */
    sl_membership_order order;
    uint64_t round;      /* of BEGIN */
    const sl_view *view; /* NULL: round begins under the view of the one before; valid until
                             another view begins */
    bool last;           /* all save and end as that begins */
    bool cut;
} sl_membership_update;

typedef struct sl_membership sl_membership;

/* SL_ENOMEM. */
int sl_membership_open(sl_membership **out, const sl_membership_settings *settings,
                       sl_error *error);
void sl_membership_close(sl_membership **membership);
void sl_membership_step(sl_membership *m, const sl_membership_event *event,
                        sl_membership_update *update);

/* The newest view that it is a member of; NULL: it is out. */
const sl_view *sl_membership_newest(const sl_membership *m);
/* The same; while it is out, the one that it was dropped for; count 0: it knows none. */
const sl_view *sl_membership_others(const sl_membership *m);
/* Does its node's view end: is the next one agreed on, or its own cut, or is it let go? There is no
 * way back. */
bool sl_membership_turns(const sl_membership *m);
/* Would a round not begin now, if its node were ready? */
bool sl_membership_holds(const sl_membership *m);
/* Have the others agreed that it leaves, after the round under way or a later one? */
bool sl_membership_is_let_go(const sl_membership *m);
/* Are fewer members reached than a next view needs? *reached counts this one, too. */
bool sl_membership_lacks_quorum(const sl_membership *m, uint32_t *reached, uint32_t *needed);
/* What this peer has said of itself. SL_OUT: also if it has said nothing. */
sl_standing_of sl_membership_standing_of(const sl_membership *m, uint32_t rank);
/* Has this peer heard of a view of that number, or a later one, and takes part in none? */
bool sl_membership_is_out(const sl_membership *m, uint32_t rank, uint64_t number);

#endif
