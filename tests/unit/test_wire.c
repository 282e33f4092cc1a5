/* test_wire.c - frames survive the trip, and nothing that was damaged on it does; fuzz_frame.c has
 * HELLO. */
#include <xxhash.h>

#include "harness.h"
#include "starling/rng.h"
#include "wire/checksum.h"
#include "wire/frame.h"

enum { PAYLOAD = 100, ROOM = SL_FRAME_DIRECT_AT + 2 * SL_FRAME_TEXT_MAX };

/* The frame with a payload of so many bytes, and right checksums. */
static size_t make_frame(uint8_t *bytes, sl_frame frame) {
    const size_t head =
        frame.type == SL_FRAME_DIRECT ? (size_t)SL_FRAME_DIRECT_AT : (size_t)SL_FRAME_HEADER_BYTES;
    memset(bytes, 0, head);
    for (uint32_t i = 0; i < frame.payload_bytes; i++)
        bytes[head + i] = (uint8_t)(i * 7 + 1);
    frame.view = 3;
    frame.part = 5;
    frame.exchange = 1ull << 40;
    frame.step = 9;
    frame.scalar = 0.75;
    frame.credit = 77;
    frame.received = UINT32_MAX;
    if (!frame.unsummed && frame.type != SL_FRAME_DIRECT)
        frame.payload_sum = sl_checksum(bytes + head, frame.payload_bytes);
    sl_frame_encode(&frame, bytes);
    return head + frame.payload_bytes;
}

/* Ours is built from the header for several instruction sets; the packaged library is the
 * reference. */
START_TEST(the_checksum_is_xxh3_whatever_the_length) {
    static uint8_t bytes[70000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i >> 3);
    ck_assert_uint_eq(sl_checksum(bytes, 0),
                      0x2d06800538d394c2); /* published value of the empty input */
    for (size_t length = 1; length + 3 <= sizeof bytes; length += 1 + length / 7) {
        const uint8_t *unaligned = bytes + length % 4;
        ck_assert_uint_eq(sl_checksum(unaligned, length), XXH3_64bits(unaligned, length));
    }
}

#define LONG "payload longer than its type allows"
#define FLAGS "flags that its type does not have"
static const struct {
    sl_frame frame;
    bool direct; /* do GPUs exchange data? */
    size_t payload_max;
    const char *said; /* why it is refused; NULL: it is taken */
} frames[] = {
    {{.type = SL_FRAME_DATA, .payload_bytes = PAYLOAD}, false, PAYLOAD, NULL},
    {{.type = SL_FRAME_DATA, .payload_bytes = PAYLOAD, .asks = true}, false, PAYLOAD, NULL},
    {{.type = SL_FRAME_DATA, .payload_bytes = PAYLOAD, .unsummed = true}, false, PAYLOAD, NULL},
    {{.type = SL_FRAME_DATA, .payload_bytes = PAYLOAD}, false, PAYLOAD - 1, LONG},
    {{.type = SL_FRAME_DATA, .payload_bytes = PAYLOAD}, true, PAYLOAD, ""},
    {{.type = SL_FRAME_DATA, .silent = true}, false, PAYLOAD, NULL},
    {{.type = SL_FRAME_DATA, .silent = true, .asks = true}, false, PAYLOAD, NULL},
    ROW({.type = SL_FRAME_DATA, .silent = true, .payload_bytes = 1}, false, PAYLOAD,
        "a silent message with a payload"),
    {{.type = SL_FRAME_DIRECT, .payload_bytes = PAYLOAD}, true, PAYLOAD, NULL},
    {{.type = SL_FRAME_DIRECT, .payload_bytes = PAYLOAD}, true, PAYLOAD - 1, LONG},
    {{.type = SL_FRAME_DIRECT, .payload_bytes = PAYLOAD}, false, PAYLOAD, ""},
    {{.type = SL_FRAME_DIRECT, .silent = true}, true, PAYLOAD, NULL},
    {{.type = SL_FRAME_DIRECT, .payload_bytes = PAYLOAD, .unsummed = true}, true, PAYLOAD, FLAGS},
    {{.type = SL_FRAME_CREDIT, .silent = true}, false, PAYLOAD, FLAGS},
    {{.type = SL_FRAME_HEARTBEAT, .payload_bytes = SL_HEARTBEAT_BYTES + 1}, false, 4096, LONG},
    {{.type = SL_FRAME_ABORT, .sender = 2, .payload_bytes = PAYLOAD}, true, PAYLOAD, NULL},
    {{.type = SL_FRAME_ABORT, .payload_bytes = SL_FRAME_TEXT_MAX + 1}, false, 4096, LONG},
    {{.type = SL_FRAME_TYPE_END}, false, 4096, "unknown frame type"},
#define REFERENCE(frame_type, more)                                                                \
    .type = SL_FRAME_##frame_type, .refers = true, .payload_bytes = SL_REFERENCE_BYTES + (more)
    {{REFERENCE(DATA, 0), .asks = true}, false, 8, NULL},
    {{REFERENCE(SUM, 0)}, false, 8, NULL},
    {{REFERENCE(MODEL, 0)}, false, 8, NULL},
    {{REFERENCE(DATA, -1)}, false, PAYLOAD, "shorter"},
    {{REFERENCE(MODEL, 1)}, false, 4096, LONG},
    {{REFERENCE(MEMBERSHIP, 0)}, false, 4096, FLAGS},
    {{.type = SL_FRAME_MEMORY, .step = 3}, false, PAYLOAD, NULL},
    /* what is said without a payload */
    {{.type = SL_FRAME_BARRIER}, false, PAYLOAD, NULL},
    {{.type = SL_FRAME_SUM_CREDIT}, false, PAYLOAD, NULL},
    {{.type = SL_FRAME_CHECKPOINT}, false, PAYLOAD, NULL},
    {{.type = SL_FRAME_READY}, false, PAYLOAD, NULL},
    {{.type = SL_FRAME_BARRIER, .payload_bytes = 1}, false, PAYLOAD, ""},
    {{.type = SL_FRAME_SUM_CREDIT, .payload_bytes = 1}, false, PAYLOAD, ""},
    {{.type = SL_FRAME_CHECKPOINT, .payload_bytes = 1}, false, PAYLOAD, ""},
    {{.type = SL_FRAME_READY, .payload_bytes = 1}, false, PAYLOAD, ""},
    /* of whole doubles; beside GPUs, of no more than a text */
    {{.type = SL_FRAME_SUM, .payload_bytes = 1000}, false, 1003, NULL},
    {{.type = SL_FRAME_SUM, .payload_bytes = 1000}, true, 1003, ""},
    {{.type = SL_FRAME_SUM, .payload_bytes = 1000}, false, 999, ""},
    {{.type = SL_FRAME_SUM, .payload_bytes = 8, .unsummed = true}, false, 1003, FLAGS},
};

START_LOOP_TEST(a_frame_comes_back_as_it_was_or_is_refused, sizeof frames / sizeof *frames) {
    uint8_t bytes[ROOM];
    const sl_frame *sent = &frames[_i].frame;
    sl_frame back;
    const size_t size = make_frame(bytes, *sent);
    const char *said =
        sl_frame_decode(&back, bytes, size, frames[_i].payload_max, frames[_i].direct);
    if (frames[_i].said != NULL) {
        ck_assert_msg(said != NULL && strstr(said, frames[_i].said) != NULL, "%s", said);
        return;
    }
    ck_assert_ptr_null(said);
    ck_assert(back.type == sent->type && back.payload_bytes == sent->payload_bytes);
    ck_assert(back.silent == sent->silent && back.asks == sent->asks);
    ck_assert(back.unsummed == sent->unsummed && back.sender == sent->sender);
    ck_assert_uint_eq(back.view, sent->type == SL_FRAME_ABORT ? 0 : 3); /* its sender's place */
    ck_assert(back.part == 5 && back.step == 9 && back.exchange == 1ull << 40);
    ck_assert(back.scalar == 0.75 && back.credit == 77 && back.received == UINT32_MAX);
}

START_TEST(sums_have_whole_doubles) {
    ck_assert_uint_eq(sl_frame_sum_bytes_max(PAYLOAD, false), SL_FRAME_TEXT_MAX);
    ck_assert_uint_eq(sl_frame_sum_bytes_max(1 << 20, true), SL_FRAME_TEXT_MAX);
    ck_assert_uint_eq(sl_frame_sum_bytes_max(1003, false), 1000);
}

/* But those of data that come without a checksum of their payload. */
START_TEST(every_flipped_bit_is_noticed) {
    static const sl_frame whole[] = {{.type = SL_FRAME_DATA, .payload_bytes = PAYLOAD},
                                     {.type = SL_FRAME_SUM, .payload_bytes = 96},
                                     {.type = SL_FRAME_DATA, .unsummed = true, .payload_bytes = 8}};
    uint8_t bytes[ROOM];
    for (size_t i = 0; i < 3; i++) {
        const size_t size = make_frame(bytes, whole[i]);
        for (size_t bit = 0; bit < size * 8; bit++) {
            sl_frame frame;
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            const bool passes = sl_frame_decode(&frame, bytes, size, PAYLOAD, false) == NULL;
            ck_assert_msg(passes == (i == 2 && bit >= 8 * SL_FRAME_HEADER_BYTES), "bit %zu", bit);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}
