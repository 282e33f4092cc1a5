/* listener.c - who comes, until it is accepted or refused; see provider.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/listener.h"
#include "base/places.h"
#include "provider/state.h"

enum {
    PLACES = SL_PLACES_MAX,
    OF_HOST = 16,
    ACCEPTED_AT_ONCE = 16 /* fewer than places: who comes is heard first */,
    REST_MAX = 65536
};
static const char has_ended[] = "it has ended";
static const double patience_s = 3; /* for all that a stranger says */

typedef struct listener {
    watched watched;
    struct fid_pep fid;
    fabric *fabric;
    int fd;
    struct sockaddr_storage address;
    sl_listener door;
    sl_places places;
    asker *askers[PLACES];
    size_t ended; /* unproved, and not told of */
} listener;

typedef enum asker_state {
    SAYS,   /* its greeting, or its proof */
    ASKS,   /* the event queue tells of it */
    LEAVES, /* it was refused, and closes */
    GONE
} asker_state;

struct asker {
    watched watched;
    struct fid handle;
    listener *listener;
    asker *next_dead;
    asker_state state;
    int fd;
    unsigned place;
    struct sockaddr_storage other;
    talk *talk;
    bool greeted;
    size_t rest; /* bytes that came after it was refused */
    event asks;
};

/* ---- its place, and its end ---- */

/* Its memory goes when no event of it can be under way any more. */
static void forget(asker *a) {
    sl_tcp_forget(a->listener->fabric, &a->asks);
    a->state = GONE;
    a->next_dead = a->listener->fabric->dead;
    a->listener->fabric->dead = a;
}

/* Another one has its place. */
static void evict(asker *a) {
    a->listener->ended += a->state == SAYS;
    sl_tcp_close(a->listener->fabric, a->fd);
    forget(a);
}

static void take_place(asker *a) {
    listener *l = a->listener;
    bool evicted;
    a->place = sl_places_take(&l->places, &a->other, sl_clock_seconds(),
                              sl_listener_is_short(&l->door, a->fd), &evicted);
    if (evicted)
        evict(l->askers[a->place]);
    l->askers[a->place] = a;
}

static void leave_place(asker *a) {
    sl_places_leave(&a->listener->places, a->place);
    a->listener->askers[a->place] = NULL;
}

static void end(asker *a) {
    leave_place(a);
    evict(a);
}

void sl_tcp_askers_bury(fabric *f) {
    while (f->dead != NULL) {
        asker *a = f->dead;
        f->dead = a->next_dead;
        free(a->talk);
        free(a);
    }
}

/* It is told, and then closes itself: else what it has sent and nobody has read would end the
 * connection before it hears. */
static void refuse(asker *a, const char *why) {
    sl_tcp_forget(a->listener->fabric, &a->asks);
    a->state = LEAVES;
    if (sl_tcp_talk_say(a->fd, REFUSAL, why, strnlen(why, SL_GREETING_WHY_MAX)) != 0 ||
        shutdown(a->fd, SHUT_WR) != 0)
        end(a);
}

static void turn_down(asker *a, const char *why) {
    const sl_gate *gate = &a->listener->fabric->settings.gate;
    gate->refused(gate->context, a->greeted ? a->talk->greeting : NULL, &a->other, why);
    refuse(a, why);
}

/* ---- what it says ---- */

/* It has said all, and is no stranger any more. */
static void report(asker *a) {
    leave_place(a);
    a->state = ASKS;
    sl_tcp_tell(a->listener->fabric, &a->asks);
}

static void hear_greeting(asker *a) {
    const sl_gate *gate = &a->listener->fabric->settings.gate;
    char why[SL_GREETING_WHY_MAX] = "it is not an agent of this release";
    a->greeted =
        sl_tcp_talk_heard(a->talk) == GREETING && sl_tcp_talk_bytes(a->talk) == SL_GREETING_BYTES;
    if (a->greeted)
        memcpy(a->talk->greeting, sl_tcp_talk_payload(a->talk), SL_GREETING_BYTES);
    if (!a->greeted || !gate->admits(gate->context, a->talk->greeting, why)) {
        turn_down(a, why);
        return;
    }
    if (!gate->proves) {
        report(a);
        return;
    }
    sl_tcp_talk_go_on(a->talk);
    if (!sl_challenge_draw(a->talk->challenge) ||
        sl_tcp_talk_say(a->fd, CHALLENGE, a->talk->challenge, SL_CHALLENGE_BYTES) != 0)
        end(a);
}

static void hear_proof(asker *a) {
    const sl_gate *gate = &a->listener->fabric->settings.gate;
    char why[SL_GREETING_WHY_MAX] = "it is not an agent of this release";
    if (sl_tcp_talk_heard(a->talk) == PROOF &&
        gate->accepts(gate->context, a->talk->greeting, a->talk->challenge, true,
                      sl_tcp_talk_payload(a->talk), sl_tcp_talk_bytes(a->talk), why))
        report(a);
    else
        turn_down(a, why);
}

static void hear(asker *a) {
    while (a->state == SAYS) {
        const int result = sl_tcp_talk_read(a->talk, a->fd);
        if (result == 0)
            return;
        if (result < 0)
            end(a);
        else if (a->greeted)
            hear_proof(a);
        else
            hear_greeting(a);
    }
}

/* What comes after a refusal is not looked at. */
static void let_leave(asker *a) {
    uint8_t rest[512];
    while (a->state == LEAVES) {
        const ssize_t n = recv(a->fd, rest, sizeof rest, 0);
        if (n < 0 && errno == EAGAIN)
            return;
        a->rest += n > 0 ? (size_t)n : 0;
        if ((n <= 0 && errno != EINTR) || a->rest > REST_MAX)
            end(a);
    }
}

static void happened_to_asker(watched *w, uint32_t what) {
    asker *a = HOLDER(w, asker, watched);
    (void)what;
    hear(a);
    let_leave(a);
}

/* ---- who comes ---- */

static void take_in(listener *l, int fd, const struct sockaddr_storage *other) {
    asker *a = calloc(1, sizeof *a);
    talk *t = calloc(1, sizeof *t);
    if (a == NULL || t == NULL) {
        free(a);
        free(t);
        close(fd);
        return;
    }
    *a = (asker){.watched = {happened_to_asker},
                 .handle = {.fclass = FI_CLASS_CONNREQ, .context = a},
                 .listener = l,
                 .fd = fd,
                 .other = *other,
                 .talk = t,
                 .asks = {.kind = FI_CONNREQ}};
    a->asks.fid = &a->handle;
    take_place(a);
    if (sl_tcp_watch(l->fabric, fd, &a->watched) != 0)
        end(a);
    else
        hear(a);
}

/* What is left makes epoll tell of it once more. */
static void accept_some(listener *l) {
    for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
        struct sockaddr_storage other;
        const int fd = sl_listener_accept(&l->door, &other, sl_clock_seconds());
        if (fd < 0)
            return;
        take_in(l, fd, &other);
    }
    sl_tcp_watch(l->fabric, l->fd, &l->watched);
}

static void happened(watched *w, uint32_t what) {
    listener *l = HOLDER(w, listener, watched);
    (void)what;
    if (sl_listener_listens(&l->door, sl_clock_seconds()))
        accept_some(l);
}

size_t sl_provider_tick(struct fid_pep *fid) {
    listener *l = HOLDER(fid, listener, fid);
    int expired;
    const double now_s = sl_clock_seconds();
    while ((expired = sl_places_expired(&l->places, now_s)) >= 0)
        end(l->askers[expired]);
    if (l->fd >= 0 && sl_listener_listens(&l->door, now_s))
        accept_some(l);
    sl_tcp_askers_bury(l->fabric);
    const size_t ended = l->ended;
    l->ended = 0;
    return ended;
}

/* ---- the answer ---- */

struct fi_info *sl_provider_info(const struct sockaddr_storage *address) {
    struct fi_info *info = fi_allocinfo();
    const size_t bytes = sl_address_bytes(address);
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

static asker *asker_of(struct fid *handle) {
    return handle->context;
}

struct fi_info *sl_tcp_asker_info(struct fid *handle, const uint8_t **greeting) {
    const asker *a = asker_of(handle);
    struct fi_info *info = sl_provider_info(&a->other);
    *greeting = a->talk->greeting;
    if (info != NULL)
        info->handle = handle;
    return info;
}

void sl_tcp_asker_hand_over(struct fid *handle, endpoint *e) {
    asker *a = asker_of(handle);
    e->fd = a->fd;
    e->talk = a->talk;
    a->talk = NULL;
    sl_tcp_watch(e->fabric, e->fd, &e->watched); /* what happens is no more for the asker */
    forget(a);
}

static int reject(struct fid_pep *fid, struct fid *handle, const void *why, size_t bytes) {
    asker *a = asker_of(handle);
    char text[SL_GREETING_WHY_MAX];
    (void)fid;
    snprintf(text, sizeof text, "%.*s", (int)bytes, (const char *)why);
    if (a->state == ASKS) { /* else its connection was an endpoint's already */
        take_place(a);
        refuse(a, text);
    }
    return 0;
}

/* ---- opening and closing ---- */

static int listen_there(struct fid_pep *fid) {
    listener *l = HOLDER(fid, listener, fid);
    const int on = 1;
    l->fd = socket(l->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return -errno;
    sl_listener_open(&l->door, l->fd, l->fabric->settings.reserve);
    if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(l->fd, (const struct sockaddr *)&l->address, sl_address_bytes(&l->address)) != 0 ||
        listen(l->fd, SOMAXCONN) != 0)
        return -errno;
    return sl_tcp_watch(l->fabric, l->fd, &l->watched);
}

static int tell_name(struct fid *fid, void *address, size_t *bytes) {
    const listener *l = HOLDER(HOLDER(fid, struct fid_pep, fid), listener, fid);
    socklen_t size = (socklen_t)*bytes;
    const int result = getsockname(l->fd, address, &size);
    *bytes = size;
    return result == 0 ? 0 : -errno;
}

static int bind_queue(struct fid *fid, struct fid *queue, uint64_t flags) {
    (void)fid, (void)queue, (void)flags;
    return 0;
}

static int close_listener(struct fid *fid) {
    listener *l = HOLDER(HOLDER(fid, struct fid_pep, fid), listener, fid);
    for (event *e = l->fabric->first_event, *next; e != NULL; e = next) {
        next = e->next;
        if (e->kind == FI_CONNREQ)
            reject(&l->fid, e->fid, has_ended, sizeof has_ended);
    }
    for (size_t i = 0; i < PLACES; i++) {
        if (l->askers[i] != NULL && l->askers[i]->state != LEAVES)
            refuse(l->askers[i], has_ended);
        if (l->askers[i] != NULL)
            let_leave(l->askers[i]);
        if (l->askers[i] != NULL)
            end(l->askers[i]);
    }
    if (l->fd >= 0) {
        sl_listener_close(&l->door);
        sl_tcp_close(l->fabric, l->fd);
    }
    free(l);
    return 0;
}

static const struct fi_ops fid_ops = {
    .size = sizeof(struct fi_ops), .close = close_listener, .bind = bind_queue};
static const struct fi_ops_cm cm_ops = {.size = sizeof(struct fi_ops_cm),
                                        .getname = tell_name,
                                        .listen = listen_there,
                                        .reject = reject};

int sl_tcp_listener_open(fabric *f, struct fi_info *info, struct fid_pep **out, void *context) {
    listener *l = calloc(1, sizeof *l);
    if (l == NULL)
        return -FI_ENOMEM;
    l->watched.happened = happened;
    l->fabric = f;
    l->fd = -1;
    memcpy(&l->address, info->dest_addr, info->dest_addrlen);
    sl_places_open(&l->places, PLACES, OF_HOST, patience_s);
    l->fid = (struct fid_pep){.fid = {FI_CLASS_PEP, context, TABLE(fid_ops)}, .cm = TABLE(cm_ops)};
    *out = &l->fid;
    return 0;
}
