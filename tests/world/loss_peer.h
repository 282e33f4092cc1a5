/* loss_peer.h - the agents of a seed of loss_world, and what must hold of them at its end. */
#ifndef LOSS_PEER_H
#define LOSS_PEER_H

#include "logbook.h"
#include "loss_seed.h"
#include "virtual.h"

static const double loss_first_s = 1000, loss_heal_s = 8;

typedef struct peer {
    process *process;
    sl_agent *agent;
    uint32_t rank;
    bool trains, struck, ended;
    bool joins;  /* this process does */
    bool yields; /* it goes on, or begins, unless the others train: then it joins */
    sl_checkpoints checkpoints;
    double killed_s;  /* 0: it was not */
    double through_s; /* with its last round, or its end */
    double ended_s;
    double leaves_s; /* since when; 0: it was not asked to */
    double wakes_s;  /* from its last stop */
    bool untold;     /* that it trains alone */
    bool ahead;      /* it has trained alone in its last view, and waited for nobody */
    bool spoiled;    /* its numbers are not finite any more */
    bool away;       /* the others go on without it, and it has not returned */
    int result;
    sl_error error;
    uint64_t recorded; /* the last round */
    double mixes_s;    /* since when it has recorded one */
    uint32_t members;  /* of its last view; 0: it has had none but the first */
    logbook logbook;
} peer;

extern loss_seed drawn;
extern peer peers[NODES_MAX];
extern struct parting {
    double at_s; /* it began, or was healed */
    bool is_up, was;
} parting;
typedef struct loss_ends {
    uint64_t finished, left, healed, joined;
} loss_ends;
extern loss_ends ends; /* of all seeds */

bool loss_strikes_are(strike_kind kind);
void loss_judge(const peer *p, bool verbose);
/* Where nothing else goes wrong, both sides are one again, if there is time. */
void loss_judge_healing(void);

#endif
