/* fuzz_gz.c - files, plain or gzip. An input is read as it is; packed by zlib, when the same bytes
 * must come back, or the same be refused; packed but cut short, which must be refused; and as text,
 * which keeps no mark and no CR before LF. */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"

enum { GZIP_WINDOW = 9 + 16, MEMORY_LEVEL = 1 };

static sl_error error;

/* Reads `data` as a file. */
static int read_back(sl_bytes *out, const uint8_t *data, size_t size) {
    static int fd = -1;
    char path[32];
    if (fd < 0)
        fd = memfd_create("input", MFD_CLOEXEC);
    assert(fd >= 0 && ftruncate(fd, 0) == 0);
    assert(pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return sl_bytes_read(out, path, SL_BYTES_MAX, &error);
}

static size_t pack(uint8_t *out, size_t room, const uint8_t *data, size_t size) {
    z_stream z = {.next_in = (uint8_t *)data, .avail_in = (uInt)size};
    assert(deflateInit2(&z, 1, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert(deflate(&z, Z_FINISH) == Z_STREAM_END);
    const size_t packed = room - z.avail_out;
    deflateEnd(&z);
    return packed;
}

static void try_packed(const uint8_t *data, size_t size) {
    const size_t room = size + size / 8 + 256;
    uint8_t *packed = malloc(room);
    assert(packed != NULL);
    const size_t bytes = pack(packed, room, data, size);
    sl_bytes back;
    if (read_back(&back, packed, bytes) == 0) {
        assert(back.size == size && (size == 0 || memcmp(back.data, data, size) == 0));
        sl_bytes_close(&back);
    } else {
        assert(strstr(error.text, "is packed by") != NULL || strstr(error.text, "tar archive"));
    }
    /* Cut where its first byte says, within what follows the header: never whole. */
    enum { HEADER = 10 };
    const size_t cut = HEADER + (size > 0 ? data[0] : 0) % (bytes - HEADER);
    assert(read_back(&back, packed, cut) != 0);
    free(packed);
}

static void try_text(sl_bytes *bytes) {
    const size_t size = bytes->size;
    if (sl_bytes_to_text(bytes, &error) != 0)
        return;
    assert(bytes->size <= size && bytes->data[bytes->size] == 0);
    for (size_t i = 0; i + 1 < bytes->size; i++)
        assert(bytes->data[i] != '\r' || bytes->data[i + 1] != '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sl_bytes back;
    if (read_back(&back, data, size) == 0) {
        const bool gzip = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
        assert(gzip || (back.size == size && (size == 0 || memcmp(back.data, data, size) == 0)));
        try_text(&back);
        sl_bytes_close(&back);
    }
    try_packed(data, size);
    return 0;
}
