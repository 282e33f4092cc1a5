/* connection.c - one connection: its endpoint, buffers, sends; see fabric.h.
 *
 * When the other side dies, every operation under way is reported as an error, and FI_SHUTDOWN
 * comes before or after them: the first report counts, the rest is ignored. Completions still come
 * after an endpoint is closed, so a closed connection is kept until the completion queue has been
 * drained once more. Each attempt to connect needs an endpoint of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "starling/vec.h"
#include "world/fabric_state.h"

static bool allocate_sends(sl_connection *c) {
    c->sends = calloc(c->send_count, sizeof *c->sends);
    c->headers = aligned_alloc(SL_VEC_ALIGNMENT, (size_t)c->send_count * SL_HEADER_BYTES_MAX);
    if (c->sends == NULL || c->headers == NULL)
        return false;
    for (uint32_t i = 0; i < c->send_count; i++)
        c->sends[i] = (operation){.connection = c,
                                  .kind = OPERATION_SEND,
                                  .header = c->headers + i * SL_HEADER_BYTES_MAX};
    return true;
}

int sl_connection_open(sl_connection **out, sl_fabric *fabric,
                       const sl_connection_handlers *handlers, void *owner, uint32_t send_count,
                       sl_error *error) {
    sl_connection *c = calloc(1, sizeof *c);
    if (c == NULL)
        return sl_fail(error, SL_ENOMEM, "fabric: out of memory for a connection");
    c->fabric = fabric;
    c->next = fabric->open;
    fabric->open = c;
    c->handlers = handlers;
    c->owner = owner;
    c->send_count = send_count;
    c->first_buffer = (sl_buffer){.data = c->first_bytes};
    c->first = (operation){.connection = c,
                           .kind = OPERATION_RECEIVE,
                           .buffer = &c->first_buffer,
                           .buffer_bytes = sizeof c->first_bytes};
    int result = 0;
    if (!allocate_sends(c))
        result = sl_fail(error, SL_ENOMEM, "fabric: out of memory for %u sends", send_count);
    if (result == 0)
        result = sl_fabric_register_range(fabric, c->first_bytes, sizeof c->first_bytes, -1,
                                          FI_RECV, &c->first_mr, error);
    if (result == 0)
        result =
            sl_fabric_register_range(fabric, c->headers, (size_t)send_count * SL_HEADER_BYTES_MAX,
                                     -1, FI_SEND, &c->headers_mr, error);
    if (result != 0)
        sl_connection_close(&c);
    else
        *out = c;
    return result;
}

void sl_connection_close(sl_connection **connection) {
    sl_connection *c = *connection;
    if (c == NULL)
        return;
    *connection = NULL;
    c->down = true;
    CLOSE(c->endpoint);
    c->endpoint = NULL;
    if (c->pool != NULL)
        c->pool->connection = NULL;
    c->pool = NULL;
    sl_connection **at = &c->fabric->open;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->next = c->fabric->closed;
    c->fabric->closed = c;
}

static void free_connection(sl_connection *c) {
    CLOSE(c->first_mr);
    CLOSE(c->headers_mr);
    free(c->receives);
    free(c->sends);
    free(c->headers);
    free(c);
}

void sl_connection_free_closed(sl_fabric *f) {
    while (f->closed != NULL) {
        sl_connection *c = f->closed;
        f->closed = c->next;
        free_connection(c);
    }
}

void sl_connection_adopt(sl_connection *c, const sl_connection_handlers *handlers, void *owner) {
    c->handlers = handlers;
    c->owner = owner;
}

uint32_t sl_connection_sending(const sl_connection *connection) {
    return connection->sending;
}

uint64_t sl_connection_bytes_received(const sl_connection *c) {
    return c->fabric->is_own && c->endpoint != NULL ? sl_provider_received(c->endpoint) : 0;
}

double sl_connection_round_trip_s(const sl_connection *c) {
    return c->fabric->is_own && c->endpoint != NULL ? sl_provider_round_trip_s(c->endpoint) : 0;
}

/* ---- connecting ---- */

int sl_connection_post(operation *o) {
    sl_connection *c = o->connection;
    struct fid_mr *mr = o == &c->first ? c->first_mr : c->pool->mr;
    struct iovec iov[IOV_COUNT] = {{o->buffer->data, o->buffer_bytes}};
    void *desc[IOV_COUNT] = {mr != NULL ? fi_mr_desc(mr) : NULL};
    struct fi_msg message = {.msg_iov = iov, .desc = desc, .iov_count = 1, .context = &o->context};
    if (o->buffer->rest != NULL) {
        iov[1] = (struct iovec){o->buffer->rest, c->pool->rest_bytes};
        desc[1] = sl_fabric_descriptor(c->fabric, o->buffer->rest);
        message.iov_count = IOV_COUNT;
    }
    return (int)fi_recvmsg(c->endpoint, &message, FI_COMPLETION);
}

void sl_connection_receive_again(sl_connection *c) {
    const int result = c->down || c->endpoint == NULL ? 0 : sl_connection_post(&c->first);
    if (result != 0)
        sl_connection_take_down(c, fi_strerror(-result));
}

int sl_connection_open_endpoint(sl_connection *c, struct fi_info *info) {
    sl_fabric *f = c->fabric;
    int result = fi_endpoint(f->domain, info, &c->endpoint, c);
    if (result == 0)
        result = fi_ep_bind(c->endpoint, &f->eq->fid, 0);
    if (result == 0)
        result = fi_ep_bind(c->endpoint, &f->cq->fid, FI_SEND | FI_RECV);
    if (result == 0)
        result = fi_enable(c->endpoint);
    return result == 0 ? sl_connection_post(&c->first) : result;
}

static int find_way(const sl_fabric *f, const struct sockaddr_storage *address, const char *host,
                    struct fi_info **info) {
    char service[8];
    snprintf(service, sizeof service, "%u", sl_address_port(address));
    if (!f->is_own)
        return fi_getinfo(FI_VERSION(1, 17), host, service, FI_NUMERICHOST, f->hints, info);
    *info = sl_provider_info(address);
    return *info != NULL ? 0 : -FI_ENOMEM;
}

int sl_connection_dial(sl_connection *c, const struct sockaddr_storage *address,
                       const uint8_t greeting[SL_GREETING_BYTES], sl_error *error) {
    char host[SL_IP_TEXT_MAX];
    struct fi_info *info = NULL;
    sl_address_text(address, host);
    int result = find_way(c->fabric, address, host, &info);
    if (result == 0)
        result = sl_connection_open_endpoint(c, info);
    if (result == 0)
        result = fi_connect(c->endpoint, info->dest_addr, greeting, SL_GREETING_BYTES);
    if (info != NULL)
        fi_freeinfo(info);
    return result != 0 ? sl_fail(error, sl_fabric_code(result), "cannot connect to %s port %u: %s",
                                 host, sl_address_port(address), fi_strerror(-result))
                       : 0;
}

/* ---- sending and receiving ---- */

int sl_connection_send(sl_connection *c, const uint8_t *header, size_t header_bytes,
                       const void *payload, size_t payload_bytes, bool data, uint32_t cookie) {
    operation *o = &c->sends[c->next_send];
    if (c->down || c->endpoint == NULL)
        return SL_ENET;
    if (o->busy)
        return 1;
    memcpy(o->header, header, header_bytes);
    o->data = data;
    o->cookie = cookie;
    struct iovec iov[IOV_COUNT] = {{o->header, header_bytes}, {(void *)payload, payload_bytes}};
    void *desc[IOV_COUNT] = {c->headers_mr ? fi_mr_desc(c->headers_mr) : NULL,
                             sl_fabric_descriptor(c->fabric, payload)};
    struct fi_msg message = {.msg_iov = iov,
                             .desc = desc,
                             .iov_count = payload_bytes > 0 ? IOV_COUNT : 1,
                             .context = &o->context};
    ssize_t result = fi_sendmsg(c->endpoint, &message, FI_COMPLETION);
    if (result == -FI_EAGAIN)
        return 1;
    if (result != 0)
        return SL_ENET;
    o->busy = true;
    c->sending++;
    c->next_send = (c->next_send + 1) % c->send_count;
    return 0;
}

void sl_connection_take_down(sl_connection *c, const char *reason) {
    if (c->down)
        return;
    c->down = true;
    c->handlers->down(c->fabric->settings.context, c->owner, c->established, reason);
}

void sl_connection_complete(operation *o, size_t bytes) {
    sl_connection *c = o->connection;
    void *context = c->fabric->settings.context;
    if (o->kind == OPERATION_SEND) {
        o->busy = false;
        c->sending--;
        if (o->data && !c->down)
            c->handlers->sent(context, c->owner, o->cookie);
    } else if (!c->down) {
        if (o != &c->first)
            ((pooled *)o->buffer)->held = true;
        c->handlers->received(context, c->owner, o->buffer, bytes);
    }
}

void sl_connection_complete_with_error(operation *o, int why) {
    if (o->kind == OPERATION_SEND) {
        o->busy = false;
        o->connection->sending--;
    }
    if (why == FI_ECANCELED && !o->connection->established)
        return; /* its event says why, such as a port that refuses */
    const char *text = why == FI_ETRUNC      ? "a message is longer than a frame can be"
                       : why == EBADMSG      ? "what came is no frame: it was altered on the way"
                       : why == FI_ECANCELED ? "the connection was closed"
                                             : fi_strerror(why);
    sl_connection_take_down(o->connection, text);
}
