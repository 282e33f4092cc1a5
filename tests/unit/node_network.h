/* node_network.h - nodes of one run, and the frames between them: they come late, and in any order
 * of senders. What a node sends does not change before it has left, and each token comes back once
 * at most. Included once by each program. */
#ifndef NODE_NETWORK_H
#define NODE_NETWORK_H

#include "experiments.h"
#include "starling/node.h"
#include "starling/rng.h"
#include "wire/checksum.h"

enum { NODES = 6, DIMENSION = 60, PART = 8, PARTS = 8, ROUNDS = 12, LOSSES = 3, QUEUE = 256 };
enum { FRAME_BYTES = 4096 }; /* of a part, at most */

typedef struct frame {
    sl_event event;
    void *payload; /* of just its length, so that a sanitizer sees what is read behind it */
    bool used;
} frame;

typedef struct queue {
    frame frames[QUEUE];
    uint32_t first, count;
} queue;

typedef struct peer {
    sl_node *node;
    bool started, computing, is_cut;
    sl_outbound message;
    uint32_t encoded, sent;
    sl_payload payloads[QUEUE];
    uint64_t sums[QUEUE];  /* of payloads */
    uint64_t rounds;       /* ended */
    sl_reach cuts[LOSSES]; /* where it was cut */
    float x[ROUNDS + 1][DIMENSION];
    double weights[ROUNDS + 1];
} peer;

static peer peers[NODES];
static queue queues[NODES][NODES]; /* [from][to] */
static uint32_t nodes;
static bool is_wild; /* anything may happen to them */
static sl_plan plan;
static const sl_topology *topology;
static sl_rng rng;
static sl_error error;

static inline uint32_t below(uint32_t limit) {
    return sl_rng_u32(&rng) % limit;
}

/* ---- a node ---- */

static inline void note_round(peer *p, uint64_t round) {
    memcpy(p->x[round], sl_node_model(p->node), sizeof p->x[round]);
    p->weights[round] = sl_node_push_sum_weight(p->node);
    p->rounds = round;
}

static inline void drop(frame *f) {
    free(f->payload);
    *f = (frame){.used = false};
}

/* Whatever it held or was to come is gone. */
static inline void end(peer *p) {
    sl_node_close(&p->node);
    for (int from = 0; from < NODES; from++) {
        queue *q = &queues[from][p - peers];
        for (int k = 0; k < QUEUE; k++)
            drop(&q->frames[k]);
        q->count = 0;
    }
}

static inline void step(peer *p, const sl_event *event) {
    sl_update update;
    const int result = sl_node_step(p->node, event, &update, &error);
    for (size_t i = 0; i < update.released_count; i++) {
        ck_assert(((frame *)update.released[i])->used);
        drop(update.released[i]);
    }
    if (result != 0 && is_wild && error.text[0] != '\0') {
        end(p);
        return;
    }
    ck_assert_msg(result == 0, "%s", error.text);
    if (update.round_done)
        note_round(p, update.finished_round.round);
    p->computing = update.compute || (p->computing && event->type != SL_EVENT_GRADIENT);
    ck_assert(!update.publish || !p->is_cut);
    if (update.publish) {
        p->message = update.message;
        p->encoded = p->sent = 0;
    }
}

static inline void compute(peer *p) {
    if (!p->started) {
        p->started = true;
        step(p, &(sl_event){.type = SL_EVENT_START});
    } else if (p->computing) {
        float *g = sl_node_gradient_buffer(p->node);
        for (int e = 0; e < DIMENSION; e++)
            g[e] = (float)(e % 3) - 0.5f * (float)(p - peers);
        if (is_wild && below(100) == 0)
            g[0] = INFINITY;
        step(p,
             &(sl_event){.type = SL_EVENT_GRADIENT, .loss = is_wild && below(100) == 0 ? NAN : 1});
    }
}

static inline void encode(peer *p) {
    if (p->encoded == p->message.parts || !sl_node_ready(p->node))
        return;
    ck_assert_uint_lt(p->encoded, QUEUE);
    sl_payload *payload = &p->payloads[p->encoded];
    const int result = sl_node_payload(p->node, p->encoded, payload, &error);
    ck_assert_msg(result == 0 || is_wild, "%s", error.text);
    if (result == 0)
        p->sums[p->encoded++] = sl_checksum(payload->data, payload->bytes);
    else
        end(p);
}

/* The last one to come. Where anything may happen it is lost if too many wait. */
static inline void push(queue *q, sl_event event) {
    frame *f = &q->frames[(q->first + q->count) % QUEUE];
    if (is_wild && (q->count == QUEUE || f->used))
        return;
    ck_assert(q->count++ < QUEUE && !f->used && event.payload.bytes <= FRAME_BYTES);
    *f = (frame){.event = event, .payload = malloc(event.payload.bytes), .used = true};
    if (event.payload.bytes > 0)
        memcpy(f->payload, event.payload.data, event.payload.bytes);
    f->event.payload.data = f->payload;
    f->event.token = f;
}

static inline void send(uint32_t rank) {
    peer *p = &peers[rank];
    if (p->sent == p->encoded)
        return;
    const sl_event event = {.type = SL_EVENT_RECEIVED,
                            .peer = rank,
                            .exchange = p->message.exchange,
                            .step = p->message.step,
                            .part = p->sent,
                            .scalar = sl_node_scalar(p->node, p->sent),
                            .silent = p->message.silent,
                            .payload = p->payloads[p->sent]};
    ck_assert_uint_eq(sl_checksum(event.payload.data, event.payload.bytes), p->sums[p->sent]);
    for (uint32_t i = 0; i < p->message.to.count; i++)
        push(&queues[rank][p->message.to.peers[i]], event);
    step(p, &(sl_event){.type = SL_EVENT_SENT, .part = p->sent++});
}

static inline void arrive(uint32_t from, uint32_t to) {
    queue *q = &queues[from][to];
    if (q->count == 0)
        return;
    frame *f = &q->frames[q->first];
    q->first = (q->first + 1) % QUEUE;
    q->count--;
    if (peers[to].node != NULL)
        step(&peers[to], &f->event);
    else
        drop(f);
}

/* ---- all ---- */

static inline void open_nodes(sl_node_settings settings, uint64_t seed) {
    rng = sl_rng_open(seed, 0, 0, SL_PURPOSE_FAULT);
    memset(peers, 0, sizeof peers);
    memset(queues, 0, sizeof queues);
    topology = settings.topology;
    nodes = sl_topology_nodes(topology);
    for (uint32_t i = 0; i < nodes; i++) {
        settings.rank = i;
        EXPECT_WELL(sl_node_open(&peers[i].node, &settings, &error));
        peers[i].weights[0] = 1;
        for (int e = 0; e < DIMENSION; e++)
            sl_node_model(peers[i].node)[e] = peers[i].x[0][e] =
                (float)(2 * sl_rng_uniform(&rng) - 1);
    }
}

static inline void close_run(void) {
    for (uint32_t i = 0; i < NODES; i++)
        end(&peers[i]);
}

#endif
