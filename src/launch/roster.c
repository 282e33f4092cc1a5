/* roster.c - host and port of every rank; see starling/roster.h. */
#include "launch/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "launch/environment.h"
#include "launch/hostfile.h"
#include "starling/text.h"

enum { ROSTER_BYTES_MAX = 16 << 20, LINE_MAX_BYTES = 512, PIN_DIGITS = 64, LOOKED_UP = 64 };
static const char pin_begin[] = "sha256:", revoked[] = "revoked";

static const char rank_hole[] = "{rank}";

/* Of one rank. There may be a million. */
typedef struct place {
    uint32_t host, pin; /* in `names`; pin: a certificate's fingerprint, SL_NAMES_NONE: none */
    int line;           /* of the file, for errors */
    uint16_t port;
    bool may_come; /* unknown today, its host may be known in a second */
    sl_address address;
} place;

struct sl_roster {
    place *places; /* (count) */
    uint32_t count, room;
    sl_names names;
    uint64_t run;
    uint32_t own;            /* the rank that this process is; beyond the last: not known */
    char where[SL_HOST_MAX]; /* file, for errors */
};

/* ---- parsing ---- */

int sl_place_parse(char host[SL_HOST_MAX], uint16_t *port, const char *text, unsigned port_min,
                   const char *where, sl_error *error) {
    const char *colon = strrchr(text, ':');
    const char *begin = text, *end = colon;
    char shown[SL_HOST_MAX];
    bool bracketed = text[0] == '[';
    if (bracketed) {
        begin = text + 1;
        end = strchr(text, ']');
        colon = end != NULL && end[1] == ':' ? end + 1 : NULL;
    }
    if (!bracketed && strchr(text, '[') != NULL)
        return sl_fail(
            error, SL_EFILE,
            "%s: '%s': a list of hosts with brackets has no port: STARLING_PORT (--port) "
            "says where the first rank of each host listens",
            where, text);
    if (colon == NULL || end <= begin || end - begin >= SL_HOST_MAX)
        return sl_fail(error, SL_EFILE, "%s: '%s' is not HOST:PORT or [IPV6]:PORT", where, text);
    if (!bracketed && memchr(begin, ':', (size_t)(end - begin)) != NULL)
        return sl_fail(error, SL_EFILE,
                       "%s: '%s' has more than one colon; write an IPv6 address as [ADDRESS]:PORT",
                       where, text);
    uint64_t number;
    if (!sl_whole(colon + 1, 65535, &number) || number < port_min)
        return sl_fail(error, SL_EFILE, "%s: port '%s' is not a number from %u to 65535", where,
                       colon + 1, port_min);
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    if (strcmp(sl_text_show(shown, sizeof shown, host, strlen(host)), host) != 0)
        return sl_fail(error, SL_EFILE,
                       "%s: '%s': no host's name has characters that cannot be printed", where,
                       host);
    *port = (uint16_t)number;
    return 0;
}

static int check_rank(const sl_roster *r, const char *text, int line, sl_error *error) {
    uint64_t rank;
    const bool is_rank = sl_whole(text, UINT32_MAX, &rank);
    if (is_rank && rank == r->count)
        return 0;
    return sl_fail(error, SL_EFILE,
                   "%s:%d: rank '%s' %s; expected %u (lines are 'HOST:PORT' or 'RANK HOST:PORT', "
                   "ranks rising from 0)",
                   r->where, line, text,
                   is_rank && rank < r->count ? "is named twice" : "is out of order", r->count);
}

static const char *host_of(const sl_roster *r, uint32_t rank) {
    return sl_names_at(&r->names, r->places[rank].host);
}

static int refuse_memory(const char *where, sl_error *error) {
    return sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
}

static int make_room(sl_roster *r, sl_error *error) {
    if (r->count < r->room)
        return 0;
    const uint32_t room = r->room > 0 ? 2 * r->room : 16;
    place *places = realloc(r->places, room * sizeof *places);
    if (places == NULL)
        return refuse_memory(r->where, error);
    r->places = places;
    r->room = room;
    return 0;
}

static bool is_pin(const char *word) {
    return word != NULL &&
           (strncmp(word, pin_begin, sizeof pin_begin - 1) == 0 || strcmp(word, revoked) == 0);
}

static int check_pin(const char *word, const char *where, sl_error *error) {
    const char *digits = word + sizeof pin_begin - 1;
    if (strcmp(word, revoked) == 0)
        return 0;
    if (is_pin(word) && strlen(digits) == PIN_DIGITS &&
        strspn(digits, "0123456789abcdef") == PIN_DIGITS)
        return 0;
    return sl_fail(error, SL_EFILE,
                   "%s: '%s' is not a certificate's fingerprint, sha256: and %d digits 0-9a-f, "
                   "as `starling keys roster` prints it, nor `revoked`",
                   where, word, PIN_DIGITS);
}

static char *next_word(char **save) {
    char *word = strtok_r(NULL, " \t\r", save);
    return word != NULL && word[0] != '#' ? word : NULL;
}

/* The ranks of a host stand beside each other, and share its name. */
static uint32_t keep_host(sl_roster *r, const char *host) {
    if (r->count > 0 && strcmp(host_of(r, r->count - 1), host) == 0)
        return r->places[r->count - 1].host;
    return sl_names_add(&r->names, host, strlen(host));
}

static int add_rank(sl_roster *r, const char *host, uint16_t port, const char *pin, int line,
                    sl_error *error) {
    struct sockaddr_storage address;
    place p = {.line = line, .port = port, .pin = SL_NAMES_NONE};
    int result = make_room(r, error);
    if (result != 0)
        return result;
    p.host = keep_host(r, host);
    if (pin != NULL)
        p.pin = sl_names_add(&r->names, pin, strlen(pin));
    if (p.host == SL_NAMES_NONE || (pin != NULL && p.pin == SL_NAMES_NONE))
        return refuse_memory(r->where, error);
    if (sl_address_parse(&address, host))
        p.address = sl_address_pack(&address);
    r->places[r->count++] = p;
    return 0;
}

static int add_place(sl_roster *r, const char *text, const char *pin, int line, sl_error *error) {
    char where[SL_HOST_MAX + 16], host[SL_HOST_MAX];
    uint16_t port = 0;
    snprintf(where, sizeof where, "%s:%d", r->where, line);
    int result = sl_place_parse(host, &port, text, 1, where, error);
    if (result == 0 && pin != NULL)
        result = check_pin(pin, where, error);
    return result == 0 ? add_rank(r, host, port, pin, line, error) : result;
}

/* "PLACE", or "RANK PLACE", and maybe a fingerprint. */
static int add_line(sl_roster *r, char *text, int line, sl_error *error) {
    char *save = NULL, *first = strtok_r(text, " \t\r", &save);
    if (first == NULL || first[0] == '#')
        return 0;
    char *second = next_word(&save), *third = second != NULL ? next_word(&save) : NULL;
    if (second == NULL || is_pin(second))
        return add_place(r, first, second, line, error);
    int result = check_rank(r, first, line, error);
    return result != 0 ? result : add_place(r, second, third, line, error);
}

/* ---- addresses ---- */

/* By address, or by name where that is not looked up yet. */
static bool are_at_one_place(const void *context, uint32_t i, uint32_t j) {
    const sl_roster *r = context;
    const place *a = &r->places[i], *b = &r->places[j];
    return a->port == b->port && memcmp(&a->address, &b->address, sizeof a->address) == 0 &&
           (a->address.family != 0 || strcmp(host_of(r, i), host_of(r, j)) == 0);
}

static uint64_t hash_place(const sl_roster *r, uint32_t rank) {
    const place *p = &r->places[rank];
    const char *host = host_of(r, rank);
    const uint64_t start = sl_hash_word(SL_HASH_START, p->port);
    return p->address.family != 0 ? sl_hash(start, &p->address, sizeof p->address)
                                  : sl_hash(start, host, strlen(host));
}

/* Two ranks at one address would wait for each other for ever. */
static int check_distinct(const sl_roster *r, sl_error *error) {
    sl_equals equals;
    int result = 0;
    if (!sl_equals_open(&equals, r->count, are_at_one_place, r))
        return refuse_memory(r->where, error);
    for (uint32_t i = 0; i < r->count && result == 0; i++) {
        const uint32_t first = sl_equals_first(&equals, i, hash_place(r, i));
        if (first != i)
            result =
                sl_fail(error, SL_EFILE, "%s:%d: %s:%u is the address of ranks %u and %u", r->where,
                        r->places[i].line, host_of(r, i), r->places[i].port, first, i);
    }
    sl_equals_close(&equals);
    return result;
}

static bool is_on_loopback(const sl_roster *r, uint32_t rank) {
    const struct sockaddr_storage address = sl_roster_address(r, rank);
    return sl_address_is_loopback(&address);
}

/* Is it a loopback address, and this host by its own name? */
static bool is_own_host(const sl_roster *r, uint32_t rank) {
    return r->own < r->count && is_on_loopback(r, rank) &&
           strcmp(host_of(r, rank), host_of(r, r->own)) == 0;
}

/* The first rank beyond this host; the number of ranks: there is none. */
static uint32_t rank_beyond(const sl_roster *r) {
    uint32_t i = 0;
    while (i < r->count && is_on_loopback(r, i))
        i++;
    return i;
}

/* Where some are on several hosts, an address of one host alone is each of them itself. */
static int check_reach(const sl_roster *r, sl_error *error) {
    const uint32_t beyond = rank_beyond(r);
    uint32_t here = 0;
    while (here < r->count && (!is_on_loopback(r, here) || is_own_host(r, here)))
        here++;
    if (here == r->count || beyond == r->count)
        return 0;
    const struct sockaddr_storage found = sl_roster_address(r, here);
    const char *host = host_of(r, here);
    char address[SL_IP_TEXT_MAX];
    sl_address_text(&found, address);
    return sl_fail(error, SL_EFILE,
                   "%s:%d: rank %u at %s:%u%s%s is reached from its own host only, but rank %u is "
                   "at %s:%u: give its address on the network",
                   r->where, r->places[here].line, here, host, r->places[here].port,
                   strcmp(address, host) == 0 ? "" : ", here ",
                   strcmp(address, host) == 0 ? "" : address, beyond, host_of(r, beyond),
                   r->places[beyond].port);
}

static int parse_lines(sl_roster *r, const char *text, sl_error *error) {
    int result = 0;
    for (int line = 1; *text != '\0' && result == 0; line++) {
        char copy[LINE_MAX_BYTES];
        size_t length = strcspn(text, "\n");
        if (length >= sizeof copy)
            return sl_fail(error, SL_EFILE, "%s:%d: a line is longer than %d bytes", r->where, line,
                           LINE_MAX_BYTES - 1);
        memcpy(copy, text, length);
        copy[length] = '\0';
        result = add_line(r, copy, line, error);
        text += length + (text[length] == '\n');
    }
    if (result == 0 && r->count == 0)
        result =
            sl_fail(error, SL_EFILE,
                    "%s: the roster is empty; it needs a line HOST:PORT for each rank", r->where);
    return result;
}

static sl_roster *open_roster(const char *where, sl_error *error) {
    sl_roster *r = calloc(1, sizeof *r);
    if (r == NULL)
        refuse_memory(where, error);
    else
        snprintf(r->where, sizeof r->where, "%s", where);
    if (r != NULL)
        r->own = UINT32_MAX;
    return r;
}

/* It is the caller's, if nothing was wrong with it. */
static int give(sl_roster **out, sl_roster *r, int result) {
    if (result < 0)
        sl_roster_close(&r);
    else
        *out = r;
    return result < 0 ? result : 0;
}

int sl_roster_parse(sl_roster **out, const char *text, const char *where, sl_error *error) {
    sl_roster *r = open_roster(where, error);
    if (r == NULL)
        return SL_ENOMEM;
    int result = parse_lines(r, text, error);
    if (result == 0)
        result = check_distinct(r, error);
    return give(out, r, result);
}

int sl_roster_load(sl_roster **out, const char *path, sl_error *error) {
    char *text;
    int result = sl_text_read(&text, path, ROSTER_BYTES_MAX, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "roster");
    result = sl_roster_parse(out, text, path, error);
    free(text);
    return result;
}

static int add_slot(sl_roster *r, const char *host, int line, uint64_t port, sl_error *error) {
    if (port > UINT16_MAX)
        return sl_fail(error, SL_EFILE, "%s:%d: host %s has too many ranks for ports up to 65535",
                       r->where, line, host);
    return add_rank(r, host, (uint16_t)port, NULL, line, error);
}

static bool is_same_host(const void *context, uint32_t a, uint32_t b) {
    return strcmp(sl_hostfile_host(context, a), sl_hostfile_host(context, b)) == 0;
}

/* A rank for each slot, host by host, as mpirun gives them. Several lines may name a host, whose
 * `taken` its first one counts. */
static int take_slots(sl_roster *r, const sl_hostfile *h, sl_equals *equals, uint64_t *taken,
                      const uint32_t counts[2], uint16_t port, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < h->count && result == 0 && r->count < counts[1]; i++) {
        const char *host = sl_hostfile_host(h, i);
        const uint32_t first =
            sl_equals_first(equals, i, sl_hash(SL_HASH_START, host, strlen(host)));
        for (uint32_t k = 0; k < h->hosts[i].count && r->count < counts[1] && result == 0; k++)
            result = add_slot(r, host, h->hosts[i].line, port + taken[first]++, error);
    }
    return result;
}

static int take_hosts(sl_roster *r, const sl_hostfile *h, const uint32_t counts[2], uint16_t port,
                      sl_error *error) {
    uint64_t *taken = calloc(h->count + 1, sizeof *taken);
    sl_equals equals = {0};
    int result = 0;
    if (h->slots < counts[0])
        result = sl_fail(error, SL_EINVAL,
                         "%s: the hosts have %llu slots, the topology %u nodes (topology.nodes): "
                         "each node needs one (HOST slots=N)",
                         r->where, (unsigned long long)h->slots, counts[0]);
    else if (taken == NULL || !sl_equals_open(&equals, h->count, is_same_host, h))
        result = refuse_memory(r->where, error);
    else
        result = take_slots(r, h, &equals, taken, counts, port, error);
    sl_equals_close(&equals);
    free(taken);
    return result;
}

/* A roster, or a list of hosts of `counts`: the ranks that are needed, and those that may be. */
static int parse_any(sl_roster **out, const char *text, const char *where, const uint32_t counts[2],
                     uint16_t port, sl_error *error) {
    sl_hostfile hosts;
    int result = sl_hostfile_parse(&hosts, text, where, counts[0], error);
    if (result == 0)
        return sl_roster_parse(out, text, where, error);
    if (result < 0)
        return result;
    sl_roster *r = open_roster(where, error);
    result = r != NULL ? take_hosts(r, &hosts, counts, port, error) : SL_ENOMEM;
    sl_hostfile_close(&hosts);
    return give(out, r, result);
}

static int load_any(sl_roster **out, const char *path, const uint32_t counts[2], uint16_t port,
                    sl_error *error) {
    char *text;
    int result = sl_text_read(&text, path, ROSTER_BYTES_MAX, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "roster");
    result = parse_any(out, text, path, counts, port, error);
    free(text);
    return result;
}

/* "a:1,b:2" as lines; commas in brackets stay. */
static int parse_list(sl_roster **out, const char *list, const uint32_t counts[2], uint16_t port,
                      sl_error *error) {
    char *text = strdup(list);
    bool in_brackets = false;
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "roster: out of memory");
    for (char *at = text; *at != '\0'; at++) {
        in_brackets = *at == '[' || (in_brackets && *at != ']');
        if (*at == ',' && !in_brackets)
            *at = '\n';
    }
    int result = parse_any(out, text, "roster", counts, port, error);
    free(text);
    return result;
}

/* A list of places, or of hosts: "a,b" or "node[01-04]", and no path. */
static bool is_list(const char *what) {
    return strchr(what, '/') == NULL &&
           (strchr(what, ',') != NULL || (what[0] != '[' && strchr(what, '[') != NULL));
}

/* The pattern's place of one rank, which has at most as many digits as {rank} has characters. */
static void fill_pattern(char out[LINE_MAX_BYTES], const char *pattern, uint32_t rank) {
    const char *hole;
    for (; (hole = strstr(pattern, rank_hole)) != NULL; pattern = hole + strlen(rank_hole)) {
        out = mempcpy(out, pattern, (size_t)(hole - pattern));
        out += sprintf(out, "%u", rank);
    }
    strcpy(out, pattern);
}

static int add_pattern(sl_roster *r, const char *pattern, uint32_t count, sl_error *error) {
    char text[LINE_MAX_BYTES];
    int result = 0;
    for (uint32_t rank = 0; rank < count && result == 0; rank++) {
        fill_pattern(text, pattern, rank);
        result = add_place(r, text, NULL, (int)rank + 1, error);
    }
    for (uint32_t rank = 0; rank < r->count; rank++)
        r->places[rank].may_come = true;
    return result != 0 ? result : check_distinct(r, error);
}

static int parse_pattern(sl_roster **out, const char *pattern, uint32_t count, sl_error *error) {
    if (strlen(pattern) >= LINE_MAX_BYTES)
        return sl_fail(error, SL_EINVAL, "roster: a pattern has at most %d bytes",
                       LINE_MAX_BYTES - 1);
    if (strstr(pattern, rank_hole) == NULL || strchr(pattern, ',') != NULL)
        return sl_fail(error, SL_EINVAL,
                       "roster '%s': a pattern is one HOST:PORT with {rank} in it, such as "
                       "host-{rank}.svc:7000",
                       pattern);
    sl_roster *r = open_roster("roster", error);
    return r != NULL ? give(out, r, add_pattern(r, pattern, count, error)) : SL_ENOMEM;
}

static int check_count(const sl_roster *r, const char *what, uint32_t count, uint32_t joiners,
                       sl_error *error) {
    if (r->count >= count && r->count - count <= joiners)
        return 0;
    if (joiners > 0)
        return sl_fail(error, SL_EINVAL,
                       "%s: the roster has %u ranks; allowed are the topology's %u nodes "
                       "(topology.nodes) and up to %u more (membership.joiners)",
                       what, r->count, count, joiners);
    return sl_fail(error, SL_EINVAL,
                   "%s: the roster has %u ranks, the topology %u nodes (topology.nodes); both must "
                   "be equal",
                   what, r->count, count);
}

int sl_roster_find(sl_roster **out, const char *what, uint32_t count, uint32_t joiners,
                   uint16_t own_port, sl_error *error) {
    const uint32_t counts[2] = {count, count + joiners};
    sl_roster *r = NULL;
    sl_error ignored;
    char host[SL_HOST_MAX];
    uint16_t port;
    int result;
    if (strchr(what, '{') != NULL)
        result = parse_pattern(&r, what, count, error);
    else if (is_list(what))
        result = parse_list(&r, what, counts, own_port, error);
    else if (access(what, F_OK) != 0 && sl_place_parse(host, &port, what, 1, "", &ignored) == 0)
        result = count == 1 ? parse_list(&r, what, counts, own_port, error)
                            : sl_fail(error, SL_EINVAL,
                                      "roster '%s': one address cannot be that of %u ranks: write "
                                      "{rank} where they differ, or a list with commas",
                                      what, count);
    else
        result = load_any(&r, what, counts, own_port, error);
    if (result == 0)
        result = check_count(r, what, count, joiners, error);
    if (result != 0)
        sl_roster_close(&r);
    else
        *out = r;
    return result;
}

/* Looks up the names of some ranks from *next on; *next goes on behind them. */
static int look_up_some(sl_roster *r, uint32_t *next, const sl_lookup_wait *wait, sl_error *error) {
    sl_lookup lookups[LOOKED_UP];
    uint32_t ranks[LOOKED_UP];
    size_t count = 0;
    for (; *next < r->count && count < LOOKED_UP; ++*next) {
        const place *p = &r->places[*next];
        const bool is_found = p->address.family != 0;
        const bool is_asked = count > 0 && p->host == r->places[ranks[count - 1]].host;
        if (is_found || is_asked)
            continue;
        lookups[count] = (sl_lookup){.may_come = p->may_come};
        strcpy(lookups[count].host, host_of(r, *next));
        ranks[count++] = *next;
    }
    const int result = count > 0 ? sl_lookup_all(lookups, count, wait, error) : 0;
    for (size_t i = 0; i < count && result == 0; i++)
        for (uint32_t rank = ranks[i];
             rank < *next && r->places[rank].host == r->places[ranks[i]].host; rank++)
            r->places[rank].address = sl_address_pack(&lookups[i].address);
    return result;
}

int sl_roster_find_addresses(sl_roster *r, const sl_lookup_wait *wait, sl_error *error) {
    sl_lookup_wait in_all = *wait;
    int result = 0;
    in_all.began_s = sl_clock_seconds();
    for (uint32_t next = 0; next < r->count && result == 0;)
        result = look_up_some(r, &next, &in_all, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "%s", r->where);
    result = check_distinct(r, error);
    return result != 0 ? result : check_reach(r, error);
}

int sl_roster_resolve(sl_roster *roster, double timeout_s, const volatile int *stop,
                      sl_error *error) {
    return sl_roster_find_addresses(
        roster, &(sl_lookup_wait){.timeout_s = timeout_s, .stop_fd = -1, .stop = stop}, error);
}

struct sockaddr_storage sl_roster_address(const sl_roster *r, uint32_t rank) {
    return sl_address_unpack(&r->places[rank].address, r->places[rank].port);
}

void sl_roster_close(sl_roster **roster) {
    sl_roster *r = *roster;
    if (r == NULL)
        return;
    free(r->places);
    sl_names_close(&r->names);
    free(r);
    *roster = NULL;
}

uint32_t sl_roster_count(const sl_roster *roster) {
    return roster->count;
}

const char *sl_roster_host(const sl_roster *roster, uint32_t rank) {
    return host_of(roster, rank);
}

const char *sl_roster_fingerprint(const sl_roster *roster, uint32_t rank) {
    const uint32_t pin = rank < roster->count ? roster->places[rank].pin : SL_NAMES_NONE;
    return pin != SL_NAMES_NONE ? sl_names_at(&roster->names, pin) : "";
}

bool sl_roster_revokes(const sl_roster *roster, uint32_t rank) {
    return strcmp(sl_roster_fingerprint(roster, rank), revoked) == 0;
}

const char *sl_roster_name(const sl_roster *roster) {
    return roster->where;
}

int sl_roster_line(const sl_roster *roster, uint32_t rank) {
    return roster->places[rank].line;
}

uint64_t sl_roster_hash(const sl_roster *r, uint32_t count) {
    uint64_t hash = SL_HASH_START;
    for (uint32_t i = 0; i < count && i < r->count; i++)
        hash = sl_hash_word(sl_hash(hash, host_of(r, i), strlen(host_of(r, i))), r->places[i].port);
    return hash;
}

void sl_roster_be(sl_roster *roster, uint32_t rank) {
    roster->own = rank;
}

const char *sl_roster_everywhere(const sl_roster *r) {
    const uint32_t beyond = rank_beyond(r);
    if (beyond == r->count || r->own >= r->count || !is_own_host(r, r->own))
        return NULL;
    return r->places[beyond].address.family == AF_INET6 ? "::" : "0.0.0.0";
}

void sl_roster_name_run(sl_roster *roster, uint64_t run_id) {
    roster->run = run_id;
}

uint64_t sl_roster_run(const sl_roster *roster) {
    return roster->run;
}

uint16_t sl_roster_port(const sl_roster *roster, uint32_t rank) {
    return roster->places[rank].port;
}
