/* fabric.c - the fabric, its domain, its queues, and looking at sockets; see provider.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "provider/state.h"

enum { EVENTS_AT_ONCE = 32 };

/* ---- looking at sockets ---- */

static void go_on(fabric *f) {
    while (f->ready != NULL) {
        endpoint *e = f->ready;
        f->ready = e->next_ready;
        e->is_ready = false;
        sl_tcp_stream_go_on(e);
    }
}

/* What is not looked at now leaves the descriptor readable. */
static void look(fabric *f) {
    struct epoll_event events[EVENTS_AT_ONCE];
    go_on(f);
    const int count = epoll_wait(f->epoll, events, EVENTS_AT_ONCE, 0);
    for (int i = 0; i < count; i++) {
        watched *w = events[i].data.ptr;
        w->happened(w, events[i].events);
    }
    sl_tcp_askers_bury(f);
}

/* ---- completions ---- */

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
    out->info = sl_tcp_asker_info(e->fid, &greeting);
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
        sl_tcp_stream_ready(HOLDER(e, endpoint, connected));
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
    sl_tcp_askers_bury(f);
    close(f->epoll);
    free(f);
    return 0;
}

static const struct fi_ops fabric_fid_ops = {.size = sizeof(struct fi_ops), .close = close_fabric};
static const struct fi_ops part_ops = {
    .size = sizeof(struct fi_ops), .close = close_part, .control = no_control};
static const struct fi_ops eq_fid_ops = {
    .size = sizeof(struct fi_ops), .close = close_part, .control = tell_descriptor};
static const struct fi_ops_eq eq_ops = {
    .size = sizeof(struct fi_ops_eq), .read = read_event, .readerr = read_event_error};
static const struct fi_ops_cq cq_ops = {
    .size = sizeof(struct fi_ops_cq), .read = read_completions, .readerr = read_failed};

static int open_eq(struct fid_fabric *fid, struct fi_eq_attr *attributes, struct fid_eq **out,
                   void *context) {
    fabric *f = HOLDER(fid, fabric, fid);
    (void)attributes;
    f->eq = (struct fid_eq){{FI_CLASS_EQ, context, TABLE(eq_fid_ops)}, TABLE(eq_ops)};
    *out = &f->eq;
    return 0;
}

static int open_cq(struct fid_domain *domain, struct fi_cq_attr *attributes, struct fid_cq **out,
                   void *context) {
    fabric *f = HOLDER(domain, fabric, domain);
    (void)attributes;
    f->cq = (struct fid_cq){{FI_CLASS_CQ, context, TABLE(part_ops)}, TABLE(cq_ops)};
    *out = &f->cq;
    return 0;
}

static int open_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
                         void *context) {
    return sl_tcp_endpoint_open(HOLDER(domain, fabric, domain), info, out, context);
}

static const struct fi_ops_domain domain_ops = {
    .size = sizeof(struct fi_ops_domain), .cq_open = open_cq, .endpoint = open_endpoint};

static int open_domain(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **out,
                       void *context) {
    fabric *f = HOLDER(fid, fabric, fid);
    (void)info;
    f->domain = (struct fid_domain){.fid = {FI_CLASS_DOMAIN, context, TABLE(part_ops)},
                                    .ops = TABLE(domain_ops)};
    *out = &f->domain;
    return 0;
}

static int open_listener(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **out,
                         void *context) {
    return sl_tcp_listener_open(HOLDER(fid, fabric, fid), info, out, context);
}

static const struct fi_ops_fabric fabric_ops = {.size = sizeof(struct fi_ops_fabric),
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
    f->fid = (struct fid_fabric){.fid = {FI_CLASS_FABRIC, NULL, TABLE(fabric_fid_ops)},
                                 .ops = TABLE(fabric_ops)};
    *out = &f->fid;
    return 0;
}
