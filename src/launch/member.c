/* member.c - how all ranks but 0 meet; see rendezvous.h.
 *
 * Where rank 0 listens is known but for the port, which may be another program's. So a member
 * greets whatever answers at any of the places, and tries again where nothing does; the first that
 * says welcome is rank 0 of this run, and the others are left alone.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/rendezvous.h"

enum { PLACES_MAX = SL_MASTER_ADDRESSES_MAX * SL_RENDEZVOUS_PORTS_MAX };
static const double again_s = 0.1, connect_s = 3, grace_s = 1;

typedef struct place {
    struct sockaddr_storage address;
    int fd;                     /* -1: none */
    bool connected;             /* and greeted */
    double at_s;                /* when it was tried, or failed */
    uint8_t *answer;            /* (wanted) */
    size_t bytes, wanted, room; /* of the answer */
} place;

typedef struct member {
    const sl_rendezvous *rendezvous;
    uint8_t greeting[SL_GREETING_BYTES_MAX];
    size_t greeting_bytes;
    place places[PLACES_MAX];
    size_t count;
    place *master; /* who has said welcome; NULL: nobody */
    double until_s;
    bool was_welcome, met_others;
    char *roster; /* once it is here */
} member;

/* ---- connections ---- */

static void await_answer(place *p) {
    p->bytes = 0;
    p->wanted = SL_ANSWER_HEADER_BYTES;
}

static void leave(member *m, place *p) {
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    p->connected = false;
    p->at_s = sl_clock_seconds();
    if (m->master == p)
        m->master = NULL;
}

/* Within one host a connection to a port where nobody listens may meet itself. */
static bool meets_itself(int fd) {
    struct sockaddr_storage own = {0}, other = {0};
    socklen_t bytes = sizeof own, other_bytes = sizeof other;
    return getsockname(fd, (struct sockaddr *)&own, &bytes) != 0 ||
           getpeername(fd, (struct sockaddr *)&other, &other_bytes) != 0 ||
           memcmp(&own, &other, bytes) == 0;
}

static void greet(member *m, place *p) {
    int failure = 0;
    socklen_t bytes = sizeof failure;
    getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &failure, &bytes);
    p->connected = failure == 0 && !meets_itself(p->fd) &&
                   send(p->fd, m->greeting, m->greeting_bytes, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                       (ssize_t)m->greeting_bytes;
    await_answer(p);
    if (!p->connected)
        leave(m, p);
}

static void try_again(member *m, place *p, double now_s) {
    if (p->fd >= 0 && !p->connected && now_s - p->at_s > connect_s)
        leave(m, p);
    if (p->fd >= 0 || now_s - p->at_s < again_s)
        return;
    p->at_s = now_s;
    p->fd = socket(p->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->fd >= 0 &&
        connect(p->fd, (const struct sockaddr *)&p->address, sl_address_bytes(&p->address)) != 0 &&
        errno != EINPROGRESS)
        leave(m, p);
}

/* ---- answers ---- */

/* What was said by rank 0, or by another program that is not believed. */
static int obey(member *m, place *p, const sl_answer *answer, sl_error *error) {
    if (answer->type == SL_ANSWER_REFUSED)
        return sl_fail(error, m->master == p ? SL_ENET : SL_EINVAL, "%.*s", (int)answer->bytes,
                       (const char *)answer->text);
    if (answer->type == SL_ANSWER_WELCOME) {
        for (size_t i = 0; i < m->count; i++)
            if (&m->places[i] != p)
                leave(m, &m->places[i]);
        m->master = p;
        m->was_welcome = true;
        /* Rank 0 gives up first, and says for whom it has waited. */
        m->until_s = sl_clock_seconds() + m->rendezvous->timeout_s + grace_s;
        await_answer(p);
        return 0;
    }
    m->roster = strndup((const char *)answer->text, answer->bytes);
    return m->roster != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for the roster");
}

static bool make_room(place *p) {
    if (p->wanted <= p->room)
        return true;
    uint8_t *answer = realloc(p->answer, p->wanted);
    if (answer == NULL)
        return false;
    p->answer = answer;
    p->room = p->wanted;
    return true;
}

static int hear(member *m, place *p, sl_error *error) {
    sl_answer answer;
    if (!make_room(p))
        return sl_fail(error, SL_ENOMEM, "rendezvous: out of memory");
    ssize_t got = recv(p->fd, p->answer + p->bytes, p->wanted - p->bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0) {
        m->met_others = m->met_others || m->master != p;
        leave(m, p);
        return 0;
    }
    p->bytes += (size_t)got;
    const size_t text_max =
        m->master == p ? sl_rendezvous_text_max(m->rendezvous) : SL_ERROR_TEXT_MAX - 1;
    p->wanted = sl_answer_decode(&answer, p->answer, p->bytes, text_max);
    if (p->wanted > p->bytes)
        return 0;
    if (p->wanted > 0 && (answer.type != SL_ANSWER_ROSTER || m->master == p))
        return obey(m, p, &answer, error);
    m->met_others = true;
    leave(m, p);
    return 0;
}

/* ---- the rendezvous ---- */

static int look(member *m, sl_error *error) {
    struct pollfd watched[PLACES_MAX];
    const double now_s = sl_clock_seconds();
    int result = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (m->master == NULL)
            try_again(m, &m->places[i], now_s);
        watched[i] = (struct pollfd){.fd = m->places[i].fd,
                                     .events = m->places[i].connected ? POLLIN : POLLOUT};
    }
    if (poll(watched, m->count, SL_RENDEZVOUS_LOOK_MS) <= 0)
        return 0;
    for (size_t i = 0; i < m->count && result == 0 && m->roster == NULL; i++) {
        place *p = &m->places[i];
        if (watched[i].revents == 0 || p->fd < 0)
            continue;
        if (p->connected)
            result = hear(m, p, error);
        else
            greet(m, p);
    }
    return result;
}

static int give_up(const member *m, sl_error *error) {
    const sl_rendezvous *rendezvous = m->rendezvous;
    if (m->was_welcome)
        return sl_fail(error, SL_ENET,
                       "rank 0 at %s was found, but did not tell the roster within %g s "
                       "(transport.connect_timeout_s)%s",
                       rendezvous->where, rendezvous->timeout_s,
                       m->master == NULL ? "; it has closed the connection" : "");
    return sl_fail(
        error, SL_ENET, "rank 0 was not found at %s within %g s (transport.connect_timeout_s)%s",
        rendezvous->where, rendezvous->timeout_s,
        m->met_others ? "; what answers there is not rank 0 of this job, or has no descriptor "
                        "left (ulimit -n)"
                      : "");
}

static void tell_waiting(const member *m, double left_s) {
    sl_error text;
    sl_fail(&text, 0, "waiting for rank 0 %s %s; %.0f s left (transport.connect_timeout_s)",
            m->master != NULL ? "to tell the roster, at" : "to come up at", m->rendezvous->where,
            left_s);
    m->rendezvous->notice(m->rendezvous->context, text.text);
}

static int meet(member *m, sl_error *error) {
    int result = 0;
    double notice_s = 0;
    m->until_s = sl_clock_seconds() + m->rendezvous->timeout_s;
    while (result == 0 && m->roster == NULL) {
        const double left_s = m->until_s - sl_clock_seconds();
        if (sl_rendezvous_is_stopped(m->rendezvous))
            return sl_fail(error, SL_ESTOPPED, "stopped while it looked for rank 0 at %s",
                           m->rendezvous->where);
        if (left_s < 0)
            return give_up(m, error);
        result = look(m, error);
        if (sl_rendezvous_notice_is_due(m->rendezvous, &notice_s))
            tell_waiting(m, left_s);
    }
    return result;
}

int sl_member_meet(const sl_rendezvous *rendezvous, const sl_greeting *greeting, char **roster,
                   sl_error *error) {
    member *m = calloc(1, sizeof *m);
    if (m == NULL)
        return sl_fail(error, SL_ENOMEM, "rendezvous: out of memory");
    m->rendezvous = rendezvous;
    m->greeting_bytes = sl_greeting_encode(greeting, m->greeting);
    for (uint32_t i = 0; i < rendezvous->address_count; i++)
        for (uint32_t port = rendezvous->ports_from; port <= rendezvous->ports_to; port++) {
            place *p = &m->places[m->count++];
            *p = (place){.address = rendezvous->addresses[i], .fd = -1};
            sl_address_set_port(&p->address, (uint16_t)port);
        }
    int result = meet(m, error);
    for (size_t i = 0; i < m->count; i++) {
        leave(m, &m->places[i]);
        free(m->places[i].answer);
    }
    if (result == 0)
        *roster = m->roster;
    free(m);
    return result;
}
