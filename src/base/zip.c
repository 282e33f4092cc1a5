/* zip.c - see zip.h. https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
 *
 * A list at the archive's end says where each member lies and how long it is. What stands before a
 * member itself is only skipped: it may not know the lengths yet. zlib inflates; its checksum is
 * compared.
 */
#include "base/zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    END_BYTES = 22,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MAX = 65535,
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1
};

/* What the list says of a member. */
typedef struct entry {
    uint32_t flags, method, crc;
    size_t packed, size, at; /* bytes, and where its local header is */
} entry;

static uint32_t u16(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const uint8_t *p) {
    return u16(p) | u16(p + 2) << 16;
}

static int refuse(const sl_bytes *archive, const char *why, sl_error *error) {
    return sl_fail(error, SL_EFILE, "%s: is no zip archive that can be read: %s", archive->name,
                   why);
}

bool sl_zip_is(const sl_bytes *bytes) {
    return bytes->size >= 4 && memcmp(bytes->data, "PK\3\4", 4) == 0;
}

/* Behind the list stand its length and place, and a comment. */
static const uint8_t *find_end(const sl_bytes *a) {
    for (size_t back = END_BYTES; back <= a->size && back <= END_BYTES + COMMENT_MAX; back++) {
        const uint8_t *at = a->data + a->size - back;
        if (memcmp(at, "PK\5\6", 4) == 0 && u16(at + 20) == back - END_BYTES)
            return at;
    }
    return NULL;
}

static int find_entry(entry *out, bool *found, const sl_bytes *a, const char *name,
                      sl_error *error) {
    const uint8_t *end = find_end(a);
    if (end == NULL)
        return refuse(a, "its list of files is missing; is it cut off?", error);
    size_t at = u32(end + 16);
    *found = false;
    for (uint32_t i = 0, count = u16(end + 10); i < count; i++) {
        if (at > a->size || a->size - at < ENTRY_BYTES || memcmp(a->data + at, "PK\1\2", 4) != 0)
            return refuse(a, "its list of files is damaged", error);
        const uint8_t *e = a->data + at;
        const size_t length = u16(e + 28);
        at += ENTRY_BYTES;
        if (length > a->size - at)
            return refuse(a, "its list of files is damaged", error);
        *found = length == strlen(name) && memcmp(a->data + at, name, length) == 0;
        if (*found) {
            *out = (entry){u16(e + 8),  u16(e + 10), u32(e + 16),
                           u32(e + 20), u32(e + 24), u32(e + 42)};
            return 0;
        }
        at += length + u16(e + 30) + u16(e + 32);
    }
    return 0;
}

static bool inflate_all(uint8_t *out, size_t size, const uint8_t *packed, size_t bytes) {
    z_stream z = {.next_in = (z_const Bytef *)packed,
                  .avail_in = (unsigned)bytes,
                  .next_out = out,
                  .avail_out = (unsigned)size};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return false;
    const bool whole = inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_out == 0;
    inflateEnd(&z);
    return whole;
}

static int unpack(sl_bytes *out, const entry *e, const sl_bytes *a, sl_error *error) {
    if (e->flags & ENCRYPTED || (e->method != STORED && e->method != DEFLATED))
        return refuse(a, "it is encrypted, or packed by something other than deflate", error);
    if (e->at > a->size || a->size - e->at < LOCAL_BYTES ||
        memcmp(a->data + e->at, "PK\3\4", 4) != 0)
        return refuse(a, "a file is not where the list says", error);
    const uint8_t *local = a->data + e->at;
    const size_t from = e->at + LOCAL_BYTES + u16(local + 26) + u16(local + 28);
    if (from > a->size || e->packed > a->size - from)
        return refuse(a, "a file reaches beyond its end; is it cut off?", error);
    /* deflate packs to no less than a thousandth */
    if (e->size > SL_BYTES_MAX || e->size / 1100 > e->packed ||
        (e->method == STORED && e->size != e->packed))
        return refuse(a, "a file is too large, or its length is wrong", error);
    out->data = malloc(e->size + 1);
    out->size = e->size;
    if (out->data == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for %zu bytes", a->name, e->size);
    out->data[e->size] = 0;
    bool whole = true;
    if (e->method == STORED)
        memcpy(out->data, a->data + from, e->size);
    else
        whole = inflate_all(out->data, e->size, a->data + from, e->packed);
    if (whole && crc32_z(crc32_z(0, NULL, 0), out->data, e->size) == e->crc)
        return 0;
    sl_bytes_close(out);
    return refuse(a, "a file in it is damaged", error);
}

int sl_zip_read(sl_bytes *out, bool *found, const sl_bytes *archive, const char *name,
                sl_error *error) {
    entry e = {0};
    sl_bytes member = {0};
    int result = find_entry(&e, found, archive, name, error);
    if (result != 0 || !*found)
        return result;
    result = unpack(&member, &e, archive, error);
    if (result != 0)
        return result;
    snprintf(member.name, sizeof member.name, "%.1020s: %.60s", archive->name, name);
    *out = member;
    return 0;
}
