/* node.h - one peer as a pure step function: step(event) -> update.
 *
 * No I/O, no clock, no threads. A driver (the agent, the simulator, a user's own loop) delivers
 * events and performs updates.
 *
 *   START                     -> compute (and publish, where the algorithm sends the old model);
 *                                after a resume the last round's round_done before that
 *   GRADIENT                  -> publish: the driver takes parts 0, 1, ... of update.message with
 *                                sl_node_payload() and sends each to all of message.to
 *   FINAL                     -> the same before that, where a gradient comes in ranges, its end
 *                                first: x and g may change where g is final, and nowhere else
 *   RECEIVED, SENT            -> combines parts in order; tokens of buffers that are free again
 *                                come back in update.released
 *   all combined and sent     -> publish of the next step of the exchange; after the last one
 *                                round_done, and compute of the next round, or finished
 *   CUT                       -> somebody is lost: what is combined stays, and the rest of the
 *                                exchange is done with nobody, at once; or it never took place.
 *                                Rounds until VIEW are the node's alone
 *   VIEW                      -> other members, with other edges: the next round begins under it
 *
 * sl_node_hold() keeps a node from beginning a round: it rests after the one before until RELEASED
 * or VIEW.
 *
 * A round of local steps only has no exchange. A payload of sl_node_payload() must not change until
 * SENT of its part has been delivered (once, when it has left for all peers). A payload of RECEIVED
 * must stay readable until its token comes back in `released`. With settings.direct both are on the
 * device that holds the vectors. Operations on a device may still run when a call returns; they
 * come after what the calling thread began before (starling/vec.h), and a failed one ends a later
 * step with SL_EDEVICE.
 */
#ifndef STARLING_NODE_H
#define STARLING_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/algorithm.h"
#include "starling/api.h"
#include "starling/optimizer.h"
#include "starling/ranges.h"
#include "starling/topology.h"
#include "starling/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_node sl_node;

/* What holds from a round on; all borrowed until the next one, or the node's end. */
typedef struct sl_node_view {
    uint64_t round;              /* the first under it */
    uint64_t exchange;           /* the last one before it */
    sl_members members;          /* this node is one of them */
    const sl_topology *topology; /* in ranks, of as many nodes as the first one */
    const sl_plan *plan;         /* for the members' topology */
    const sl_pair *broken;       /* (broken_count) edges between members that it does without */
    uint32_t broken_count;
} sl_node_view;

/* Device memory that neighbours read, for one message; NULL: it leaves from the host. Where *waits
 * may be set, it is if there will be some soon: then the node asks again. */
typedef struct sl_way_out {
    void *(*take)(void *context, size_t bytes, bool *waits); /* NULL: there is none */
    void *context;
} sl_way_out;

typedef struct sl_node_settings {
    uint32_t rank;
    uint32_t ranks; /* of nodes at their own times: how many any view may have; 0: the topology's */
    uint64_t rounds;
    uint64_t epoch_rounds; /* of a pass over the data; 0: there is none */
    size_t dimension;
    const size_t *
        tensor_ends; /* (tensor_count) for compressors that work on each tensor; NULL: one tensor */
    size_t tensor_count;
    const size_t *tensor_rows; /* (tensor_count) for algorithms that factor matrices; NULL: 1 */
    const double *tensor_fractions; /* (tensor_count) of the entries that a compressor sends; NULL:
                                       as the plan says */
    const sl_ranges *leaves;  /* the order of a message's parts, which need not wait for all of
                                   the gradient; borrowed, as the next one, and equal on all
                                   peers; NULL: rising, once it is there */
    const sl_ranges *buckets; /* that are exchanged one after the other; NULL: the vector at once.
                                 On a device each leaves once all of its gradient is there */
    size_t part_bytes;        /* longest payload of one part; at least SL_PART_BYTES_MIN, except for
                                 identity */
    uint32_t inbox_parts; /* the credit: how many unconsumed parts of one neighbour may be here; 0:
                             no limit */
    bool receive_rows;    /* what comes from one peer is in one allocation of vec->allocate_host */
    uint64_t seed;        /* of random compressors, and of who takes part */
    double samples;       /* sl_task.samples; 0: 1 */
    double
        norm_limit; /* of a part of a plain message that comes, in norms of the own one; 0: any */
    double loss_limit; /* a loss above it counts as divergence; 0: a million times the first loss */
    const sl_topology *topology; /* borrowed for the node's life, like all below */
    const sl_plan *plan;         /* sl_algorithm_plan's, for this dimension */
    const sl_vec_ops *vec;
    int notify_fd; /* eventfd, signalled as sl_node_before_sleep says where vectors are on a
                      device: no call blocks then; 0: none */
    bool direct;   /* payloads, which are ranges of vectors then (identity), leave from and come to
                      the device that vectors are on; else the host */
    sl_way_out way_out;
    float *gradient; /* (dimension) shared with other nodes, where driver and algorithm allow it;
                        NULL: the node's own */
    bool lends;      /* sl_node_lend will be called; d-psgd only, and on the host: it takes its form
                        combine-while-adapt */
    bool turns;      /* views may come: there is room for what is sent after them, too, and the node
                        fails, with SL_EDIVERGED, before it sends a number that is not finite */
    const sl_optimizer_config *optimizer;
    uint64_t measure_every; /* neighbour_distance is computed in multiples of this round, and in the
                               last; 0: never */
} sl_node_settings;

/* The bytes of vectors of a node with these settings: model, gradient (unless shared), momentum,
 * the algorithm's own, replicas. Without message buffers. */
SL_API size_t sl_node_vector_bytes(const sl_node_settings *settings);
SL_API int sl_node_open(sl_node **out, const sl_node_settings *settings, sl_error *error);
SL_API void sl_node_close(sl_node **node);

typedef enum sl_event_type {
    SL_EVENT_START,    /* x is filled: begin round 1; or all pieces are: go on */
    SL_EVENT_FINAL,    /* the loss is known, and g is filled from element `from` on, where a tensor
                          begins: first of all the dimension. Nobody reads x there any more */
    SL_EVENT_GRADIENT, /* g is filled */
    SL_EVENT_RECEIVED,
    SL_EVENT_SENT,     /* part has left for every out-neighbour */
    SL_EVENT_NOTIFIED, /* notify_fd was signalled */
    SL_EVENT_CUT,      /* nothing is exchanged any more, until a view: the driver sends no more of a
                          message under way, and says no SENT of it. What has begun to leave has
                          left */
    SL_EVENT_ASIDE,    /* it gives its round up, and what has come goes back: it rests */
    SL_EVENT_RELEASED, /* the round that was held begins */
    SL_EVENT_VIEW,     /* of a node that was held before view->round; or first of all, in place of
                          START: x is filled, and it joins. At its own times, view->round is the
                          first one of a node that joins, view->exchange the view's number */
    SL_EVENT_RENEWED,  /* before START: peer is another process, and what has come goes back */
    SL_EVENT_PEER_DOWN, /* -> SL_EPEER naming edge and round, if the node still needs that peer */
    SL_EVENT_DEADLINE,  /* -> SL_EPEER naming the edges and the round that the node waits for */
    /* of nodes at their own times only */
    SL_EVENT_ACKNOWLEDGED, /* peer has all that was sent to it, where the last of it asked for that
                            */
    SL_EVENT_TURN,         /* update.turn has asked for it: nothing else happens at this instant */
    SL_EVENT_GATHER,       /* at rest, before VIEW: what is on its way is added, but after a CUT */
    SL_EVENT_REST /* it begins no exchange and applies no gradient until RELEASED or VIEW, and ends
                     what is under way */
} sl_event_type;

typedef struct sl_event {
    sl_event_type type;
    uint32_t peer;            /* RECEIVED, PEER_DOWN, RENEWED, ACKNOWLEDGED */
    uint64_t exchange;        /* RECEIVED */
    uint32_t step;            /* RECEIVED */
    uint32_t part;            /* RECEIVED, SENT */
    double scalar;            /* RECEIVED: what came with it */
    bool silent;              /* RECEIVED: it is part 0, without a payload, and the whole message */
    sl_payload payload;       /* RECEIVED: of parts that follow in a vector, it may hold several */
    bool on_device;           /* RECEIVED: the payload is, and stays until the token comes back */
    void *token;              /* RECEIVED: comes back in released */
    double loss;              /* GRADIENT, FINAL */
    size_t from;              /* FINAL: above 0, and falling */
    const sl_node_view *view; /* VIEW */
    uint64_t now_ns;          /* of a node at its own times: by any clock that never goes back */
} sl_event;

typedef struct sl_round {
    uint64_t round;
    double loss; /* of this node's batch */
    double learning_rate;
    double neighbour_distance; /* sqrt(sum_j W_ij ||v_j - v_i||^2) of the published vectors; NaN if
                                  not measured */
    double push_sum_weight;    /* 1 unless push-sum */
    uint64_t payload_bytes_sent, payload_bytes_received; /* of this round, without frame headers */
    uint64_t frames_sent, frames_received;
    uint64_t messages_sent, messages_silent; /* to each receiver; those with a payload, and without
                                              */
    uint64_t doubtful;  /* received elements that were perhaps decoded wrongly, as they lie so far
                           from the own */
    uint64_t staleness; /* at own times: how many rounds older the oldest message is that was
                           combined; of ad-psgd, how many averages the model has been in since the
                           gradient was begun. Else 0 */
} sl_round;

/* How long what was sent stays as it is where it stands, in case it has to be sent again. */
typedef enum sl_stay {
    SL_STAY_NONE,   /* it may be overwritten once the node is told that it has left */
    SL_STAY_STEP,   /* until the next message has left, too */
    SL_STAY_ANSWER, /* until its receiver's message of a later step comes, which says what came */
    SL_STAY_ROOM    /* in its room, until the driver calls that free (sl_node_free_rooms) */
} sl_stay;

/* A message to send: parts 0 ... parts - 1, each to every peer of `to`, which may be nobody. */
typedef struct sl_outbound {
    uint64_t exchange; /* for the frames' headers, like the next one */
    uint32_t step;
    uint32_t parts;
    sl_row to;
    bool overlaps; /* it does not need this round's gradient */
    bool silent;   /* it has nothing to say: one part without a payload */
    bool mutual;   /* whoever gets it sends its own in the same step */
    bool in_row;   /* its parts follow each other in a vector */
    sl_stay stays; /* of its payloads */
    uint32_t room; /* STAY_ROOM: where they are */
} sl_outbound;

/* What a node at its own times has applied, in its order: with the same acts in the same order it
 * comes to the same bits. */
typedef enum sl_act_kind {
    SL_ACT_GRADIENT, /* that of round `number` */
    SL_ACT_AVERAGE,  /* with peer, as this node's ask `number` said: parts [from, to) */
    SL_ACT_ANSWER,   /* with peer, as its ask `number` said: likewise */
    SL_ACT_REFUSED,  /* by peer was this node's ask `number`: nothing */
    SL_ACT_REFUSES,  /* peer's ask `number` */
    SL_ACT_COMBINE,  /* exchange `number`, with these versions */
    SL_ACT_COMMIT,   /* at the server: peer's gradient `number`, parts [from, to) */
    SL_ACT_SERVE,    /* at the server: its model as it is, parts [from, to), goes to peer */
    SL_ACT_VIEW,     /* view `number` begins */
    SL_ACT_GATHER,   /* before it: what was on its way is added, up to these versions */
    SL_ACT_ADD,      /* after its last round: what was on its way to it */
    SL_ACT_GIVES_UP, /* it ends without the final average */
    SL_ACT_GIVES,    /* its model as it is, for peer, which has asked as number `number` */
    SL_ACT_JOINS,    /* as a new process, which begins with the model that peer gave so */
    SL_ACT_RETURNS   /* it goes on with that */
} sl_act_kind;
enum { SL_ACT_KINDS = SL_ACT_RETURNS + 1 };

typedef struct sl_act {
    sl_act_kind kind;
    uint32_t peer;
    uint64_t number;
    uint32_t from, to;
    const uint64_t *versions; /* COMBINE: (version_count) of the in-neighbours, by rank; GATHER:
                                 the latest that it has of each peer; GIVES: at rest, parts of each
                                 server's model */
    uint32_t version_count;
} sl_act;

typedef struct sl_update {
    bool compute; /* fill sl_node_gradient_buffer() with the gradient at sl_node_point() for `round`
                   */
    bool publish; /* send `message` */
    bool round_done; /* `finished_round` is filled; the model stays as it is until the next GRADIENT
                        is delivered */
    bool finished;   /* no more rounds */
    uint64_t round;  /* of compute */
    sl_outbound message; /* of publish */
    sl_round finished_round;
    void *const *released; /* tokens; valid until the next step, like acts */
    size_t released_count;
    /* of nodes at their own times only */
    bool turn; /* send TURN when nothing else happens at this instant */
    const sl_act *acts;
    size_t act_count;
} sl_update;

/* Overwrites *update. After an error the node is broken and can only be closed; the driver frees
 * the tokens in *update. */
SL_API int sl_node_step(sl_node *node, const sl_event *event, sl_update *update, sl_error *error);

/* ---- the state between two rounds ---- */

/* A piece of what a node's next rounds follow from, beside its settings: a vector (dimension), or a
 * number. Exactly one of the three pointers is there. */
#define SL_PIECE_NAME_MAX 32
typedef struct sl_piece {
    char name[SL_PIECE_NAME_MAX]; /* "model", "replica.3", "round" */
    float *vector;                /* on the device of settings.vec */
    uint64_t *whole;
    double *real;
    bool of_view; /* what is kept of a neighbour: there is one for each of the view's */
} sl_piece;

/* Piece `index` of the state after the last finished round; false: there are no more. Vectors come
 * first, the model before all. They may be read between the step that says round_done and the next
 * call that changes the node, and while it rests. Written before START, to a new node with equal
 * settings, they let START go on: it reports that round again, and then begins the next one, if
 * there is one. VIEW in its place begins the next one under a view, without pieces of_view. */
SL_API bool sl_node_piece(sl_node *node, size_t index, sl_piece *out);

/* Is the loss, or a number of the gradient that the node would take with it, not finite? Or has it
 * failed for a number of its model? */
SL_API bool sl_node_is_spoiled(const sl_node *node, double loss);

/* Rounds in which a node's gradient was of no use; 0: none. */
typedef struct sl_setbacks {
    uint64_t before, last;
} sl_setbacks;

/* Adds a round. True: it is the third of 100. */
SL_API bool sl_setbacks_add(sl_setbacks *setbacks, uint64_t round);

/* Of a node that rests, and was held: all but the model goes, as if it had just been opened. VIEW
 * follows. */
SL_API void sl_node_forget(sl_node *node);

/* Does it do nothing until GRADIENT? Where a round's exchange begins beside its gradient, that is
 * over, and in the pieces. */
SL_API bool sl_node_rests(const sl_node *node);

/* The model x, on the device of settings.vec, as all vectors here. The driver writes it before
 * START, and may read it between steps. */
SL_API float *sl_node_model(sl_node *node);
/* Where to take the gradient: x, unless the algorithm says otherwise. */
SL_API const float *sl_node_point(const sl_node *node);
SL_API float *sl_node_gradient_buffer(sl_node *node);
/* Before GRADIENT: publishes and mixes `vector` (dimension), the driver's own, in place of the
 * model, without a gradient step. It must not change until the round is done. NULL: the model. */
SL_API void sl_node_lend(sl_node *node, const float *vector);
/* Would a node with these settings, on the host, use rooms? What it publishes then stays in one of
 * them, and the sum goes to another, as the next model. With settings.lends they are the driver's:
 * a vector that it lends from there stays there. */
enum { SL_NODE_ROOMS = 3 };
SL_API bool sl_node_moves(const sl_node_settings *settings);
/* Before START: the model moves to the first of these (SL_NODE_ROOMS, stride), which outlive the
 * node, but with settings.lends. stride: floats, of which the first `dimension` are used. */
SL_API void sl_node_take_rooms(sl_node *node, float *rooms, size_t stride);
/* Before GRADIENT and FINAL: rooms that nobody reads any more, a bit each. None: the sum goes to
 * where the model is, as without rooms. */
SL_API void sl_node_free_rooms(sl_node *node, unsigned rooms);
SL_API uint64_t sl_node_round(const sl_node *node); /* the round under way, from 1 */
/* Begin no round after `round`, which has not ended; 0: no limit. */
SL_API void sl_node_hold(sl_node *node, uint64_t round);
/* Of the round under way: what of the model is as the round will leave it, one range after the
 * other, and where that model is, of a device once its operations so far are done. Where they come
 * one by one; false: there are no more yet. */
SL_API bool sl_node_mixed(const sl_node *node, uint32_t index, sl_range *out, const float **model);
/* The latest exchange that the node has begun, from 1; 0: none. */
SL_API uint64_t sl_node_exchange(const sl_node *node);
/* 1 unless push-sum. */
SL_API double sl_node_push_sum_weight(const sl_node *node);
/* All peers of the node, sorted; borrowed. */
SL_API uint32_t sl_node_peers(const sl_node *node, const uint32_t **peers);

SL_API uint32_t sl_node_parts_max(const sl_node *node); /* of any message */
SL_API size_t sl_node_part_bytes_max(const sl_node *node);
/* Is the gradient of the next part there? */
SL_API bool sl_node_may_encode(const sl_node *node);
/* And would sl_node_payload return without waiting for a device? */
SL_API bool sl_node_ready(sl_node *node);
/* Before the driver sleeps: has the device done what the node has found undone? Then the driver
 * does not sleep: it sends SL_EVENT_NOTIFIED and asks sl_node_ready again. If not, notify_fd is
 * signalled when it has. */
SL_API bool sl_node_before_sleep(sl_node *node);
/* Adapts and encodes the next part of update.message: parts 0, 1, 2, ... in order, each once.
 * SL_EDIVERGED: a number is not finite. */
SL_API int sl_node_payload(sl_node *node, uint32_t part, sl_payload *out, sl_error *error);
/* For the header of a part of update.message. */
SL_API double sl_node_scalar(const sl_node *node, uint32_t part);
/* In the text of a deadline that has passed. */
#define SL_NODE_LATE "has not come in time"
/* Says what an exchange waits for: SL_EPEER, and the text names edge or node, round and part. 0:
 * there is no exchange. */
SL_API int sl_node_name_wait(const sl_node *node, sl_error *error);
/* How far a node has come: so many parts of a step of the exchange under way are combined; or the
 * last exchange, and the number of its steps. Who is cut there has as much of the others. */
typedef struct sl_reach {
    uint64_t exchange;
    uint32_t step, part;
} sl_reach;
SL_API void sl_node_reach(const sl_node *node, sl_reach *out);
/* Does the current step wait for a part of this peer's message? */
SL_API bool sl_node_awaits(const sl_node *node, uint32_t peer);
/* Does the node stop until it hears SENT of the next part? All else that it needs has come; what
 * came before this part was encoded, it has not looked at since. */
SL_API bool sl_node_awaits_sent(const sl_node *node);
/* Do other peers send to the node in each exchange? */
SL_API bool sl_node_varies(const sl_node *node);
/* The exchange under way, or the next one, and who sends to the node in it first. */
SL_API uint64_t sl_node_open_exchange(const sl_node *node, sl_row *from);
/* The number of dropped frames: late, duplicate, or beyond the window. */
SL_API uint64_t sl_node_dropped(const sl_node *node);
/* Bytes of all vectors that the node holds. */
SL_API size_t sl_node_memory(const sl_node *node);
/* The memory that payloads may point to, for registration: on the host, or on the device if
 * settings.direct. Writes up to `max` (base, bytes) pairs and returns their number. */
SL_API size_t sl_node_regions(const sl_node *node, void **bases, size_t *bytes, size_t max);

#ifdef __cplusplus
}
#endif
#endif
