/* members.h - who takes part in a run that goes on when a peer is lost: between the agent's
 * connections, its node, and src/membership/.
 *
 * As long as nobody is lost, membership costs nothing: it lets each round begin, and nothing is
 * sent. The first loss alarms the agent, and its words alarm the others: from then on all are
 * connected to all, and agree on who goes on from which round on.
 *
 * A lost peer is folded at once, and stays so for the node until a view begins, even if it comes
 * back earlier. It is let in again when there is a later epoch: so that both sides of a broken
 * connection leave it out from the same round on.
 *
 * Whom the others have dropped folds all of them, and rests after the round under way. It fetches
 * the model of its lowest neighbour to be, asks to join, and begins with the view that has it, as
 * a new node with that model. So does an agent whose loss, gradient or model is not finite, after
 * it has stepped aside: all fold it at once, and agree to leave it out. So does a process that
 * takes the rank of one that has ended; it knows no view, and asks whom it reaches.
 */
#ifndef SL_AGENT_MEMBERS_H
#define SL_AGENT_MEMBERS_H

#include "agent/fetching.h"
#include "config/grouping.h"
#include "membership/letter.h"
#include "membership/membership.h"
#include "starling/observer.h"

struct sl_agent;

/* Data of an epoch that the node has not come to. */
typedef struct sl_early {
    sl_neighbour *from;
    uint64_t hash, number; /* of that epoch */
    sl_event event;
} sl_early;

enum { SL_EPOCHS_BEFORE = 8, SL_DROPPED_MAX = 640 };
typedef struct sl_cohort {
    sl_membership *membership; /* NULL: a lost neighbour ends the run */
    uint32_t slack;            /* rounds that may begin while all agree */
    bool voids;                /* a loss voids exchanges until a view */
    bool alarmed;              /* somebody is, or was, lost to somebody */
    double ticked_s;
    uint64_t hash;                     /* of the epoch that the node is in; 0: the first */
    uint64_t number;                   /* and its number; 0: the first */
    uint64_t before[SL_EPOCHS_BEFORE]; /* (passed, as far as there is room) of those before it */
    uint64_t passed;
    sl_grouping grouping; /* of the node's view; count 0: the experiment's */
    sl_view view;
    sl_merge merge;   /* that the view began with, until it is told; sides 0: there is none */
    bool alone;       /* the others are through: it ends its last rounds without asking */
    bool rests;       /* the node does, between two rounds */
    bool asks;        /* and membership has not been asked for the next one */
    bool ahead;       /* for it would be too far ahead of the others, and exchanges with nobody */
    sl_round rested;  /* the one before */
    sl_record tally;  /* before that round was added */
    bool wishes;      /* to leave */
    sl_error refused; /* why the node took no gradient that is not finite; code 0: it did */
    bool aside;       /* its gradient is of no use: it waits to be left out */
    bool told_aside;  /* the observer is told that the others go on without it, */
    bool tells_aside; /* by the worker, at this moment */
    char dropped[SL_DROPPED_MAX]; /* what it tells then of who was dropped */
    sl_setbacks setbacks;
    bool outside;     /* the others have gone on without this agent, and it has not come back */
    bool is_new;      /* it joins, and has been in no view */
    double outside_s; /* since when */
    sl_fetching fetching;
    bool leaves; /* with the end of the round under way */
    sl_letter letter;
    uint8_t *bytes;  /* of a letter that goes out */
    sl_early *early; /* (early_count) */
    uint32_t early_count, early_max;
} sl_cohort;

/* May the agent go on without a neighbour? Decided by the experiment. */
bool sl_members_wanted(const struct sl_agent *agent);
/* Is that rank of the first roster, or has it come since? */
bool sl_members_expects(const struct sl_agent *agent, const sl_neighbour *n);
int sl_members_open(struct sl_agent *agent, sl_error *error);
void sl_members_close(struct sl_agent *agent);
/* The node is to begin its first round. */
int sl_members_start(struct sl_agent *agent, sl_error *error);
/* It has no rounds yet, and no view: it joins those who train. */
int sl_members_start_outside(struct sl_agent *agent, sl_error *error);
/* All fold it now, and agree on an epoch without it. */
void sl_members_step_aside(struct sl_agent *agent);
/* Where the node has come to rest, the next round begins, now or later. True: it had. */
bool sl_members_go_on(struct sl_agent *agent);
/* Is a view agreed on that has not begun here? */
bool sl_members_turn(const struct sl_agent *agent);
/* Somebody is lost: it looks for all. */
void sl_members_alarm(struct sl_agent *agent);
/* It counts as lost. */
void sl_members_lose(struct sl_agent *agent, sl_neighbour *n, const sl_error *why);
/* Its connection was agreed on. */
void sl_members_reach(struct sl_agent *agent, sl_neighbour *n);
/* May it be connected? */
bool sl_members_admit(const struct sl_agent *agent, const sl_neighbour *n);
/* The number of the newest epoch that it has heard of. */
uint64_t sl_members_newest(const struct sl_agent *agent);
/* Is the run over before any of this matters? */
bool sl_members_nearly_done(const struct sl_agent *agent);
void sl_members_tick(struct sl_agent *agent);
/* It has that agent's model, and wants to take part again. */
void sl_members_join(struct sl_agent *agent, uint32_t sponsor);
/* What the experiment is among these. */
int sl_members_regroup(struct sl_agent *agent, const sl_epoch *view, sl_grouping *out,
                       sl_error *error);
/* It does not come back: the end of the run for it, told with `what`. */
void sl_members_stay_out(struct sl_agent *agent, const char *what);
/* Another process has its rank: the end of the run for it. */
void sl_members_end_followed(struct sl_agent *agent);
/* It is to leave, while the others go on; false: it cannot. */
bool sl_members_leave(struct sl_agent *agent);
/* Who has left, and said BYE, is let go. */
void sl_members_see_off(struct sl_agent *agent, sl_neighbour *n);
/* A LETTER frame. */
void sl_members_hear(struct sl_agent *agent, sl_neighbour *n, const sl_frame *frame,
                     const uint8_t *payload);

/* early.c */
/* A data frame: to the node, now or when its epoch begins, or to nobody. */
void sl_members_take(struct sl_agent *agent, sl_neighbour *n, const sl_event *event);
/* What came before the view began. */
void sl_members_deliver_early(struct sl_agent *agent);
/* Of epochs between, who joins needs nothing. */
void sl_members_drop_early(struct sl_agent *agent);

/* tidings.c */
/* From where on a replay folds that peer, too. */
void sl_members_tell_fold(struct sl_agent *agent, uint32_t peer);
/* What is agreed on; NULL: nothing. */
void sl_members_tell_commit(struct sl_agent *agent, const sl_decision *committed);
void sl_members_tell_view(struct sl_agent *agent);
/* Which of its edges the view does without. */
void sl_members_tell_broken(struct sl_agent *agent, const sl_epoch *view);
/* The view is of so many parts of the network. */
void sl_members_tell_merge(struct sl_agent *agent, const sl_epoch *view, uint32_t sides);
/* "the others have gone on without this agent: ..." */
void sl_members_name_dropping(const struct sl_agent *agent, char out[SL_DROPPED_MAX]);
void sl_members_tell_lost(struct sl_agent *agent, const sl_neighbour *n, const char *why);

#endif
