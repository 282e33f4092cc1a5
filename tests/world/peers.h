/* peers.h - the agents of a seed: how each was begun, struck and ended, and what holds of all. */
#ifndef PEERS_H
#define PEERS_H

#include "logbook.h"
#include "virtual.h"

/* What happens to an agent, or to the connection of two. */
typedef enum strike_kind {
    STRIKE_KILL,
    STRIKE_STOP,
    STRIKE_CUT,
    STRIKE_LEAVE,
    STRIKE_KINDS
} strike_kind;
typedef struct strike {
    strike_kind kind;
    uint32_t a, b;
    uint64_t round; /* as which `a` begins it happens */
    double at_s, seconds;
} strike;

typedef struct peer {
    process *process; /* the last one; NULL: it is yet to come, or comes again */
    sl_agent *agent;  /* that can be asked; NULL: there is none */
    uint32_t rank;
    bool trains, struck, ended;
    bool joins;       /* this process does */
    bool yields;      /* it goes on, or begins, unless the others train: then it joins */
    double leaves_s;  /* since when; 0: it was not asked to */
    double killed_s;  /* 0: it was not */
    double wakes_s;   /* from its last stop */
    double through_s; /* with its last round, or its end */
    double ended_s;
    double mixes_s;    /* since when it has recorded a round */
    double told_s;     /* when it last said for whom it waits */
    uint64_t recorded; /* the last round */
    bool untold;       /* that it trains alone */
    bool ahead;        /* it has trained alone in its last view, and waited for nobody */
    bool spoiled;      /* its numbers are not finite any more */
    bool away;         /* the others go on without it, and it has not returned */
    uint32_t members;  /* of its last view; 0: it has had none but the first */
    int result;
    sl_error error;
    sl_checkpoints checkpoints;
    logbook logbook; /* of the last process */
} peer;
extern peer peers[NODES_MAX];

/* So many, of which there is no process yet: each is to run `body`, given the peer. */
void peers_open(uint32_t count, void *(*body)(void *of));
bool peers_are_over(void);
/* Before all that the run begins with train, a loss ends it. */
bool peers_all_train(void);
/* Of its own folder. */
sl_checkpoints peer_checkpoints(bool resume, uint64_t round);

/* For world_at: a process of this peer begins. */
void peer_start(void *of, uint64_t ignored);
bool peer_is_up(const peer *p);
void peer_kill(peer *p, bool mute);
void peer_stop(peer *p, double seconds);
/* Strikes k->a, if it is up, and all train; was it? */
bool peer_strike(const strike *k);

/* It tells of a round: its numbers are finite. Returns their sum. */
uint64_t peer_records(peer *p, const sl_record *record, const float *x);
/* Its process ends. */
void peer_ends(peer *p);
/* Once all are over: it does not wait any more. Has it ended by itself? */
bool peer_judge(const peer *p, bool verbose);
/* After all rounds, if it has ended well. */
void peer_judge_end(const peer *p, uint64_t rounds);

#endif
