/* fabric.c - world/fabric.h over the virtual network. */
#include "world/fabric.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "wire/checksum.h"
#include "world/loop.h"

int sl_fabric_offers(const char *provider, bool gpu, char *reason, size_t bytes) {
    return 0;
}

int sl_fabric_open(sl_fabric **out, const sl_fabric_settings *settings, sl_error *error) {
    sl_fabric *f = calloc(1, sizeof *f);
    if (f == NULL)
        return sl_fail(error, SL_ENOMEM, "fabric: out of memory");
    const uint16_t port = ntohs(((const struct sockaddr_in *)&settings->address)->sin_port);
    f->settings = *settings;
    f->process = process_current();
    if (network_listen(f, port) != 0) {
        free(f);
        return sl_fail(error, SL_ENET, "cannot listen on port %u: it is in use", port);
    }
    f->port = port;
    f->fd = sl_signal_open();
    f->process->fabric = f;
    f->process->fabric_fd = f->fd;
    *out = f;
    return 0;
}

static void free_closed(sl_fabric *f) {
    for (int i = 0; i < f->slot_count; i++) {
        sl_connection *c = f->slots[i];
        if (c == NULL || !c->closed)
            continue;
        free(c->first.data);
        free(c);
        f->slots[i] = NULL;
        f->process->connections--;
    }
    while (f->slot_count > 0 && f->slots[f->slot_count - 1] == NULL)
        f->slot_count--;
}

void sl_fabric_close(sl_fabric **fabric) {
    sl_fabric *f = *fabric;
    if (f == NULL)
        return;
    free_closed(f);
    for (int i = 0; i < f->slot_count; i++)
        if (f->slots[i] != NULL)
            world_fail("agent %u closed its fabric and left a connection open", f->process->rank);
    network_lose(f->process, false);
    sl_signal_close(f->fd);
    free(f);
    *fabric = NULL;
}

uint16_t sl_fabric_port(const sl_fabric *fabric) {
    return fabric->port;
}

int sl_fabric_descriptors(const sl_fabric *fabric, int descriptors[2]) {
    descriptors[0] = fabric->fd;
    return 1;
}

int sl_fabric_register(sl_fabric *fabric, void *base, size_t bytes, int cuda_index,
                       sl_error *error) {
    if (base == NULL || bytes == 0)
        world_fail("nothing is registered");
    return 0;
}

int sl_fabric_lend(sl_fabric *fabric, void *base, size_t bytes, int cuda_index, sl_error *error) {
    return sl_fabric_register(fabric, base, bytes, -1, error);
}

size_t sl_fabric_end_silent(sl_fabric *fabric) {
    return 0;
}

/* ---- connections ---- */

int sl_connection_open(sl_connection **out, sl_fabric *fabric,
                       const sl_connection_handlers *handlers, void *owner, uint32_t send_count,
                       sl_error *error) {
    int i = 0;
    while (i < SLOTS_MAX && fabric->slots[i] != NULL)
        i++;
    if (i == SLOTS_MAX)
        return sl_fail(error, SL_ENOMEM, "fabric: no connection is left");
    sl_connection *c = calloc(1, sizeof *c);
    void *first = malloc(SL_FIRST_MESSAGE_MAX);
    if (c == NULL || first == NULL) {
        free(c);
        free(first);
        return sl_fail(error, SL_ENOMEM, "fabric: out of memory for a connection");
    }
    fabric->slots[i] = c;
    if (i == fabric->slot_count)
        fabric->slot_count++;
    c->handlers = handlers;
    c->owner = owner;
    c->send_count = send_count;
    c->end = -1;
    c->first.data = first;
    if (++fabric->process->connections > fabric->process->connections_max)
        fabric->process->connections_max = fabric->process->connections;
    *out = c;
    return 0;
}

void sl_connection_close(sl_connection **connection) {
    sl_connection *c = *connection;
    if (c == NULL)
        return;
    if (c->closed)
        world_fail("a connection is closed twice");
    c->closed = c->down = true;
    if (c->wire != NULL)
        network_hang_up(c->wire, c->end);
    c->wire = NULL;
    if (c->pool != NULL && c->pool->connection == c)
        c->pool->connection = NULL;
    queue_clear(&c->left);
    *connection = NULL;
}

void sl_connection_adopt(sl_connection *c, const sl_connection_handlers *handlers, void *owner) {
    c->handlers = handlers;
    c->owner = owner;
}

uint32_t sl_connection_sending(const sl_connection *c) {
    return c->sending;
}

uint64_t sl_connection_bytes_received(const sl_connection *c) {
    return c->wire != NULL ? c->wire->lanes[1 - c->end].bytes_arrived : 0;
}

double sl_connection_round_trip_s(const sl_connection *c) {
    return 0;
}

int sl_connection_dial(sl_connection *c, const struct sockaddr_storage *address,
                       const uint8_t greeting[SL_GREETING_BYTES], sl_error *error) {
    c->end = 0;
    c->wire = network_dial(c, process_current(),
                           ntohs(((const struct sockaddr_in *)address)->sin_port), greeting);
    return 0;
}

/* ---- receive buffers ---- */

int sl_pool_open(sl_pool **out, sl_fabric *fabric, const sl_buffers *b, void *owner,
                 sl_error *error) {
    if (b->count > BUFFERS_MAX || b->rest != NULL)
        world_fail("a pool of %u buffers, or of a device's", b->count);
    sl_pool *p = calloc(1, sizeof *p);
    bool good = p != NULL;
    for (uint32_t i = 0; good && i < b->count; i++) {
        p->slots[i].base = (sl_buffer){.pool = p, .data = malloc(b->bytes)};
        good = p->slots[p->count++].base.data != NULL;
    }
    if (!good) {
        sl_pool_close(&p);
        return sl_fail(error, SL_ENOMEM, "fabric: out of memory for %u buffers", b->count);
    }
    p->owner = owner;
    p->bytes = b->bytes;
    *out = p;
    return 0;
}

void sl_pool_close(sl_pool **pool) {
    sl_pool *p = *pool;
    if (p == NULL)
        return;
    if (p->connection != NULL)
        world_fail("a pool is closed before its connection");
    for (uint32_t i = 0; i < p->count; i++)
        free(p->slots[i].base.data);
    free(p);
    *pool = NULL;
}

void *sl_pool_owner(const sl_pool *pool) {
    return pool->owner;
}

void sl_connection_grant(sl_connection *c, sl_pool *pool) {
    if (c->pool != NULL || c->closed || pool->connection != NULL)
        world_fail("buffers are granted twice, or to a closed connection");
    c->pool = pool;
    pool->connection = c;
}

void sl_connection_receive_again(sl_connection *c) {
    if (c->pool != NULL || !c->first_used)
        world_fail("a connection has a buffer for a first message already");
    c->first_used = false;
}

void sl_buffer_release(sl_buffer *released) {
    slot *s = (slot *)released;
    if (released->pool == NULL)
        return;
    if (!s->held)
        world_fail("a buffer is released twice");
    s->held = false;
}

/* ---- sending ---- */

int sl_connection_send(sl_connection *c, const uint8_t *header, size_t header_bytes,
                       const void *payload, size_t payload_bytes, bool data, uint32_t cookie) {
    if (c->closed || header_bytes > SL_HEADER_BYTES_MAX)
        world_fail("a send on a closed connection, or with a header of %zu bytes", header_bytes);
    if (c->down || !c->established)
        return SL_ENET;
    if (c->sending == c->send_count || world_chance(network.no_room))
        return 1;
    message *m = world_allocate(sizeof *m + header_bytes + payload_bytes);
    *m = (message){.payload = payload,
                   .payload_bytes = payload_bytes,
                   .bytes = header_bytes + payload_bytes,
                   .payload_sum = payload_bytes > 0 ? sl_checksum(payload, payload_bytes) : 0,
                   .data = data,
                   .cookie = cookie};
    memcpy(m->body, header, header_bytes);
    if (payload_bytes > 0)
        memcpy(m->body + header_bytes, payload, payload_bytes);
    if (network.forge != NULL)
        network.forge(process_current()->rank, m->body, m->bytes);
    c->sending++;
    network_send(c->wire, c->end, m);
    return 0;
}

/* ---- what happened ---- */

static sl_buffer *free_buffer(sl_connection *c) {
    if (!c->first_used)
        return &c->first;
    for (uint32_t i = 0; c->pool != NULL && i < c->pool->count; i++)
        if (!c->pool->slots[i].held)
            return &c->pool->slots[i].base;
    return NULL;
}

static const queue *inbox(const sl_connection *c) {
    return &c->wire->lanes[1 - c->end].arrived;
}

static bool can_receive(sl_connection *c) {
    return c->wire != NULL && c->established && inbox(c)->first != NULL && free_buffer(c) != NULL;
}

static bool has_news(sl_connection *c) {
    return !c->closed && !c->down &&
           (c->becomes_connected || c->left.first != NULL || can_receive(c) || c->reason != NULL);
}

bool fabric_has_news(const sl_fabric *f) {
    if (f->request_count > 0)
        return true;
    for (int i = 0; i < f->slot_count; i++)
        if (f->slots[i] != NULL && has_news(f->slots[i]))
            return true;
    return false;
}

bool sl_fabric_may_block(sl_fabric *f) {
    return !fabric_has_news(f);
}

static void complete(sl_fabric *f, sl_connection *c) {
    message *m = queue_pop(&c->left);
    const bool data = m->data;
    const uint32_t cookie = m->cookie;
    world_free(m);
    c->sending--;
    if (data)
        c->handlers->sent(f->settings.context, c->owner, cookie);
}

static void take_down(sl_fabric *f, sl_connection *c, const char *reason) {
    c->down = true;
    c->handlers->down(f->settings.context, c->owner, c->established, reason);
}

static void receive(sl_fabric *f, sl_connection *c) {
    sl_buffer *buffer = free_buffer(c);
    wire *w = c->wire;
    const int from = 1 - c->end;
    message *m = queue_pop(&w->lanes[from].arrived);
    const size_t bytes = m->bytes,
                 room = buffer->pool == NULL ? SL_FIRST_MESSAGE_MAX : c->pool->bytes;
    if (bytes <= room)
        memcpy(buffer->data, m->body, bytes);
    world_free(m);
    network_pump(w, from);
    if (bytes > room) {
        take_down(f, c, "a message is longer than a frame can be");
        return;
    }
    c->first_used = true;
    if (buffer->pool != NULL)
        ((slot *)buffer)->held = true;
    c->handlers->received(f->settings.context, c->owner, buffer, bytes);
}

static void handle(sl_fabric *f, sl_connection *c) {
    if (c->becomes_connected) {
        c->becomes_connected = false;
        c->established = true;
        c->handlers->connected(f->settings.context, c->owner);
    } else if (c->left.first != NULL) {
        complete(f, c);
    } else if (can_receive(c)) {
        receive(f, c);
    } else {
        take_down(f, c, c->reason);
    }
}

static void answer_request(sl_fabric *f) {
    wire *w = f->requests[0];
    char from[SL_ADDRESS_TEXT_MAX];
    memmove(f->requests, f->requests + 1, (size_t)--f->request_count * sizeof(wire *));
    snprintf(from, sizeof from, "10.0.0.%u", w->ends[0].rank);
    char why[SL_GREETING_WHY_MAX];
    sl_connection *c = f->settings.requested(f->settings.context, w->greeting, from, why);
    if (c != NULL)
        network_accept(w, c);
    else
        network_refuse(w);
}

static int handle_slots(sl_fabric *f, int from, int end, int budget) {
    int total = 0;
    for (int i = from; i < end && i < f->slot_count && total < budget; i++)
        for (sl_connection *c = f->slots[i]; total < budget && c != NULL && has_news(c); total++)
            handle(f, c);
    return total;
}

int sl_fabric_poll(sl_fabric *f) {
    int total = 0;
    if (world_chance(network.spurious))
        return 0;
    free_closed(f);
    const int budget = 1 + (int)(world_draw() % 8), begin = (int)(world_draw() % SLOTS_MAX);
    for (; total < budget && f->request_count > 0; total++)
        answer_request(f);
    total += handle_slots(f, begin, SLOTS_MAX, budget - total);
    return total + handle_slots(f, 0, begin, budget - total);
}
