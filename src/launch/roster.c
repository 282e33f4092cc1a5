/* roster.c - host and port of every rank; see starling/roster.h. */
#include "launch/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "launch/environment.h"
#include "launch/hostfile.h"
#include "starling/text.h"

enum { ROSTER_BYTES_MAX = 16 << 20, LINE_MAX_BYTES = 512, PIN_DIGITS = 64 };
static const char pin_begin[] = "sha256:";

/* A certificate's fingerprint, as text; empty: none. */
typedef struct pin {
    char text[sizeof pin_begin + PIN_DIGITS];
} pin;

static const char rank_hole[] = "{rank}";

struct sl_roster {
    sl_lookup *hosts; /* (count) */
    uint16_t *ports;  /* (count) */
    pin *pins;        /* (count) */
    int *lines;       /* (count) of the file, for errors */
    uint32_t count, room;
    uint64_t run;
    uint32_t own;            /* the rank that this process is; beyond the last: not known */
    char where[SL_HOST_MAX]; /* file, for errors */
};

/* ---- parsing ---- */

int sl_place_parse(char host[SL_HOST_MAX], uint16_t *port, const char *text, unsigned port_min,
                   const char *where, sl_error *error) {
    const char *colon = strrchr(text, ':');
    const char *begin = text, *end = colon;
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

static int make_room(sl_roster *r, sl_error *error) {
    if (r->count < r->room)
        return 0;
    uint32_t room = r->room ? 2 * r->room : 16;
    sl_lookup *hosts = realloc(r->hosts, room * sizeof *hosts);
    r->hosts = hosts != NULL ? hosts : r->hosts;
    uint16_t *ports = realloc(r->ports, room * sizeof *ports);
    r->ports = ports != NULL ? ports : r->ports;
    pin *pins = realloc(r->pins, room * sizeof *pins);
    r->pins = pins != NULL ? pins : r->pins;
    int *lines = realloc(r->lines, room * sizeof *lines);
    r->lines = lines != NULL ? lines : r->lines;
    if (hosts == NULL || ports == NULL || pins == NULL || lines == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", r->where);
    r->room = room;
    return 0;
}

static bool is_pin(const char *word) {
    return word != NULL && strncmp(word, pin_begin, sizeof pin_begin - 1) == 0;
}

static int take_pin(pin *out, const char *word, const char *where, sl_error *error) {
    const char *digits = word != NULL ? word + sizeof pin_begin - 1 : NULL;
    *out = (pin){0};
    if (word == NULL)
        return 0;
    if (!is_pin(word) || strlen(digits) != PIN_DIGITS ||
        strspn(digits, "0123456789abcdef") != PIN_DIGITS)
        return sl_fail(error, SL_EFILE,
                       "%s: '%s' is not a certificate's fingerprint, sha256: and %d digits 0-9a-f, "
                       "as `starling keys roster` prints it",
                       where, word, PIN_DIGITS);
    strcpy(out->text, word);
    return 0;
}

static char *next_word(char **save) {
    char *word = strtok_r(NULL, " \t\r", save);
    return word != NULL && word[0] != '#' ? word : NULL;
}

static int add_place(sl_roster *r, const char *place, const char *fingerprint, int line,
                     sl_error *error) {
    char where[SL_HOST_MAX + 16];
    int result = make_room(r, error);
    if (result != 0)
        return result;
    sl_lookup *host = &r->hosts[r->count];
    memset(host, 0, sizeof *host);
    snprintf(where, sizeof where, "%s:%d", r->where, line);
    result = sl_place_parse(host->host, &r->ports[r->count], place, 1, where, error);
    if (result == 0)
        result = take_pin(&r->pins[r->count], fingerprint, where, error);
    if (result != 0)
        return result;
    sl_lookup_numeric(host);
    r->lines[r->count++] = line;
    return 0;
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

/* By port, then by address, or by name where that is not looked up yet. */
static int compare_places(const void *x, const void *y, void *context) {
    const sl_roster *r = context;
    uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    const sl_lookup *a = &r->hosts[i], *b = &r->hosts[j];
    if (r->ports[i] != r->ports[j])
        return r->ports[i] < r->ports[j] ? -1 : 1;
    if (a->found != b->found)
        return a->found ? -1 : 1;
    return a->found ? memcmp(&a->address, &b->address, sizeof a->address)
                    : strcmp(a->host, b->host);
}

/* Two ranks at one address would wait for each other for ever. */
static int check_distinct(sl_roster *r, sl_error *error) {
    uint32_t *order = malloc((r->count + 1u) * sizeof *order);
    if (order == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", r->where);
    for (uint32_t i = 0; i < r->count; i++)
        order[i] = i;
    qsort_r(order, r->count, sizeof *order, compare_places, r);
    int result = 0;
    for (uint32_t k = 1; k < r->count && result == 0; k++) {
        uint32_t i = order[k - 1], j = order[k];
        if (compare_places(&i, &j, r) == 0)
            result = sl_fail(error, SL_EFILE, "%s:%d: %s:%u is the address of ranks %u and %u",
                             r->where, r->lines[i > j ? i : j], r->hosts[j].host, r->ports[j],
                             i < j ? i : j, i < j ? j : i);
    }
    free(order);
    return result;
}

/* Is it a loopback address, and this host by its own name? */
static bool is_own_host(const sl_roster *r, uint32_t rank) {
    return r->own < r->count && sl_address_is_loopback(&r->hosts[rank].address) &&
           strcmp(r->hosts[rank].host, r->hosts[r->own].host) == 0;
}

/* The first rank beyond this host; the number of ranks: there is none. */
static uint32_t rank_beyond(const sl_roster *r) {
    uint32_t i = 0;
    while (i < r->count && sl_address_is_loopback(&r->hosts[i].address))
        i++;
    return i;
}

/* Where some are on several hosts, an address of one host alone is each of them itself. */
static int check_reach(const sl_roster *r, sl_error *error) {
    const uint32_t beyond = rank_beyond(r);
    uint32_t here = 0;
    while (here < r->count &&
           (!sl_address_is_loopback(&r->hosts[here].address) || is_own_host(r, here)))
        here++;
    if (here == r->count || beyond == r->count)
        return 0;
    char address[SL_IP_TEXT_MAX];
    sl_address_text(&r->hosts[here].address, address);
    return sl_fail(error, SL_EFILE,
                   "%s:%d: rank %u at %s:%u%s%s is reached from its own host only, but rank %u is "
                   "at %s:%u: give its address on the network",
                   r->where, r->lines[here], here, r->hosts[here].host, r->ports[here],
                   strcmp(address, r->hosts[here].host) == 0 ? "" : ", here ",
                   strcmp(address, r->hosts[here].host) == 0 ? "" : address, beyond,
                   r->hosts[beyond].host, r->ports[beyond]);
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

int sl_roster_parse(sl_roster **out, const char *text, const char *where, sl_error *error) {
    sl_roster *r = calloc(1, sizeof *r);
    if (r == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
    r->own = UINT32_MAX;
    snprintf(r->where, sizeof r->where, "%s", where);
    int result = parse_lines(r, text, error);
    if (result == 0)
        result = check_distinct(r, error);
    if (result != 0)
        sl_roster_close(&r);
    else
        *out = r;
    return result;
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

/* How many ranks of this host there are before its line: an earlier line may have named it. */
static uint32_t ranks_before(const sl_hostfile *h, size_t at) {
    uint32_t count = 0;
    for (size_t i = 0; i < at; i++)
        if (strcmp(h->hosts[i].host, h->hosts[at].host) == 0)
            count += h->hosts[i].count;
    return count;
}

static int add_slot(sl_roster *r, const sl_slots *host, uint64_t port, sl_error *error) {
    char place[SL_HOST_MAX + 16];
    if (port > UINT16_MAX)
        return sl_fail(error, SL_EFILE, "%s:%d: host %s has too many ranks for ports up to 65535",
                       r->where, host->line, host->host);
    snprintf(place, sizeof place, strchr(host->host, ':') != NULL ? "[%s]:%u" : "%s:%u", host->host,
             (unsigned)port);
    return add_place(r, place, NULL, host->line, error);
}

/* A rank for each slot, host by host, as mpirun gives them. */
static int take_slots(sl_roster *r, const sl_hostfile *h, uint64_t ranks, uint16_t port,
                      sl_error *error) {
    int result = 0;
    for (size_t i = 0; i < h->count && result == 0; i++) {
        const uint32_t before = ranks_before(h, i);
        for (uint32_t k = 0; k < h->hosts[i].count && r->count < ranks && result == 0; k++)
            result = add_slot(r, &h->hosts[i], (uint64_t)port + before + k, error);
    }
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
    sl_roster *r = calloc(1, sizeof *r);
    if (r == NULL) {
        result = sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
    } else if (hosts.slots < counts[0]) {
        result = sl_fail(error, SL_EINVAL,
                         "%s: the hosts have %llu slots, the topology %u nodes (topology.nodes): "
                         "each node needs one (HOST slots=N)",
                         where, (unsigned long long)hosts.slots, counts[0]);
    } else {
        r->own = UINT32_MAX;
        snprintf(r->where, sizeof r->where, "%s", where);
        result = take_slots(r, &hosts, counts[1], port, error);
    }
    sl_hostfile_close(&hosts);
    if (result < 0)
        sl_roster_close(&r);
    else
        *out = r;
    return result < 0 ? result : 0;
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

/* The pattern's line of one rank. */
static char *append_line(char *end, const char *pattern, uint32_t rank) {
    const char *hole;
    for (; (hole = strstr(pattern, rank_hole)) != NULL; pattern = hole + strlen(rank_hole)) {
        end = mempcpy(end, pattern, (size_t)(hole - pattern));
        end += sprintf(end, "%u", rank);
    }
    return stpcpy(stpcpy(end, pattern), "\n");
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
    /* A rank has at most 6 digits, {rank} as many characters. */
    char *text = malloc((size_t)count * (strlen(pattern) + 1) + 1), *end = text;
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "roster: out of memory");
    *end = '\0';
    for (uint32_t rank = 0; rank < count; rank++)
        end = append_line(end, pattern, rank);
    int result = sl_roster_parse(out, text, "roster", error);
    free(text);
    for (uint32_t i = 0; result == 0 && i < count; i++)
        (*out)->hosts[i].may_come = true;
    return result;
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

int sl_roster_find_addresses(sl_roster *r, const sl_lookup_wait *wait, sl_error *error) {
    int result = sl_lookup_all(r->hosts, r->count, wait, error);
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
    struct sockaddr_storage address = r->hosts[rank].address;
    sl_address_set_port(&address, r->ports[rank]);
    return address;
}

void sl_roster_close(sl_roster **roster) {
    sl_roster *r = *roster;
    if (r == NULL)
        return;
    free(r->hosts);
    free(r->ports);
    free(r->pins);
    free(r->lines);
    free(r);
    *roster = NULL;
}

uint32_t sl_roster_count(const sl_roster *roster) {
    return roster->count;
}

const char *sl_roster_host(const sl_roster *roster, uint32_t rank) {
    return roster->hosts[rank].host;
}

const char *sl_roster_fingerprint(const sl_roster *roster, uint32_t rank) {
    return rank < roster->count ? roster->pins[rank].text : "";
}

uint64_t sl_roster_hash(const sl_roster *r, uint32_t count) {
    uint64_t hash = SL_HASH_START;
    for (uint32_t i = 0; i < count && i < r->count; i++)
        hash = sl_hash_word(sl_hash(hash, r->hosts[i].host, strlen(r->hosts[i].host)), r->ports[i]);
    return hash;
}

void sl_roster_be(sl_roster *roster, uint32_t rank) {
    roster->own = rank;
}

const char *sl_roster_everywhere(const sl_roster *r) {
    const uint32_t beyond = rank_beyond(r);
    if (beyond == r->count || r->own >= r->count || !is_own_host(r, r->own))
        return NULL;
    return r->hosts[beyond].address.ss_family == AF_INET6 ? "::" : "0.0.0.0";
}

void sl_roster_name_run(sl_roster *roster, uint64_t run_id) {
    roster->run = run_id;
}

uint64_t sl_roster_run(const sl_roster *roster) {
    return roster->run;
}

int sl_roster_check_fingerprints(const sl_roster *r, sl_error *error) {
    for (uint32_t i = 0; i < r->count; i++)
        if (r->pins[i].text[0] == '\0')
            return sl_fail(error, SL_EFILE,
                           "%s:%d: rank %u at %s:%u has no certificate's fingerprint, which "
                           "security.mode \"certificates\" needs: HOST:PORT sha256:..., as "
                           "`starling keys roster` prints it",
                           r->where, r->lines[i], i, r->hosts[i].host, r->ports[i]);
    return 0;
}

uint16_t sl_roster_port(const sl_roster *roster, uint32_t rank) {
    return roster->ports[rank];
}
