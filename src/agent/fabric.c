/* fabric.c - see fabric.h.
 *
 * What shaped it: a link whose peer dies reports every outstanding operation as an error and then
 * FI_SHUTDOWN, in either order, so the first of them counts and the rest is ignored; after closing
 * an endpoint its completions still come, so a closed link is kept in a graveyard until the
 * completion queue has been drained once more; every attempt to connect gets a link, and so an
 * endpoint, of its own.
 */
#include "agent/fabric.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "base/round_up.h"
#include "starling/vec.h"

enum {
    REGIONS_MAX = 128,
    COMPLETIONS_AT_ONCE = 32,
    HEADER_BYTES_MAX = 576 /* a multiple of SL_VEC_ALIGNMENT: frame header and control text */,
    IOV_COUNT = 2
};

typedef enum operation_kind { OPERATION_RECEIVE, OPERATION_SEND } operation_kind;

/* One send or receive under way; `context` first, because the provider hands its address back. */
typedef struct operation {
    struct fi_context2 context;
    sl_link *link;
    operation_kind kind;
    bool data, busy;
    uint32_t cookie;
    uint8_t *memory; /* receive: the buffer; send: the header */
} operation;

typedef struct region {
    char *base;
    size_t bytes;
    struct fid_mr *mr; /* NULL where the provider does not ask for it */
} region;

struct sl_link {
    sl_fabric *fabric;
    sl_link *next_dead;
    void *owner;
    struct fid_ep *endpoint;
    bool established, dead;
    operation *receives, *sends;
    uint32_t receive_count, send_count, next_send, sending;
    size_t buffer_bytes;
    uint8_t *buffers, *headers;
    uint8_t *rest; /* (receive_count, rest_bytes) borrowed; NULL: messages end in their buffers */
    size_t rest_bytes;
    struct fid_mr *buffers_mr, *headers_mr;
};

struct sl_fabric {
    sl_fabric_handlers handlers;
    struct fi_info *hints, *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_eq *eq;
    struct fid_cq *cq;
    struct fid_pep *listener;
    uint16_t port;
    bool registers;    /* the provider wants memory registered */
    uint64_t next_key; /* of registered memory, for providers that do not choose keys themselves */
    region regions[REGIONS_MAX];
    size_t region_count;
    sl_link *graveyard;
};

/* ---- opening ---- */

static struct fi_info *make_hints(const char *provider, bool gpu) {
    struct fi_info *hints = fi_allocinfo();
    if (hints == NULL)
        return NULL;
    hints->caps = gpu ? FI_MSG | FI_HMEM : FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | (gpu ? FI_MR_HMEM : 0);
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup(provider);
    return hints;
}

bool sl_fabric_offers_gpu(const char *provider, char *reason, size_t bytes) {
    struct fi_info *hints = make_hints(provider, true), *info = NULL;
    int result = -FI_ENOMEM;
    if (hints != NULL) {
        result = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
        fi_freeinfo(hints);
    }
    if (result == 0)
        fi_freeinfo(info);
    else
        snprintf(reason, bytes,
                 "provider '%s' offers no GPU memory (FI_HMEM) on connection-oriented endpoints "
                 "here: %s",
                 provider, fi_strerror(-result));
    return result == 0;
}

static int fail(sl_error *error, int code, const char *what, int fi_code) {
    return sl_fail(error, code, "fabric: %s failed: %s", what, fi_strerror(-fi_code));
}

static int resolve(sl_fabric *f, const char *provider, const char *host, uint16_t port,
                   sl_error *error) {
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    int result = fi_getinfo(FI_VERSION(1, 17), host, service, FI_SOURCE, f->hints, &f->info);
    if (result != 0)
        return sl_fail(error, SL_ENET,
                       "transport.provider '%s' cannot listen on %s: %s; connection-oriented (MSG) "
                       "endpoints of 'tcp' work "
                       "everywhere, 'verbs' needs an RDMA device; `fi_info -t FI_EP_MSG` lists "
                       "what this host has",
                       provider, host, fi_strerror(-result));
    if (f->info->tx_attr->iov_limit < IOV_COUNT || f->info->rx_attr->iov_limit < IOV_COUNT)
        return sl_fail(error, SL_ENET,
                       "transport.provider '%s' sends or receives fewer than %d pieces at once",
                       provider, IOV_COUNT);
    f->registers = (f->info->domain_attr->mr_mode & (FI_MR_LOCAL | FI_MR_HMEM)) != 0;
    return 0;
}

static int open_queues(sl_fabric *f, sl_error *error) {
    struct fi_eq_attr eq = {.wait_obj = FI_WAIT_FD};
    struct fi_cq_attr cq = {.wait_obj = FI_WAIT_FD, .format = FI_CQ_FORMAT_MSG, .size = 4096};
    int result = fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
    if (result != 0)
        return fail(error, SL_ENET, "fi_fabric", result);
    result = fi_eq_open(f->fabric, &eq, &f->eq, NULL);
    if (result != 0)
        return fail(error, SL_ENET, "fi_eq_open", result);
    result = fi_domain(f->fabric, f->info, &f->domain, NULL);
    if (result != 0)
        return fail(error, SL_ENET, "fi_domain", result);
    result = fi_cq_open(f->domain, &cq, &f->cq, NULL);
    return result != 0 ? fail(error, SL_ENET, "fi_cq_open", result) : 0;
}

static int listen_on(sl_fabric *f, const char *host, uint16_t port, sl_error *error) {
    int result = fi_passive_ep(f->fabric, f->info, &f->listener, NULL);
    if (result == 0)
        result = fi_pep_bind(f->listener, &f->eq->fid, 0);
    if (result == 0)
        result = fi_listen(f->listener);
    if (result != 0)
        return sl_fail(error, SL_ENET, "cannot listen on %s port %u: %s%s", host, port,
                       fi_strerror(-result),
                       result == -FI_EADDRINUSE
                           ? "; another program uses it: choose another port in the roster"
                           : "");
    struct sockaddr_storage address;
    size_t bytes = sizeof address;
    result = fi_getname(&f->listener->fid, &address, &bytes);
    if (result != 0)
        return fail(error, SL_ENET, "fi_getname", result);
    f->port = ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                                  : ((struct sockaddr_in *)&address)->sin_port);
    return 0;
}

int sl_fabric_open(sl_fabric **out, const char *provider, const char *host, uint16_t port, bool gpu,
                   const sl_fabric_handlers *handlers, sl_error *error) {
    sl_fabric *f = calloc(1, sizeof *f);
    if (f != NULL)
        f->hints = make_hints(provider, gpu);
    if (f == NULL || f->hints == NULL) {
        free(f);
        return sl_fail(error, SL_ENOMEM, "fabric: out of memory");
    }
    f->handlers = *handlers;
    int result = resolve(f, provider, host, port, error);
    if (result == 0)
        result = open_queues(f, error);
    if (result == 0)
        result = listen_on(f, host, port, error);
    if (result != 0)
        sl_fabric_close(&f);
    else
        *out = f;
    return result;
}

static void close_fid(struct fid *fid) {
    if (fid != NULL)
        fi_close(fid);
}

#define CLOSE(object) close_fid((object) ? &(object)->fid : NULL)

static void bury(sl_fabric *f) {
    while (f->graveyard != NULL) {
        sl_link *link = f->graveyard;
        f->graveyard = link->next_dead;
        CLOSE(link->buffers_mr);
        CLOSE(link->headers_mr);
        free(link->receives);
        free(link->sends);
        free(link->buffers);
        free(link->headers);
        free(link);
    }
}

void sl_fabric_close(sl_fabric **fabric) {
    sl_fabric *f = *fabric;
    if (f == NULL)
        return;
    bury(f);
    for (size_t i = 0; i < f->region_count; i++)
        CLOSE(f->regions[i].mr);
    CLOSE(f->listener);
    CLOSE(f->cq);
    CLOSE(f->domain);
    CLOSE(f->eq);
    CLOSE(f->fabric);
    fi_freeinfo(f->info);
    fi_freeinfo(f->hints);
    free(f);
    *fabric = NULL;
}

uint16_t sl_fabric_port(const sl_fabric *fabric) {
    return fabric->port;
}

void sl_fabric_descriptors(const sl_fabric *f, int descriptors[2]) {
    descriptors[0] = descriptors[1] = -1;
    fi_control(&f->eq->fid, FI_GETWAIT, &descriptors[0]);
    fi_control(&f->cq->fid, FI_GETWAIT, &descriptors[1]);
}

static int register_memory(sl_fabric *f, void *base, size_t bytes, int cuda_index, uint64_t access,
                           struct fid_mr **mr, sl_error *error) {
    if (!f->registers)
        return 0;
    const struct iovec whole = {base, bytes};
    struct fi_mr_attr attr = {.mr_iov = &whole,
                              .iov_count = 1,
                              .access = access,
                              .requested_key = f->next_key++,
                              .iface = FI_HMEM_SYSTEM};
    if (cuda_index >= 0) {
        attr.iface = FI_HMEM_CUDA;
        attr.device.cuda = cuda_index;
    }
    int result = fi_mr_regattr(f->domain, &attr, 0, mr);
    if (result != 0 && cuda_index >= 0)
        return sl_fail(error, SL_ENET,
                       "fabric: registering %zu bytes of cuda:%d's memory failed: %s; "
                       "transport.gpu_direct \"off\" does without",
                       bytes, cuda_index, fi_strerror(-result));
    return result != 0
               ? sl_fail(error, SL_ENET,
                         "fabric: registering %zu bytes failed: %s; is the locked-memory limit "
                         "(ulimit -l) high enough?",
                         bytes, fi_strerror(-result))
               : 0;
}

int sl_fabric_register(sl_fabric *f, void *base, size_t bytes, int cuda_index, sl_error *error) {
    if (f->region_count == REGIONS_MAX)
        return sl_fail(error, SL_EINVAL, "fabric: more than %d memory regions", REGIONS_MAX);
    region *r = &f->regions[f->region_count];
    *r = (region){base, bytes, NULL};
    int result = register_memory(f, base, bytes, cuda_index, FI_SEND | FI_RECV, &r->mr, error);
    if (result == 0)
        f->region_count++;
    return result;
}

static void *descriptor_of(const sl_fabric *f, const void *memory) {
    for (size_t i = 0; f->registers && i < f->region_count; i++) {
        const region *r = &f->regions[i];
        if ((const char *)memory >= r->base && (const char *)memory < r->base + r->bytes)
            return fi_mr_desc(r->mr);
    }
    return NULL;
}

/* ---- links ---- */

static bool allocate_operations(sl_link *l) {
    l->receives = calloc(l->receive_count, sizeof *l->receives);
    l->sends = calloc(l->send_count, sizeof *l->sends);
    l->buffers = aligned_alloc(SL_VEC_ALIGNMENT, l->receive_count * l->buffer_bytes);
    l->headers = aligned_alloc(SL_VEC_ALIGNMENT, (size_t)l->send_count * HEADER_BYTES_MAX);
    if (!l->receives || !l->sends || !l->buffers || !l->headers)
        return false;
    for (uint32_t i = 0; i < l->receive_count; i++)
        l->receives[i] = (operation){
            .link = l, .kind = OPERATION_RECEIVE, .memory = l->buffers + i * l->buffer_bytes};
    for (uint32_t i = 0; i < l->send_count; i++)
        l->sends[i] = (operation){
            .link = l, .kind = OPERATION_SEND, .memory = l->headers + i * HEADER_BYTES_MAX};
    return true;
}

int sl_link_open(sl_link **out, sl_fabric *fabric, const sl_link_settings *s, sl_error *error) {
    sl_link *l = calloc(1, sizeof *l);
    if (l == NULL)
        return sl_fail(error, SL_ENOMEM, "fabric: out of memory for a connection");
    l->fabric = fabric;
    l->owner = s->owner;
    l->receive_count = s->buffer_count;
    l->buffer_bytes = sl_round_up(s->buffer_bytes, SL_VEC_ALIGNMENT);
    l->rest = s->rest;
    l->rest_bytes = s->rest_bytes;
    l->send_count = s->send_count;
    int result = 0;
    if (!allocate_operations(l))
        result =
            sl_fail(error, SL_ENOMEM, "fabric: out of memory for %u receive buffers of %zu bytes",
                    s->buffer_count, s->buffer_bytes);
    if (result == 0)
        result = register_memory(fabric, l->buffers, l->receive_count * l->buffer_bytes, -1,
                                 FI_RECV, &l->buffers_mr, error);
    if (result == 0)
        result = register_memory(fabric, l->headers, (size_t)s->send_count * HEADER_BYTES_MAX, -1,
                                 FI_SEND, &l->headers_mr, error);
    if (result != 0)
        sl_link_close(&l);
    else
        *out = l;
    return result;
}

void sl_link_close(sl_link **link) {
    sl_link *l = *link;
    if (l == NULL)
        return;
    *link = NULL;
    l->dead = true;
    CLOSE(l->endpoint);
    l->endpoint = NULL;
    l->next_dead = l->fabric->graveyard;
    l->fabric->graveyard = l;
}

uint8_t *sl_link_rest(const sl_link *l, const uint8_t *buffer) {
    return l->rest + (size_t)(buffer - l->buffers) / l->buffer_bytes * l->rest_bytes;
}

static int post(sl_link *l, operation *o) {
    struct iovec iov[IOV_COUNT] = {{o->memory, l->buffer_bytes}};
    void *desc[IOV_COUNT] = {l->buffers_mr ? fi_mr_desc(l->buffers_mr) : NULL};
    struct fi_msg message = {.msg_iov = iov, .desc = desc, .iov_count = 1, .context = &o->context};
    if (l->rest != NULL) {
        iov[1] = (struct iovec){sl_link_rest(l, o->memory), l->rest_bytes};
        desc[1] = descriptor_of(l->fabric, iov[1].iov_base);
        message.iov_count = IOV_COUNT;
    }
    return (int)fi_recvmsg(l->endpoint, &message, FI_COMPLETION);
}

static int open_endpoint(sl_link *l, struct fi_info *info) {
    sl_fabric *f = l->fabric;
    int result = fi_endpoint(f->domain, info, &l->endpoint, l);
    if (result == 0)
        result = fi_ep_bind(l->endpoint, &f->eq->fid, 0);
    if (result == 0)
        result = fi_ep_bind(l->endpoint, &f->cq->fid, FI_SEND | FI_RECV);
    if (result == 0)
        result = fi_enable(l->endpoint);
    for (uint32_t i = 0; i < l->receive_count && result == 0; i++)
        result = post(l, &l->receives[i]);
    return result;
}

int sl_link_connect(sl_link *l, const char *host, uint16_t port,
                    const uint8_t greeting[SL_FABRIC_GREETING_BYTES], sl_error *error) {
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    struct fi_info *info = NULL;
    int result = fi_getinfo(FI_VERSION(1, 17), host, service, 0, l->fabric->hints, &info);
    if (result == 0)
        result = open_endpoint(l, info);
    if (result == 0)
        result = fi_connect(l->endpoint, info->dest_addr, greeting, SL_FABRIC_GREETING_BYTES);
    if (info != NULL)
        fi_freeinfo(info);
    return result != 0 ? sl_fail(error, SL_ENET, "cannot connect to %s:%u: %s", host, port,
                                 fi_strerror(-result))
                       : 0;
}

int sl_link_send(sl_link *l, const uint8_t *header, size_t header_bytes, const void *payload,
                 size_t payload_bytes, bool data, uint32_t cookie) {
    operation *o = &l->sends[l->next_send];
    if (l->dead || l->endpoint == NULL)
        return SL_ENET;
    if (o->busy)
        return 1;
    memcpy(o->memory, header, header_bytes);
    o->data = data;
    o->cookie = cookie;
    struct iovec iov[IOV_COUNT] = {{o->memory, header_bytes}, {(void *)payload, payload_bytes}};
    void *desc[IOV_COUNT] = {l->headers_mr ? fi_mr_desc(l->headers_mr) : NULL,
                             descriptor_of(l->fabric, payload)};
    struct fi_msg message = {.msg_iov = iov,
                             .desc = desc,
                             .iov_count = payload_bytes > 0 ? IOV_COUNT : 1,
                             .context = &o->context};
    ssize_t result = fi_sendmsg(l->endpoint, &message, FI_COMPLETION);
    if (result == -FI_EAGAIN)
        return 1;
    if (result != 0)
        return SL_ENET;
    o->busy = true;
    l->sending++;
    l->next_send = (l->next_send + 1) % l->send_count;
    return 0;
}

static void take_down(sl_link *l, const char *reason) {
    if (l->dead)
        return;
    l->dead = true;
    l->fabric->handlers.down(l->fabric->handlers.context, l->owner, l->established, reason);
}

void sl_link_repost(sl_link *l, uint8_t *buffer) {
    if (l->dead)
        return;
    operation *o = &l->receives[(size_t)(buffer - l->buffers) / l->buffer_bytes];
    int result = post(l, o);
    if (result != 0)
        take_down(l, fi_strerror(-result));
}

uint32_t sl_link_sending(const sl_link *l) {
    return l->sending;
}

/* ---- what happened ---- */

static void complete(sl_fabric *f, operation *o, size_t bytes) {
    sl_link *l = o->link;
    if (o->kind == OPERATION_SEND) {
        o->busy = false;
        l->sending--;
        if (o->data && !l->dead)
            f->handlers.sent(f->handlers.context, l->owner, o->cookie);
    } else if (!l->dead) {
        f->handlers.received(f->handlers.context, l->owner, o->memory, bytes);
    }
}

static void complete_with_error(sl_fabric *f) {
    struct fi_cq_err_entry entry = {0};
    if (fi_cq_readerr(f->cq, &entry, 0) <= 0)
        return;
    operation *o = entry.op_context;
    if (o == NULL)
        return;
    if (o->kind == OPERATION_SEND) {
        o->busy = false;
        o->link->sending--;
    }
    take_down(o->link, entry.err == FI_ETRUNC ? "a message is longer than a frame can be"
                                              : fi_strerror(entry.err));
}

static int drain_completions(sl_fabric *f) {
    struct fi_cq_msg_entry entries[COMPLETIONS_AT_ONCE];
    int total = 0;
    for (;;) {
        ssize_t count = fi_cq_read(f->cq, entries, COMPLETIONS_AT_ONCE);
        if (count == -FI_EAVAIL) {
            complete_with_error(f);
            total++;
            continue;
        }
        if (count <= 0)
            return total;
        for (ssize_t i = 0; i < count; i++)
            complete(f, entries[i].op_context, entries[i].len);
        total += (int)count;
        /* Each read makes the provider look at its sockets, which costs more than coming back. */
        if (count < COMPLETIONS_AT_ONCE && f->graveyard == NULL)
            return total;
    }
}

static void accept_request(sl_fabric *f, struct fi_eq_cm_entry *entry, size_t greeting_bytes) {
    sl_link *l = NULL;
    if (greeting_bytes >= SL_FABRIC_GREETING_BYTES)
        l = f->handlers.requested(f->handlers.context, entry->data);
    if (l == NULL) {
        fi_reject(f->listener, entry->info->handle, NULL, 0);
    } else {
        int result = open_endpoint(l, entry->info);
        if (result == 0)
            result = fi_accept(l->endpoint, NULL, 0);
        if (result != 0)
            take_down(l, fi_strerror(-result));
    }
    fi_freeinfo(entry->info);
}

static void handle_event(sl_fabric *f, uint32_t event, struct fi_eq_cm_entry *entry, size_t bytes) {
    sl_link *l = entry->fid ? entry->fid->context : NULL;
    if (event == FI_CONNREQ) {
        accept_request(f, entry, bytes - sizeof *entry);
    } else if (event == FI_CONNECTED && l != NULL && !l->dead) {
        l->established = true;
        f->handlers.connected(f->handlers.context, l->owner);
    } else if (event == FI_SHUTDOWN && l != NULL) {
        take_down(l, "the connection was closed");
    }
}

static void handle_event_error(sl_fabric *f) {
    struct fi_eq_err_entry entry = {0};
    if (fi_eq_readerr(f->eq, &entry, 0) <= 0)
        return;
    if (entry.fid != NULL && entry.fid->context != NULL && entry.fid->fclass == FI_CLASS_EP)
        take_down(entry.fid->context, fi_strerror(entry.err));
}

static int drain_events(sl_fabric *f) {
    union {
        struct fi_eq_cm_entry entry;
        uint8_t bytes[sizeof(struct fi_eq_cm_entry) + 256];
    } buffer;
    int total = 0;
    for (;; total++) {
        uint32_t event;
        ssize_t bytes = fi_eq_read(f->eq, &event, &buffer, sizeof buffer, 0);
        if (bytes == -FI_EAVAIL)
            handle_event_error(f);
        else if (bytes >= (ssize_t)sizeof buffer.entry)
            handle_event(f, event, &buffer.entry, (size_t)bytes);
        else
            return total;
    }
}

int sl_fabric_poll(sl_fabric *f) {
    /* With the queue drained to the end, everything that the dead had under way has been reported.
     */
    sl_link *dead = f->graveyard;
    int total = drain_completions(f);
    if (dead != NULL && f->graveyard == dead)
        bury(f);
    return total > 0 ? total : drain_events(f);
}

bool sl_fabric_may_block(sl_fabric *f) {
    struct fid *fids[2] = {&f->eq->fid, &f->cq->fid};
    return fi_trywait(f->fabric, fids, 2) == FI_SUCCESS;
}
