/* agent_world.h - what the agent's fuzz target puts in place of clock, devices, worker, loop and
 * fabric: the bytes of an input decide what they do. Included once, by fuzz_agent.c.
 */
#ifndef AGENT_WORLD_H
#define AGENT_WORLD_H

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/peers/neighbour.h"
#include "agent/state.h"
#include "arena/arena.h"
#include "base/identity.h"
#include "starling/device.h"
#include "wire/checksum.h"
#include "world/fabric.h"
#include "world/loop.h"
#include "world/worker.h"

enum { NODES = 3, RANK = 1, DIMENSION = 1100, ROUNDS = 3, PORT = 7000 };
enum { CONNECTIONS_MAX = 8, MESSAGE_MAX = 8192, WORKER_FD = -10 };

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

static input in;
static bool direct, meets, shares;
static sl_count got[NODES + 1]; /* that have come to each of the others */
static double now_s;

static uint8_t next(void) {
    return in.left > 0 ? (in.left--, *in.at++) : 0;
}

/* ---- the clock ---- */

uint64_t sl_clock_epoch_us(void) {
    return 1000000;
}

int sl_identity_draw(uint64_t *out, sl_error *error) {
    *out = 1000000;
    return 0;
}

double sl_clock_seconds(void) {
    if (in.left == 0) /* whatever has a deadline comes to it */
        now_s += 0.05;
    return now_s;
}

void sl_clock_sleep(double seconds) {
    now_s += seconds;
}

bool sl_clock_yield(void) {
    return false;
}

/* ---- the device: the linker sends calls here ---- */

/* A device whose memory the fabric takes, and which is the host's. */
bool __wrap_sl_device_describe(const char *name, sl_device_info *out) {
    *out = (sl_device_info){.emulated = true};
    return true;
}

int __wrap_sl_device_open(const sl_vec_ops **out, const char *name, size_t bytes, sl_error *error) {
    *out = sl_vec_cpu();
    return 0;
}

/* ---- the worker ---- */

struct sl_worker {
    sl_job job;
    bool busy, done;
};
static struct sl_worker the_worker;

int sl_worker_open(sl_worker **out, const sl_vec_ops *vec, const sl_task *task,
                   const sl_observer *observer, uint32_t rank, const sl_ranges *leaves,
                   sl_error *error) {
    the_worker = (struct sl_worker){0};
    *out = &the_worker;
    return 0;
}

int sl_worker_descriptor(const sl_worker *worker) {
    return WORKER_FD;
}

void sl_worker_give(sl_worker *w, const sl_job *job) {
    assert(!w->busy);
    w->job = *job;
    w->busy = true;
}

bool sl_worker_busy(const sl_worker *w) {
    return w->busy;
}

bool sl_worker_is_quick(const sl_worker *w) {
    return false;
}

bool sl_worker_done(sl_worker *w) {
    return false;
}

bool sl_worker_take(sl_worker *w, sl_job_result *out) {
    if (!w->done)
        return false;
    *out = (sl_job_result){
        .computed = w->job.compute, .initialized = w->job.initial != NULL, .loss = 1};
    if (w->job.compute)
        for (int i = 0; i < DIMENSION; i++)
            w->job.g[i] = w->job.point[i] / 8;
    w->busy = w->done = false;
    return true;
}

bool sl_worker_close(sl_worker **worker, double patience_s) {
    *worker = NULL;
    return true;
}

/* ---- the event loop ---- */

struct sl_loop {
    sl_loop_handler stop, worker, tick, last;
    void *context;
};
static struct sl_loop the_loop;

int sl_loop_open(sl_loop **out, sl_error *error) {
    the_loop = (struct sl_loop){0};
    *out = &the_loop;
    return 0;
}

void sl_loop_close(sl_loop **loop) {
    *loop = NULL;
}

/* The agent watches the worker first, then what asks it to stop, and last the task's calls. */
int sl_loop_watch(sl_loop *loop, int fd, sl_loop_handler handler, void *context, sl_error *error) {
    if (fd == WORKER_FD)
        loop->worker = handler;
    else if (handler != NULL && loop->stop == NULL)
        loop->stop = handler;
    loop->last = handler;
    loop->context = context;
    return 0;
}

int sl_loop_tick(sl_loop *loop, int interval_ms, sl_loop_handler handler, void *context,
                 sl_error *error) {
    loop->tick = handler;
    return 0;
}

int sl_loop_pass(sl_loop *loop, bool block, int limit_ms, sl_error *error) {
    if (in.left == 0) {
        sl_agent_stop(loop->context);
        loop->stop(loop->context);
    }
    return 0;
}

int sl_signal_open(void) {
    return 0;
}

void sl_signal_close(int fd) {}

void sl_signal_give(int fd) {}

void sl_signal_take(int fd) {}

/* ---- the fabric ---- */

typedef struct buffer {
    sl_buffer base; /* first: the agent hands its address back */
    bool held;
} buffer;

typedef struct sending {
    const void *payload;
    size_t bytes;
    uint64_t sum;
    bool data, numbered;
    uint32_t cookie;
} sending;

struct sl_pool {
    void *owner;
    sl_connection *connection;
    uint32_t count;
    size_t bytes, rest_bytes;
    buffer *buffers; /* (count) */
};

struct sl_connection {
    const sl_connection_handlers *handlers;
    void *owner;
    uint32_t peer; /* rank at its other end */
    bool known, established, down, closed, first_used;
    uint32_t send_count, sending;
    sl_pool *pool;
    buffer first;
    sending *sends;    /* (send_count) */
    uint64_t exchange; /* of the next true frame */
    uint32_t part;
    bool lent;               /* an honest one has offered its memory */
    uint64_t met;            /* meetings that its agent has come to */
    sl_mailbox_name mailbox; /* the agent's, for the memory of whom it talks to */
};

struct sl_fabric {
    sl_fabric_settings settings;
    sl_connection *list[CONNECTIONS_MAX]; /* NULL: free */
    int pools;                            /* open */
};
static sl_fabric the_fabric;

int sl_fabric_offers(const char *provider, bool gpu, char *reason, size_t bytes) {
    return 0;
}

int sl_fabric_open(sl_fabric **out, const sl_fabric_settings *settings, sl_error *error) {
    the_fabric = (sl_fabric){.settings = *settings};
    *out = &the_fabric;
    return 0;
}

static void free_connection(sl_connection *c) {
    free(c->sends);
    free(c->first.base.data);
    free(c);
}

static void free_closed(void) {
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        sl_connection *c = the_fabric.list[i];
        if (c != NULL && c->closed) {
            free_connection(c);
            the_fabric.list[i] = NULL;
        }
    }
}

void sl_fabric_close(sl_fabric **fabric) {
    if (*fabric == NULL)
        return;
    free_closed();
    assert(the_fabric.pools == 0);
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        assert(the_fabric.list[i] == NULL);
    *fabric = NULL;
}

uint16_t sl_fabric_port(const sl_fabric *fabric) {
    return PORT + RANK;
}

int sl_fabric_descriptors(const sl_fabric *fabric, int descriptors[2]) {
    return 0;
}

int sl_fabric_register(sl_fabric *fabric, void *base, size_t bytes, int cuda_index,
                       sl_error *error) {
    assert(base != NULL && bytes > 0);
    return 0;
}

int sl_fabric_lend(sl_fabric *fabric, void *base, size_t bytes, int cuda_index, sl_error *error) {
    return 0;
}

bool sl_fabric_may_block(sl_fabric *fabric) {
    return true;
}

int sl_connection_open(sl_connection **out, sl_fabric *fabric,
                       const sl_connection_handlers *handlers, void *owner, uint32_t send_count,
                       sl_error *error) {
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (the_fabric.list[i] == NULL) {
            sl_connection *c = the_fabric.list[i] = calloc(1, sizeof *c);
            assert(c != NULL);
            c->sends = calloc(send_count, sizeof *c->sends);
            assert(c->sends != NULL);
            c->handlers = handlers;
            c->owner = owner;
            c->send_count = send_count;
            c->first.base = (sl_buffer){.data = malloc(SL_FIRST_MESSAGE_MAX)};
            *out = c;
            return 0;
        }
    return sl_fail(error, SL_ENOMEM, "fabric: no connection is left");
}

void sl_connection_close(sl_connection **connection) {
    if (*connection == NULL)
        return;
    assert(!(*connection)->closed);
    (*connection)->closed = (*connection)->down = true;
    if ((*connection)->pool != NULL)
        (*connection)->pool->connection = NULL;
    *connection = NULL;
}

void sl_connection_adopt(sl_connection *c, const sl_connection_handlers *handlers, void *owner) {
    c->handlers = handlers;
    c->owner = owner;
}

int sl_connection_dial(sl_connection *c, const struct sockaddr_storage *address,
                       const uint8_t greeting[SL_GREETING_BYTES], sl_error *error) {
    sl_passage passage;
    sl_greeting_kind kind;
    assert(sl_greeting_read(greeting, &passage, &kind) && passage.from == RANK);
    c->peer = ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port) - PORT;
    c->known = true;
    assert(c->peer == passage.to);
    return 0;
}

int sl_pool_open(sl_pool **out, sl_fabric *fabric, const sl_buffers *b, void *owner,
                 sl_error *error) {
    sl_pool *p = calloc(1, sizeof *p);
    assert(p != NULL);
    p->buffers = calloc(b->count, sizeof *p->buffers);
    assert(p->buffers != NULL);
    p->owner = owner;
    p->count = b->count;
    p->bytes = b->bytes;
    p->rest_bytes = b->rest != NULL ? b->rest_bytes : 0;
    for (uint32_t i = 0; i < b->count; i++) {
        p->buffers[i].base =
            (sl_buffer){.pool = p,
                        .data = malloc(b->bytes),
                        .rest = b->rest != NULL ? b->rest + i * b->rest_bytes : NULL};
        assert(p->buffers[i].base.data != NULL);
    }
    fabric->pools++;
    *out = p;
    return 0;
}

void sl_pool_close(sl_pool **pool) {
    sl_pool *p = *pool;
    if (p == NULL)
        return;
    assert(p->connection == NULL);
    for (uint32_t i = 0; i < p->count; i++)
        free(p->buffers[i].base.data);
    free(p->buffers);
    free(p);
    the_fabric.pools--;
    *pool = NULL;
}

void *sl_pool_owner(const sl_pool *pool) {
    return pool->owner;
}

void sl_connection_grant(sl_connection *c, sl_pool *pool) {
    assert(c->pool == NULL && pool->connection == NULL && !c->closed);
    c->pool = pool;
    pool->connection = c;
}

static void check_control(sl_connection *c, const uint8_t *header, size_t header_bytes,
                          const void *payload, size_t payload_bytes) {
    uint8_t whole[SL_FIRST_MESSAGE_MAX];
    sl_frame frame;
    sl_hello hello;
    assert(header_bytes + payload_bytes <= sizeof whole);
    memcpy(whole, header, header_bytes);
    if (payload_bytes > 0)
        memcpy(whole + header_bytes, payload, payload_bytes);
    assert(sl_frame_decode(&frame, whole, header_bytes + payload_bytes, 0, direct) == NULL);
    if (frame.type != SL_FRAME_HELLO)
        return;
    assert(sl_hello_decode(&hello, whole + SL_FRAME_HEADER_BYTES, frame.payload_bytes) == NULL);
    c->mailbox = hello.standing.mailbox;
}

int sl_connection_send(sl_connection *c, const uint8_t *header, size_t header_bytes,
                       const void *payload, size_t payload_bytes, bool data, uint32_t cookie) {
    assert(!c->closed && header_bytes <= SL_HEADER_BYTES_MAX);
    if (!data)
        check_control(c, header, header_bytes, payload, payload_bytes);
    if (c->down || !c->established)
        return SL_ENET;
    if (c->sending == c->send_count)
        return 1;
    c->sends[c->sending++] = (sending){payload,
                                       payload_bytes,
                                       sl_checksum(payload, payload_bytes),
                                       data,
                                       sl_stream_numbers((sl_frame_type)header[6]),
                                       cookie};
    return 0;
}

uint32_t sl_connection_sending(const sl_connection *c) {
    return c->sending;
}

uint64_t sl_connection_bytes_received(const sl_connection *c) {
    return c->established;
}

double sl_connection_round_trip_s(const sl_connection *c) {
    return 0;
}

size_t sl_fabric_end_silent(sl_fabric *fabric) {
    return 0;
}

void sl_connection_receive_again(sl_connection *connection) {
    assert(false); /* without keys, nobody proves himself */
}

void sl_buffer_release(sl_buffer *released) {
    buffer *b = (buffer *)released;
    assert(b->held);
    b->held = false;
}

#endif
