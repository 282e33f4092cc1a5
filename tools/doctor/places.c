/* places.c - a roster's places: names, this rank's own, and loopback. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor/doctor.h"

enum { HOST_BYTES = 256, PLACE_BYTES = HOST_BYTES + 16, TEXT_BYTES = 512 };
static const double lookup_s = 2, lookups_s = 4; /* of one name, and of all */

static socklen_t bytes_of(const struct sockaddr_storage *a) {
    return a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* A socket that listens; -1: errno says why. */
static int listen_at(const struct sockaddr_storage *a) {
    const int yes = 1, fd = socket(a->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (const struct sockaddr *)a, bytes_of(a)) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* ---- loopback, where `starling run` has its agents ---- */

void look_at_loopback(doctor *d) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage any = {0};
    socklen_t bytes = sizeof here;
    memcpy(&any, &here, sizeof here);
    const int listener = listen_at(&any), caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener >= 0 && caller >= 0 &&
        getsockname(listener, (struct sockaddr *)&here, &bytes) == 0 &&
        connect(caller, (const struct sockaddr *)&here, sizeof here) == 0)
        report_ok(&d->report, "loopback", "127.0.0.1 takes connections");
    else
        report_fail(&d->report, "loopback",
                    "bring it up (ip link set lo up), and let a firewall pass all of it",
                    "127.0.0.1 takes no connections: %s", strerror(errno));
    if (caller >= 0)
        close(caller);
    if (listener >= 0)
        close(listener);
}

/* ---- roster and rank ---- */

static sl_launch_settings settings_of(const doctor *d) {
    const sl_experiment *e = d->trial.experiment;
    const bool pins = sl_security_mode_of(&e->security) == SL_SECURITY_CERTIFICATES;
    return (sl_launch_settings){
        .has_rank = d->o->has_rank,
        .rank = d->o->rank,
        .joiners = e->membership.joiners,
        .roster = d->o->roster,
        .listen = d->o->listen,
        .port = (uint16_t)d->o->port,
        .certificates = d->given && pins,
        .authority = !d->given || e->security.ca[0] != '\0', /* fingerprints are not looked at */
        .trusted_network = !d->given || sl_security_goes_out(&e->security),
        .experiment = sl_experiment_hash(e),
        .timeout_s = d->wait_s > lookup_s ? d->wait_s : lookup_s};
}

/* As an agent finds them. Without a rank, those of rank 0 have to be right. */
static int find_launch(doctor *d, uint32_t nodes, sl_error *error) {
    sl_launch_settings s = settings_of(d);
    int result = sl_launch_find(&d->launch, &s, nodes, error);
    if (result == 0) {
        d->has_rank = true;
        d->rank = sl_launch_rank(d->launch);
    } else if (!s.has_rank) {
        s.has_rank = true;
        result = sl_launch_find(&d->launch, &s, nodes, error);
    }
    if (result == 0)
        d->roster = sl_launch_roster(d->launch);
    return result;
}

/* Without an experiment the roster says how many nodes there are. */
static int count_nodes(const doctor *d, uint32_t *nodes, sl_error *error) {
    sl_roster *alone = NULL;
    *nodes = d->trial.nodes;
    if (d->given)
        return 0;
    const int result = sl_roster_load(&alone, d->o->roster, error);
    if (result == 0)
        *nodes = sl_roster_count(alone);
    sl_roster_close(&alone);
    return result;
}

/* Of those of the roster, on this host; of none, all. */
static uint32_t count_agents(const doctor *d) {
    uint32_t count = 0;
    if (d->roster == NULL)
        return d->given && d->launch == NULL ? d->trial.nodes : 1;
    for (uint32_t i = 0; d->has_rank && i < sl_roster_count(d->roster); i++)
        count += strcmp(sl_roster_host(d->roster, i), sl_roster_host(d->roster, d->rank)) == 0;
    return count > 0 ? count : 1;
}

void look_at_roster(doctor *d) {
    const bool is_said = d->o->roster != NULL || (d->given && getenv("STARLING_ROSTER") != NULL),
               is_launched = d->given && sl_launch_count() > 1;
    uint32_t nodes;
    sl_error error;
    int result = is_said || is_launched ? count_nodes(d, &nodes, &error) : 0;
    if (result == 0 && (is_said || is_launched))
        result = find_launch(d, nodes, &error);
    if (result != 0)
        report_fail(&d->report, "roster", "", "%s", error.text);
    else if (d->launch != NULL && d->roster == NULL)
        report_ok(&d->report, "roster", "%s", sl_launch_describe(d->launch));
    else if (d->roster != NULL && d->has_rank)
        report_ok(&d->report, "roster", "%u ranks; this is rank %u", sl_roster_count(d->roster),
                  d->rank);
    else if (d->roster != NULL)
        report_warn(&d->report, "roster", "say --rank",
                    "%u ranks; nothing says which is this one, so nobody can call it",
                    sl_roster_count(d->roster));
    d->agents = count_agents(d);
}

/* ---- names ---- */

/* Of one host, as rosters are looked up. */
static int find_host(struct sockaddr_storage *out, const char *host, sl_error *error) {
    char line[PLACE_BYTES];
    sl_roster *one = NULL;
    snprintf(line, sizeof line, strchr(host, ':') != NULL ? "[%s]:1" : "%s:1", host);
    int result = sl_roster_parse(&one, line, "roster", error);
    if (result == 0)
        result = sl_roster_resolve(one, lookup_s, NULL, error);
    if (result == 0)
        *out = sl_roster_address(one, 0);
    sl_roster_close(&one);
    return result;
}

static void set_port(struct sockaddr_storage *a, uint16_t port) {
    if (a->ss_family == AF_INET)
        ((struct sockaddr_in *)a)->sin_port = htons(port);
    else if (a->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)a)->sin6_port = htons(port);
}

/* Ranks of one host stand beside each other. */
static uint32_t find_places(doctor *d, char *why, size_t room) {
    const double began_s = now_seconds();
    uint32_t lost = 0;
    sl_error error;
    for (uint32_t i = 0; i < sl_roster_count(d->roster); i++) {
        const char *host = sl_roster_host(d->roster, i);
        if (i > 0 && strcmp(host, sl_roster_host(d->roster, i - 1)) == 0)
            d->places[i] = d->places[i - 1];
        else if (now_seconds() - began_s > lookups_s)
            snprintf(why, room, "there was no time for rank %u's '%s'", i, host);
        else if (find_host(&d->places[i], host, &error) != 0)
            snprintf(why, room, "rank %u: %s", i, error.text);
        lost += d->places[i].ss_family == 0;
        set_port(&d->places[i], sl_roster_port(d->roster, i));
    }
    return lost;
}

void look_at_names(doctor *d) {
    char why[SL_ERROR_TEXT_MAX + 32] = "";
    if (d->roster == NULL)
        return;
    d->places = calloc(sl_roster_count(d->roster), sizeof *d->places);
    if (d->places == NULL) {
        report_fail(&d->report, "names", "", "out of memory");
        return;
    }
    d->lost = find_places(d, why, sizeof why);
    if (d->lost > 0)
        report_fail(&d->report, "names",
                    "correct the roster, or enter the name in DNS or /etc/hosts (getent hosts "
                    "NAME)",
                    "%u of %u ranks have no address; %s", d->lost, sl_roster_count(d->roster), why);
    else
        report_ok(&d->report, "names", "all %u ranks have addresses", sl_roster_count(d->roster));
}

/* ---- where this rank listens ---- */

/* As the agent will, whose own errors say what is against it; where names are missing, which it
 * needs, at least others are met. */
static int find_own_place(doctor *d, struct sockaddr_storage *out, sl_error *error) {
    const char *host = NULL;
    uint16_t port = 0;
    if (d->places != NULL)
        *out = d->places[d->rank];
    if (d->lost > 0 && d->o->listen == NULL)
        return 0;
    int result = sl_launch_listen(d->launch, &host, &port, error);
    if (result == 0)
        result = find_host(out, host, error);
    set_port(out, port);
    return result;
}

static bool is_loopback(const struct sockaddr_storage *a) {
    return a->ss_family == AF_INET
               ? ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
               : IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* May others reach an agent there? */
static bool is_allowed(doctor *d, const struct sockaddr_storage *place) {
    const sl_security_config *c = &d->trial.experiment->security;
    if (!d->given || is_loopback(place))
        return true;
    if (!sl_security_goes_out(c))
        report_fail(&d->report, "listen",
                    "make a key (starling keys make) and name it in security.key, or say "
                    "security.trusted_network true",
                    "rank %u is beyond loopback, where an agent without a key does not listen",
                    d->rank);
    else if (c->seal == SL_SEAL_OFF)
        report_fail(&d->report, "listen", "say \"auto\", or \"handshake-only\"",
                    "security.seal is \"off\", which is refused beyond loopback");
    return sl_security_goes_out(c) && c->seal != SL_SEAL_OFF;
}

static void refuse_place(doctor *d, const struct sockaddr_storage *place, int why) {
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?", remedy[TEXT_BYTES];
    getnameinfo((const struct sockaddr *)place, bytes_of(place), host, sizeof host, port,
                sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(remedy, sizeof remedy, "%s",
             why == EADDRINUSE
                 ? "end the process that has it (ss -ltnp), or give this rank another port"
             : why == EADDRNOTAVAIL ? "it is no address of this host (ip addr): correct the roster "
                                      "or --rank, or name one with --listen"
             : why == EACCES        ? "take a port above 1023"
                                    : "");
    report_fail(&d->report, "listen", remedy, "%s port %s: %s", host, port, strerror(why));
}

static uint16_t port_of(int listener) {
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    getsockname(listener, (struct sockaddr *)&own, &bytes);
    return ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                           : ((struct sockaddr_in *)&own)->sin_port);
}

/* Without a roster: rank 0 tells where the doctors are, once all have come to it. */
static void meet_at_rank_0(doctor *d, int listener) {
    sl_error error;
    if (sl_launch_meet(d->launch, port_of(listener), &d->told, &error) != 0) {
        report_fail(&d->report, "rendezvous", "start it on all ranks, with --wait", "%s",
                    error.text);
        return;
    }
    d->roster = d->told;
    d->places = calloc(sl_roster_count(d->roster), sizeof *d->places);
    for (uint32_t i = 0; d->places != NULL && i < sl_roster_count(d->roster); i++)
        d->places[i] = sl_roster_address(d->roster, i);
    report_ok(&d->report, "rendezvous", "rank 0 has told where all %u are",
              sl_roster_count(d->roster));
}

int look_at_listening(doctor *d) {
    struct sockaddr_storage place = {0};
    sl_error error;
    const bool is_told = d->launch != NULL && d->roster == NULL; /* where the others are */
    if (!is_told && (d->places == NULL || !d->has_rank || d->places[d->rank].ss_family == 0))
        return -1;
    if (find_own_place(d, &place, &error) != 0) {
        report_fail(&d->report, "listen", "", "%s", error.text);
        return -1;
    }
    if (!is_allowed(d, &place))
        return -1;
    const int listener = listen_at(&place);
    if (listener < 0)
        refuse_place(d, &place, errno);
    else
        report_ok(&d->report, "listen", "port %u is free", port_of(listener));
    if (listener >= 0 && is_told)
        meet_at_rank_0(d, listener);
    return listener;
}
