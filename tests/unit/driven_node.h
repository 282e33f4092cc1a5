/* driven_node.h - a node with two neighbours, driven as an agent does it: receive buffers used in
 * turn, frames as far as the credit goes, a part a pass to the neighbours, and a sleep where
 * nothing is to be done. Node 1 of a ring of four; its gradient is what its memory holds. */
#ifndef STARLING_TEST_DRIVEN_NODE_H
#define STARLING_TEST_DRIVEN_NODE_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "config/buffers.h"
#include "starling/experiment.h"
#include "starling/node.h"
#include "wire/checksum.h"
#include "wire/frame.h"
#include "world/loop.h"

enum { DRIVEN_NEIGHBOURS = 2, DRIVEN_WAIT_MS = 60000, DRIVEN_BUFFERS_MAX = 256 };

typedef struct driven_neighbour {
    uint32_t rank;
    char *buffers; /* (count, stride) a header and a payload each */
    uint32_t count, next, held, window;
    size_t stride;
    bool busy[DRIVEN_BUFFERS_MAX];
    uint64_t exchange; /* of the part that comes next */
    uint32_t part;
    char *there;         /* all its parts, on the device; NULL: they come to the buffers */
    float *vector;       /* (dimension) what it compresses */
    sl_encoder *encoder; /* NULL: it sends plain vectors */
} driven_neighbour;

typedef struct driven_node {
    const sl_vec_ops *vec;
    sl_node *node;
    size_t dimension, part_bytes;
    uint32_t parts;
    driven_neighbour from[DRIVEN_NEIGHBOURS];
    sl_outbound message;
    uint32_t encoded, sent;
    bool publishing, finished, is_cut;
    uint64_t exchanges; /* begun */
    uint64_t seed;
    sl_codec *codec; /* of compressed messages, or NULL */
    int notify_fd;
    unsigned long sleeps;
    uint64_t sent_sum; /* of all that it has sent */
    double distance;   /* of the latest round that was measured */
    /* What a part of a message of so many floats holds; NULL: anything. */
    void (*fill)(uint32_t rank, uint64_t exchange, uint32_t part, float *out, size_t count);
    unsigned frames_of_pass; /* that come from each neighbour between two looks */
    uint32_t control_every;  /* after so many parts, another frame takes a buffer; 0: never */
    uint32_t cut_after;      /* so many parts are combined in exchange 2; 0: it is not cut */
} driven_node;

static inline void driven_stop(const char *what) {
    fprintf(stderr, "driven node: %s\n", what);
    exit(1);
}

static inline void driven_release(driven_node *d, const char *buffer) {
    for (int i = 0; i < DRIVEN_NEIGHBOURS; i++) {
        driven_neighbour *n = &d->from[i];
        if (buffer < n->buffers || buffer >= n->buffers + n->count * n->stride)
            continue;
        n->busy[(size_t)(buffer - n->buffers) / n->stride] = false;
        n->held--;
    }
}

static inline void driven_deliver(driven_node *d, sl_event event) {
    sl_error error;
    sl_update now;
    if (sl_node_step(d->node, &event, &now, &error) != 0)
        driven_stop(error.text);
    for (size_t i = 0; i < now.released_count; i++)
        driven_release(d, now.released[i]);
    d->finished = d->finished || now.finished;
    if (now.round_done)
        d->distance = now.finished_round.neighbour_distance;
    if (now.publish) {
        d->message = now.message;
        d->encoded = d->sent = 0;
        d->publishing = true;
        d->exchanges = now.message.exchange;
    }
    if (now.compute)
        driven_deliver(d, (sl_event){.type = SL_EVENT_GRADIENT, .loss = 1});
}

/* More does not come of this neighbour's message. */
static inline bool driven_withholds(const driven_node *d, const driven_neighbour *n) {
    return d->is_cut || (d->cut_after > 0 && n->exchange == 2 && n->part == d->cut_after);
}

/* All that comes before has come, and all has left. */
static inline void driven_cut_if_due(driven_node *d) {
    for (int i = 0; i < DRIVEN_NEIGHBOURS; i++)
        if (!driven_withholds(d, &d->from[i]))
            return;
    if (d->is_cut || d->publishing || d->exchanges < 2)
        return;
    d->is_cut = true;
    driven_deliver(d, (sl_event){.type = SL_EVENT_CUT});
}

/* The neighbour's next part, written to its buffer. */
static inline sl_payload driven_plain(driven_node *d, driven_neighbour *n, float *out) {
    const size_t from = n->part * d->part_bytes, all = d->dimension * sizeof(float),
                 bytes = all - from < d->part_bytes ? all - from : d->part_bytes;
    if (n->there != NULL)
        return (sl_payload){n->there, all};
    if (d->fill != NULL)
        d->fill(n->rank, n->exchange, n->part, out, bytes / sizeof(float));
    return (sl_payload){out, bytes};
}

static inline sl_payload driven_compressed(driven_node *d, driven_neighbour *n, void *out) {
    const sl_source source = {.vector = n->vector};
    const sl_message message = {.seed = d->seed, .exchange = n->exchange, .sender = n->rank};
    sl_payload payload;
    if (n->part == 0 && d->fill != NULL)
        d->fill(n->rank, n->exchange, 0, n->vector, d->dimension);
    if ((n->part == 0 && sl_encoder_begin(n->encoder, &message, &source) != 0) ||
        sl_encoder_part(n->encoder, n->part, &source, out, &payload) != 0)
        driven_stop("a neighbour's message cannot be encoded");
    return payload;
}

static inline bool driven_take_frame(driven_node *d, driven_neighbour *n) {
    if (driven_withholds(d, n) || n->held == n->window || n->busy[n->next] ||
        n->exchange > d->exchanges)
        return false;
    char *buffer = n->buffers + n->next * n->stride;
    float *at = (float *)(buffer + SL_FRAME_HEADER_BYTES);
    const sl_event event = {.type = SL_EVENT_RECEIVED,
                            .peer = n->rank,
                            .exchange = n->exchange,
                            .part = n->part,
                            .on_device = n->there != NULL,
                            .token = buffer,
                            .payload = n->encoder != NULL ? driven_compressed(d, n, at)
                                                          : driven_plain(d, n, at)};
    n->busy[n->next] = true;
    n->next = (n->next + 1) % n->count;
    if (d->control_every > 0 && n->part % d->control_every == 0 && !n->busy[n->next])
        n->next = (n->next + 1) % n->count;
    n->held++;
    n->part += n->there != NULL ? d->parts : 1;
    if (n->part == d->parts) {
        n->part = 0;
        n->exchange++;
    }
    driven_deliver(d, event);
    return true;
}

static inline bool driven_take_frames(driven_node *d) {
    bool any = false;
    for (int i = 0; i < DRIVEN_NEIGHBOURS; i++)
        for (unsigned k = 0; k < d->frames_of_pass && driven_take_frame(d, &d->from[i]); k++)
            any = true;
    return any;
}

static inline bool driven_send(driven_node *d) {
    sl_payload payload;
    sl_error error;
    if (!d->publishing || d->encoded == d->message.parts || !sl_node_ready(d->node))
        return false;
    if (sl_node_payload(d->node, d->encoded++, &payload, &error) != 0)
        driven_stop(error.text);
    if (d->fill != NULL)
        d->sent_sum = 31 * d->sent_sum + sl_checksum(payload.data, payload.bytes);
    return true;
}

static inline bool driven_note_sent(driven_node *d) {
    if (!d->publishing || d->sent == d->encoded)
        return false;
    const uint32_t part = d->sent++;
    d->publishing = d->sent < d->message.parts;
    driven_deliver(d, (sl_event){.type = SL_EVENT_SENT, .part = part});
    return true;
}

static inline void driven_sleep(driven_node *d) {
    struct pollfd notified = {.fd = d->notify_fd, .events = POLLIN};
    d->sleeps++;
    if (poll(&notified, 1, DRIVEN_WAIT_MS) != 1)
        driven_stop("the node sleeps, and nothing wakes it");
    sl_signal_take(d->notify_fd);
    driven_deliver(d, (sl_event){.type = SL_EVENT_NOTIFIED});
}

static inline void driven_train(driven_node *d) {
    driven_deliver(d, (sl_event){.type = SL_EVENT_START});
    while (!d->finished) {
        const bool sent = driven_note_sent(d), came = driven_take_frames(d);
        driven_cut_if_due(d);
        if (d->finished)
            return;
        if (driven_send(d) || sent || came)
            continue;
        if (sl_node_before_sleep(d->node))
            driven_deliver(d, (sl_event){.type = SL_EVENT_NOTIFIED});
        else
            driven_sleep(d);
    }
}

/* Frames that are not data have buffers, too. */
static inline void driven_open_neighbour(driven_node *d, driven_neighbour *n, uint32_t rank,
                                         uint32_t window) {
    *n = (driven_neighbour){.rank = rank,
                            .count = window + SL_CONTROL_BUFFERS,
                            .window = window,
                            .exchange = 1,
                            .stride = SL_FRAME_HEADER_BYTES +
                                      sl_round_up(d->part_bytes, SL_VEC_ALIGNMENT)};
    if (n->count <= DRIVEN_BUFFERS_MAX)
        n->buffers = d->vec->allocate_host(n->count * n->stride);
    if (n->buffers == NULL)
        driven_stop("no receive buffers");
    if (d->codec == NULL)
        return;
    n->vector = calloc(d->dimension, sizeof *n->vector);
    if (n->vector == NULL || sl_encoder_open(&n->encoder, d->codec, sl_vec_cpu(), NULL) != 0)
        driven_stop("no encoder of a neighbour's");
}

/* settings: rank, credit and descriptor are filled in. */
static inline void driven_open(driven_node *d, sl_node_settings settings, uint32_t window) {
    sl_error error;
    *d = (driven_node){.vec = settings.vec,
                       .dimension = settings.dimension,
                       .seed = settings.seed,
                       .notify_fd = sl_signal_open(),
                       .frames_of_pass = 4};
    settings.rank = 1;
    settings.inbox_parts = window;
    settings.receive_rows = true;
    settings.notify_fd = d->notify_fd;
    if (sl_node_open(&d->node, &settings, &error) != 0)
        driven_stop(error.text);
    if (settings.plan->config.compressor.kind != SL_COMPRESSOR_IDENTITY &&
        sl_codec_open(&d->codec, &settings.plan->config.compressor, settings.dimension,
                      settings.part_bytes, &error) != 0)
        driven_stop(error.text);
    d->parts = d->codec != NULL ? sl_codec_parts(d->codec) : sl_node_parts_max(d->node);
    d->part_bytes = sl_node_part_bytes_max(d->node);
    for (uint32_t i = 0; i < DRIVEN_NEIGHBOURS; i++)
        driven_open_neighbour(d, &d->from[i], 2 * i, window);
}

static inline void driven_close(driven_node *d) {
    sl_node_close(&d->node);
    for (int i = 0; i < DRIVEN_NEIGHBOURS; i++) {
        d->vec->release_host(d->from[i].buffers);
        sl_encoder_close(&d->from[i].encoder);
        free(d->from[i].vector);
    }
    sl_codec_close(&d->codec);
    sl_signal_close(d->notify_fd);
}

#endif
