/* averager.h - averages of two models: who asks whom, who waits, which part is averaged when.
 *
 * Lian, Zhang, Zhang, Liu, "Asynchronous Decentralized Parallel Stochastic Gradient Descent", ICML
 * 2018, Algorithm 1, with messages. The asker i sends its model part by part, the server j answers
 * each part with its own, and both take the mean of the two:
 *
 *   i                                        j
 *   ask 0                             ->     it serves i from now on; or i waits; or BUSY
 *          <-     answer 0, which is x_j     x_j <- (x_j + x_i) / 2 once answer 0 has left
 *   x_i <- (x_i + x_j) / 2
 *   ask 1, 2, ...                     ->     the rest goes after the first answer: a refusal costs
 *                                            one part
 *
 * A node is in one average at most, and in between nothing else touches its model. It serves until
 * its answers are acknowledged: what it has averaged so far can be undone until then. Only a server
 * ever undoes: the asker has never more than the server.
 *
 * Of two asks that cross, the one with the higher priority waits, and the other one is answered
 * BUSY; a priority is drawn for each ask. So all waits lead from a higher to a lower ask, or to a
 * node that serves and waits for its asker only: there is no circle.
 *
 * Pure: no vectors, no I/O, no clock. The caller keeps the payloads of asks until they are
 * averaged.
 */
#ifndef SL_AVERAGER_H
#define SL_AVERAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "starling/error.h"

typedef enum sl_averager_step {
    SL_AVERAGER_ASK,
    SL_AVERAGER_ANSWER,
    SL_AVERAGER_BUSY
} sl_averager_step;

/* A part of a message, or BUSY (part 0). */
typedef struct sl_averager_message {
    uint32_t peer;
    uint64_t event; /* the asker's count of its asks */
    sl_averager_step step;
    uint32_t part;
} sl_averager_message;

typedef enum sl_averager_phase {
    SL_AVERAGER_FREE,
    SL_AVERAGER_ASKS,
    SL_AVERAGER_SERVES
} sl_averager_phase;

/* An average that a cut has ended here. */
typedef struct sl_averager_account {
    uint32_t partner;
    uint64_t event;
    uint32_t parts; /* averaged here */
    bool served;    /* as the server */
} sl_averager_account;

typedef struct sl_averager_ask {
    uint32_t peer;
    uint64_t event;
} sl_averager_ask;

typedef struct sl_averager {
    uint64_t seed;
    uint32_t rank, parts; /* of a message */
    uint32_t room;        /* peers */
    sl_averager_phase phase;
    uint32_t partner; /* of the average under way */
    uint64_t event;
    uint32_t sent, come, averaged; /* parts: own ones that have left; the partner's; both's */
    bool rests;                    /* it begins and serves nothing new */
    bool is_cut;                   /* the account holds */
    sl_averager_account account;
    sl_averager_ask *waiting; /* (waiting_count, room) in order of arrival */
    uint32_t waiting_count;
    sl_averager_ask *refused; /* (refused_count, room) to be told BUSY */
    uint32_t refused_count;
} sl_averager;

/* peers: how many may ask it. */
int sl_averager_open(sl_averager *out, uint64_t seed, uint32_t rank, uint32_t parts, uint32_t peers,
                     sl_error *error);
void sl_averager_close(sl_averager *p);

/* May the model change? No average is under way, and none was cut whose parts may be undone. */
bool sl_averager_is_free(const sl_averager *p);
/* May it ask? It is free, nobody waits for it, and it does not rest. */
bool sl_averager_may_ask(const sl_averager *p);
/* Asks for an average. event rises by one from ask to ask. */
void sl_averager_ask_for(sl_averager *p, uint32_t partner, uint64_t event);

/* What is to be done with the payload that came. */
typedef enum sl_averager_use {
    SL_AVERAGER_KEEP,    /* of an ask: until it is averaged, or the ask is over */
    SL_AVERAGER_AVERAGE, /* average it now */
    SL_AVERAGER_DROP,
    SL_AVERAGER_END /* there is none: the ask is over, refused */
} sl_averager_use;
/* A message came. SL_EPROTO: no peer sends it now. */
int sl_averager_take(sl_averager *p, const sl_averager_message *m, sl_averager_use *use,
                     sl_error *error);

/* The next message that may leave; false: none. */
bool sl_averager_next(const sl_averager *p, sl_averager_message *out);
/* It has left, which it does in the order of sl_averager_next. True: average this part of the ask
 * now, with the one that came. */
bool sl_averager_left(sl_averager *p, const sl_averager_message *m);
/* The peer has all that was sent to it. */
void sl_averager_acknowledge(sl_averager *p, uint32_t peer);
/* Are payloads of the peer's ask needed? */
bool sl_averager_keeps(const sl_averager *p, uint32_t peer);
/* Serves whoever has waited longest, if it is free. */
void sl_averager_turn(sl_averager *p);

/* Nothing new begins until sl_averager_go_on; all who wait are refused. What is under way ends. */
void sl_averager_rest(sl_averager *p);
/* Is nothing under way, and nothing to be sent? */
bool sl_averager_is_still(const sl_averager *p);
/* Nothing comes from the peer any more, nor reaches it. It rests from now on. */
void sl_averager_cut(sl_averager *p, uint32_t peer);
/* Of a still one: an average that was cut is over. */
void sl_averager_go_on(sl_averager *p);

#endif
