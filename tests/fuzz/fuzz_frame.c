/* fuzz_frame.c - what a peer may send: frames and HELLOs. An input is tried as it is, and again
 * with its two checksums made right, because few mutations would get past them, and as a sealed
 * frame whose tag was right. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "wire/checksum.h"
#include "wire/frame.h"

enum { PAYLOAD_SUM_AT = 40, HEADER_SUM_AT = 60, PAYLOAD_MAX = 4096, HELLO_FLAGS_AT = 76 };

static void put(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* What is taken of it is what it says, but for flags that there are not yet. */
static void decode_hello(const uint8_t *data, size_t size) {
    uint8_t again[SL_HELLO_BYTES], known[SL_HELLO_BYTES];
    sl_hello hello;
    if (sl_hello_decode(&hello, data, size) != NULL)
        return;
    memcpy(known, data, sizeof known);
    put(known + HELLO_FLAGS_AT, data[HELLO_FLAGS_AT] & 3, 4);
    sl_hello_encode(&hello, again);
    assert(memcmp(again, known, sizeof known) == 0);
    assert(hello.section_count <= SL_HELLO_SECTIONS_MAX && hello.standing.incarnation != 0);
    assert((const uint8_t *)hello.settings == data + SL_HELLO_BYTES);
    assert((const uint8_t *)hello.layout + hello.layout_bytes == data + size);
}

static void decode_as(const uint8_t *data, size_t size, bool direct) {
    sl_frame frame;
    if (sl_frame_decode(&frame, data, size, PAYLOAD_MAX, direct) != NULL)
        return;
    assert(frame.type >= SL_FRAME_HELLO && frame.type < SL_FRAME_TYPE_END);
    assert(sl_frame_bytes(data) == size);
    assert(frame.type != (direct ? SL_FRAME_DATA : SL_FRAME_DIRECT));
    assert(frame.payload_bytes == size - (frame.type == SL_FRAME_DIRECT
                                              ? (size_t)SL_FRAME_DIRECT_AT
                                              : (size_t)SL_FRAME_HEADER_BYTES));
    uint8_t header[SL_FRAME_HEADER_BYTES];
    sl_frame_encode(&frame, header);
    assert(memcmp(header, data, sizeof header) == 0);
    if (frame.type == SL_FRAME_HELLO)
        decode_hello(data + SL_FRAME_HEADER_BYTES, frame.payload_bytes);
}

/* What is read of a head before its message has come; also behind the bytes that all heads begin
 * with. */
static void read_head(const uint8_t *data, size_t size) {
    enum { BEGINS = 6 };
    uint8_t head[SL_FRAME_HEADER_BYTES];
    const sl_frame any = {.type = SL_FRAME_BYE};
    sl_frame_encode(&any, head);
    if (size < sizeof head)
        return;
    memcpy(head + BEGINS, data + BEGINS, sizeof head - BEGINS);
    const size_t longest = SL_FRAME_DIRECT_AT + (size_t)UINT32_MAX, bytes = sl_frame_bytes(head);
    assert(bytes == 0 || (bytes >= sizeof head && bytes <= longest));
    assert(sl_frame_bytes(data) == 0 || memcmp(data, head, sizeof head) == 0);
}

static void decode(const uint8_t *data, size_t size) {
    read_head(data, size);
    decode_as(data, size, false);
    decode_as(data, size, true);
}

/* A neighbour has the keys: what its seal says is right may still be made wrong. */
static void decode_sealed(uint8_t *data, size_t size) {
    uint8_t tag[SL_FRAME_TAG_BYTES];
    bool phase;
    sl_frame frame;
    if (size < SL_FRAME_HEADER_BYTES)
        return;
    sl_frame_seal(data, size % 2 == 0);
    assert(!sl_frame_take_tag(data, SL_FRAME_HEADER_BYTES - 1, &phase, tag));
    if (!sl_frame_take_tag(data, size, &phase, tag))
        return;
    for (int direct = 0; direct < 2; direct++)
        if (sl_frame_decode_sealed(&frame, data, size, PAYLOAD_MAX, direct != 0) == NULL)
            assert(frame.payload_bytes <= size - SL_FRAME_HEADER_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    decode(data, size);
    decode_hello(data, size);
    if (size < SL_FRAME_HEADER_BYTES)
        return 0;
    uint8_t *mended = malloc(size);
    if (mended == NULL)
        return 0;
    memcpy(mended, data, size);
    put(mended + PAYLOAD_SUM_AT,
        sl_checksum(mended + SL_FRAME_HEADER_BYTES, size - SL_FRAME_HEADER_BYTES), 8);
    put(mended + 56, 0, 4);
    put(mended + HEADER_SUM_AT, sl_checksum(mended, HEADER_SUM_AT), 4);
    decode(mended, size);
    decode_sealed(mended, size);
    free(mended);
    return 0;
}
