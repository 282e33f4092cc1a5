/* state.h - what the node's own files share: the node, and the step that it is in.
 *
 * node.c goes from event to event, step to step and round to round; outgoing.c makes the message
 * that a step sends, incoming.c takes what comes and combines it.
 */
#ifndef SL_NODE_STATE_H
#define SL_NODE_STATE_H

#include "node/codecs.h"
#include "node/inbox.h"
#include "node/route.h"
#include "node/staging.h"
#include "starling/node.h"

struct sl_node {
    sl_node_settings settings;
    const sl_algorithm *algorithm;
    sl_state state;
    sl_route route;
    sl_codecs codecs;
    sl_inbox inbox;
    uint32_t parts_max;
    size_t part_bytes_max;

    bool gradient_ready, exchanging, exchanged, finished;
    double loss_limit;
    size_t stage;    /* of the exchange under way */
    uint32_t index;  /* of the step in its stage */
    uint32_t number; /* of the step in its exchange */
    sl_exchange_step step;
    const sl_codec_set *outgoing, *incoming; /* NULL: nothing goes out, nothing (joint) comes */
    uint32_t out_parts, encoded, sent;
    uint32_t
        *combined;  /* (width) parts done of each in-neighbour; joint steps use the first for all */
    sl_part *parts; /* (width) of the part at hand */
    bool measure;
    double distance_squared; /* sum_j W_ij ||v_j - v_i||^2 so far */
    sl_round statistics;

    void *buffer; /* (buffer_parts, buffer_stride) encoded parts of a message that cannot be sent
                     from where it stands */
    sl_staging staging;
    uint32_t buffer_parts;
    size_t buffer_stride;
    uint64_t dropped;
};

static inline const sl_stage *sl_node_stage(const sl_node *n) {
    return &n->algorithm->stages[n->stage];
}

static inline sl_message sl_node_message(const sl_node *n, uint32_t sender, uint64_t exchange,
                                         uint32_t step) {
    return (sl_message){
        .seed = n->settings.seed, .exchange = exchange, .sender = sender, .stage = step};
}

/* Of the vector, where the message stands at `message`. */
static inline sl_range sl_node_part_range(const sl_codec_set *set, sl_range message,
                                          uint32_t part) {
    sl_range range;
    sl_codec_part_range(set->codec, part, &range.from, &range.count);
    range.from += message.from;
    return range;
}

/* node.c */
typedef void sl_range_hook(sl_state *s, size_t from, size_t count);
/* Over a vector, while a block is in cache. hook may be NULL. */
void sl_node_sweep(sl_node *n, sl_range_hook *hook, sl_range range);
int sl_node_diverged(const sl_node *n, const char *what, sl_error *error);

/* outgoing.c */
/* The message is the vector itself, which stays as it is until it has left. */
bool sl_outgoing_is_vector(const sl_stage *stage, const sl_codec *codec);
/* Are messages along edges vectors as they are? Then their distances can be measured. */
bool sl_outgoing_is_plain_gossip(const sl_node *n);
/* A vector that goes out as it is can be adapted part by part as it leaves; otherwise all of it is,
 * before the encoder looks at it. */
bool sl_outgoing_adapts(const sl_node *n);
int sl_outgoing_begin(sl_node *n, sl_update *update, sl_error *error);

/* incoming.c */
/* Keeps a part until it is combined, or lets go of it. */
int sl_incoming_receive(sl_node *n, const sl_event *event, sl_error *error);
/* As far as parts have come, and may be combined yet. */
int sl_incoming_combine(sl_node *n, sl_error *error);
bool sl_incoming_is_complete(const sl_node *n);
/* Buffers that have been read by the device may go. */
int sl_incoming_collect(sl_node *n, sl_error *error);
/* Whose part has kept this step waiting? 0: nobody's. */
int sl_incoming_name_missing(const sl_node *n, sl_error *error);

#endif
