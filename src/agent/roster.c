/* roster.c - host:port of every rank; see starling/agent.h. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "starling/agent.h"

enum { HOST_MAX = 256, ROSTER_BYTES_MAX = 16 << 20, LINE_MAX_BYTES = 512 };

typedef struct place {
    char host[HOST_MAX];
    uint16_t port;
} place;

struct sl_roster {
    place *places;
    uint32_t count;
};

static int parse_address(place *out, const char *text, const char *where, int line,
                         sl_error *error) {
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text || colon - text >= HOST_MAX)
        return sl_fail(error, SL_EFILE, "%s:%d: '%s' is not host:port", where, line, text);
    char *end;
    errno = 0;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (!isdigit((unsigned char)colon[1]) || *end != '\0' || port < 1 || port > 65535)
        return sl_fail(error, SL_EFILE, "%s:%d: port '%s' is not a number from 1 to 65535", where,
                       line, colon + 1);
    memcpy(out->host, text, (size_t)(colon - text));
    out->host[colon - text] = '\0';
    out->port = (uint16_t)port;
    return 0;
}

static int add_line(sl_roster *r, char *text, const char *where, int line, sl_error *error) {
    char *save = NULL, *first = strtok_r(text, " \t\r", &save);
    if (first == NULL || first[0] == '#')
        return 0;
    char *second = strtok_r(NULL, " \t\r", &save);
    if (second != NULL && second[0] == '#')
        second = NULL;
    if (second != NULL) {
        char *end;
        unsigned long rank = strtoul(first, &end, 10);
        if (*end != '\0' || rank != r->count)
            return sl_fail(
                error, SL_EFILE,
                "%s:%d: rank '%s' is out of order; expected %u (lines are 'host:port' or "
                "'rank host:port', ranks rising from 0)",
                where, line, first, r->count);
    }
    place *places = realloc(r->places, (r->count + 1u) * sizeof *places);
    if (places == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
    r->places = places;
    int result = parse_address(&r->places[r->count], second ? second : first, where, line, error);
    if (result == 0)
        r->count++;
    return result;
}

int sl_roster_parse(sl_roster **out, const char *text, const char *where, sl_error *error) {
    sl_roster *r = calloc(1, sizeof *r);
    if (r == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
    int result = 0, line = 0;
    while (*text != '\0' && result == 0) {
        char copy[LINE_MAX_BYTES];
        size_t length = strcspn(text, "\n");
        line++;
        if (length >= sizeof copy) {
            result = sl_fail(error, SL_EFILE, "%s:%d: a line is longer than %d bytes", where, line,
                             LINE_MAX_BYTES - 1);
            break;
        }
        memcpy(copy, text, length);
        copy[length] = '\0';
        result = add_line(r, copy, where, line, error);
        text += length + (text[length] == '\n');
    }
    if (result == 0 && r->count == 0)
        result = sl_fail(error, SL_EFILE,
                         "%s: the roster is empty; it needs one host:port line per rank", where);
    if (result != 0)
        sl_roster_close(&r);
    else
        *out = r;
    return result;
}

int sl_roster_load(sl_roster **out, const char *path, sl_error *error) {
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return sl_fail(error, SL_EFILE, "roster %s: %s", path, strerror(errno));
    char *text = NULL;
    size_t room = 0;
    ssize_t bytes = getdelim(&text, &room, '\0', file);
    int result;
    if (bytes > ROSTER_BYTES_MAX)
        result =
            sl_fail(error, SL_EFILE, "roster %s: longer than %d bytes", path, ROSTER_BYTES_MAX);
    else
        result = sl_roster_parse(out, bytes > 0 ? text : "", path, error);
    free(text);
    fclose(file);
    return result;
}

void sl_roster_close(sl_roster **roster) {
    if (*roster != NULL)
        free((*roster)->places);
    free(*roster);
    *roster = NULL;
}

uint32_t sl_roster_count(const sl_roster *roster) {
    return roster->count;
}

const char *sl_roster_host(const sl_roster *roster, uint32_t rank) {
    return roster->places[rank].host;
}

uint16_t sl_roster_port(const sl_roster *roster, uint32_t rank) {
    return roster->places[rank].port;
}
