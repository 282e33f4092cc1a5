/* state.h - what a member knows, and what its files do with that; see membership.h. */
#ifndef SL_MEMBERSHIP_STATE_H
#define SL_MEMBERSHIP_STATE_H

#include "membership/decision.h"

/* What a peer has said, and what the driver has said of it. */
typedef struct sl_peer {
    bool known;    /* it was reached, or heard */
    bool lost;     /* it is not reached now */
    bool ended;    /* likewise, and its process has ended */
    bool done;     /* it has sent all that it owes, and takes part in no later view */
    bool followed; /* the one that is reached is not the process that is a member */
    sl_standing_of standing;
    uint64_t incarnation, number;
    uint64_t renews; /* see sl_membership_message */
    uint32_t sponsor;
    bool *cannot;  /* (ranks_max) whom it cannot reach */
    bool *reaches; /* (ranks_max) whom it does; behind `cannot` */
} sl_peer;

/* To a leader's PREPARE. */
typedef struct sl_answer {
    bool asked, here, accepts, cut, last;
    sl_standing_of standing;
    uint64_t incarnation, round;
    uint32_t sponsor;
} sl_answer;

typedef enum sl_phase { PHASE_IDLE, PHASE_PREPARING, PHASE_ACCEPTING } sl_phase;

/* What a leader is at. */
typedef struct sl_change {
    sl_phase phase;
    sl_ballot ballot;
    double since_s, sent_s;
    sl_answer *answers; /* (ranks_max) */
    sl_kept_decision proposal;
    sl_kept_decision found; /* of what they have accepted, the one of the highest ballot */
} sl_change;

/* The newest view that it knows of. */
typedef struct sl_known_view {
    sl_kept_decision newest; /* while it is out, that of the others, if it was dropped for one */
    uint64_t number;         /* of the newest that it has heard of */
    bool pending;            /* the newest has not begun here */
    bool cut;                /* nothing more is exchanged under the newest */
} sl_known_view;

/* How far the driver's node is. */
typedef struct sl_node_side {
    sl_kept_decision begun; /* the view that it is in; what update.view points to */
    uint64_t round;         /* that began last */
    bool ready;             /* and the node has ended it */
    bool is_cut;            /* the driver was told, and no view has begun since */
    uint64_t cut_in;        /* number of the latest view of which it was told so; 0: none */
} sl_node_side;

/* What it has promised to leaders. */
typedef struct sl_promise {
    sl_ballot ballot;          /* no lower one is answered */
    bool bound;                /* neither COMMIT nor RELEASE has come */
    sl_kept_decision accepted; /* what may be the next view */
} sl_promise;

/* What this process itself wants, and what it was allowed. */
typedef struct sl_wishes {
    uint32_t sponsor;      /* if it joins */
    double asked_s;        /* when it last wanted to join, or to leave */
    uint64_t leaves_after; /* round; 0: it is not let go */
    bool all_leave;        /* after that */
    bool renews;           /* a view is to follow, whoever is in it */
    bool last;             /* and all are to end as it begins */
    bool ends;             /* with the view that its node is in, unless that is cut */
} sl_wishes;

typedef struct sl_news {
    double told_s; /* when it told all */
    bool due;
} sl_news;

/* What a step sends. */
typedef struct sl_mail {
    struct sl_membership_post *posts; /* (post_count, room for sl_posts_max) */
    size_t post_count;
    uint32_t *unreachable; /* (unreachable_count) in messages */
    uint32_t unreachable_count;
    uint32_t *reached; /* (reached_count) in messages */
    uint32_t reached_count;
} sl_mail;

struct sl_membership {
    sl_membership_settings settings;
    double now_s;
    sl_membership_update *update; /* of the step */
    sl_peer *peers;               /* (ranks_max) */
    sl_standing_of standing;
    sl_known_view view;
    sl_node_side node;
    sl_promise promise;
    sl_wishes wishes;
    sl_change change;
    double cause_s; /* since when there has been one; -1: there is none */
    double quiet_s; /* until then it does not lead */
    sl_news news;
    sl_mail mail;
};

static inline size_t sl_posts_max(const sl_membership *m) {
    return 8 * (size_t)m->settings.ranks_max;
}
static inline bool sl_standing_is_member(sl_standing_of standing) {
    return standing >= SL_MEMBER;
}
static inline bool sl_membership_takes_part(const sl_membership *m) {
    return sl_standing_is_member(m->standing);
}
static inline const sl_view *sl_membership_view(const sl_membership *m) {
    return &m->view.newest.decision.view;
}
/* Has it accepted what may be the next view? */
static inline bool sl_membership_has_accepted(const sl_membership *m) {
    return m->promise.accepted.decision.view.number == m->view.number + 1;
}
/* Adds a message, filled with what all have. */
sl_membership_message *sl_membership_post(sl_membership *m, uint32_t to, sl_membership_type type,
                                          sl_ballot ballot, const sl_decision *decision);
static inline void sl_membership_give(sl_membership *m, sl_membership_order order) {
    if (order > m->update->order)
        m->update->order = order;
}
/* Does it agree on no next view, as all end with this one? Once that is cut, they may not. */
static inline bool sl_membership_ends(const sl_membership *m) {
    return m->wishes.ends && !m->view.cut;
}
/* Nothing more is exchanged under the newest view. */
void sl_membership_cut(sl_membership *m);
/* Is the member of that rank not reached? */
static inline bool sl_membership_misses(const sl_membership *m, uint32_t rank) {
    return m->peers[rank].lost || m->peers[rank].followed;
}
/* Does it take part in nothing more? */
static inline bool sl_membership_has_ended(const sl_membership *m, uint32_t rank) {
    const sl_peer *p = &m->peers[rank];
    const bool is_out = p->incarnation != 0 && p->standing == SL_OUT && p->number == m->view.number;
    return p->done || p->followed || is_out || (p->lost && p->ended);
}
/* Notes which ranks of the newest view have another process by now. */
void sl_membership_find_followed(sl_membership *m);

/* ---- claims.c: what others say, held against what this member can know. Letters come from
 * processes that hold a key, and may be wrong all the same. ---- */

/* Has the message what its type needs, in bounds? Else it is dropped. */
bool sl_claims_are_sound(const sl_membership *m, const sl_membership_message *message);
/* Can a member of the newest view be in this round? */
bool sl_claims_round(const sl_membership *m, uint64_t round);
/* Can the next view after the newest one be this? */
bool sl_claims_next(const sl_membership *m, const sl_decision *d);

/* ---- cause.c: why there should be another view, and whose turn it is to lead. ---- */

bool sl_cause_is_there(const sl_membership *m);
/* Does a member of the newest view want another one, whoever is in it? */
bool sl_cause_is_renewed(const sl_membership *m);
/* Does a member of the newest view say that it cannot reach the other one, or has it gone? */
bool sl_cause_is_cut(const sl_membership *m, uint32_t a, uint32_t b);
/* Is it this member's turn? The member that reaches most leads, the lowest rank of these first, and
 * one more each grace_s. */
bool sl_cause_leads(const sl_membership *m);
/* Should it rather let somebody lead who would leave out fewer members? */
bool sl_cause_yields(const sl_membership *m);

/* ---- quorum.c: which members may decide on the next view. ---- */

/* Members of the newest view of whom something holds. */
typedef bool (*sl_quorum_of)(const sl_membership *m, const sl_member *member);

/* Are those of whom `holds` is true a quorum of the newest view? Members whose processes have ended
 * do not count. */
bool sl_quorum_has(const sl_membership *m, sl_quorum_of holds);
/* Do other members, a quorum or all that have not ended, know a view of that number? */
bool sl_quorum_knows(const sl_membership *m, uint64_t number);
/* How many members a quorum needs now. */
uint32_t sl_quorum_needed(const sl_membership *m);

/* ---- member.c: what every member does: promise, accept, take a view, begin rounds. ---- */

/* Promises to the ballot, unless a higher one has been promised. False: it has, or this was
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

/* ---- leader.c: who leads, why, and how it comes to a decision. ---- */

/* With the time, and with all that was heard: begins a change, repeats, decides. */
void sl_leader_tick(sl_membership *m);
void sl_leader_on_answer(sl_membership *m, const sl_membership_message *message);
void sl_leader_on_refuse(sl_membership *m, const sl_membership_message *message);
void sl_leader_on_accepted(sl_membership *m, const sl_membership_message *message);

#endif
