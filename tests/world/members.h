/* members.h - a small world of its own for members: processes that are only that, messages on
 * their way, and what must hold; see membership_world.c. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "membership/membership.h"

enum { RANKS = 20, NODES = 16, EPOCHS_MAX = 4096 };

typedef struct letter {
    sl_membership_message message;
    sl_decision decisions[2];
    sl_member members[2][RANKS];
    sl_pair broken[2][RANKS * RANKS / 2];
    sl_epoch_side sides[2][RANKS];
    uint32_t unreachable[RANKS], reached[RANKS];
} letter;

typedef enum happening_kind { TICK, DELIVER, COMPUTED, FAULT, ASKS, FOUND } happening_kind;
typedef struct happening {
    double at_s;
    uint64_t order;
    happening_kind kind;
    uint32_t rank, peer;
    uint64_t life; /* of a process: what is left of earlier ones is nothing */
    uint64_t from; /* DELIVER: the life of its sender */
    letter *letter;
} happening;

/* An epoch that somebody has heard of, by its hash. */
typedef struct known_epoch {
    uint64_t hash;
    uint64_t froms[RANKS],
        lasts[RANKS]; /* (from_count) who came from which epoch, after which round */
    uint32_t from_count;
    sl_decision decision;
    sl_member members[RANKS];
    sl_pair broken[RANKS * RANKS / 2];
} known_epoch;

typedef struct process_state {
    bool alive, stopped, computed, leaves, spoiled, aside;
    uint64_t life, incarnation;
    sl_membership *member;
    uint64_t number;          /* the largest that it was told */
    uint64_t run, run_number; /* the epoch of its rounds */
    uint64_t round;           /* under way */
    uint64_t taken[EPOCHS_MAX / 64];
    uint64_t limit;               /* that it has told a leader; UINT64_MAX: none */
    sl_ballot led;                /* its last one as a leader */
    bool answered;                /* that, by anybody */
    sl_ballot promised, accepted; /* by messages that it has sent */
    bool folded[RANKS], lost[RANKS];
    uint64_t met[RANKS]; /* lives: connections are of one process with one */
    double heard_s[RANKS], reached_s[RANKS];
    double compute_s;
} process_state;

/* The world of a seed. */
typedef struct members_world {
    process_state all[RANKS];
    uint32_t nodes, period, slack;
    double now_s;
    uint64_t seed, lives, hash;
    bool told;           /* line by line */
    double lost_s;       /* a calm seed's only loss; -1: it is no calm seed */
    uint64_t lost_round; /* the largest then; 0: it is yet to come */
    known_epoch *epochs; /* (epoch_count), room for EPOCHS_MAX */
    uint32_t epoch_count;
    uint64_t commits, merges, kills; /* of all seeds */
} members_world;
extern members_world w;

/* Something happened: it becomes part of the hash, and a line where all is told. */
void note(const char *what, uint64_t a, uint64_t b, uint64_t c);

/* ---- what will happen ---- */

/* Of happenings at one time the earlier given comes first. */
void push(happening h);
happening pop(void);
bool nothing_is_left(void);
/* Forgets all, and with `frees` the memory too. */
void forget(bool frees);
/* With a copy of all that the message points to; free() frees it. */
letter *letter_copy(const sl_membership_message *message);

/* ---- what must hold ---- */

/* Its index, or epoch_count. */
uint32_t find_epoch(uint64_t of);
/* Are they the same? */
bool is_ballot(sl_ballot a, sl_ballot b);
/* The index of an epoch; one that is new is checked. */
uint32_t learn(const sl_decision *d);
/* Of an update: what was agreed on, what begins. */
void check_commit(uint32_t rank, const sl_decision *d);
void check_begin(uint32_t rank, const sl_membership_update *u);
/* Are all who live in one epoch of just them, and through three rounds of it? */
bool is_one(void);

#endif
