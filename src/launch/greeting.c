/* greeting.c - see greeting.h. */
#include "launch/greeting.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/checksum.h"

enum { MAGIC_BYTES = 8, PROTOCOL_OF_ORIGIN = 10 /* the first that tells it */ };
static const char greeting_magic[] = "STLGmeet", answer_magic[] = "STLGtell";

static size_t end_message(uint8_t *out, uint8_t *end) {
    return (size_t)(put64(end, sl_checksum(out, (size_t)(end - out))) - out);
}

/* Is it the sum of all bytes before it? */
static bool sum_is_right(const uint8_t *data, size_t bytes) {
    return get64(data + bytes - SL_SUM_BYTES) == sl_checksum(data, bytes - SL_SUM_BYTES);
}

static bool begins_with(const uint8_t *data, size_t count, const char *magic) {
    return memcmp(data, magic, count < MAGIC_BYTES ? count : MAGIC_BYTES) == 0;
}

size_t sl_greeting_encode(const sl_greeting *g, uint8_t out[SL_GREETING_BYTES_MAX]) {
    const size_t length = strlen(g->host);
    memcpy(out, greeting_magic, MAGIC_BYTES);
    uint8_t *p = put32(out + MAGIC_BYTES, g->protocol);
    p = put32(p, g->rank);
    p = put32(p, g->size);
    p = put64(p, g->run);
    p = put64(p, g->nonce);
    p = put32(p, g->port);
    p = put32(p, (uint32_t)length);
    p = mempcpy(p, g->host, length);
    if (g->protocol >= PROTOCOL_OF_ORIGIN)
        p = put64(put64(put64(put64(p, g->origin.command), g->origin.place), g->origin.host),
                  g->origin.variables);
    return end_message(out, p);
}

/* What may stand in a name or an address. */
static bool is_host(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) &&
            (text[i] == '\0' || strchr(".-_:%", text[i]) == NULL))
            return false;
    return true;
}

size_t sl_greeting_decode(sl_greeting *out, const uint8_t *data, size_t count) {
    if (!begins_with(data, count, greeting_magic))
        return 0;
    if (count < SL_GREETING_HEADER_BYTES)
        return SL_GREETING_HEADER_BYTES;
    const uint32_t length = get32(data + 40), port = get32(data + 36);
    if (length >= SL_HOST_MAX || port == 0 || port > UINT16_MAX)
        return 0;
    const bool has_origin = get32(data + 8) >= PROTOCOL_OF_ORIGIN;
    const size_t bytes = SL_GREETING_HEADER_BYTES + length +
                         (has_origin ? SL_GREETING_ORIGIN_BYTES : 0) + SL_SUM_BYTES;
    if (count < bytes)
        return bytes;
    const char *host = (const char *)data + SL_GREETING_HEADER_BYTES;
    const uint8_t *origin = data + SL_GREETING_HEADER_BYTES + length;
    if (!sum_is_right(data, bytes) || !is_host(host, length))
        return 0;
    *out = (sl_greeting){.protocol = get32(data + 8),
                         .rank = get32(data + 12),
                         .size = get32(data + 16),
                         .run = get64(data + 20),
                         .nonce = get64(data + 28),
                         .port = (uint16_t)port};
    memcpy(out->host, host, length);
    if (has_origin)
        out->origin =
            (sl_origin){get64(origin), get64(origin + 8), get64(origin + 16), get64(origin + 24)};
    return bytes;
}

size_t sl_answer_encode(const sl_answer *a, uint8_t *out) {
    memcpy(out, answer_magic, MAGIC_BYTES);
    uint8_t *p = put32(put32(out + MAGIC_BYTES, a->type), a->bytes);
    if (a->bytes > 0)
        memcpy(p, a->text, a->bytes);
    return end_message(out, p + a->bytes);
}

size_t sl_answer_decode(sl_answer *out, const uint8_t *data, size_t count, size_t text_max) {
    if (!begins_with(data, count, answer_magic))
        return 0;
    if (count < SL_ANSWER_HEADER_BYTES)
        return SL_ANSWER_HEADER_BYTES;
    const uint32_t type = get32(data + 8), length = get32(data + 12);
    if (type < SL_ANSWER_WELCOME || type > SL_ANSWER_REFUSED || length > text_max)
        return 0;
    const size_t bytes = SL_ANSWER_HEADER_BYTES + length + SL_SUM_BYTES;
    if (count < bytes)
        return bytes;
    if (!sum_is_right(data, bytes) || memchr(data + SL_ANSWER_HEADER_BYTES, '\0', length) != NULL)
        return 0;
    *out = (sl_answer){(sl_answer_type)type, data + SL_ANSWER_HEADER_BYTES, length};
    return bytes;
}
