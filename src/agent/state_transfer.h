/* state_transfer.h - the model that an agent returns with: it asks a sponsor, which gives its own.
 *
 * FETCH asks for it and says how much has come; so many parts more may be on their way. The sponsor
 * copies its model between two rounds, and serves one request at a time: the others are repeated
 * until it is their turn. A request whose connection breaks is over, and made anew.
 */
#ifndef SL_STATE_TRANSFER_H
#define SL_STATE_TRANSFER_H

#include "agent/peers/neighbour.h"

struct sl_agent;

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
