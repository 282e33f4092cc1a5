/* text.c - texts as people's tools write them; see starling/text.h and bytes.h. */
#include "starling/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define LOOKED_AT ((size_t)256) /* bytes, for UTF-16 without a byte order mark */

static bool begins_with(const sl_bytes *bytes, const char *mark, size_t size) {
    return bytes->size >= size && memcmp(bytes->data, mark, size) == 0;
}

/* The encoding's name for iconv; NULL: it is not UTF-16. Letters of most languages have one byte
 * that is 0 there, always the first or always the second one. */
static const char *wide_encoding(const sl_bytes *bytes) {
    size_t zeros[2] = {0, 0}, pairs = (bytes->size < LOOKED_AT ? bytes->size : LOOKED_AT) / 2;
    if (begins_with(bytes, "\xFF\xFE", 2) || begins_with(bytes, "\xFE\xFF", 2))
        return "UTF-16";
    for (size_t i = 0; i < 2 * pairs; i++)
        zeros[i % 2] += bytes->data[i] == 0;
    if (zeros[0] == 0 && 2 * zeros[1] > pairs)
        return "UTF-16LE";
    return zeros[1] == 0 && 2 * zeros[0] > pairs ? "UTF-16BE" : NULL;
}

/* CR before LF goes, however many there are. Without any LF each CR ends a line. Returns the new
 * size; a 0 stands behind the text. */
static size_t mend_line_ends(uint8_t *text, size_t size) {
    const bool has_lf = memchr(text, '\n', size) != NULL;
    size_t to = 0;
    for (size_t from = 0; from < size;) {
        size_t end = from;
        while (text[end] == '\r')
            end++;
        const bool is_end = text[end] == '\n';
        for (; from < end; from++)
            if (!is_end)
                text[to++] = has_lf ? '\r' : '\n';
        if (from < size)
            text[to++] = text[from++];
    }
    return to;
}

int sl_bytes_to_text(sl_bytes *bytes, sl_error *error) {
    const char *wide = wide_encoding(bytes);
    if (wide != NULL)
        return sl_fail(error, SL_EFILE,
                       "%s: is UTF-16 text, and UTF-8 is read; write it anew: iconv -f %s -t UTF-8 "
                       "%s > NEW",
                       bytes->name, wide, bytes->name);
    const size_t mark = begins_with(bytes, "\xEF\xBB\xBF", 3) ? 3 : 0;
    bytes->size -= mark;
    memmove(bytes->data, bytes->data + mark, bytes->size + 1);
    bytes->size = mend_line_ends(bytes->data, bytes->size);
    bytes->data[bytes->size] = '\0';
    return 0;
}

int sl_bytes_read_text(sl_bytes *out, const char *path, size_t bytes_max, sl_error *error) {
    sl_bytes bytes;
    int result = sl_bytes_read(&bytes, path, bytes_max, error);
    if (result != 0)
        return result;
    result = sl_bytes_to_text(&bytes, error);
    if (result != 0)
        sl_bytes_close(&bytes);
    else
        *out = bytes;
    return result;
}

int sl_bytes_take_string(char **out, sl_bytes *bytes, sl_error *error) {
    int result = sl_bytes_to_text(bytes, error);
    const uint8_t *nul = memchr(bytes->data, 0, bytes->size + 1);
    if (result == 0 && nul != bytes->data + bytes->size)
        result = sl_fail(error, SL_EFILE, "%s: is no text: its byte %zu is 0", bytes->name,
                         (size_t)(nul - bytes->data));
    if (result == 0)
        *out = (char *)bytes->data;
    else
        free(bytes->data);
    *bytes = (sl_bytes){0};
    return result;
}

int sl_text_read(char **out, const char *path, size_t bytes_max, sl_error *error) {
    sl_bytes bytes;
    int result = sl_bytes_read(&bytes, path, bytes_max, error);
    return result != 0 ? result : sl_bytes_take_string(out, &bytes, error);
}

int sl_file_read(char **out, size_t *bytes, const char *path, size_t bytes_max, sl_error *error) {
    sl_bytes file;
    int result = sl_bytes_read(&file, path, bytes_max, error);
    if (result != 0)
        return result;
    *out = (char *)file.data;
    *bytes = file.size;
    return 0;
}

/* ---- numbers as people type them ---- */

/* Copies one number; returns what stands behind it. */
static const char *put_number(char **to, const char *at) {
    if (*at == '-')
        *(*to)++ = '-';
    at += *at == '-' || *at == '+';
    if (*at == '.')
        *(*to)++ = '0';
    while (isdigit((unsigned char)*at))
        *(*to)++ = *at++;
    if (*at != '.')
        return at;
    *(*to)++ = *at++;
    if (!isdigit((unsigned char)*at))
        *(*to)++ = '0';
    return at;
}

static bool begins_number(const char *at) {
    at += *at == '-' || *at == '+';
    at += *at == '.';
    return isdigit((unsigned char)*at);
}

char *sl_text_typed(const char *text) {
    char *typed = malloc(2 * strlen(text) + 1), *to = typed;
    bool quoted = false, between = true; /* values */
    while (typed != NULL && *text != '\0') {
        if (!quoted && between && begins_number(text)) {
            text = put_number(&to, text);
            between = false;
            continue;
        }
        if (quoted && *text == '\\' && text[1] != '\0')
            *to++ = *text++;
        else if (*text == '"')
            quoted = !quoted;
        between = strchr("[:, \t", *text) != NULL;
        *to++ = *text++;
    }
    if (typed != NULL)
        *to = '\0';
    return typed;
}
