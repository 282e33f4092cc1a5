/* state.h - what the node's files share: the node, and the step of an exchange that it is in.
 *
 * open.c opens and closes a node, and what of it follows from the view. node.c goes from event to
 * event, step to step and round to round. outgoing.c makes the message that a step sends;
 * incoming.c takes what comes and combines it; fold.c takes broken edges out of a step, voiding.c a
 * whole exchange back. rooms.c: models that move. pieces.c lists what a checkpoint keeps.
 */
#ifndef SL_NODE_STATE_H
#define SL_NODE_STATE_H

#include "node/codecs.h"
#include "node/fold.h"
#include "node/inbox.h"
#include "node/measure.h"
#include "node/staging.h"
#include "optim/direction.h"
#include "route/route.h"
#include "starling/node.h"

/* One in-neighbour's message in the step under way. */
typedef struct sl_incoming {
    uint32_t peer;
    float weight;
    sl_queue *queue;
    sl_decoder *decoder;
} sl_incoming;

/* In-neighbours whose messages are combined together, a batch of parts after the other: all of a
 * step, or one. */
typedef struct sl_group {
    uint32_t first, count; /* of sl_room.incoming */
    sl_range range;
    const sl_codec_set *set; /* NULL: the range is empty */
    uint32_t parts, combined;
    uint32_t batch; /* parts that are combined at once, but for the last; of those that stay on a
                       device, any number, unless it is 1 */
} sl_group;

/* What follows from who the members are, and from their edges: it ends with the view. */
typedef struct sl_view_state {
    sl_route route;
    sl_codecs codecs;
    sl_staging staging;
    uint32_t batch; /* parts that are combined at once, where sl_codec_joins them */
    sl_fold fold;
    sl_measure measured;
    bool is_cut; /* nothing is exchanged until the next view */
} sl_view_state;

/* Room for what a step combines, for the widest step of the view. */
typedef struct sl_room {
    sl_incoming *incoming; /* (step.what.in.count, room for the route's width) */
    sl_group *groups;      /* (step.group_count, room for width + 1) */
    sl_part *parts;  /* (width, and the own one) those being combined, a run of each message's */
    uint32_t *sizes; /* (width + 1, most) the bytes of those */
    uint32_t most;   /* parts of a message that are combined at once, at most */
    sl_payload *own; /* (codecs.parts_max) the own parts that were encoded, of a ranked stage */
    uint32_t *own_sizes; /* (codecs.parts_max) bytes of the own parts, where these are taken at
                            once */
} sl_room;

/* Encoded parts of a message that cannot be sent from where it stands. It outlives views, as it is
 * registered. */
typedef struct sl_send_buffer {
    void *memory;   /* (bytes) of which the view uses (parts, stride) */
    uint32_t parts; /* 0: no message of the view needs it */
    size_t stride, bytes;
} sl_send_buffer;

/* Where the model moves from exchange to exchange, of a driver that lends it; see rooms.c. */
typedef struct sl_rooms {
    float *memory; /* (SL_NODE_ROOMS, stride) the driver's; NULL: the model stays */
    size_t stride;
    unsigned free; /* a bit each, as the driver last said */
} sl_rooms;

/* What the node has come to, until it is forgotten. */
typedef struct sl_life {
    sl_round ended;          /* the last finished round */
    uint64_t ended_exchange; /* the last exchange in it, or before */
    uint64_t exchanged;      /* 1: the exchange of the round under way is over */
    uint64_t held_after;     /* the last round that may begin; 0: any */
    double loss_limit;
    bool spoiled;  /* its model is not finite, and the others can go on without it: it does nothing
                      more */
    bool finished; /* all rounds are over */
} sl_life;

/* The round under way. */
typedef struct sl_round_state {
    bool gradient_ready, exchanging;
    bool begun;        /* its exchange; or it has none */
    bool measure;      /* the neighbours' distance, in view.measured */
    uint32_t measured; /* parts of steps that are over */
    size_t final;      /* the gradient is there from this element on; 0: all of it, or none */
    sl_round statistics;
} sl_round_state;

/* The step of the exchange: a new one begins with all 0, but for the first two. */
typedef struct sl_step_state {
    uint32_t number;
    sl_exchange_step what;        /* as the route lists it, without the lost */
    const sl_codec_set *outgoing; /* NULL: nothing goes out */
    sl_outbound message;
    uint32_t encoded, sent;
    bool adapts;          /* the vector is prepared part by part, as it leaves: */
    sl_range adapted;     /* last; several parts may look at it */
    bool awaits_gradient; /* a device prepares and encodes the message at once: not yet */
    bool awaits_room;     /* and does not encode it yet, as neighbours still read others there */
    bool awaits_encoder; /* sl_node_ready has last said no, and the driver was not notified since */
    uint32_t group_count;
    double norm_limit; /* of the parts that come in it; 0: any is taken */
    bool is_shared;    /* the message leaves from settings.way_out */
    float given;       /* of a step that was cut: the others' weight in it */
} sl_step_state;

struct sl_node {
    sl_node_settings settings;
    const sl_algorithm *algorithm;
    sl_state state;
    sl_direction direction;
    size_t own_number_count; /* the algorithm's */
    float *kept[2];          /* model and momentum, where an exchange may be void; or NULL */
    float **vectors[SL_ALGORITHM_VECTORS_MAX + 5]; /* (vector_count) those of `dimension` elements
                              that it has allocated, the kept ones last: hooks may swap them */
    size_t vector_count;
    sl_inbox inbox; /* of the view, but for the tokens that go back */
    sl_view_state view;
    sl_room room;
    sl_send_buffer buffer;
    sl_rooms rooms;
    sl_life life;
    sl_round_state round;
    sl_step_state step;
    double said;    /* by the stage whose message went out last */
    uint32_t looks; /* of sl_node_ready, while it awaits the encoder */
    uint64_t dropped;
};

/* Other members: route, codecs, queues and replicas are made anew. SL_ENOMEM. */
int sl_node_turn(sl_node *n, const sl_node_view *view, sl_error *error);

/* What the algorithm keeps beside model and momentum becomes what it begins a run with. */
void sl_node_begin_anew(sl_node *n);

/* Where the sum of a step of plain gossip goes, if not over the model; else NULL. */
float *sl_rooms_find(const sl_node *n);
/* In which room what is published is, and stays. */
#define SL_ROOM_NONE UINT32_MAX
uint32_t sl_rooms_published(const sl_node *n);
/* The step is over: its sum is the model. */
void sl_rooms_move(sl_node *n);

/* An exchange begins: keeps what it overwrites, where it may be void. */
void sl_voiding_keep(sl_node *n);
/* The exchange under way is none. */
void sl_voiding_undo(sl_node *n);

sl_message sl_node_message(const sl_node *n, uint32_t sender, uint64_t exchange, uint32_t step);
/* Which of the codec's parts is a message's part? */
uint32_t sl_node_place(const sl_codec_set *set, uint32_t part);
/* The elements of the vector that a message's part covers; the message begins at `base`. */
sl_range sl_node_part_range(const sl_codec_set *set, size_t base, uint32_t part);
/* Is the gradient there for all elements of the range? */
bool sl_node_is_final(const sl_node *n, sl_range range);
/* Runs the hook over a range, block by block, so that each block stays in cache. NULL: nothing. */
void sl_node_sweep(sl_node *n, void (*hook)(sl_state *s, size_t from, size_t count),
                   sl_range range);
/* Does what is there of the gradient hold a number that is not finite? */
bool sl_node_has_spoiled_gradient(const sl_node *n);
/* SL_EDIVERGED with `what` and what to do about it. */
int sl_node_diverged(const sl_node *n, const char *what, sl_error *error);
/* The same, for a number of the model: the node is spoiled, if views may come. */
int sl_node_spoil(sl_node *n, const char *what, sl_error *error);

#endif
