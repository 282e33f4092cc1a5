/* members.h - who takes part in a run that goes on when a peer is lost: between the agent's
 * connections, its node, and src/membership/.
 *
 * As long as nobody is lost, membership costs nothing: it lets each round begin, and nothing is
 * sent. The first loss alarms the agent, and its words alarm the others: from then on all are
 * connected to all, and agree on who goes on from which round on.
 *
 * A loss cuts the exchange under way; the next view begins the one after.
 *
 * An agent that the others have dropped ends its round alone, and rests. It fetches the model of
 * its lowest neighbour to be, asks to join, and begins with the view that has it, as a new node
 * with that model. So does an agent whose loss, gradient or model is not finite, after it has
 * stepped aside. So does a process that takes the rank of one that has ended; it knows no view, and
 * asks those that it reaches.
 */
#ifndef SL_AGENT_MEMBERS_H
#define SL_AGENT_MEMBERS_H

#include "agent/peers/neighbour.h"
#include "config/grouping.h"
#include "membership/letter.h"
#include "membership/membership.h"
#include "starling/checkpoint.h"
#include "starling/observer.h"

struct sl_agent;

/* What the agent is at, beside the other members. */
typedef enum sl_part_taken {
    SL_TAKES_PART,  /* its node is in the view */
    SL_STEPS_ASIDE, /* its model is of no use: it rests in the midst of a round, to be left out */
    SL_LEFT_OUT,    /* the others have gone on without it: it returns with a model of theirs */
    SL_LEFT_OUT_ASIDE, /* the same, after it stepped aside */
    SL_IS_NEW          /* a new process that has been in no view */
} sl_part_taken;

/* A loss cuts the exchange under way: nothing more is exchanged until a view begins. What is on its
 * way out of this agent's memory leaves first; then the node hears of the cut. */
typedef enum sl_cutting {
    SL_CUTTING_NOTHING, /* the node exchanges under its view */
    SL_CUTTING_WAITS,   /* until what has begun to leave has left */
    SL_CUTTING_DONE     /* the node knows */
} sl_cutting;

/* What its node is at. */
typedef enum sl_rest {
    SL_NODE_RUNS,
    SL_NODE_COMES_TO_REST, /* at its own times: it ends what is open */
    SL_NODE_HAS_ENDED,     /* a round, and membership was not asked for the next one */
    SL_NODE_RESTS          /* between two rounds, or aside */
} sl_rest;

/* The model that an agent returns with: it asks a sponsor, which gives its own. FETCH asks for it
 * and says how much has come; so many parts more may be on their way. The sponsor copies its model
 * between two rounds, and serves one request at a time: the others are repeated until it is their
 * turn. A request whose connection breaks is over, and made anew. */
typedef struct sl_state_transfer {
    sl_neighbour *sponsor; /* that was asked; NULL: none was */
    uint32_t number;       /* of the request */
    float *model;          /* (dimension) of which `come` have come; NULL: none */
    size_t come;
    uint64_t round; /* after which the sponsor had it */
    double asked_s;

    sl_neighbour *receiver; /* that has asked this agent; NULL: none has */
    uint32_t asked;         /* number of that request */
    float *snapshot;        /* (dimension) from the first request on, as it may be registered */
    bool copied;            /* `snapshot` is the model that is given */
    uint64_t given;         /* the round after which it was the own one */
    size_t sent, taken;     /* elements */
} sl_state_transfer;

enum { SL_DROPPED_MAX = 640 };
typedef struct sl_cohort {
    sl_membership *membership; /* NULL: a lost neighbour ends the run */
    bool alarmed;              /* somebody is, or was, lost to somebody */
    double ticked_s;
    double minority_s; /* since when too few members are reached for a view; 0: enough are */
    sl_cutting cutting;
    sl_grouping grouping; /* of the node's view; count 0: the experiment's */
    sl_node_view view;
    sl_checkpoint_view resumed; /* the view that it goes on from; number 0: with all */
    sl_part_taken part;         /* changed in members.c only */
    sl_rest rest;
    sl_round rested;       /* the one before */
    uint64_t told;         /* the last round that went to the worker to be recorded */
    sl_record tally;       /* before that round was added */
    bool wishes;           /* to leave */
    sl_error refused;      /* why the node took no gradient that is not finite; code 0: it did */
    sl_neighbour *culprit; /* whose message made no sense; NULL: nobody's */
    sl_error verdict;      /* on that message */
    bool told_aside;       /* the observer is told that the others go on without it, */
    bool tells_aside;      /* by the worker, at this moment */
    char dropped[SL_DROPPED_MAX]; /* what it tells then of who was dropped */
    sl_setbacks setbacks;
    double outside_s; /* since when it is left out, or joins */
    sl_state_transfer transfer;
    bool leaves; /* with the end of the round under way */
    sl_letter letter;
    uint8_t *bytes;  /* of a letter that goes out */
    sl_member *room; /* for two lists of members, of all ranks and one more each */
    sl_pair *broken; /* (view.broken_count) of the node's view, which may end after the next one is
                        agreed on */
} sl_cohort;

static inline bool sl_cohort_is_outside(const sl_cohort *g) {
    return g->part >= SL_LEFT_OUT;
}
/* Does it leave, as far as this agent has heard? It may have told only others that it does, before
 * this agent reached it. */
static inline bool sl_cohort_leaves(const sl_cohort *g, uint32_t rank) {
    const sl_view *newest = g->membership != NULL ? sl_membership_newest(g->membership) : NULL;
    return g->membership != NULL &&
           (sl_membership_standing_of(g->membership, rank) == SL_LEAVES ||
            (newest != NULL && sl_view_place(newest, rank) == newest->count));
}
static inline bool sl_cohort_is_aside(const sl_cohort *g) {
    return g->part == SL_STEPS_ASIDE || g->part == SL_LEFT_OUT_ASIDE;
}
static inline bool sl_cohort_is_new(const sl_cohort *g) {
    return g->part == SL_IS_NEW;
}
static inline bool sl_cohort_rests(const sl_cohort *g) {
    return g->rest != SL_NODE_RUNS;
}

/* Does that rank begin with the others, or has it come since? */
bool sl_members_expects(const struct sl_agent *agent, const sl_neighbour *n);
/* Memory for lists of members; before anything else here. */
int sl_members_room(struct sl_agent *agent, sl_error *error);
int sl_members_open(struct sl_agent *agent, sl_error *error);
void sl_members_close(struct sl_agent *agent);
/* The node is to begin its first round. */
int sl_members_start(struct sl_agent *agent, sl_error *error);
/* It has no rounds yet, and no view: it joins those who train. */
int sl_members_start_outside(struct sl_agent *agent, sl_error *error);
/* All agree on a view without it. */
void sl_members_step_aside(struct sl_agent *agent);
/* A node at its own times rests when the members want to agree, or have. */
void sl_members_rest_if_wanted(struct sl_agent *agent);
/* Where the node has come to rest, the next round begins, now or later. True: it had. */
bool sl_members_go_on(struct sl_agent *agent);
void sl_cutting_begin(struct sl_agent *agent);
/* Nothing more comes from this neighbour, nor reaches it: a node that was cut waits for it no more.
 */
void sl_members_note_gone(struct sl_agent *agent, sl_neighbour *n);
/* Goes on as far as it can. */
void sl_cutting_go_on(struct sl_agent *agent);
/* Is a view agreed on that has not begun here? */
bool sl_members_turn(const struct sl_agent *agent);
/* Likewise, and has somebody begun it? */
bool sl_members_is_behind(const struct sl_agent *agent);
/* Does it lack a member of the view that the node is in? */
bool sl_members_leave_one_out(const struct sl_agent *agent);
/* Somebody is lost: it looks for all. */
void sl_members_alarm(struct sl_agent *agent);
/* It counts as lost. */
void sl_members_lose(struct sl_agent *agent, sl_neighbour *n, const sl_error *why);
/* Whose message made no sense is lost, is told why, and is not taken back. */
void sl_members_convict(struct sl_agent *agent);
/* Nobody is lost: all are to rest, and the next view has the same members. */
void sl_members_renew(struct sl_agent *agent);
/* Its connection was agreed on. */
void sl_members_reach(struct sl_agent *agent, sl_neighbour *n);
/* It is lost already, and its process has ended. */
void sl_members_note_ended(struct sl_agent *agent, const sl_neighbour *n);
/* What the experiment is among these. */
int sl_members_regroup(struct sl_agent *agent, const sl_view *view, sl_grouping *out,
                       sl_error *error);
/* It does not come back: the end of the run for it, told with `what`. */
void sl_members_stay_out(struct sl_agent *agent, const char *what);
/* a MEMBERSHIP frame. */
void sl_members_hear(struct sl_agent *agent, sl_neighbour *n, const sl_frame *frame,
                     const uint8_t *payload);
/* The node has begun: what others, which had begun before, have said last. */
void sl_members_hear_early(struct sl_agent *agent);
/* The membership hears of an event, and is obeyed. */
void sl_members_step(struct sl_agent *agent, sl_membership_event event);

/* first_view.c: which agents begin, or go on from a checkpoint, together: all of the topology, or
 * the members of the view that the checkpoint was written in. Of such a view's members the run goes
 * on as it does with any view: the next round is the first one under a view of their own, from the
 * models that they have. Other ranks join. */
/* Before the node is opened: finds the view that the newest checkpoint is of. */
int sl_first_view_find(struct sl_agent *agent, sl_error *error);
/* Is that rank one of them? */
bool sl_first_view_has(const struct sl_agent *agent, uint32_t rank);
/* Is that rank in the view that the node is in, or begins with? */
bool sl_members_has(const struct sl_agent *agent, uint32_t rank);
/* As a view, without its first exchange. members: room for all ranks. */
sl_view sl_first_view_members(const struct sl_agent *agent, sl_member *members);
/* The round to go on from is chosen: is it of the view that was found? */
int sl_first_view_check(struct sl_agent *agent, sl_error *error);
/* Of the node's view, for a checkpoint; number 0: all are in it, or there are too many. */
sl_checkpoint_view sl_first_view_now(const struct sl_agent *agent);

/* leaving.c */
/* It is to leave, while the others go on; false: it cannot. */
bool sl_members_leave(struct sl_agent *agent);
/* A neighbour that has left, and said BYE, is let go. */
void sl_members_see_off(struct sl_agent *agent, sl_neighbour *n);
/* Neighbours that have left, and of which the node still waits for something, are lost. */
void sl_members_lose_left(struct sl_agent *agent);
void sl_members_tick(struct sl_agent *agent);

/* member_log.c */
/* is_cut: with the same members and edges as the one before. */
void sl_members_tell_view(struct sl_agent *agent, bool is_cut);
/* Which of its edges the view does without. */
void sl_members_tell_broken(struct sl_agent *agent, const sl_view *view);
/* Too few members are reached for another view. */
void sl_members_tell_minority(struct sl_agent *agent, uint32_t reached, uint32_t needed);
/* "the others have gone on without this agent: ..." */
void sl_members_name_dropping(const struct sl_agent *agent, char out[SL_DROPPED_MAX]);
void sl_members_tell_lost(struct sl_agent *agent, const sl_neighbour *n, const char *why);

/* state_transfer.c */
void sl_state_transfer_close(struct sl_agent *agent);
/* Asks it; what has come of another request goes. SL_ENOMEM. */
int sl_state_transfer_begin(struct sl_agent *agent, sl_neighbour *sponsor, sl_error *error);
/* Nobody is asked any more, and nothing has come. */
void sl_state_transfer_end(struct sl_agent *agent);
bool sl_state_transfer_is_whole(const struct sl_agent *agent);
/* A FETCH or MODEL frame. */
void sl_state_transfer_hear(struct sl_agent *agent, sl_neighbour *n, const sl_frame *frame,
                            const uint8_t *payload);
/* The model is the one after this round, until the next gradient: now it can be copied. */
void sl_state_transfer_offer(struct sl_agent *agent, uint64_t round);
/* It is connected anew: what was under way with it is over. */
void sl_state_transfer_break(struct sl_agent *agent, const sl_neighbour *n);
/* Repeats a request that is not served yet, and forgets those whose connections broke. */
void sl_state_transfer_tick(struct sl_agent *agent);
/* Sends what may be sent; true: something was. */
bool sl_state_transfer_give(struct sl_agent *agent);

#endif
