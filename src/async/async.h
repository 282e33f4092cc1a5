/* async.h - one peer that waits for nobody more than it must, as a pure step function; the second
 * machine beside starling/node.h, which goes in rounds that all nodes share.
 *
 * A node does its own `rounds` gradients. What it sends, what it waits for and when it applies what
 * came follows one of three patterns (starling/algorithm.h):
 *
 *   pairs     ad-psgd: it asks one neighbour for an average with each gradient, and answers others
 *             between two of its own changes (averager.h, pairs.c)
 *   versions  d-psgd with staleness, sgp with overlap: it publishes a vector in each round, and
 *             takes of each neighbour the version that the rule names (versions.c)
 *   commits   ssp, round-robin: it gives its gradients to a server, whose model it gets (commits.c)
 *
 *   START           -> compute
 *   GRADIENT        -> messages
 *   RECEIVED        -> what comes is applied at once
 *   LEFT            -> of a part, in the order of sl_async_next
 *   ACKNOWLEDGED    -> a peer has all that was sent to it, where the last of it asked for that
 *   TURN            -> where update.turn has asked for it: nothing else happens at this instant.
 *                      Who waited goes on
 *
 * After each step the driver takes what may leave with sl_async_next, and says LEFT of it. Tokens,
 * payloads and their lives are those of starling/node.h. Vectors are on the host.
 */
#ifndef SL_ASYNC_H
#define SL_ASYNC_H

#include "starling/node.h"

typedef struct sl_async sl_async;

/* gradient, lends, direct and views of the settings are not used. */
int sl_async_open(sl_async **out, const sl_node_settings *settings, sl_error *error);
void sl_async_close(sl_async **node);

typedef enum sl_async_event_type {
    SL_ASYNC_START,
    SL_ASYNC_GRADIENT,
    SL_ASYNC_RECEIVED,
    SL_ASYNC_LEFT,
    SL_ASYNC_ACKNOWLEDGED,
    SL_ASYNC_TURN
} sl_async_event_type;

/* A part of a message. */
typedef struct sl_async_part {
    uint64_t number; /* pairs: the asker's count; versions: the sender's round */
    uint32_t step, part;
    bool silent; /* it has no payload, and is the whole message */
    bool tells;  /* of one to be sent: the node is to be told ACKNOWLEDGED */
    double scalar;
    sl_payload payload;
} sl_async_part;

typedef struct sl_async_event {
    sl_async_event_type type;
    uint32_t peer;      /* RECEIVED, ACKNOWLEDGED */
    sl_async_part part; /* RECEIVED */
    void *token;        /* RECEIVED */
    double loss;        /* GRADIENT */
} sl_async_event;

typedef struct sl_async_update {
    bool compute;    /* fill sl_async_gradient() with the gradient at sl_async_point() */
    bool round_done; /* finished_round is filled */
    bool finished;   /* no more gradients: it only answers */
    bool turn;       /* send TURN when nothing else happens at this instant */
    uint64_t round;  /* of compute */
    sl_round finished_round;
    void *const *released; /* tokens; valid until the next step */
    size_t released_count;
} sl_async_update;

/* Overwrites *update. After an error the node can only be closed. SL_EPROTO: a peer sent what is
 * none of the protocol's. SL_EDIVERGED: a number is not finite. */
int sl_async_step(sl_async *node, const sl_async_event *event, sl_async_update *update,
                  sl_error *error);

/* The next part that may leave, to all of `to`; its payload stands until LEFT. false: there is
 * none. */
bool sl_async_next(sl_async *node, sl_async_part *out, sl_row *to);

/* After the last round: what others have sent, and no round of its own has come to, is added. */
int sl_async_drain(sl_async *node, sl_error *error);

float *sl_async_model(sl_async *node);
/* It stands still from `compute` to GRADIENT. */
const float *sl_async_point(const sl_async *node);
float *sl_async_gradient(sl_async *node);
double sl_async_push_sum_weight(const sl_async *node);
size_t sl_async_part_bytes_max(const sl_async *node);

#endif
