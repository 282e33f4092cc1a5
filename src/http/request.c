/* request.c - see request.h. RFC 9112, for those parts that matter here; a line may end without a
 * carriage return. */
#include "http/request.h"

#include <string.h>
#include <strings.h>

#include "base/address.h"

enum { NAME_BYTES_MAX = 256 };

typedef struct piece {
    const char *at; /* (count) */
    size_t count;
} piece;

static bool is_text(piece p, const char *text) {
    return p.count == strlen(text) && memcmp(p.at, text, p.count) == 0;
}

static bool is_text_of_any_case(piece p, const char *text) {
    return p.count == strlen(text) && strncasecmp(p.at, text, p.count) == 0;
}

/* What comes before the first such byte, and goes with it from *from; all, if there is none. */
static piece take_until(piece *from, char byte) {
    const char *end = from->count > 0 ? memchr(from->at, byte, from->count) : NULL;
    const piece taken = {from->at, end != NULL ? (size_t)(end - from->at) : from->count};
    const size_t gone = taken.count + (end != NULL);
    from->at += gone;
    from->count -= gone;
    return taken;
}

static piece take_line(piece *from) {
    piece line = take_until(from, '\n');
    line.count -= line.count > 0 && line.at[line.count - 1] == '\r';
    return line;
}

static piece trim(piece p) {
    for (; p.count > 0 && (*p.at == ' ' || *p.at == '\t'); p.at++)
        p.count--;
    while (p.count > 0 && (p.at[p.count - 1] == ' ' || p.at[p.count - 1] == '\t'))
        p.count--;
    return p;
}

/* ---- the head ---- */

/* With the empty line at its end; 0: that has not come. */
static size_t head_bytes(const sl_request *r) {
    for (piece left = {r->bytes, r->count}; left.count > 0;)
        if (take_line(&left).count == 0 && left.at[-1] == '\n')
            return r->count - left.count;
    return 0;
}

static bool is_readable(piece p) {
    for (size_t i = 0; i < p.count; i++) {
        const unsigned char byte = (unsigned char)p.at[i];
        if ((byte < ' ' && byte != '\t' && byte != '\r' && byte != '\n') || byte == 0x7f)
            return false;
    }
    return true;
}

/* ---- what is asked ---- */

static int judge_first_line(piece line, const char *from, sl_wanted *asked) {
    const piece method = take_until(&line, ' ');
    piece target = take_until(&line, ' ');
    asked->head_only = is_text(method, "HEAD");
    if (method.count == 0 || target.count == 0 || line.count != strlen("HTTP/1.1"))
        return SL_REQUEST_BAD;
    if (!is_text(line, "HTTP/1.1") && !is_text(line, "HTTP/1.0"))
        return SL_REQUEST_VERSION;
    const piece path = take_until(&target, '?');
    asked->path = (size_t)(path.at - from);
    asked->path_bytes = path.count;
    asked->query = (size_t)(target.at - from);
    asked->query_bytes = target.count;
    return asked->head_only || is_text(method, "GET") ? SL_REQUEST_OK : SL_REQUEST_WRITES;
}

/* Without the port. */
static piece host_of(piece value) {
    const char *end = NULL;
    if (value.count > 0 && *value.at == '[') {
        value.at++, value.count--;
        return take_until(&value, ']');
    }
    for (size_t i = 0; i < value.count; i++)
        if (value.at[i] == ':')
            end = value.at + i;
    return (piece){value.at, end != NULL ? (size_t)(end - value.at) : value.count};
}

/* No name server can say what an address means. */
static bool is_address(piece host) {
    char text[NAME_BYTES_MAX];
    struct sockaddr_storage address;
    if (host.count >= sizeof text)
        return false;
    memcpy(text, host.at, host.count);
    text[host.count] = '\0';
    return sl_address_parse(&address, text);
}

static bool is_own(piece value, const char *name) {
    const piece host = host_of(value);
    return name == NULL || is_address(host) || is_text_of_any_case(host, "localhost") ||
           is_text_of_any_case(host, name);
}

/* What is found in the header. */
typedef struct found {
    unsigned hosts;
    bool is_foreign, has_body, is_bad;
} found;

static void judge_field(found *f, piece line, const char *host) {
    piece value = line;
    const piece name = take_until(&value, ':');
    f->is_bad |= name.count == 0 || name.count == line.count || trim(name).count != name.count;
    value = trim(value);
    if (is_text_of_any_case(name, "Host")) {
        f->hosts++;
        f->is_foreign |= !is_own(value, host);
    }
    f->has_body |= is_text_of_any_case(name, "Transfer-Encoding") ||
                   (is_text_of_any_case(name, "Content-Length") && !is_text(value, "0"));
}

static int judge_fields(piece left, bool needs_host, const char *host) {
    found f = {0};
    for (piece line = take_line(&left); line.count > 0; line = take_line(&left))
        judge_field(&f, line, host);
    if (f.is_bad || f.hosts > 1 || (f.hosts == 0 && needs_host))
        return SL_REQUEST_BAD;
    if (f.is_foreign)
        return SL_REQUEST_FOREIGN;
    return f.has_body ? SL_REQUEST_HAS_BODY : SL_REQUEST_OK;
}

int sl_request_judge(const sl_request *r, sl_wanted *asked) {
    const size_t whole = head_bytes(r);
    piece head = {r->bytes, whole > 0 ? whole : r->count};
    *asked = (sl_wanted){0};
    if (!is_readable(head))
        return SL_REQUEST_BAD;
    if (whole == 0)
        return r->count < SL_REQUEST_BYTES_MAX ? SL_REQUEST_UNFINISHED : SL_REQUEST_LONG;
    const piece first = take_line(&head);
    const int line = judge_first_line(first, r->bytes, asked);
    if (line == SL_REQUEST_BAD || line == SL_REQUEST_VERSION)
        return line;
    const bool needs_host = first.at[first.count - 1] == '1'; /* HTTP/1.1 does */
    const int told = judge_fields(head, needs_host, r->host);
    return told != SL_REQUEST_OK ? told : line;
}
