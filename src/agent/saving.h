/* saving.h - an agent's checkpoints: those that are due, those that somebody has asked for, and
 * the one that it goes on from.
 *
 * An agent that is asked for a checkpoint names a round that no agent can have ended yet, and tells
 * all neighbours, which pass it on. A stream keeps order: they hear of it before any data that is
 * sent later. So all hear of it in time, and write the same cut. Nodes at their own times: see
 * own_cuts.c.
 */
#ifndef SL_SAVING_H
#define SL_SAVING_H

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/calls.h"
#include "checkpoint/saver.h"

/* What follows on a checkpoint that was asked for; `step` of a CHECKPOINT frame. */
typedef enum sl_cut_kind { SL_CUT_GO_ON, SL_CUT_LEAVE, SL_CUT_KINDS } sl_cut_kind;

/* Of transport.timeout_s: a checkpoint waits so long for the file before it. */
static const double sl_saving_wait_share = 0.25;

typedef enum sl_agreement {
    SL_AGREED,          /* on the round that the run goes on from, or it begins */
    SL_AGREEMENT_OPEN,  /* once all are connected, each tells which rounds it has */
    SL_AGREEMENT_ASKED, /* all rounds are being gathered */
    SL_AGREEMENT_LOADED /* the state is here, and perhaps not at the others */
} sl_agreement;

typedef struct sl_saving {
    sl_saver *saver; /* NULL: no checkpoints are written */
    sl_checkpoint_owner owner;
    uint64_t resumed;             /* the cut's round that it goes on from; 0: it begins */
    uint64_t spread;              /* rounds that agents can be apart */
    uint64_t asked[SL_CUT_KINDS]; /* the round, or at own times the view that begins
                                     then; 0: none, or it was made */
    bool due;                     /* at own times: a cut of which nobody was told */
    uint64_t passed_over[SL_LOG_PASSED_MAX]; /* newer rounds that it had a file of */
    size_t passed_over_count;
    atomic_uint wishes;    /* of other threads: a bit for each kind, and SL_WISH_ */
    atomic_bool trains;    /* it has been started */
    uint64_t saved;        /* the round that was copied last; at own times this node's */
    atomic_ullong awaited; /* the round of a checkpoint that was asked for; 0: it is told */
    bool left;             /* the run is over for this agent, on request */
    bool alone;            /* and the others go on */
    bool minority;         /* or the others were not reached */
    sl_agreement agreement;
    float *rows; /* what is gathered; NULL: nothing is */
} sl_saving;

enum {
    SL_WISH_STOP = 1 << SL_CUT_KINDS,
    SL_WISH_LEAVE = 2 << SL_CUT_KINDS,
    SL_WISH_RELOAD = 4 << SL_CUT_KINDS
};

/* Loads the node, if the round is known. After the neighbours have been opened. */
int sl_saving_open(sl_agent *agent, sl_error *error);
/* When the run folder is there: opens the folder of the checkpoints, unless agents are still to
 * agree. */
int sl_saving_begin(sl_agent *agent, sl_error *error);
/* Waits for the file under way. */
void sl_saving_close(sl_agent *agent);
/* The node has ended a round, and nothing has changed it since. True: the run ends here. */
bool sl_saving_end_round(sl_agent *agent, const sl_round *round);
/* The run ends here with the round that ended last, alone or with all others; *record is as it was
 * before that. */
void sl_saving_leave(sl_agent *agent, sl_record *record, bool with_all);
/* A view begins with this round: what was asked for before it, and not made, is asked for anew. */
void sl_saving_turn(sl_agent *agent, uint64_t round);
/* Somebody here wants a checkpoint; false: there can be none. */
bool sl_saving_ask(sl_agent *agent, sl_cut_kind kind);
/* A neighbour's CHECKPOINT frame. */
int sl_saving_hear(sl_agent *agent, const sl_neighbour *from, const sl_frame *frame,
                   sl_error *error);
/* Tells a neighbour of the checkpoints that were asked for. */
void sl_saving_tell(const sl_agent *agent, sl_neighbour *neighbour);
/* The first round of this process. */
uint64_t sl_saving_first_round(const sl_agent *agent);
/* The run has begun, or gone on: for the log of events. */
void sl_saving_log(sl_agent *agent);
/* All neighbours are connected: true once the node may start. Negative: the run has failed. */
int sl_saving_agree(sl_agent *agent, sl_error *error);
/* own_cuts.c: nodes at their own times. It has ended this round: a cut may be due. */
void sl_own_cut_round(sl_agent *agent, uint64_t round);
/* Are all to rest for one? */
bool sl_own_cut_is_due(const sl_agent *agent);
/* The node rests, and this view is to begin; last: as members agreed, all save and end instead.
 * True: so it is. */
bool sl_own_cut_view(sl_agent *agent, const sl_view *view, bool last);

/* After the last round: 0, SL_ESAVED, SL_ELEFT, or why there is no file. */
int sl_saving_outcome(sl_agent *agent, sl_error *error);

#endif
