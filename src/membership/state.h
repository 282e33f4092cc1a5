/* state.h - what a member knows, and how it sends. */
#ifndef SL_MEMBERSHIP_STATE_H
#define SL_MEMBERSHIP_STATE_H

#include "membership/decision.h"

enum { QUEUE_MAX = 8 }; /* epochs that were agreed on and have not begun */

/* What a peer has told, and what the driver has told of it. */
typedef struct sl_peer {
    bool known; /* it was reached, or heard */
    bool lost;  /* and it is not reached now */
    uint64_t incarnation, number, hash;
    sl_ballot ballot; /* that it is bound by */
    bool joins, leaves, aside, mends;
    bool folded; /* it is reached again, and the own node does without it in this epoch */
    bool late;   /* it joins, and has not accepted what this member proposed last */
    uint32_t sponsor;
    double differs_s; /* since when its epoch has been another; -1: it is the same */
    bool *cannot;     /* (ranks_max) whom it cannot reach */
    bool *reaches;    /* (ranks_max) whom it does; behind `cannot` */
} sl_peer;

/* To a leader's PREPARE. */
typedef struct sl_answer {
    bool asked, here, accepts;
    uint64_t incarnation, number, hash, limit;
    uint64_t accepted; /* hash of the epoch that it has accepted; 0: none */
    bool joins, leaves, mends;
    uint32_t sponsor;
    uint64_t round, exchange; /* of its newest epoch */
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
    uint64_t refused;       /* counter of a ballot for which who joins has refused one */
} sl_change;

struct sl_membership {
    sl_membership_settings settings;
    double now_s;
    sl_peer *peers; /* (ranks_max) */

    uint64_t number, hash;   /* of the newest epoch; hash 0: it is out */
    sl_kept_decision newest; /* while it is out: the others' that it was dropped for, if it was */
    struct {
        sl_kept_decision kept;
        uint64_t last;  /* round before it */
    } queue[QUEUE_MAX]; /* (queued) they begin one after the other */
    uint32_t queued;
    sl_kept_decision begun; /* what update.view points to */
    uint64_t round;         /* that began last */
    bool ready;             /* and the node is through with it */
    uint64_t calm;          /* the last one that began while it had lost nobody */
    double began_s;         /* when that of `round` did; -1: none has */
    double pace_s;          /* that a round takes; -1: nobody knows yet */

    sl_ballot promised; /* no lower one is answered */
    bool bound;         /* neither COMMIT nor RELEASE has come */
    uint64_t limit;     /* while it is bound */
    sl_kept_decision accepted;

    bool joins, leaves;
    bool aside; /* its node rests in the midst of a round, until it joins */
    uint32_t sponsor;
    double asked_s;        /* when it last wanted to join, or to leave */
    uint64_t leaves_after; /* round; 0: it stays */
    bool nobody_stays;     /* all of its side leave after that */

    sl_change change;
    double cause_s; /* since when there has been one; -1: there is none */
    double quiet_s; /* until then it does not lead */
    double news_s;  /* when it told all */
    bool news_due;

    uint32_t *unreachable; /* (unreachable_count) in messages */
    uint32_t unreachable_count;
    uint32_t *reached; /* (reached_count) in messages */
    uint32_t reached_count;
    struct sl_membership_post *posts; /* (posts_max) */
    size_t post_count, posts_max;
    sl_membership_update *update; /* of the step */
};

/* Adds a message, filled with what all have. */
sl_membership_message *sl_membership_post(sl_membership *m, uint32_t to, sl_membership_type type);
/* Is a process of the newest epoch this one? */
static inline bool sl_membership_is_member(const sl_membership *m, uint32_t rank,
                                           uint64_t incarnation) {
    return m->hash != 0 && sl_epoch_has(&m->newest.decision.epoch, rank, incarnation);
}
/* Has this peer been in another epoch for so long that no message on its way mends it? */
bool sl_membership_is_foreign(const sl_membership *m, uint32_t rank);
/* Is an edge of the epoch that has begun whole again, and no other epoch agreed on? */
bool sl_membership_mends(const sl_membership *m);
/* Forgets what processes have told of whose rank the newest epoch has another one. */
void sl_membership_forget_others(sl_membership *m);
/* Notes which peers' epochs are others, again. */
void sl_membership_compare(sl_membership *m);

#endif
