/* node.h - one peer as a pure step function: step(event) -> update.
 *
 * No I/O, no clock, no threads. A driver (the agent, the simulator, a user's own loop) delivers events and performs updates.
 *
 *   START                     -> compute (and, where the algorithm publishes the old model, publish)
 *   GRADIENT                  -> publish: the driver pulls chunks 0, 1, ... with sl_node_payload() and sends them to sl_node_out()
 *   RECEIVED, SENT            -> chunks are combined in order; what is no longer needed is given back in update.released
 *   all combined and sent     -> round_done, and compute of the next round, or finished
 *
 * A payload handed out by sl_node_payload() is immutable until SENT of its chunk is delivered (once, when it has left for all peers).
 * A payload delivered by RECEIVED must stay readable until its token comes back in `released`.
 */
#ifndef STARLING_NODE_H
#define STARLING_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/algorithm.h"
#include "starling/topology.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_node sl_node;

typedef struct sl_node_settings {
    uint32_t rank;
    uint64_t rounds;
    size_t dimension;
    size_t chunk_elements;  /* elements of one chunk (the last may be shorter) */
    uint32_t inbox_chunks;  /* how many undigested chunks one neighbour may have here: the credit */
    const sl_topology *topology;          /* borrowed for the node's life, like all below */
    const sl_algorithm *algorithm;
    const sl_compressor *compressor;
    const sl_vec_ops *vec;
    const sl_optimizer_config *optimizer;
    uint64_t measure_every; /* neighbour_distance is computed in rounds that are multiples, and in the last; 0 = never */
} sl_node_settings;

int sl_node_open(sl_node **out, const sl_node_settings *settings, sl_error *error);
void sl_node_close(sl_node **node);

typedef enum sl_event_type {
    SL_EVENT_START,     /* x is filled; begin round 1 */
    SL_EVENT_GRADIENT,  /* g is filled */
    SL_EVENT_RECEIVED,
    SL_EVENT_SENT,      /* chunk has left for every out-neighbour */
    SL_EVENT_PEER_DOWN, /* -> SL_EPEER naming edge and round, if the node still needs that peer */
    SL_EVENT_DEADLINE   /* -> SL_EPEER naming the edges and the round that the node waits for */
} sl_event_type;

typedef struct sl_event {
    sl_event_type type;
    uint32_t peer;      /* RECEIVED, PEER_DOWN */
    uint64_t round;     /* RECEIVED */
    uint32_t chunk;     /* RECEIVED, SENT */
    sl_payload payload; /* RECEIVED */
    void *token;        /* RECEIVED: comes back in released */
    double loss;        /* GRADIENT */
} sl_event;

typedef struct sl_round {
    uint64_t round;
    double loss;                /* of this node's batch */
    double learning_rate;
    double neighbour_distance;  /* sqrt(sum_j W_ij ||v_j - v_i||^2) of the published vectors; NaN if not measured */
    uint64_t payload_bytes_sent, payload_bytes_received; /* of this round, without frame headers */
    uint64_t frames_sent, frames_received;
} sl_round;

typedef struct sl_update {
    bool compute;     /* fill sl_node_gradient_buffer() with the gradient at sl_node_model() for `round` */
    bool publish;     /* chunks of `round` may now be pulled and sent */
    bool round_done;  /* `finished_round` is filled; the model stays as it is until the next GRADIENT is delivered */
    bool finished;    /* no more rounds */
    uint64_t round;   /* of compute and publish */
    sl_round finished_round;
    void *const *released; /* tokens; valid until the next step */
    size_t released_count;
} sl_update;

/* *update is overwritten. On error the node is broken and can only be closed; tokens in it are the driver's to free. */
int sl_node_step(sl_node *node, const sl_event *event, sl_update *update, sl_error *error);

/* x: written by the driver before START, read any time between steps. */
float *sl_node_model(sl_node *node);
float *sl_node_gradient_buffer(sl_node *node);
uint32_t sl_node_chunk_count(const sl_node *node);
uint64_t sl_node_round(const sl_node *node); /* the round under way, from 1 */
/* Whom chunks of the current round go to. */
sl_row sl_node_out(const sl_node *node);
/* The next chunk of the current round, 0, 1, 2, ... in order: adapts and encodes it. Call exactly chunk_count times after `publish`. */
sl_payload sl_node_payload(sl_node *node, uint32_t chunk);
/* Frames that were dropped: late, duplicate, beyond the window. */
uint64_t sl_node_dropped(const sl_node *node);
/* Bytes of all vectors that the node holds. */
size_t sl_node_memory(const sl_node *node);
/* The memory that payloads may point into (for registering it): fills up to `max` (base, bytes) pairs, returns how many. */
size_t sl_node_regions(const sl_node *node, void **bases, size_t *bytes, size_t max);

#ifdef __cplusplus
}
#endif
#endif
