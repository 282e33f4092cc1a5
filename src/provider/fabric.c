/* fabric.c - the fabric, its domain, its queues, and looking at sockets; see provider.h. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "provider/state.h"

enum { EVENTS_AT_ONCE = 32 };

/* ---- looking at sockets ---- */

int fabric_watch(fabric *f, int fd, watched *w) {
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = w};
    if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ||
        (errno == EEXIST && epoll_ctl(f->epoll, EPOLL_CTL_MOD, fd, &e) == 0))
        return 0;
    return -errno;
}

static void go_on(fabric *f) {
    while (f->ready != NULL) {
        endpoint *e = f->ready;
        f->ready = e->next_ready;
        e->is_ready = false;
        stream_go_on(e);
    }
}

static void look(fabric *f) {
    struct epoll_event events[EVENTS_AT_ONCE];
    int count;
    go_on(f);
    do {
        count = epoll_wait(f->epoll, events, EVENTS_AT_ONCE, 0);
        for (int i = 0; i < count; i++) {
            watched *w = events[i].data.ptr;
            w->happened(w, events[i].events);
        }
        askers_bury(f);
    } while (count == EVENTS_AT_ONCE);
}

/* ---- completions ---- */

void fabric_complete(fabric *f, operation *o, int error) {
    o->error = error;
    append(&f->complete, o);
}

static ssize_t read_completions(struct fid_cq *cq, void *buffer, size_t count) {
    fabric *f = HOLDER(cq, fabric, cq);
    struct fi_cq_msg_entry *out = buffer;
    size_t n = 0;
    if (f->complete.first == NULL)
        look(f);
    for (; n < count && f->complete.first != NULL && f->complete.first->error == 0; n++) {
        operation *o = take_first(&f->complete);
        out[n] = (struct fi_cq_msg_entry){
            .op_context = o, .flags = FI_MSG | (o->receives ? FI_RECV : FI_SEND), .len = o->bytes};
    }
    return n > 0 ? (ssize_t)n : f->complete.first != NULL ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t read_failed(struct fid_cq *cq, struct fi_cq_err_entry *out, uint64_t flags) {
    fabric *f = HOLDER(cq, fabric, cq);
    (void)flags;
    if (f->complete.first == NULL || f->complete.first->error == 0)
        return -FI_EAGAIN;
    operation *o = take_first(&f->complete);
    *out = (struct fi_cq_err_entry){.op_context = o, .err = o->error};
    return 1;
}

/* ---- events ---- */

void fabric_tell(fabric *f, event *e) {
    if (e->queued)
        return;
    e->queued = true;
    e->next = NULL;
    *(f->first_event == NULL ? &f->first_event : &f->last_event->next) = e;
    f->last_event = e;
}

void fabric_forget(fabric *f, event *e) {
    event *before = NULL;
    for (event *at = f->first_event; at != NULL && e->queued; before = at, at = at->next) {
        if (at != e)
            continue;
        *(before == NULL ? &f->first_event : &before->next) = e->next;
        if (f->last_event == e)
            f->last_event = before;
        e->queued = false;
    }
}

static event *take_event(fabric *f) {
    event *e = f->first_event;
    f->first_event = e->next;
    e->queued = false;
    return e;
}

static ssize_t tell_request(const event *e, struct fi_eq_cm_entry *out, size_t bytes) {
    const uint8_t *greeting;
    if (bytes < sizeof *out + SL_GREETING_BYTES)
        return -FI_ETOOSMALL;
    out->info = asker_info(e->fid, &greeting);
    memcpy(out->data, greeting, SL_GREETING_BYTES);
    return out->info != NULL ? (ssize_t)(sizeof *out + SL_GREETING_BYTES) : -FI_ENOMEM;
}

static ssize_t read_event(struct fid_eq *eq, uint32_t *kind, void *buffer, size_t bytes,
                          uint64_t flags) {
    fabric *f = HOLDER(eq, fabric, eq);
    (void)flags;
    if (f->first_event == NULL)
        look(f);
    if (f->first_event == NULL)
        return -FI_EAGAIN;
    if (f->first_event->kind == 0)
        return -FI_EAVAIL;
    event *e = take_event(f);
    struct fi_eq_cm_entry *out = buffer;
    *kind = e->kind;
    out->fid = e->fid;
    out->info = NULL;
    if (e->kind == FI_CONNECTED) /* what came with it comes after it */
        stream_is_ready(HOLDER(e, endpoint, connected));
    return e->kind == FI_CONNREQ ? tell_request(e, out, bytes) : (ssize_t)sizeof *out;
}

static ssize_t read_event_error(struct fid_eq *eq, struct fi_eq_err_entry *out, uint64_t flags) {
    fabric *f = HOLDER(eq, fabric, eq);
    (void)flags;
    if (f->first_event == NULL || f->first_event->kind != 0)
        return -FI_EAGAIN;
    const event *e = take_event(f);
    endpoint *who = HOLDER(HOLDER(e->fid, struct fid_ep, fid), endpoint, fid);
    *out = (struct fi_eq_err_entry){
        .fid = e->fid, .err = e->error, .err_data = who->why, .err_data_size = strlen(who->why)};
    return sizeof *out;
}

/* ---- waiting ---- */

static int tell_descriptor(struct fid *eq, int command, void *out) {
    if (command != FI_GETWAIT)
        return -FI_ENOSYS;
    *(int *)out = HOLDER(HOLDER(eq, struct fid_eq, fid), fabric, eq)->epoll;
    return 0;
}

static int may_wait(struct fid_fabric *fid, struct fid **fids, int count) {
    fabric *f = HOLDER(fid, fabric, fid);
    (void)fids, (void)count;
    look(f);
    return f->complete.first == NULL && f->first_event == NULL && f->ready == NULL ? 0 : -FI_EAGAIN;
}

/* ---- opening and closing ---- */

static int no_control(struct fid *fid, int command, void *argument) {
    (void)fid, (void)command, (void)argument;
    return -FI_ENOSYS;
}

/* Parts of the fabric go with it. */
static int close_part(struct fid *fid) {
    (void)fid;
    return 0;
}

static int close_fabric(struct fid *fid) {
    fabric *f = HOLDER(HOLDER(fid, struct fid_fabric, fid), fabric, fid);
    askers_bury(f);
    close(f->epoll);
    free(f);
    return 0;
}

static struct fi_ops fabric_fid_ops = {.size = sizeof(struct fi_ops), .close = close_fabric};
static struct fi_ops part_ops = {
    .size = sizeof(struct fi_ops), .close = close_part, .control = no_control};
static struct fi_ops eq_fid_ops = {
    .size = sizeof(struct fi_ops), .close = close_part, .control = tell_descriptor};
static struct fi_ops_eq eq_ops = {
    .size = sizeof(struct fi_ops_eq), .read = read_event, .readerr = read_event_error};
static struct fi_ops_cq cq_ops = {
    .size = sizeof(struct fi_ops_cq), .read = read_completions, .readerr = read_failed};

static int open_eq(struct fid_fabric *fid, struct fi_eq_attr *attributes, struct fid_eq **out,
                   void *context) {
    fabric *f = HOLDER(fid, fabric, fid);
    (void)attributes;
    f->eq = (struct fid_eq){{FI_CLASS_EQ, context, &eq_fid_ops}, &eq_ops};
    *out = &f->eq;
    return 0;
}

static int open_cq(struct fid_domain *domain, struct fi_cq_attr *attributes, struct fid_cq **out,
                   void *context) {
    fabric *f = HOLDER(domain, fabric, domain);
    (void)attributes;
    f->cq = (struct fid_cq){{FI_CLASS_CQ, context, &part_ops}, &cq_ops};
    *out = &f->cq;
    return 0;
}

static int open_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
                         void *context) {
    return endpoint_open(HOLDER(domain, fabric, domain), info, out, context);
}

static struct fi_ops_domain domain_ops = {
    .size = sizeof(struct fi_ops_domain), .cq_open = open_cq, .endpoint = open_endpoint};

static int open_domain(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **out,
                       void *context) {
    fabric *f = HOLDER(fid, fabric, fid);
    (void)info;
    f->domain =
        (struct fid_domain){.fid = {FI_CLASS_DOMAIN, context, &part_ops}, .ops = &domain_ops};
    *out = &f->domain;
    return 0;
}

static int open_listener(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **out,
                         void *context) {
    return listener_open(HOLDER(fid, fabric, fid), info, out, context);
}

static struct fi_ops_fabric fabric_ops = {.size = sizeof(struct fi_ops_fabric),
                                          .domain = open_domain,
                                          .passive_ep = open_listener,
                                          .eq_open = open_eq,
                                          .trywait = may_wait};

int sl_provider_open(struct fid_fabric **out, const sl_provider_settings *settings) {
    fabric *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -FI_ENOMEM;
    f->settings = *settings;
    f->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (f->epoll < 0) {
        const int error = errno;
        free(f);
        return -error;
    }
    f->fid =
        (struct fid_fabric){.fid = {FI_CLASS_FABRIC, NULL, &fabric_fid_ops}, .ops = &fabric_ops};
    *out = &f->fid;
    return 0;
}

static size_t address_bytes(const struct sockaddr_storage *a) {
    return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

struct fi_info *sl_provider_info(const struct sockaddr_storage *address) {
    struct fi_info *info = fi_allocinfo();
    const size_t bytes = address_bytes(address);
    void *to = info != NULL ? malloc(bytes) : NULL;
    if (to == NULL) {
        if (info != NULL)
            fi_freeinfo(info);
        return NULL;
    }
    info->dest_addr = memcpy(to, address, bytes);
    info->dest_addrlen = bytes;
    info->ep_attr->type = FI_EP_MSG;
    info->ep_attr->protocol = FI_PROTO_SOCK_TCP;
    info->tx_attr->iov_limit = info->rx_attr->iov_limit = 2;
    return info;
}
