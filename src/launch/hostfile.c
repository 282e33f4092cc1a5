/* hostfile.c - see hostfile.h. */
#include "launch/hostfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "launch/environment.h"
#include "launch/resolver.h"
#include "starling/types.h"

enum {
    LINE_BYTES = 4096,
    NUMBER_DIGITS_MAX = 9,
    PORTS_FROM = 1024, /* no number of slots is as large, and no agent listens below */
    HOSTS_MAX = SL_NODES_MAX,
};

/* What one line says. */
typedef struct line {
    char *place;   /* "node01", "node01:4", "rack[1-2]" */
    char *options; /* "slots=4 max_slots=8", to be cut into words; may be empty */
    int number;
} line;

/* How lines look: whether the text is a list of hosts, or a roster. */
typedef struct look {
    uint32_t lines, bare, numbered, large; /* without a number; with one; with one like a port */
    uint64_t sum;                          /* of the numbers */
    bool has_ones;                         /* all numbers are 1 */
    bool is_roster;                        /* it has a line that no list of hosts has */
} look;

/* ---- lines ---- */

/* The next line that says something; false: there is none. `=` in an option may have blanks around
 * it. *text moves on. */
static bool next_line(const char **text, char copy[LINE_BYTES], line *out) {
    while (**text != '\0') {
        const size_t length = strcspn(*text, "\n");
        size_t bytes = 0;
        out->number++;
        for (size_t i = 0; i < length && (*text)[i] != '#' && bytes < LINE_BYTES - 1; i++) {
            const char c = (*text)[i] == '\t' || (*text)[i] == '\r' ? ' ' : (*text)[i];
            if (c == '=')
                while (bytes > 0 && copy[bytes - 1] == ' ')
                    bytes--;
            if (c != ' ' || bytes == 0 || copy[bytes - 1] != '=')
                copy[bytes++] = c;
        }
        copy[bytes] = '\0';
        *text += length + ((*text)[length] == '\n');
        char *begin = copy + strspn(copy, " ");
        if (*begin == '\0')
            continue;
        char *end = begin + strcspn(begin, " ");
        out->place = begin;
        out->options = *end != '\0' ? end + 1 : end;
        *end = '\0';
        return true;
    }
    return false;
}

static bool is_v6(const char *place) {
    struct sockaddr_storage address;
    return strchr(place, ':') != NULL && sl_address_parse(&address, place);
}

/* The number behind the colon of "node01:4", or "node01:4:card", and its colon; false: none. */
static bool has_number(char *place, char **colon, uint64_t *number) {
    char digits[NUMBER_DIGITS_MAX + 1];
    *colon = strchr(place, ':');
    if (*colon == NULL || is_v6(place))
        return false;
    const size_t length = strcspn(*colon + 1, ":");
    snprintf(digits, sizeof digits, "%.*s", (int)(length < sizeof digits ? length : 0), *colon + 1);
    return sl_whole(digits, UINT32_MAX, number);
}

static void look_at(look *l, const line *at) {
    uint64_t number, rank;
    char *colon;
    l->lines++;
    if (at->place[0] == '[' || (sl_whole(at->place, UINT32_MAX, &rank) && at->options[0] != '\0') ||
        strstr(at->options, "sha256:") != NULL)
        l->is_roster = true;
    else if (has_number(at->place, &colon, &number)) {
        l->numbered++;
        l->bare += strchr(at->place, '[') != NULL; /* no roster has that */
        l->large += number >= PORTS_FROM;
        l->sum += number;
        l->has_ones = (l->numbered == 1 || l->has_ones) && number == 1;
    } else if (strchr(at->place, ':') == NULL || is_v6(at->place))
        l->bare++;
    else
        l->is_roster = true; /* a port that is no number */
}

/* A roster has a port in each line. Where all lines could be either, the number of ranks decides.
 */
static bool is_hostfile(const look *l, uint32_t ranks) {
    if (l->is_roster || l->lines == 0 || l->large > 0)
        return false;
    if (l->bare > 0)
        return true;
    return l->lines == ranks ? l->has_ones && ranks > 1 : l->sum >= ranks;
}

/* ---- hosts ---- */

static int add_host(sl_hostfile *h, const char *host, uint32_t slots, const char *where, int number,
                    sl_error *error) {
    const char *at = strrchr(host, '@'); /* user@host */
    host = at != NULL ? at + 1 : host;
    const size_t length = strlen(host);
    if (length == 0 || length >= SL_HOST_MAX || h->count >= HOSTS_MAX)
        return sl_fail(error, SL_EFILE, "%s:%d: '%s' is no name of a host, or there are too many",
                       where, number, host);
    if (h->count == h->room) {
        const size_t room = h->room > 0 ? 2 * h->room : 16;
        sl_slots *hosts = realloc(h->hosts, room * sizeof *hosts);
        if (hosts == NULL)
            return sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
        h->hosts = hosts;
        h->room = room;
    }
    const uint32_t name = sl_names_add(&h->names, host, length);
    if (name == SL_NAMES_NONE)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
    h->hosts[h->count++] = (sl_slots){.host = name, .count = slots, .line = number};
    h->slots += slots;
    return 0;
}

/* "07-12" or "9": false: it is neither. */
static bool parse_range(const char *text, size_t length, uint64_t *from, uint64_t *to, int *width) {
    char copy[2 * NUMBER_DIGITS_MAX + 2];
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *dash = strchr(copy, '-');
    if (dash != NULL)
        *dash = '\0';
    *width = (int)strlen(copy);
    return sl_whole(copy, 999999999, from) &&
           sl_whole(dash != NULL ? dash + 1 : copy, 999999999, to) && *from <= *to &&
           *to - *from < HOSTS_MAX;
}

typedef struct expansion {
    sl_hostfile *hostfile;
    uint32_t slots;
    const char *where;
    int number;
} expansion;

/* All hosts of "rack[1-2]n[07,09-12]", of which `done` is without brackets. */
static int expand(const expansion *e, const char *done, const char *rest, sl_error *error) {
    const char *open = strchr(rest, '['), *close = open != NULL ? strchr(open, ']') : NULL;
    char host[LINE_BYTES];
    int result = 0;
    if (open == NULL) {
        snprintf(host, sizeof host, "%s%s", done, rest);
        return add_host(e->hostfile, host, e->slots, e->where, e->number, error);
    }
    for (const char *item = open + 1; close != NULL && item <= close && result == 0;) {
        const size_t length = strcspn(item, ",]");
        uint64_t from, to;
        int width;
        if (!parse_range(item, length, &from, &to, &width))
            break;
        for (uint64_t i = from; i <= to && result == 0; i++) {
            const int bytes = snprintf(host, sizeof host, "%s%.*s%0*llu", done, (int)(open - rest),
                                       rest, width, (unsigned long long)i);
            result = bytes < SL_HOST_MAX ? expand(e, host, close + 1, error) : SL_EFILE;
        }
        item += length + 1;
        if (item > close)
            return result;
    }
    return result != 0 ? result
                       : sl_fail(error, SL_EFILE,
                                 "%s:%d: '%s': brackets hold numbers and ranges, as in "
                                 "node[01-04,7]",
                                 e->where, e->number, rest);
}

/* ---- options ---- */

static bool is_one_of(const char *word, size_t length, const char *const *names) {
    for (; *names != NULL; names++)
        if (strlen(*names) == length && strncmp(word, *names, length) == 0)
            return true;
    return false;
}

/* "slots=4 max_slots=8": what slots says; other launchers have other words. */
static int take_options(uint32_t *slots, const line *at, const char *where, sl_error *error) {
    static const char *const counts[] = {"slots", "slot", "np",    "ppn",
                                         "cpus",  "cpu",  "count", NULL};
    static const char *const others[] = {"max_slots", "max-slots", "slots_max", "max_cpus", "user",
                                         "username",  "ifhn",      "binding",   NULL};
    char *save = NULL;
    for (char *word = strtok_r(at->options, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        const size_t length = strcspn(word, "=");
        uint64_t number;
        if (word[length] == '=' && is_one_of(word, length, others))
            continue;
        if (word[length] != '=' || !is_one_of(word, length, counts) ||
            !sl_whole(word + length + 1, SL_NODES_MAX, &number))
            return sl_fail(
                error, SL_EFILE,
                "%s:%d: '%s' is not slots=N; a list of hosts has lines 'node01 slots=4', "
                "'node01:4' or 'node01', and a roster has a line HOST:PORT for each rank",
                where, at->number, word);
        *slots = (uint32_t)number;
    }
    return 0;
}

static int take_line(sl_hostfile *h, const line *at, const char *where, sl_error *error) {
    uint64_t number = 1;
    char *colon;
    if (has_number(at->place, &colon, &number))
        *colon = '\0';
    const expansion e = {h, (uint32_t)number, where, at->number};
    expansion with = e;
    const int result = take_options(&with.slots, at, where, error);
    return result != 0 ? result : expand(&with, "", at->place, error);
}

int sl_hostfile_parse(sl_hostfile *out, const char *text, const char *where, uint32_t ranks,
                      sl_error *error) {
    char copy[LINE_BYTES];
    line at = {0};
    look l = {0};
    sl_hostfile h = {0};
    int result = 0;
    for (const char *rest = text; next_line(&rest, copy, &at);)
        look_at(&l, &at);
    if (!is_hostfile(&l, ranks))
        return 0;
    at = (line){0};
    for (const char *rest = text; result == 0 && next_line(&rest, copy, &at);)
        result = take_line(&h, &at, where, error);
    if (result == 0)
        *out = h;
    else
        sl_hostfile_close(&h);
    return result == 0 ? 1 : result;
}

const char *sl_hostfile_host(const sl_hostfile *hostfile, size_t at) {
    return sl_names_at(&hostfile->names, hostfile->hosts[at].host);
}

void sl_hostfile_close(sl_hostfile *hostfile) {
    free(hostfile->hosts);
    sl_names_close(&hostfile->names);
    *hostfile = (sl_hostfile){0};
}
