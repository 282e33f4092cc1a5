/* members.h - who takes part in a run that goes on when a peer is lost: between the agent's
 * connections, its node, and src/membership/.
 *
 * As long as nobody is lost, membership costs nothing: it lets each round begin, and nothing is
 * sent. The first loss alarms the agent, and its words alarm the others: from then on all are
 * connected to all, and agree on who goes on from which round on.
 *
 * A loss cuts the exchange under way (cutting.h); the next view begins the one after.
 *
 * An agent that the others have dropped ends its round alone, and rests. It fetches the model of
 * its lowest neighbour to be, asks to join, and begins with the view that has it, as a new node
 * with that model. So does an agent whose loss, gradient or model is not finite, after it has
 * stepped aside. So does a process that takes the rank of one that has ended; it knows no view, and
 * asks those that it reaches.
 */
#ifndef SL_AGENT_MEMBERS_H
#define SL_AGENT_MEMBERS_H

#include "agent/cutting.h"
#include "agent/state_transfer.h"
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

/* What its node is at. */
typedef enum sl_rest {
    SL_NODE_RUNS,
    SL_NODE_HAS_ENDED, /* a round, and membership was not asked for the next one */
    SL_NODE_RESTS      /* between two rounds, or aside */
} sl_rest;

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
    uint8_t *bytes; /* of a letter that goes out */
} sl_cohort;

static inline bool sl_cohort_is_outside(const sl_cohort *g) {
    return g->part >= SL_LEFT_OUT;
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

/* May the agent go on without a neighbour? Decided by the experiment. */
bool sl_members_wanted(const struct sl_agent *agent);
/* Does that rank begin with the others, or has it come since? */
bool sl_members_expects(const struct sl_agent *agent, const sl_neighbour *n);
int sl_members_open(struct sl_agent *agent, sl_error *error);
void sl_members_close(struct sl_agent *agent);
/* The node is to begin its first round. */
int sl_members_start(struct sl_agent *agent, sl_error *error);
/* It has no rounds yet, and no view: it joins those who train. */
int sl_members_start_outside(struct sl_agent *agent, sl_error *error);
/* All agree on a view without it. */
void sl_members_step_aside(struct sl_agent *agent);
/* Where the node has come to rest, the next round begins, now or later. True: it had. */
bool sl_members_go_on(struct sl_agent *agent);
/* Is a view agreed on that has not begun here? */
bool sl_members_turn(const struct sl_agent *agent);
/* Does it lack a member of the view that the node is in? */
bool sl_members_leave_one_out(const struct sl_agent *agent);
/* Somebody is lost: it looks for all. */
void sl_members_alarm(struct sl_agent *agent);
/* It counts as lost. */
void sl_members_lose(struct sl_agent *agent, sl_neighbour *n, const sl_error *why);
/* Whose message made no sense is lost, is told why, and is not taken back. */
void sl_members_convict(struct sl_agent *agent);
/* Its connection was agreed on. */
void sl_members_reach(struct sl_agent *agent, sl_neighbour *n);
/* It is lost already, and its process has ended. */
void sl_members_note_ended(struct sl_agent *agent, const sl_neighbour *n);
/* It has that agent's model, and wants to take part again. */
void sl_members_join(struct sl_agent *agent, uint32_t sponsor);
/* What the experiment is among these. */
int sl_members_regroup(struct sl_agent *agent, const sl_view *view, sl_grouping *out,
                       sl_error *error);
/* It does not come back: the end of the run for it, told with `what`. */
void sl_members_stay_out(struct sl_agent *agent, const char *what);
/* Another process has its rank: the end of the run for it. */
void sl_members_end_followed(struct sl_agent *agent);
/* a MEMBERSHIP frame. */
void sl_members_hear(struct sl_agent *agent, sl_neighbour *n, const sl_frame *frame,
                     const uint8_t *payload);
/* The membership hears of an event, and is obeyed. */
void sl_members_step(struct sl_agent *agent, sl_membership_event event);

/* leaving.c */
/* It is to leave, while the others go on; false: it cannot. */
bool sl_members_leave(struct sl_agent *agent);
/* A neighbour that has left, and said BYE, is let go. */
void sl_members_see_off(struct sl_agent *agent, sl_neighbour *n);
/* Neighbours that have left, and of which the node still waits for something, are lost. */
void sl_members_lose_left(struct sl_agent *agent);
void sl_members_tick(struct sl_agent *agent);

/* member_log.c */
/* What is agreed on; NULL: nothing. */
void sl_members_tell_commit(struct sl_agent *agent, const sl_decision *committed);
void sl_members_tell_view(struct sl_agent *agent);
/* Which of its edges the view does without. */
void sl_members_tell_broken(struct sl_agent *agent, const sl_view *view);
/* Too few members are reached for another view. */
void sl_members_tell_minority(struct sl_agent *agent, uint32_t reached, uint32_t needed);
/* "the others have gone on without this agent: ..." */
void sl_members_name_dropping(const struct sl_agent *agent, char out[SL_DROPPED_MAX]);
void sl_members_tell_lost(struct sl_agent *agent, const sl_neighbour *n, const char *why);

#endif
