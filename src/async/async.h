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
 *   RECEIVED        -> what comes is applied at once; `exchange` is the part's number
 *   SENT            -> of a part, in the order of sl_async_next
 *   ACKNOWLEDGED    -> its average is over
 *   TURN            -> who waited goes on
 *   REST            -> what is open ends; sl_async_rests
 *   GATHER          -> of one that rests: what is on its way to it is added, where that counts. A
 *                      view begins next
 *   CUT             -> nothing comes any more, nor reaches anybody, but for accounts of what was
 *                      cut (`accounts`). It rests when both sides of each agree, or PEER_DOWN says
 *                      that the other one is gone
 *   RELEASED, VIEW  -> it goes on
 *
 * After each step the driver takes what may leave with sl_async_next, and says SENT of it. Events,
 * updates, tokens, payloads and their lives are those of starling/node.h. Payloads are on the host.
 */
#ifndef SL_ASYNC_H
#define SL_ASYNC_H

#include "starling/node.h"

typedef struct sl_async sl_async;

/* gradient, lends, direct, way_out and views of the settings are not used. */
int sl_async_open(sl_async **out, const sl_node_settings *settings, sl_error *error);
void sl_async_close(sl_async **node);

/* A part of a message that is to be sent. */
typedef struct sl_async_part {
    uint64_t number; /* pairs: the asker's count; versions: the sender's round */
    uint32_t step, part;
    bool silent;   /* it has no payload, and is the whole message */
    bool tells;    /* the node is to be told ACKNOWLEDGED */
    bool stays;    /* its payload stays as it is until the peer has answered it; else until SENT */
    bool accounts; /* it is no data of a view: it is sent, and delivered, whatever view either is
                      in */
    double scalar;
    sl_payload payload;
} sl_async_part;

/* Overwrites *update. After an error the node can only be closed. SL_EPROTO: a peer sent what is
 * none of the protocol's. SL_EDIVERGED: a number is not finite. */
int sl_async_step(sl_async *node, const sl_event *event, sl_update *update, sl_error *error);

/* Its first model is there as it begins, and not before: until then it says and serves nothing. */
void sl_async_await_model(sl_async *node);

/* 1: the next part that may leave, to all of `to`; its payload stands until SENT, or longer
 * (stays). 0: there is none. SL_EDEVICE, SL_ENOMEM: it could not be encoded. */
int sl_async_next(sl_async *node, sl_async_part *out, sl_row *to, sl_error *error);

/* Of a run that is repeated: what the node did next; NULL: nothing. Until the next call it asks and
 * serves nobody else than this says. */
void sl_async_expect(sl_async *node, const sl_act *next);

/* So many parts of the average that it serves are done. */
uint32_t sl_async_served(const sl_async *node);
/* Is an average under way, or cut and not known how far it holds? */
bool sl_async_averages(const sl_async *node);
/* Server number `index`, by rank; UINT32_MAX: there are not so many. Of its model, that the node
 * waits for: how many parts have come. */
uint32_t sl_async_server(const sl_async *node, uint32_t index);
uint32_t sl_async_come(const sl_async *node, uint32_t index);
/* The number of the ask that has no answer yet, or not all of it; 0: there is none. */
uint64_t sl_async_asks(const sl_async *node);

/* After the last round: what others have sent, and no round of its own has come to, is added. */
int sl_async_drain(sl_async *node, sl_error *error);

/* Its model as it is goes to peer, as number `number` that it asked for. *out lives until the next
 * step. */
void sl_async_give(const sl_async *node, uint32_t peer, uint64_t number, sl_act *out);
/* With versions: is the exchange of its round over when a view begins? */
bool sl_async_is_over(const sl_async *node);
/* Likewise: the latest that has come of each peer, of its sl_async_peers. */
const uint64_t *sl_async_newest(const sl_async *node);

/* After REST or CUT: has it come to rest? A gradient may run meanwhile. */
bool sl_async_rests(const sl_async *node);
/* Is all that others have sent it for its rounds here, after the last one? */
bool sl_async_is_whole(const sl_async *node);

/* What it waits for of this peer, in words; NULL: nothing. */
const char *sl_async_awaits(const sl_async *node, uint32_t peer);
/* The same of all, as an error: SL_EPEER. 0: for nothing. */
int sl_async_name_wait(const sl_async *node, sl_error *error);
/* Does it rest only once the next view is agreed on, with no way back? One that averages in pairs
 * begins nothing new as soon as there may be one. */
bool sl_async_rests_late(const sl_async *node);
/* Do others wait for its rounds? */
bool sl_async_is_followed(const sl_async *node);
/* Does it want SL_EVENT_TURN? */
bool sl_async_turns(const sl_async *node);

/* As sl_node_piece, of a node that rests, with numbers first. Written before START, to a new node
 * with equal settings, they let it rest as that one did: the view that has begun then, or another
 * one, goes on. */
bool sl_async_piece(sl_async *node, size_t index, sl_piece *out);
#define SL_OWN_ROUND_NAME "own_round" /* the piece of sl_async_round */

float *sl_async_model(sl_async *node);
/* It stands still from `compute` to GRADIENT. */
const float *sl_async_point(const sl_async *node);
float *sl_async_gradient(sl_async *node);
double sl_async_push_sum_weight(const sl_async *node);
uint64_t sl_async_round(const sl_async *node); /* the round under way, from 1 */
uint32_t sl_async_parts(const sl_async *node); /* of a message */
/* All of them, sorted; borrowed. */
uint32_t sl_async_peers(const sl_async *node, const uint32_t **peers);
size_t sl_async_part_bytes_max(const sl_async *node);
/* As sl_node_memory, sl_node_regions. */
size_t sl_async_memory(const sl_async *node);
size_t sl_async_regions(const sl_async *node, void **bases, size_t *bytes, size_t max);

#endif
