/* state.h - what the node's files share: the node, and the step of an exchange that it is in.
 *
 * open.c opens and closes a node, and what of it follows from the view. node.c goes from event to
 * event, step to step and round to round. outgoing.c makes the message that a step sends;
 * incoming.c takes what comes and combines it; fold.c takes broken edges out of a step.
 * pieces.c lists what a checkpoint keeps.
 */
#ifndef SL_NODE_STATE_H
#define SL_NODE_STATE_H

#include "node/codecs.h"
#include "node/fold.h"
#include "node/inbox.h"
#include "node/measure.h"
#include "node/route.h"
#include "node/staging.h"
#include "optim/direction.h"
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
    uint32_t first, count; /* of sl_node.incoming */
    sl_range range;
    const sl_codec *codec; /* NULL: the range is empty */
    uint32_t parts, combined;
    uint32_t batch; /* parts that are combined at once, but for the last */
} sl_group;

struct sl_node {
    sl_node_settings settings;
    const sl_algorithm *algorithm;
    sl_state state;
    sl_direction direction;
    size_t own_number_count; /* the algorithm's */
    sl_route route;
    const uint32_t *peers; /* (inbox.peer_count) */
    sl_codecs codecs;
    sl_inbox inbox;
    sl_staging staging;
    uint32_t parts_max;
    size_t part_bytes_max;
    uint32_t batch; /* parts that are combined at once, where sl_codec_joins them */
    sl_fold fold;
    float *kept_x, *kept_m; /* what an exchange that may be void overwrites; or NULL */
    bool is_cut;            /* nothing is exchanged until a view */
    double said;            /* by the stage whose message goes out */

    /* the round */
    bool gradient_ready, exchanging, finished;
    bool awaits_encoder; /* sl_node_ready has last said no, and the driver was not notified since */
    uint32_t looks;      /* of sl_node_ready, while it awaits the encoder */
    uint64_t exchanged;  /* 1: the round's exchange is over */
    double loss_limit;
    bool spoiled; /* its model is not finite, and the others can go on without it: it does nothing
                     more until it is forgotten */
    bool measure;
    sl_measure measured;
    sl_round statistics;
    uint64_t dropped;
    uint64_t held_after;     /* the last round that may begin; 0: any */
    sl_round ended;          /* the last finished round */
    uint64_t ended_exchange; /* the last exchange in it, or before */

    /* the step of the exchange */
    uint32_t number;
    sl_exchange_step step;
    const sl_codec_set *outgoing; /* NULL: nothing goes out */
    sl_outbound message;
    uint32_t encoded, sent;
    double norm_limit;     /* of the parts that come in it; 0: any is taken */
    float given;           /* of a step that was cut: the others' weight in it */
    sl_incoming *incoming; /* (step->in.count, room for the route's width) */
    sl_group *groups;      /* (group_count, room for width + 1) */
    uint32_t group_count;
    sl_part *parts;  /* (width, and the own one) those being combined, a run of each message's */
    uint32_t *sizes; /* (width + 1, batch) the bytes of those */
    sl_payload *own; /* (parts_max) the own parts that were encoded, of a ranked stage */
    uint32_t *own_sizes; /* (parts_max) bytes of the own parts, where these are taken at once */

    void *buffer; /* (buffer_parts, buffer_stride) encoded parts of a message that cannot be sent
                     from where it stands */
    uint32_t buffer_parts;
    size_t buffer_stride, buffer_bytes;
};

/* Other members: route, codecs, queues and replicas are made anew. SL_ENOMEM. */
int sl_node_turn(sl_node *n, const sl_view *view, sl_error *error);

/* What the algorithm keeps beside model and momentum becomes what it begins a run with. */
void sl_node_begin_anew(sl_node *n);

sl_message sl_node_message(const sl_node *n, uint32_t sender, uint64_t exchange, uint32_t step);
/* The elements of the vector that a part covers; the message begins at `base`. */
sl_range sl_node_part_range(const sl_codec *codec, size_t base, uint32_t part);
/* Runs the hook over a range, block by block, so that each block stays in cache. NULL: nothing. */
void sl_node_sweep(sl_node *n, void (*hook)(sl_state *s, size_t from, size_t count),
                   sl_range range);
/* Does the gradient hold a number that is not finite? */
bool sl_node_has_spoiled_gradient(const sl_node *n);
/* SL_EDIVERGED with `what` and what to do about it. */
int sl_node_diverged(const sl_node *n, const char *what, sl_error *error);
/* The same, for a number of the model: the node is spoiled, if views may come. */
int sl_node_spoil(sl_node *n, const char *what, sl_error *error);

#endif
