/* master.c - rank 0's side of a rendezvous; see rendezvous.h.
 *
 * A connection is a stranger until its greeting names this run; strangers are few, have little
 * time, and are answered with nothing. A member keeps its seat as long as its connection is open.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/listener.h"
#include "base/places.h"
#include "launch/door.h"
#include "launch/rendezvous.h"
#include "starling/version.h"

enum { MISSING_NAMED = 8, MISSING_BYTES = 160, LINE_BYTES = SL_HOST_MAX + 16, RIVALS_MAX = 16 };
enum {
    STRANGERS_MAX = SL_PLACES_MAX,
    STRANGERS_OF_HOST_MAX = STRANGERS_MAX / 2, /* a host's ranks come together */
    RESERVE = 8                                /* descriptors that they leave free */
};
static const double stranger_s = 3; /* for a greeting */
/* How long others have to come whose rank somebody has taken who may be of another job: as long as
 * this process took to come here, within these. */
static const double doubt_s_min = 3, doubt_s_max = 10;

typedef enum standing { STRANGER, SEATED, TURNED_OUT /* it is dismissed soon */ } standing;

typedef struct guest {
    int fd;
    standing is;
    bool doubted;                       /* it may be of another job */
    unsigned place;                     /* a stranger's */
    sl_greeting greeting;               /* if it has a seat */
    struct sockaddr_storage own, other; /* the ends of the connection */
    uint8_t bytes[SL_GREETING_BYTES_MAX];
    size_t count; /* of `bytes` */
    size_t told;  /* bytes of the roster */
} guest;

struct sl_master {
    const sl_rendezvous *rendezvous;
    sl_listener listener;
    sl_places strangers;
    guest *guests;          /* (room) */
    struct pollfd *watched; /* (room + 1) the listener, then the guests */
    size_t count, room, seated;
    bool is_short; /* no descriptor was left for who came last */
    int door;
    uint16_t port;
    sl_origin rivals[RIVALS_MAX]; /* (rival_count) of other jobs' rank 0 that were turned away */
    size_t rival_count;
    double seated_s; /* when the last one was seated */
    uint32_t torn;   /* a rank that two claim, neither of them surely; 0: none */
};

/* ---- opening ---- */

/* Of this host alone, or all of its addresses. */
static struct sockaddr_storage own_place(int family, bool loopback) {
    struct sockaddr_storage place = {.ss_family = (sa_family_t)family};
    if (family == AF_INET)
        ((struct sockaddr_in *)&place)->sin_addr.s_addr =
            htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
    else
        ((struct sockaddr_in6 *)&place)->sin6_addr = loopback ? in6addr_loopback : in6addr_any;
    return place;
}

static int listen_at(sl_master *m, bool loopback, uint16_t port) {
    const int family = m->rendezvous->addresses[0].ss_family, on = 1;
    struct sockaddr_storage place = own_place(family, loopback);
    sl_address_set_port(&place, port);
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&place, sl_address_bytes(&place)) == 0 &&
        listen(fd, SOMAXCONN) == 0) {
        sl_listener_open(&m->listener, fd, RESERVE);
        return 0;
    }
    const int failure = errno;
    close(fd);
    return failure;
}

static int listen_somewhere(sl_master *m, bool loopback, sl_error *error) {
    const sl_rendezvous *rendezvous = m->rendezvous;
    int failure = EADDRINUSE;
    for (uint32_t port = rendezvous->ports_from;
         failure == EADDRINUSE && port <= rendezvous->ports_to; port++) {
        m->port = (uint16_t)port;
        failure = listen_at(m, loopback, m->port);
    }
    return failure == 0 ? 0
                        : sl_fail(error, SL_ENET,
                                  "rank 0 cannot listen for the others at ports %u to %u: %s",
                                  rendezvous->ports_from, rendezvous->ports_to, strerror(failure));
}

int sl_master_open(sl_master **out, const sl_rendezvous *rendezvous, bool loopback,
                   sl_error *error) {
    sl_master *m = calloc(1, sizeof *m);
    if (m == NULL)
        return sl_fail(error, SL_ENOMEM, "rendezvous: out of memory");
    m->rendezvous = rendezvous;
    m->door = m->listener.fd = m->listener.spare = -1;
    sl_places_open(&m->strangers, STRANGERS_MAX, STRANGERS_OF_HOST_MAX, stranger_s);
    m->room = rendezvous->size - 1 + STRANGERS_MAX;
    m->guests = calloc(m->room, sizeof *m->guests);
    m->watched = calloc(m->room + 1, sizeof *m->watched);
    int result = m->guests == NULL || m->watched == NULL
                     ? sl_fail(error, SL_ENOMEM, "rendezvous: out of memory")
                 : rendezvous->size == 1 ? 0 /* nobody comes */
                                         : sl_door_open(&m->door, rendezvous, error);
    if (result == 0 && rendezvous->size > 1)
        result = listen_somewhere(m, loopback, error);
    if (result != 0)
        sl_master_close(&m);
    else
        *out = m;
    return result;
}

void sl_master_close(sl_master **master) {
    sl_master *m = *master;
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->count; i++)
        close(m->guests[i].fd);
    sl_listener_close(&m->listener);
    if (m->listener.fd >= 0)
        close(m->listener.fd);
    if (m->door >= 0)
        close(m->door);
    free(m->guests);
    free(m->watched);
    free(m);
    *master = NULL;
}

/* ---- guests ---- */

static void forget(sl_master *m, guest *g) {
    m->seated -= g->is == SEATED;
    close(g->fd);
    *g = m->guests[--m->count];
}

static void dismiss(sl_master *m, guest *g) {
    if (g->is == STRANGER)
        sl_places_leave(&m->strangers, g->place);
    forget(m, g);
}

/* A few bytes, for which a new connection has room. */
static bool answer(const guest *g, sl_answer_type type, const char *text) {
    uint8_t bytes[SL_ANSWER_HEADER_BYTES + SL_ERROR_TEXT_MAX + SL_SUM_BYTES];
    const sl_answer a = {type, (const uint8_t *)text, (uint32_t)strlen(text)};
    const size_t count = sl_answer_encode(&a, bytes);
    return send(g->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)count;
}

__attribute__((format(printf, 3, 4))) static void refuse(sl_master *m, guest *g, const char *format,
                                                         ...) {
    char text[SL_ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    answer(g, SL_ANSWER_REFUSED, text);
    dismiss(m, g);
}

static guest *find_seat(const sl_master *m, uint32_t rank) {
    for (size_t i = 0; i < m->count; i++)
        if (m->guests[i].is == SEATED && m->guests[i].greeting.rank == rank)
            return &m->guests[i];
    return NULL;
}

/* ---- whose they are ---- */

static const char give_another[] = "give this one a MASTER_PORT or a STARLING_RUN_ID of its own";

static bool is_of_a_rival(const sl_master *m, const sl_origin *origin) {
    for (size_t i = 0; i < m->rival_count; i++)
        if (sl_origin_agrees(&m->rivals[i], origin))
            return true;
    return false;
}

/* Gives up its seat. */
static void turn_out(sl_master *m, guest *g) {
    char text[SL_ERROR_TEXT_MAX];
    snprintf(text, sizeof text, "another job of %u waits at port %u: %s", m->rendezvous->size,
             m->port, give_another);
    answer(g, SL_ANSWER_REFUSED, text);
    g->is = TURNED_OUT;
    m->seated--;
}

/* Another rank 0: it goes, and with it whoever was surely started with it. */
static void turn_rival_away(sl_master *m, guest *g) {
    if (m->rival_count < RIVALS_MAX)
        m->rivals[m->rival_count++] = g->greeting.origin;
    for (size_t i = 0; i < m->count; i++)
        if (m->guests[i].is == SEATED && m->guests[i].doubted &&
            is_of_a_rival(m, &m->guests[i].greeting.origin))
            turn_out(m, &m->guests[i]);
    refuse(m, g,
           "rank 0: another job of %u waits at port %u, or this is that job's second rank 0: %s",
           m->rendezvous->size, m->port, give_another);
}

/* Of this job, for all that is known of how both were started? */
static bool is_doubted(const sl_master *m, const sl_greeting *greeting) {
    return !m->rendezvous->is_named && !sl_origin_agrees(&m->rendezvous->origin, &greeting->origin);
}

static bool give_seat(sl_master *m, guest *g) {
    if (!answer(g, SL_ANSWER_WELCOME, "")) {
        dismiss(m, g);
        return false;
    }
    sl_places_leave(&m->strangers, g->place);
    g->is = SEATED;
    m->seated++;
    m->seated_s = sl_clock_seconds();
    return true;
}

/* Each rank is given once: to whom was started as rank 0 was, before others, else to who came
 * first. False: it is dismissed. */
static bool claim_seat(sl_master *m, guest *g) {
    const sl_greeting *greeting = &g->greeting;
    guest *other = find_seat(m, greeting->rank);
    char address[SL_IP_TEXT_MAX];
    g->doubted = is_doubted(m, greeting);
    if (other != NULL && other->greeting.nonce == greeting->nonce) {
        dismiss(m, g);
        return false;
    }
    if (g->doubted && is_of_a_rival(m, &greeting->origin)) {
        refuse(m, g, "another job of %u waits at port %u: %s", m->rendezvous->size, m->port,
               give_another);
        return false;
    }
    if (other == NULL)
        return give_seat(m, g);
    if (other->doubted && !g->doubted) {
        turn_out(m, other);
        return give_seat(m, g);
    }
    if (other->doubted && !sl_origin_agrees(&other->greeting.origin, &greeting->origin))
        m->torn = greeting->rank;
    sl_address_text(&other->other, address);
    refuse(m, g, "rank %u was started twice: the other one is at %s; if it is of another job, %s",
           greeting->rank, address, give_another);
    return false;
}

/* False: it is dismissed. */
static bool seat(sl_master *m, guest *g) {
    const sl_greeting *greeting = &g->greeting;
    const uint32_t size = m->rendezvous->size;
    if (greeting->run != m->rendezvous->run || greeting->nonce == m->rendezvous->nonce)
        dismiss(m, g);
    else if (greeting->protocol != SL_PROTOCOL_VERSION)
        refuse(m, g, "rank %u speaks protocol %u, rank 0 protocol %u: install the same release",
               greeting->rank, greeting->protocol, SL_PROTOCOL_VERSION);
    else if (greeting->rank == 0)
        turn_rival_away(m, g);
    else if (greeting->size != size)
        refuse(m, g,
               "rank %u was started as one of %u, rank 0 as one of %u: they must be equal; if it "
               "is of another job, %s",
               greeting->rank, greeting->size, size, give_another);
    else if (greeting->rank >= size)
        refuse(m, g, "rank %u cannot come to rank 0, which expects ranks 1 to %u", greeting->rank,
               size - 1);
    else
        return claim_seat(m, g);
    return false;
}

/* False: it is dismissed. Who has greeted has no more to say. */
static bool hear(sl_master *m, guest *g) {
    const bool greets = g->is == STRANGER;
    ssize_t got = recv(g->fd, g->bytes + (greets ? g->count : 0),
                       greets ? sizeof g->bytes - g->count : 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0 || !greets) {
        dismiss(m, g);
        return false;
    }
    g->count += (size_t)got;
    const size_t bytes = sl_greeting_decode(&g->greeting, g->bytes, g->count);
    if (bytes == 0 || g->count > bytes) {
        dismiss(m, g);
        return false;
    }
    return g->count < bytes || seat(m, g);
}

static guest *find_stranger(const sl_master *m, unsigned place) {
    for (size_t i = 0; i < m->count; i++)
        if (m->guests[i].is == STRANGER && m->guests[i].place == place)
            return &m->guests[i];
    return NULL;
}

static void admit(sl_master *m, int fd, const struct sockaddr_storage *other, double now_s) {
    const bool is_short = sl_listener_is_short(&m->listener, fd);
    socklen_t bytes = sizeof(struct sockaddr_storage);
    bool evicted;
    const unsigned place = sl_places_take(&m->strangers, other, now_s, is_short, &evicted);
    if (evicted)
        forget(m, find_stranger(m, place));
    guest *g = &m->guests[m->count++];
    *g = (guest){.fd = fd, .place = place, .other = *other};
    if (getsockname(fd, (struct sockaddr *)&g->own, &bytes) != 0)
        dismiss(m, g);
}

static void accept_some(sl_master *m, double now_s) {
    struct sockaddr_storage other;
    for (int i = 0; i < STRANGERS_MAX; i++) {
        const int fd = sl_listener_accept(&m->listener, &other, now_s);
        m->is_short = fd == SL_LISTENER_FULL || (m->is_short && fd < 0);
        if (fd < 0)
            return;
        admit(m, fd, &other, now_s);
    }
}

static void dismiss_some(sl_master *m, double now_s) {
    for (int place; (place = sl_places_expired(&m->strangers, now_s)) >= 0;)
        dismiss(m, find_stranger(m, (unsigned)place));
    for (size_t i = m->count; i-- > 0;)
        if (m->guests[i].is == TURNED_OUT)
            dismiss(m, &m->guests[i]);
}

static void look(sl_master *m) {
    const double now_s = sl_clock_seconds();
    const bool listens = sl_listener_listens(&m->listener, now_s);
    m->watched[0] = (struct pollfd){.fd = listens ? m->listener.fd : -1, .events = POLLIN};
    for (size_t i = 0; i < m->count; i++)
        m->watched[i + 1] = (struct pollfd){.fd = m->guests[i].fd, .events = POLLIN};
    if (poll(m->watched, m->count + 1, SL_RENDEZVOUS_LOOK_MS) > 0)
        for (size_t i = m->count; i-- > 0;) /* a dismissed one's place is taken by a later one */
            if (m->watched[i + 1].revents != 0)
                hear(m, &m->guests[i]);
    dismiss_some(m, sl_clock_seconds());
    if (m->watched[0].revents != 0)
        accept_some(m, now_s);
}

/* ---- the rendezvous ---- */

/* "ranks 2, 5 and 3 more" */
static void name_missing(const sl_master *m, char *text, size_t bytes) {
    const size_t missing = m->rendezvous->size - 1 - m->seated;
    size_t named = 0, length = (size_t)snprintf(text, bytes, missing == 1 ? "rank" : "ranks");
    for (uint32_t rank = 1; named < missing && named < MISSING_NAMED; rank++)
        if (find_seat(m, rank) == NULL)
            length += (size_t)snprintf(text + length, bytes - length, "%s %u",
                                       named++ == 0 ? "" : ",", rank);
    if (missing > named)
        snprintf(text + length, bytes - length, " and %zu more", missing - named);
}

static void tell_end(sl_master *m, const char *why) {
    for (size_t i = 0; i < m->count; i++)
        if (m->guests[i].is == SEATED)
            answer(&m->guests[i], SL_ANSWER_REFUSED, why);
}

static int give_up(sl_master *m, sl_error *error) {
    char missing[MISSING_BYTES];
    name_missing(m, missing, sizeof missing);
    int result =
        sl_fail(error, SL_ENET,
                "%s of %u did not come to rank 0 within %g s "
                "(transport.connect_timeout_s), which waited at %s%s",
                missing, m->rendezvous->size, m->rendezvous->timeout_s, m->rendezvous->where,
                m->is_short ? "; it has no descriptor left (ulimit -n)" : "");
    tell_end(m, error->text);
    return result;
}

static int give_up_torn(sl_master *m, sl_error *error) {
    int result = sl_fail(error, SL_EINVAL,
                         "two processes call themselves rank %u of %u, and both were started "
                         "otherwise than rank 0: if two jobs wait at port %u, give each a "
                         "MASTER_PORT or a STARLING_RUN_ID of its own",
                         m->torn, m->rendezvous->size, m->port);
    tell_end(m, error->text);
    return result;
}

static const guest *doubted_guest(const sl_master *m) {
    for (size_t i = 0; i < m->count; i++)
        if (m->guests[i].is == SEATED && m->guests[i].doubted)
            return &m->guests[i];
    return NULL;
}

/* Somebody has a seat who may be of another job, and another one may come for it. */
static bool is_in_doubt(const sl_master *m, bool *told) {
    const guest *g = doubted_guest(m);
    const double age_s = m->rendezvous->age_s;
    const double doubt_s = age_s < doubt_s_min   ? doubt_s_min
                           : age_s > doubt_s_max ? doubt_s_max
                                                 : age_s;
    if (g == NULL || sl_clock_seconds() > m->seated_s + doubt_s)
        return false;
    if (*told || m->rendezvous->notice == NULL)
        return true;
    sl_error text;
    sl_fail(&text, 0,
            "waiting %.0f s for another rank %u: this one was started otherwise than rank 0, and "
            "may be of another job at port %u (a STARLING_RUN_ID, equal in all processes of a "
            "job, tells them apart)",
            doubt_s, g->greeting.rank, m->port);
    m->rendezvous->notice(m->rendezvous->context, text.text);
    return *told = true;
}

static void tell_missing(const sl_master *m, double left_s) {
    char missing[MISSING_BYTES];
    sl_error text;
    name_missing(m, missing, sizeof missing);
    sl_fail(&text, 0, "waiting for %s to come to %s; %.0f s left (transport.connect_timeout_s)",
            missing, m->rendezvous->where, left_s);
    m->rendezvous->notice(m->rendezvous->context, text.text);
}

static int collect(sl_master *m, sl_error *error) {
    double notice_s = 0;
    bool told_doubt = false;
    const double until_s = sl_clock_seconds() + m->rendezvous->timeout_s;
    while (m->seated + 1 < m->rendezvous->size || is_in_doubt(m, &told_doubt)) {
        if (sl_rendezvous_is_stopped(m->rendezvous))
            return sl_fail(error, SL_ESTOPPED, "stopped while rank 0 waited for the others");
        const double left_s = until_s - sl_clock_seconds();
        if (m->torn != 0)
            return give_up_torn(m, error);
        if (left_s < 0 && m->seated + 1 < m->rendezvous->size)
            return give_up(m, error);
        look(m);
        if (m->seated + 1 < m->rendezvous->size &&
            sl_rendezvous_notice_is_due(m->rendezvous, &notice_s))
            tell_missing(m, left_s);
    }
    return 0;
}

/* Where the others reach this host: an address that serves beyond it, if somebody came to one. */
static struct sockaddr_storage own_address(const sl_master *m) {
    struct sockaddr_storage own = own_place(m->rendezvous->addresses[0].ss_family, true);
    for (size_t i = 0; i < m->count; i++)
        if (m->guests[i].is == SEATED && !sl_address_is_loopback(&m->guests[i].own))
            own = m->guests[i].own;
    return own;
}

static int print_line(char *line, const char *host, uint16_t port) {
    const bool is_v6 = strchr(host, ':') != NULL;
    return snprintf(line, LINE_BYTES, is_v6 ? "[%s]:%u\n" : "%s:%u\n", host, port);
}

/* A member that came over loopback is on this host, and is reached as this host is. NULL: there is
 * no memory, or no random number. */
static char *compose(const sl_master *m, const char *host, uint16_t port) {
    const struct sockaddr_storage here = own_address(m);
    char own[SL_IP_TEXT_MAX], address[SL_IP_TEXT_MAX];
    char *text = malloc((size_t)m->rendezvous->size * LINE_BYTES + SL_IDENTITY_BYTES + 1);
    uint64_t identity;
    if (text == NULL || getrandom(&identity, sizeof identity, 0) != sizeof identity) {
        free(text);
        return NULL;
    }
    sl_address_text(&here, own);
    int length = sl_identity_write(text, identity);
    length += print_line(text + length, host[0] != '\0' ? host : own, port);
    for (uint32_t rank = 1; rank < m->rendezvous->size; rank++) {
        const guest *g = find_seat(m, rank);
        sl_address_text(sl_address_is_loopback(&g->other) ? &here : &g->other, address);
        length +=
            print_line(text + length, g->greeting.host[0] != '\0' ? g->greeting.host : address,
                       g->greeting.port);
    }
    return text;
}

/* Sends on what still has to go to one; true: nothing more, or it is gone. */
static bool tell(guest *g, const uint8_t *bytes, size_t count) {
    while (g->told < count) {
        ssize_t sent = send(g->fd, bytes + g->told, count - g->told, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return errno != EAGAIN && errno != EINTR;
        g->told += (size_t)sent;
    }
    return true;
}

/* Who is lost now is missed by its neighbours. */
static void tell_all(sl_master *m, const uint8_t *bytes, size_t count) {
    const double until_s = sl_clock_seconds() + m->rendezvous->timeout_s;
    for (bool done = false;
         !done && !sl_rendezvous_is_stopped(m->rendezvous) && sl_clock_seconds() < until_s;) {
        done = true;
        for (size_t i = 0; i < m->count; i++) {
            guest *g = &m->guests[i];
            bool has_more = g->is == SEATED && !tell(g, bytes, count);
            m->watched[i] = (struct pollfd){.fd = has_more ? g->fd : -1, .events = POLLOUT};
            done = done && !has_more;
        }
        if (!done)
            poll(m->watched, m->count, SL_RENDEZVOUS_LOOK_MS);
    }
}

int sl_master_meet(sl_master *m, const char *host, uint16_t port, char **roster, sl_error *error) {
    int result = collect(m, error);
    if (result != 0)
        return result;
    char *text = compose(m, host, port);
    const size_t length = text != NULL ? strlen(text) : 0;
    uint8_t *bytes = malloc(SL_ANSWER_HEADER_BYTES + length + SL_SUM_BYTES);
    if (text == NULL || bytes == NULL) {
        free(text);
        free(bytes);
        return sl_fail(error, SL_ENOMEM, "rendezvous: out of memory for the roster");
    }
    const sl_answer a = {SL_ANSWER_ROSTER, (const uint8_t *)text, (uint32_t)length};
    tell_all(m, bytes, sl_answer_encode(&a, bytes));
    free(bytes);
    *roster = text;
    return 0;
}
