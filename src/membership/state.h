/* state.h - what a member knows, and how it sends. */
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
    uint32_t sponsor;
    bool *cannot;  /* (ranks_max) whom it cannot reach */
    bool *reaches; /* (ranks_max) whom it does; behind `cannot` */
} sl_peer;

/* To a leader's PREPARE. */
typedef struct sl_answer {
    bool asked, here, accepts, cut;
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
sl_membership_message *sl_membership_post(sl_membership *m, uint32_t to, sl_membership_type type);
static inline void sl_membership_give(sl_membership *m, sl_membership_order order) {
    if (order > m->update->order)
        m->update->order = order;
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

#endif
