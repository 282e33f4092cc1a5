/* members.h - a small world of its own for members: processes that are only that, messages on
 * their way, and what must hold; see membership_world.c. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "membership/membership.h"
#include "starling/rng.h"

enum { RANKS = 20, NODES = 16, VIEWS_MAX = 4096, SENT_MAX = 16 };

typedef struct letter {
    sl_membership_message message;
    sl_decision decisions[2];
    sl_member members[2][RANKS];
    sl_pair broken[2][RANKS * RANKS / 2];
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

/* A view that somebody has heard of, by its hash. */
typedef struct known_view {
    uint64_t hash;
    sl_decision decision;
    sl_member members[RANKS];
    sl_pair broken[RANKS * RANKS / 2];
} known_view;

typedef struct process_state {
    bool alive, stopped, computed, leaves, spoiled, aside;
    uint64_t life, incarnation;
    sl_membership *member;
    uint64_t number; /* of the newest view that it has taken */
    uint64_t run;    /* hash of the view of its rounds; 0: it has none */
    uint64_t round;  /* under way */
    bool cut;        /* it exchanges nothing more under that view */
    struct {
        uint64_t run, round;
    } sent[SENT_MAX]; /* the latest round that it has sent under its latest views */
    uint64_t views;   /* of them */
    bool lost[RANKS], ended[RANKS];
    uint64_t met[RANKS]; /* lives: connections are of one process with one */
    double heard_s[RANKS];
    double compute_s;
} process_state;

/* The world of a seed. */
typedef struct members_world {
    process_state all[RANKS];
    uint32_t nodes, period, quorum;
    uint32_t liar; /* RANKS: there is none */
    bool lied;     /* there is, or was */
    double now_s;
    uint64_t seed, lives, hash;
    bool told;           /* line by line */
    bool ended;          /* somebody was told that a process has ended */
    double lost_s;       /* a calm seed's only loss; -1: it is no calm seed */
    uint64_t lost_round; /* the largest then; 0: it is yet to come */
    known_view *views;   /* (view_count), room for VIEWS_MAX */
    uint32_t view_count;
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
/* Likewise, of anything. */
letter *letter_of_lies(sl_rng *rng, uint32_t from);

/* ---- what must hold ---- */

/* Its index, or view_count. */
uint32_t find_view(uint64_t of);
/* The index of a view; one that is new is checked. */
uint32_t learn(const sl_decision *d);
/* Of an update: what was agreed on, what begins, what is cut. */
void check_commit(uint32_t rank, const sl_decision *d);
void check_begin(uint32_t rank, const sl_membership_update *u);
/* Are all who live in one view of just them, and through three rounds of it? */
bool is_one(void);

#endif
