/* bytes.c - a whole data file in memory; see bytes.h.
 *
 * zlib's gzread passes a plain file through unchanged, so both kinds take one path. The buffer
 * grows only as bytes arrive, and no further than the file's size allows.
 */
#include "learner/data/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define FIRST_BYTES ((size_t)1 << 16)
#define PIECE_BYTES ((size_t)1 << 22) /* of one gzread */
#define SMALL_BYTES ((size_t)64 << 20)
#define RATIO_MAX ((size_t)100)

/* Data sets compress to about a tenth. A much higher ratio is a mistake or an attack. */
static size_t unpacked_max(size_t file_bytes) {
    size_t bytes = file_bytes < SL_BYTES_MAX / RATIO_MAX ? file_bytes * RATIO_MAX : SL_BYTES_MAX;
    return bytes > SMALL_BYTES ? bytes : SMALL_BYTES;
}

static int grow(sl_bytes *bytes, size_t *capacity, size_t limit, sl_error *error) {
    if (bytes->size >= limit)
        return sl_fail(error, SL_EFILE,
                       "%s: unpacks to more than %zu bytes; at most %zu bytes are read, and of a "
                       "large gzip file at most %zu times its size",
                       bytes->name, limit, SL_BYTES_MAX, RATIO_MAX);
    size_t larger = *capacity == 0 ? FIRST_BYTES : *capacity * 2;
    larger = larger < limit ? larger : limit;
    uint8_t *data = realloc(bytes->data, larger);
    if (data == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory at %zu bytes", bytes->name, larger);
    bytes->data = data;
    *capacity = larger;
    return 0;
}

static int read_all(sl_bytes *bytes, gzFile file, size_t limit, sl_error *error) {
    size_t capacity = 0;
    for (;;) {
        if (bytes->size == capacity) {
            int result = grow(bytes, &capacity, limit, error);
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
        if (got == 0)
            return 0;
        bytes->size += (size_t)got;
    }
}

/* Only regular files are read: a folder would open like a file, and a FIFO would block for ever. */
static int open_regular(const char *path, size_t *size, sl_error *error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return sl_fail(error, SL_EFILE, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return sl_fail(error, SL_EFILE, "%s: is not a regular file; give a data file here", path);
    }
    *size = (size_t)status.st_size;
    return fd;
}

int sl_bytes_read(sl_bytes *out, const char *path, sl_error *error) {
    size_t size = 0;
    int fd = open_regular(path, &size, error);
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
    int result = read_all(&bytes, file, unpacked_max(size), error);
    gzclose(file);
    if (result == 0)
        *out = bytes;
    else
        free(bytes.data);
    return result;
}

int sl_bytes_find(sl_bytes *out, const char *folder, const char *name, sl_error *error) {
    static const char *const endings[] = {"", ".gz"};
    char path[sizeof out->name];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        snprintf(path, sizeof path, "%s/%s%s", folder, name, endings[i]);
        if (access(path, F_OK) == 0)
            return sl_bytes_read(out, path, error);
    }
    snprintf(path, sizeof path, "%s/%s.xz", folder, name);
    if (access(path, F_OK) == 0)
        return sl_fail(error, SL_EFILE,
                       "%s: xz files are not supported; decompress it first: xz -dk %s", path,
                       path);
    return sl_fail(error, SL_EFILE,
                   "%s/%s: no such file, with or without .gz; data.path must be its folder", folder,
                   name);
}

void sl_bytes_close(sl_bytes *bytes) {
    free(bytes->data);
    *bytes = (sl_bytes){0};
}
