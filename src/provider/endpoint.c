/* endpoint.c - a connection's beginning and end; see provider.h. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "provider/state.h"

static const char no_agent[] = "another program answers there, or an agent of another release";

static endpoint *endpoint_of(struct fid_ep *fid) {
    return HOLDER(fid, endpoint, fid);
}

/* ---- its end ---- */

static void leave_ready(endpoint *e) {
    endpoint **at = &e->fabric->ready;
    while (*at != NULL && *at != e)
        at = &(*at)->next_ready;
    if (*at == e)
        *at = e->next_ready;
}

/* What is complete stays in the queue: its memory is the caller's until that is drained. */
static int close_endpoint(struct fid *fid) {
    endpoint *e = endpoint_of(HOLDER(fid, struct fid_ep, fid));
    sl_tcp_stream_send(e); /* short messages that wait: the last one may say why */
    sl_tcp_forget(e->fabric, &e->connected);
    sl_tcp_forget(e->fabric, &e->ended);
    leave_ready(e);
    sl_tcp_stream_stop(e);
    free(e);
    return 0;
}

/* ---- dialing ---- */

static void begin(endpoint *e) {
    const int on = 1;
    setsockopt(e->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    free(e->talk);
    e->talk = NULL;
    e->state = OPEN;
    e->readable = e->writable = true;
    sl_tcp_tell(e->fabric, &e->connected);
}

static void hear_challenge(endpoint *e) {
    const sl_gate *gate = &e->fabric->settings.gate;
    if (!gate->proves || e->challenged || sl_tcp_talk_bytes(e->talk) != SL_CHALLENGE_BYTES) {
        sl_tcp_stream_end(e, FI_ECONNREFUSED, "it asks for a proof, and this agent has no key");
        return;
    }
    e->challenged = true;
    memcpy(e->talk->challenge, sl_tcp_talk_payload(e->talk), SL_CHALLENGE_BYTES);
    sl_tcp_talk_go_on(e->talk);
    const int result = sl_tcp_talk_prove(e->talk, e->fd, PROOF, gate, true);
    if (result != 0)
        sl_tcp_stream_end(e, -result, "it could not be answered");
}

static void hear_welcome(endpoint *e) {
    const sl_gate *gate = &e->fabric->settings.gate;
    char why[SL_GREETING_WHY_MAX];
    snprintf(why, sizeof why, "it does not prove itself");
    if (gate->proves &&
        (!e->challenged ||
         !gate->accepts(gate->context, e->talk->greeting, e->talk->challenge, false,
                        sl_tcp_talk_payload(e->talk), sl_tcp_talk_bytes(e->talk), why)))
        sl_tcp_stream_end(e, FI_ECONNREFUSED, why);
    else
        begin(e);
}

static void hear_refusal(endpoint *e) {
    char why[WHY_MAX];
    const size_t bytes = sl_tcp_talk_bytes(e->talk);
    snprintf(why, sizeof why, "it says of this agent: %.*s",
             (int)(bytes < SL_GREETING_WHY_MAX ? bytes : SL_GREETING_WHY_MAX),
             (const char *)sl_tcp_talk_payload(e->talk));
    sl_tcp_stream_end(e, FI_ECONNREFUSED, why);
}

static void hear(endpoint *e) {
    while (e->state == GREETS) {
        const int result = sl_tcp_talk_read(e->talk, e->fd);
        if (result == 0)
            return;
        if (result == -EBADMSG)
            sl_tcp_stream_end(e, FI_ECONNREFUSED, no_agent);
        else if (result < 0)
            sl_tcp_stream_end(e, -result,
                              result == -FI_ECONNABORTED ? "it closed the connection unanswered"
                                                         : "");
        else if (sl_tcp_talk_heard(e->talk) == CHALLENGE)
            hear_challenge(e);
        else if (sl_tcp_talk_heard(e->talk) == WELCOME)
            hear_welcome(e);
        else if (sl_tcp_talk_heard(e->talk) == REFUSAL)
            hear_refusal(e);
        else
            sl_tcp_stream_end(e, FI_ECONNREFUSED, no_agent);
    }
}

static void greet(endpoint *e) {
    int error = 0;
    socklen_t bytes = sizeof error;
    if (getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
        error = errno;
    e->state = GREETS;
    if (error == 0)
        error = -sl_tcp_talk_say(e->fd, GREETING, e->talk->greeting, SL_GREETING_BYTES);
    if (error != 0)
        sl_tcp_stream_end(e, error, "");
}

static void happened(watched *w, uint32_t what) {
    endpoint *e = HOLDER(w, endpoint, watched);
    if (e->state == CONNECTING && (what & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)
        greet(e);
    if (e->state == GREETS)
        hear(e);
    if (e->state != OPEN)
        return;
    e->readable = e->readable || (what & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    e->hung = e->hung || (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    e->writable = e->writable || (what & (EPOLLOUT | EPOLLERR)) != 0;
    sl_tcp_stream_go_on(e);
}

static int connect_endpoint(struct fid_ep *fid, const void *address, const void *greeting,
                            size_t greeting_bytes) {
    endpoint *e = endpoint_of(fid);
    const struct sockaddr *to = address;
    const socklen_t bytes =
        to->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (greeting_bytes != SL_GREETING_BYTES)
        return -FI_EINVAL;
    e->talk = calloc(1, sizeof *e->talk);
    if (e->talk == NULL)
        return -FI_ENOMEM;
    memcpy(e->talk->greeting, greeting, SL_GREETING_BYTES);
    memcpy(&e->other, address, bytes);
    e->fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (e->fd < 0)
        return -errno;
    e->state = CONNECTING;
    if (connect(e->fd, to, bytes) != 0 && errno != EINPROGRESS) {
        sl_tcp_stream_end(e, errno, "");
        return 0;
    }
    return sl_tcp_watch(e->fabric, e->fd, &e->watched);
}

/* ---- accepting ---- */

static int accept_endpoint(struct fid_ep *fid, const void *param, size_t bytes) {
    endpoint *e = endpoint_of(fid);
    (void)param, (void)bytes;
    int result = e->talk == NULL
                     ? -FI_EINVAL
                     : sl_tcp_talk_prove(e->talk, e->fd, WELCOME, &e->fabric->settings.gate, false);
    if (result != 0)
        return result;
    begin(e);
    return sl_tcp_watch(e->fabric, e->fd, &e->watched);
}

/* ---- opening ---- */

static int bind_endpoint(struct fid *fid, struct fid *queue, uint64_t flags) {
    (void)fid, (void)queue, (void)flags;
    return 0;
}

static int enable_endpoint(struct fid *fid, int command, void *argument) {
    (void)fid, (void)argument;
    return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static const struct fi_ops fid_ops = {.size = sizeof(struct fi_ops),
                                      .close = close_endpoint,
                                      .bind = bind_endpoint,
                                      .control = enable_endpoint};
static const struct fi_ops_cm cm_ops = {
    .size = sizeof(struct fi_ops_cm), .connect = connect_endpoint, .accept = accept_endpoint};

int sl_tcp_endpoint_open(fabric *f, struct fi_info *info, struct fid_ep **out, void *context) {
    endpoint *e = calloc(1, sizeof *e);
    if (e == NULL)
        return -FI_ENOMEM;
    e->watched.happened = happened;
    e->fabric = f;
    e->fd = -1;
    e->fid = (struct fid_ep){.fid = {FI_CLASS_EP, context, TABLE(fid_ops)},
                             .cm = TABLE(cm_ops),
                             .msg = TABLE(sl_tcp_stream_ops)};
    e->connected = (event){.kind = FI_CONNECTED, .fid = &e->fid.fid};
    e->ended = (event){.fid = &e->fid.fid};
    if (info->handle != NULL)
        sl_tcp_asker_hand_over(info->handle, e);
    *out = &e->fid;
    return 0;
}

uint64_t sl_provider_received(const struct fid_ep *fid) {
    return HOLDER(fid, const endpoint, fid)->received;
}

double sl_provider_round_trip_s(const struct fid_ep *fid) {
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    const int fd = HOLDER(fid, const endpoint, fid)->fd;
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0)
        return 0;
    return 1e-6 * info.tcpi_rtt;
}
