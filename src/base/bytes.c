/* bytes.c - a whole file in memory; see bytes.h.
 *
 * zlib's gzread passes a plain file through unchanged, so both kinds take one path. The buffer
 * grows only as bytes arrive, and no further than the file's size allows.
 */
#include "base/bytes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/regular.h"

#define FIRST_BYTES ((size_t)1 << 16)
#define PIECE_BYTES ((size_t)1 << 22) /* of one gzread */
#define SMALL_BYTES ((size_t)64 << 20)
#define RATIO_MAX ((size_t)100)

/* Packed files that are not unpacked here, by how they begin. */
static const struct packing {
    const char *begin;
    size_t bytes;
    const char *name, *command;
} packings[] = {
    {"\xFD"
     "7zXZ\0",
     6, "xz", "xz -dk"},
    {"BZh", 3, "bzip2", "bunzip2 -k"},
    {"\x28\xB5\x2F\xFD", 4, "zstd", "zstd -d"},
    {"\x04\x22\x4D\x18", 4, "lz4", "lz4 -d"},
    {"PK\3\4", 4, "zip", "unzip"},
    {"7z\xBC\xAF\x27\x1C", 6, "7z", "7z x"},
};
enum { PACKINGS = sizeof packings / sizeof *packings };

int sl_bytes_refuse_packed(const sl_bytes *bytes, sl_error *error) {
    enum { TAR_AT = 257 };
    for (const struct packing *p = packings; p < packings + PACKINGS; p++)
        if (bytes->size > p->bytes && memcmp(bytes->data, p->begin, p->bytes) == 0)
            return sl_fail(error, SL_EFILE,
                           "%s: is packed by %s, and only gzip is unpacked here: %s %s",
                           bytes->name, p->name, p->command, bytes->name);
    if (bytes->size > TAR_AT + 5 && memcmp(bytes->data + TAR_AT, "ustar", 5) == 0)
        return sl_fail(error, SL_EFILE,
                       "%s: is a tar archive; unpack it and name a file of it: tar -xf %s",
                       bytes->name, bytes->name);
    return 0;
}

/* What people read compresses to about a tenth. A much higher ratio is a mistake or an attack. */
static size_t unpacked_max(size_t file_bytes, size_t bytes_max) {
    size_t bytes = file_bytes < bytes_max / RATIO_MAX ? file_bytes * RATIO_MAX : bytes_max;
    size_t least = SMALL_BYTES < bytes_max ? SMALL_BYTES : bytes_max;
    return bytes > least ? bytes : least;
}

static int grow(sl_bytes *bytes, size_t *capacity, size_t limit, sl_error *error) {
    size_t larger = *capacity == 0 ? FIRST_BYTES : *capacity * 2;
    larger = larger < limit ? larger : limit;
    uint8_t *data = realloc(bytes->data, larger + 1);
    if (data == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory at %zu bytes", bytes->name, larger);
    bytes->data = data;
    *capacity = larger;
    return 0;
}

static int refuse_length(const sl_bytes *bytes, size_t limit, sl_error *error) {
    return sl_fail(error, SL_EFILE,
                   "%s: unpacks to more than %zu bytes, which is as much as is read of a gzip file "
                   "of its size",
                   bytes->name, limit);
}

/* One byte more than the limit is asked for, to see that it is not there. */
static int read_all(sl_bytes *bytes, gzFile file, size_t limit, sl_error *error) {
    size_t capacity = 0;
    for (;;) {
        if (bytes->size > limit)
            return refuse_length(bytes, limit, error);
        if (bytes->size == capacity) {
            int result = grow(bytes, &capacity, limit + 1, error);
            if (result != 0)
                return result;
        }
        size_t room = capacity - bytes->size;
        int got = gzread(file, bytes->data + bytes->size,
                         (unsigned)(room < PIECE_BYTES ? room : PIECE_BYTES));
        int status = Z_OK;
        const char *text = gzerror(file, &status);
        /* A gzip file that ends early gives the bytes it has, and Z_BUF_ERROR beside them. */
        if (got < 0 || status == Z_BUF_ERROR)
            return sl_fail(error, SL_EFILE,
                           "%s: cannot be read beyond byte %zu: %s; is the file truncated?",
                           bytes->name, bytes->size, status == Z_ERRNO ? strerror(errno) : text);
        bytes->data[bytes->size += (size_t)got] = 0;
        if (got == 0)
            return 0;
    }
}

static int open_small(const char *path, size_t bytes_max, size_t *size, sl_error *error) {
    struct stat status;
    const int fd = sl_regular_open(path, 0, &status, error);
    if (fd < 0)
        return fd;
    *size = (size_t)status.st_size;
    if (*size <= bytes_max)
        return fd;
    close(fd);
    return sl_fail(error, SL_EFILE, "%s: is %zu bytes long; at most %zu are allowed", path, *size,
                   bytes_max);
}

int sl_bytes_read_packed(sl_bytes *out, const char *path, size_t bytes_max, sl_error *error) {
    size_t size = 0;
    int fd = open_small(path, bytes_max, &size, error);
    if (fd < 0)
        return fd;
    gzFile file = gzdopen(fd, "rb");
    if (file == NULL) {
        close(fd);
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    }
    gzbuffer(file, FIRST_BYTES);
    sl_bytes bytes = {0};
    snprintf(bytes.name, sizeof bytes.name, "%s", path);
    int result = read_all(&bytes, file, unpacked_max(size, bytes_max), error);
    gzclose(file);
    if (result == 0)
        *out = bytes;
    else
        free(bytes.data);
    return result;
}

int sl_bytes_read(sl_bytes *out, const char *path, size_t bytes_max, sl_error *error) {
    sl_bytes bytes;
    int result = sl_bytes_read_packed(&bytes, path, bytes_max, error);
    if (result != 0)
        return result;
    result = sl_bytes_refuse_packed(&bytes, error);
    if (result == 0)
        *out = bytes;
    else
        free(bytes.data);
    return result;
}

void sl_bytes_close(sl_bytes *bytes) {
    free(bytes->data);
    *bytes = (sl_bytes){0};
}
