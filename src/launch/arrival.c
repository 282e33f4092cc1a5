/* arrival.c - where this process listens, and where the others do; see starling/launch.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "launch/launch_state.h"
#include "launch/roster.h"

/* ---- listening ---- */

static sl_lookup_wait how_to_wait(const sl_launch *l) {
    return (sl_lookup_wait){.timeout_s = l->settings.timeout_s,
                            .stop_fd = -1,
                            .stop = l->settings.stop,
                            .notice = l->settings.notice,
                            .context = l->settings.context};
}

/* Of all hosts where rank 0 may be, those that are found; one alone is waited for. */
static int find_master(sl_launch *l, sl_error *error) {
    const sl_whereabouts *from = &l->launcher.master;
    const sl_lookup_wait wait = how_to_wait(l);
    sl_rendezvous *m = &l->rendezvous;
    int result = 0;
    for (uint32_t i = 0; i < from->host_count; i++) {
        sl_lookup lookup = {.may_come = from->host_count == 1};
        memcpy(lookup.host, from->hosts[i], sizeof lookup.host);
        int found = sl_lookup_all(&lookup, 1, &wait, m->address_count == 0 ? error : NULL);
        if (found == 0)
            m->addresses[m->address_count++] = lookup.address;
        else
            result = found;
        if (found == SL_ESTOPPED)
            break;
    }
    return m->address_count > 0 && result != SL_ESTOPPED ? 0 : result;
}

static const struct sockaddr_storage *address_beyond(const sl_rendezvous *m) {
    for (uint32_t i = 0; i < m->address_count; i++)
        if (!sl_address_is_loopback(&m->addresses[i]))
            return &m->addresses[i];
    return NULL;
}

static bool is_own(const struct sockaddr_storage *address) {
    int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is = fd >= 0 && bind(fd, (const struct sockaddr *)address, sl_address_bytes(address)) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

/* The address of this host from which another one is reached; asks the routes, sends nothing. */
static bool find_way(const struct sockaddr_storage *to, struct sockaddr_storage *own) {
    struct sockaddr_storage address = *to;
    socklen_t bytes = sizeof *own;
    sl_address_set_port(&address, 9);
    int fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found = fd >= 0 &&
                 connect(fd, (struct sockaddr *)&address, sl_address_bytes(&address)) == 0 &&
                 getsockname(fd, (struct sockaddr *)own, &bytes) == 0;
    if (fd >= 0)
        close(fd);
    return found;
}

/* The one address that surely serves, or all of them. */
static void choose_host(sl_launch *l, bool loopback) {
    const sl_rendezvous *m = &l->rendezvous;
    const struct sockaddr_storage *beyond = address_beyond(m);
    const bool is_v6 = m->addresses[0].ss_family == AF_INET6;
    struct sockaddr_storage own;
    if (l->host[0] != '\0') { /* as the caller says */
        l->is_everywhere = sl_host_is_any(l->host);
        return;
    }
    if (loopback) {
        strcpy(l->host, is_v6 ? "::1" : "127.0.0.1");
    } else if (m->address_count == 1 && beyond != NULL && l->rank == 0 && is_own(beyond)) {
        sl_address_text(beyond, l->host);
    } else if (m->address_count == 1 && beyond != NULL && l->rank > 0 && find_way(beyond, &own)) {
        sl_address_text(&own, l->host);
    } else {
        strcpy(l->host, is_v6 ? "::" : "0.0.0.0");
        l->is_everywhere = true;
    }
}

/* The launcher's guess is refused where it is wrong. What the user says may be an address that
 * leads here without being this host's own. */
static int check_own_host(sl_launch *l, sl_error *error) {
    char *where = l->rendezvous.where;
    for (uint32_t i = 0; i < l->rendezvous.address_count; i++)
        if (is_own(&l->rendezvous.addresses[i]))
            return 0;
    if (l->launcher.master.of_launcher)
        return sl_fail(
            error, SL_EINVAL,
            "rank 0 is not on mpirun's host (%s), so the others do not know where it is: "
            "set MASTER_ADDR to rank 0's host (mpirun -x MASTER_ADDR=HOST), or "
            "STARLING_ROSTER",
            l->launcher.master.hosts[0]);
    strncat(where, " (no address of rank 0's host)",
            sizeof l->rendezvous.where - strlen(where) - 1);
    return 0;
}

/* Who this process is for a rendezvous. */
static int introduce(sl_launch *l, sl_error *error) {
    sl_rendezvous *m = &l->rendezvous;
    if (!sl_origin_find(&m->origin, l->rank, l->local_rank, l->settings.experiment))
        return sl_fail(error, SL_ENOMEM, "rendezvous: out of memory");
    m->age_s = sl_origin_age_s();
    return getrandom(&m->nonce, sizeof m->nonce, 0) == sizeof m->nonce
               ? 0
               : sl_fail(error, SL_ENET, "rendezvous: no random number");
}

/* Beyond loopback only where the network is trusted; a host whose name is loopback on itself, as
 * Debian writes in /etc/hosts, is then reached at its other addresses. */
static int listen_for_rendezvous(sl_launch *l, sl_error *error) {
    const bool trusted = l->settings.trusted_network;
    const char *host = l->launcher.master.hosts[0];
    int result = 0;
    if (l->launcher.several_hosts)
        result = sl_address_check_trust(NULL, "the network", l->rank, trusted, error);
    if (result == 0)
        result = introduce(l, error);
    if (result == 0)
        result = find_master(l, error);
    if (result != 0)
        return result;
    const struct sockaddr_storage *beyond = address_beyond(&l->rendezvous);
    const bool loopback = l->launcher.one_host || (beyond == NULL && !trusted);
    choose_host(l, loopback);
    if (l->rank > 0)
        return 0;
    if (!loopback)
        result = check_own_host(l, error);
    if (result == 0 && beyond != NULL)
        result = sl_address_check_trust(beyond, host, 0, trusted, error);
    return result != 0 ? result : sl_master_open(&l->master, &l->rendezvous, loopback, error);
}

int sl_launch_listen(sl_launch *l, const char **host, uint16_t *port, sl_error *error) {
    const sl_lookup_wait wait = how_to_wait(l);
    int result = 0;
    if (l->roster != NULL)
        sl_roster_be(l->roster, l->rank);
    if (l->roster != NULL)
        result = sl_roster_find_addresses(l->roster, &wait, error);
    else
        result = listen_for_rendezvous(l, error);
    if (result != 0)
        return result;
    if (l->host[0] == '\0') {
        const char *everywhere = sl_roster_everywhere(l->roster);
        strcpy(l->host, everywhere != NULL ? everywhere : sl_roster_host(l->roster, l->rank));
        l->port = sl_roster_port(l->roster, l->rank);
    }
    *host = l->host;
    *port = l->port;
    return 0;
}

/* ---- the rendezvous ---- */

static int hear_roster(sl_launch *l, uint16_t port, char **text, sl_error *error) {
    const char *host = l->is_everywhere ? "" : l->host;
    const sl_greeting greeting = sl_rendezvous_greeting(&l->rendezvous, host, port);
    if (l->rank > 0)
        return sl_member_meet(&l->rendezvous, &greeting, text, error);
    int result = sl_master_meet(l->master, host, port, text, error);
    sl_master_close(&l->master);
    return result;
}

/* What rank 0 has told, and with it who this run is. */
static int take_roster(sl_launch *l, const char *text, sl_error *error) {
    uint64_t identity = 0;
    const char *lines = sl_identity_read(text, &identity);
    if (lines == NULL)
        return sl_fail(error, SL_EPROTO, "rank 0's roster does not say of which run it is");
    const int result = sl_roster_parse(&l->roster, lines, "rank 0's roster", error);
    if (result != 0)
        return result;
    if (!l->gives_run_id)
        l->settings.run_id = identity;
    sl_roster_name_run(l->roster, l->settings.run_id);
    return 0;
}

int sl_launch_meet(sl_launch *l, uint16_t port, sl_roster **roster, sl_error *error) {
    const sl_lookup_wait wait = how_to_wait(l);
    char *text = NULL;
    if (l->roster == NULL) {
        int result = hear_roster(l, port, &text, error);
        if (result == 0)
            result = take_roster(l, text, error);
        free(text);
        if (result == 0 && sl_roster_count(l->roster) != l->size)
            result = sl_fail(error, SL_EPROTO, "rank 0's roster has %u ranks instead of %u",
                             sl_roster_count(l->roster), l->size);
        if (result == 0)
            result = sl_roster_find_addresses(l->roster, &wait, error);
        if (result != 0)
            return result;
    }
    *roster = l->roster;
    l->roster = NULL;
    return 0;
}
