/* launch.c - rank, size and peers from what the caller says, the environment and the launcher; see
 * starling/launch.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "launch/launch_state.h"
#include "launch/roster.h"
#include "starling/types.h"

enum { ROSTER_PORT_USUAL = 7400 };

/* ---- what the caller says, or variables for it ---- */

static int take_rank(sl_launch *l, bool *has_rank, sl_error *error) {
    uint64_t rank = l->settings.rank;
    int result = 0;
    *has_rank =
        l->settings.has_rank || sl_environment_whole(l->environment, "STARLING_RANK",
                                                     SL_NODES_MAX - 1, &rank, &result, error);
    l->rank = (uint32_t)rank;
    snprintf(l->text, sizeof l->text, l->settings.has_rank ? "rank %u" : "STARLING_RANK=%u",
             l->rank);
    return result;
}

static int check_size(const sl_launch *l, const char *name, uint64_t size, sl_error *error) {
    if (size == l->size)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%s=%llu, but the topology has %u nodes (topology.nodes); they must be equal",
                   name, (unsigned long long)size, l->size);
}

static int check_rank(const sl_launch *l, const char *what, sl_error *error) {
    const uint32_t ranks = l->size + l->settings.joiners;
    if (l->rank >= ranks)
        return sl_fail(error, SL_EINVAL, "%s: the topology has %u nodes, ranks 0 to %u are allowed",
                       what, l->size, ranks - 1);
    return l->roster == NULL || l->rank < sl_roster_count(l->roster)
               ? 0
               : sl_fail(
                     error, SL_EINVAL,
                     "%s: the roster names ranks 0 to %u; add a line HOST:PORT for each rank up "
                     "to %u",
                     what, sl_roster_count(l->roster) - 1, l->rank);
}

/* A peer is known by the certificate that the roster names for it, or by its CA. */
static int check_certificates(const sl_launch *l, const sl_roster *roster, sl_error *error) {
    if (l->settings.authority)
        return 0;
    if (roster != NULL)
        return l->settings.certificates ? sl_roster_check_fingerprints(roster, error)
                                        : sl_roster_check_unrevoked(roster, error);
    return l->settings.certificates
               ? sl_fail(error, SL_EINVAL,
                         "security.mode: \"certificates\" needs a roster with their fingerprints, "
                         "as `starling keys roster` prints it, or security.ca; a rendezvous "
                         "tells places only")
               : 0;
}

static int take_master(sl_launch *l, const char *text, const char *where, sl_error *error) {
    uint16_t port;
    sl_whereabouts *master = &l->launcher.master;
    int result = sl_place_parse(master->hosts[0], &port, text, 1, where, error);
    if (result != 0)
        return result;
    master->host_count = 1;
    sl_whereabouts_ports(master, port);
    return 0;
}

static const char roster_needed[] =
    "set STARLING_ROSTER to a file, a list HOST:PORT,HOST:PORT,... or a pattern such as "
    "host-{rank}.svc:7000, or MASTER_ADDR to rank 0's host";

static int take_roster(sl_launch *l, const char *roster, sl_error *error) {
    uint64_t port = l->settings.port != 0 ? l->settings.port : ROSTER_PORT_USUAL;
    int result = 0;
    if (l->settings.port == 0)
        sl_environment_whole(l->environment, "STARLING_PORT", UINT16_MAX, &port, &result, error);
    if (result == 0 && port == 0)
        result = sl_fail(error, SL_EINVAL, "STARLING_PORT=0: a port from 1 to 65535 is needed");
    if (result != 0)
        return result;
    l->source_port = (uint16_t)port;
    l->source = strdup(roster);
    return l->source == NULL ? sl_fail(error, SL_ENOMEM, "launch: out of memory")
                             : sl_roster_find(&l->roster, roster, l->size, l->settings.joiners,
                                              l->source_port, error);
}

/* Peers that the caller names: a roster, or a master; options before variables. */
static int take_peers(sl_launch *l, bool *are_known, sl_error *error) {
    const char *roster = l->settings.roster, *master = l->settings.master;
    const bool by_option = roster != NULL || master != NULL;
    if (!by_option) {
        roster = sl_environment_text(l->environment, "STARLING_ROSTER");
        master = sl_environment_text(l->environment, "STARLING_MASTER");
    }
    *are_known = roster != NULL || master != NULL;
    if (roster != NULL && master != NULL)
        return sl_fail(error, SL_EINVAL,
                       "a roster (%s) and a master (%s) are both given: one of them is enough",
                       roster, master);
    if (roster != NULL)
        return take_roster(l, roster, error);
    if (master == NULL)
        return 0;
    return take_master(l, master, by_option ? "master" : "STARLING_MASTER", error);
}

/* ---- the launcher ---- */

/* Rank, size and where rank 0 is; of a rank that the caller gives, only what MASTER_ADDR says. */
static int take_launcher(sl_launch *l, bool has_rank, bool has_peers, sl_error *error) {
    sl_launcher found = {0};
    int result = has_rank ? sl_launcher_find_master(&found, l->environment, error)
                          : sl_launcher_find(&found, l->environment, error);
    if (result != 0)
        return result;
    if (!has_rank && found.name == NULL && l->size == 1 && l->settings.joiners == 0) {
        snprintf(l->text, sizeof l->text, "rank 0, the only one");
        return 0;
    }
    if (!has_rank && found.name == NULL)
        return sl_fail(error, SL_EINVAL,
                       "nothing says which of %u peers this is: start them with torchrun, mpirun, "
                       "srun or another launcher, or give each its rank (--rank, STARLING_RANK, or "
                       "rank=)%s",
                       l->size, sl_launcher_hint(l->environment));
    if (!has_rank) {
        l->rank = found.rank;
        snprintf(l->text, sizeof l->text, "%s (%s)", found.seen, found.name);
    }
    if (has_peers)
        found.master = l->launcher.master;
    l->launcher = found;
    return found.size_name != NULL ? check_size(l, found.size_name, found.size, error) : 0;
}

/* By rendezvous: is it known where? */
static int check_master(const sl_launch *l, sl_error *error) {
    const sl_whereabouts *from = &l->launcher.master;
    sl_lookup lookup = {0};
    if (l->size == 1 || l->launcher.one_host)
        return 0;
    if (from->host_count == 0)
        return sl_fail(error, SL_EINVAL, "%s, but nothing says where the others are: %s%s%s%s",
                       l->text, roster_needed, l->launcher.way != NULL ? " (" : "",
                       l->launcher.way != NULL ? l->launcher.way : "",
                       l->launcher.way != NULL ? ")" : "");
    snprintf(lookup.host, sizeof lookup.host, "%s", from->hosts[0]);
    if (sl_host_is_any(lookup.host))
        return sl_fail(error, SL_EINVAL, "rank 0 cannot be reached at %s: name its host",
                       lookup.host);
    const bool is_here = strcmp(lookup.host, "localhost") == 0 ||
                         (sl_lookup_numeric(&lookup) && sl_address_is_loopback(&lookup.address));
    if (is_here && l->launcher.several_hosts && from->host_count == 1)
        return sl_fail(
            error, SL_EINVAL,
            "rank 0 is said to be at %s, which is each host itself, but the %u processes "
            "are on several hosts: name rank 0's host (MASTER_ADDR)",
            from->hosts[0], l->size);
    return 0;
}

/* Equal in all processes of one job, and in no other. */
static void name_rendezvous(sl_launch *l) {
    sl_whereabouts *from = &l->launcher.master;
    sl_rendezvous *m = &l->rendezvous;
    if (l->size == 1 || l->launcher.one_host) {
        from->host_count = 1;
        strcpy(from->hosts[0], "127.0.0.1");
    }
    uint64_t hash = sl_hash(SL_HASH_START, l->launcher.job, strlen(l->launcher.job));
    hash = sl_hash_word(sl_hash_word(hash, from->ports_from), l->settings.run_id);
    int length = 0;
    for (uint32_t i = 0; i < from->host_count && length < SL_HOST_MAX; i++)
        length += snprintf(m->where + length, sizeof m->where - (size_t)length, "%s%s",
                           i > 0 ? " or " : "", from->hosts[i]);
    if (length > SL_HOST_MAX)
        length = SL_HOST_MAX;
    snprintf(m->where + length, sizeof m->where - (size_t)length, " ports %u to %u",
             from->ports_from, from->ports_to);
    m->rank = l->rank;
    m->size = l->size;
    m->run = hash;
    m->is_named = l->gives_run_id || l->launcher.job[0] != '\0';
    m->ports_from = (uint16_t)from->ports_from;
    m->ports_to = (uint16_t)from->ports_to;
    m->timeout_s = l->settings.timeout_s;
    m->stop = l->settings.stop;
    m->notice = l->settings.notice;
    m->context = l->settings.context;
    if (!l->gives_run_id)
        l->settings.run_id = hash;
}

/* A roster's identity is where those are who begin: who joins them may have more lines. */
static void name_run(sl_launch *l) {
    l->gives_run_id = l->settings.run_id != 0;
    if (l->roster == NULL)
        name_rendezvous(l);
    else if (!l->gives_run_id)
        l->settings.run_id = sl_roster_hash(l->roster, l->size);
}

static int take_local_rank(sl_launch *l, sl_error *error) {
    uint64_t rank = l->rank;
    int result = 0;
    sl_environment_whole(l->environment, "LOCAL_RANK", UINT32_MAX, &rank, &result, error);
    l->local_rank = (uint32_t)rank;
    return result;
}

/* By their names: those of one host may be found under others, and then begin at 0 there, too. */
uint32_t sl_launch_place(const sl_launch *l) {
    uint32_t before = 0;
    if (l->launcher.has_local_rank)
        return l->launcher.local_rank;
    if (l->roster == NULL || l->rank >= sl_roster_count(l->roster))
        return l->rank;
    for (uint32_t r = 0; r < l->rank; r++)
        before += strcmp(sl_roster_host(l->roster, r), sl_roster_host(l->roster, l->rank)) == 0;
    return before;
}

static void describe(sl_launch *l) {
    char from[SL_SEEN_MAX + 64];
    snprintf(from, sizeof from, "%.*s", (int)sizeof from - 1, l->text);
    if (l->roster != NULL)
        snprintf(l->text, sizeof l->text, "rank %u of %u from %s, with a roster", l->rank, l->size,
                 from);
    else
        snprintf(l->text, sizeof l->text, "rank %u of %u from %s; rank 0 tells the roster at %s",
                 l->rank, l->size, from, l->rendezvous.where);
}

static int take_listen(sl_launch *l, sl_error *error) {
    const char *text = l->settings.listen, *where = "listen";
    if (text == NULL) {
        text = sl_environment_text(l->environment, "STARLING_LISTEN");
        where = "STARLING_LISTEN";
    }
    return text == NULL ? 0 : sl_place_parse(l->host, &l->port, text, 0, where, error);
}

static int find(sl_launch *l, sl_error *error) {
    bool has_rank, has_peers;
    uint64_t size;
    int result = take_rank(l, &has_rank, error);
    if (sl_environment_whole(l->environment, "STARLING_SIZE", SL_NODES_MAX, &size, &result, error))
        result = check_size(l, "STARLING_SIZE", size, error);
    if (result == 0 && l->settings.run_id == 0)
        sl_environment_whole(l->environment, "STARLING_RUN_ID", UINT64_MAX, &l->settings.run_id,
                             &result, error);
    if (result == 0)
        result = take_peers(l, &has_peers, error);
    if (result == 0 && !(has_rank && has_peers))
        result = take_launcher(l, has_rank, has_peers, error);
    if (result == 0)
        result = check_rank(l, l->text, error);
    if (result == 0)
        result = check_certificates(l, l->roster, error);
    if (result == 0)
        result = take_listen(l, error);
    if (result == 0 && l->roster == NULL)
        result = check_master(l, error);
    if (result == 0)
        result = take_local_rank(l, error);
    if (result != 0)
        return result;
    name_run(l);
    describe(l);
    return 0;
}

int sl_launch_find(sl_launch **out, const sl_launch_settings *settings, uint32_t nodes,
                   sl_error *error) {
    sl_launch *l = calloc(1, sizeof *l);
    if (l == NULL)
        return sl_fail(error, SL_ENOMEM, "launch: out of memory");
    l->settings = *settings;
    l->environment = settings->environment != NULL ? settings->environment : environ;
    l->size = nodes;
    int result = find(l, error);
    if (result != 0)
        sl_launch_close(&l);
    else
        *out = l;
    return result;
}

int sl_launch_read_again(sl_launch *l, sl_roster **out, sl_error *error) {
    sl_roster *roster = NULL;
    *out = NULL;
    if (l->source == NULL)
        return 0;
    int result =
        sl_roster_find(&roster, l->source, l->size, l->settings.joiners, l->source_port, error);
    if (result == 0)
        result = check_certificates(l, roster, error);
    if (result == 0 && l->rank >= sl_roster_count(roster))
        result = sl_fail(error, SL_EFILE, "%s: names ranks 0 to %u, and not this agent's, %u",
                         sl_roster_name(roster), sl_roster_count(roster) - 1, l->rank);
    if (result == 0) {
        sl_roster_be(roster, l->rank);
        result = sl_roster_resolve(roster, l->settings.timeout_s, l->settings.stop, error);
    }
    if (result != 0)
        sl_roster_close(&roster);
    *out = roster;
    return result;
}

uint32_t sl_launch_count(void) {
    uint64_t size;
    int result = 0;
    sl_error ignored;
    sl_launcher launcher;
    if (sl_environment_whole(environ, "STARLING_SIZE", SL_NODES_MAX, &size, &result, &ignored))
        return (uint32_t)size;
    return result == 0 && sl_launcher_find(&launcher, environ, &ignored) == 0 ? launcher.size : 0;
}

uint32_t sl_launch_rank(const sl_launch *launch) {
    return launch->rank;
}

uint32_t sl_launch_size(const sl_launch *launch) {
    return launch->size;
}

const sl_roster *sl_launch_roster(const sl_launch *launch) {
    return launch->roster;
}

uint64_t sl_launch_run_id(const sl_launch *launch) {
    return launch->settings.run_id;
}

const char *sl_launch_describe(const sl_launch *launch) {
    return launch->text;
}

void sl_launch_close(sl_launch **launch) {
    sl_launch *l = *launch;
    if (l == NULL)
        return;
    sl_master_close(&l->master);
    sl_roster_close(&l->roster);
    free(l->source);
    free(l);
    *launch = NULL;
}
