/* test_wire.c - frames survive the trip, and nothing that was damaged on it does. */
#include <xxhash.h>

#include "harness.h"
#include "starling/rng.h"
#include "wire/checksum.h"
#include "wire/frame.h"

enum { PAYLOAD = 100 };

static size_t make_frame(uint8_t *bytes, sl_frame_type type, uint32_t payload_bytes) {
    for (uint32_t i = 0; i < payload_bytes; i++)
        bytes[SL_FRAME_HEADER_BYTES + i] = (uint8_t)(i * 7 + 1);
    sl_frame frame = {.type = type,
                      .view = 3,
                      .part = 5,
                      .exchange = 1ull << 40,
                      .step = 9,
                      .scalar = 0.75,
                      .credit = 77,
                      .received = UINT32_MAX,
                      .asks = type == SL_FRAME_DATA,
                      .payload_bytes = payload_bytes};
    frame.payload_sum = sl_checksum(bytes + SL_FRAME_HEADER_BYTES, payload_bytes);
    sl_frame_encode(&frame, bytes);
    return SL_FRAME_HEADER_BYTES + payload_bytes;
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

START_TEST(a_frame_comes_back_as_it_was) {
    uint8_t bytes[SL_FRAME_HEADER_BYTES + PAYLOAD];
    size_t size = make_frame(bytes, SL_FRAME_DATA, PAYLOAD);
    sl_frame frame;
    ck_assert_ptr_null(sl_frame_decode(&frame, bytes, size, PAYLOAD, false));
    ck_assert_int_eq(frame.type, SL_FRAME_DATA);
    ck_assert(frame.view == 3 && frame.sender == 0);
    ck_assert_uint_eq(frame.part, 5);
    ck_assert_uint_eq(frame.step, 9);
    ck_assert_double_eq(frame.scalar, 0.75);
    ck_assert_uint_eq(frame.exchange, 1ull << 40);
    ck_assert_uint_eq(frame.credit, 77);
    ck_assert_uint_eq(frame.received, UINT32_MAX);
    ck_assert(frame.asks);
    ck_assert_uint_eq(frame.payload_bytes, PAYLOAD);
}

START_TEST(only_data_without_a_payload_is_silent) {
    uint8_t bytes[SL_FRAME_DIRECT_AT + 1] = {0};
    sl_frame out, frame = {.type = SL_FRAME_DATA, .silent = true};
    sl_frame_encode(&frame, bytes);
    ck_assert_ptr_null(sl_frame_decode(&out, bytes, SL_FRAME_HEADER_BYTES, PAYLOAD, false));
    ck_assert(out.silent && !out.asks);
    frame.asks = true;
    sl_frame_encode(&frame, bytes);
    ck_assert_ptr_null(sl_frame_decode(&out, bytes, SL_FRAME_HEADER_BYTES, PAYLOAD, false));
    ck_assert(out.silent && out.asks);
    frame.payload_bytes = 1;
    frame.payload_sum = sl_checksum(bytes + SL_FRAME_HEADER_BYTES, 1);
    sl_frame_encode(&frame, bytes);
    ck_assert_str_eq(sl_frame_decode(&out, bytes, SL_FRAME_HEADER_BYTES + 1, PAYLOAD, false),
                     "a silent message with a payload");
    frame = (sl_frame){.type = SL_FRAME_CREDIT, .silent = true};
    sl_frame_encode(&frame, bytes);
    ck_assert_str_eq(sl_frame_decode(&out, bytes, SL_FRAME_HEADER_BYTES, PAYLOAD, false),
                     "flags that its type does not have");
    frame.type = SL_FRAME_DIRECT;
    sl_frame_encode(&frame, bytes);
    ck_assert_ptr_null(sl_frame_decode(&out, bytes, SL_FRAME_DIRECT_AT, PAYLOAD, true));
    ck_assert(out.silent);
}

/* Only DATA may. Its header has a checksum as ever. */
START_TEST(data_may_come_without_a_checksum_of_its_payload) {
    uint8_t bytes[SL_FRAME_DIRECT_AT + PAYLOAD] = {0};
    const size_t size = SL_FRAME_HEADER_BYTES + PAYLOAD;
    sl_frame out, frame = {.type = SL_FRAME_DATA, .unsummed = true, .payload_bytes = PAYLOAD};
    sl_frame_encode(&frame, bytes);
    bytes[size - 1] ^= 1;
    ck_assert_ptr_null(sl_frame_decode(&out, bytes, size, PAYLOAD, false));
    ck_assert(out.unsummed && !out.silent);
    for (size_t bit = 0; bit < SL_FRAME_HEADER_BYTES * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_ptr_nonnull(sl_frame_decode(&out, bytes, size, PAYLOAD, false));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    frame.type = SL_FRAME_SUM;
    sl_frame_encode(&frame, bytes);
    ck_assert_str_eq(sl_frame_decode(&out, bytes, size, PAYLOAD, false),
                     "flags that its type does not have");
    frame.type = SL_FRAME_DIRECT;
    sl_frame_encode(&frame, bytes);
    ck_assert_str_eq(sl_frame_decode(&out, bytes, sizeof bytes, PAYLOAD, true),
                     "flags that its type does not have");
}

START_TEST(every_flipped_bit_is_noticed) {
    uint8_t bytes[SL_FRAME_HEADER_BYTES + PAYLOAD];
    size_t size = make_frame(bytes, SL_FRAME_DATA, PAYLOAD);
    for (size_t bit = 0; bit < size * 8; bit++) {
        sl_frame frame;
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_msg(sl_frame_decode(&frame, bytes, size, PAYLOAD, false) != NULL, "bit %zu", bit);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

START_TEST(a_payload_longer_than_its_type_allows_is_refused_with_right_checksums) {
    uint8_t bytes[SL_FRAME_HEADER_BYTES + 2 * SL_FRAME_TEXT_MAX];
    sl_frame frame;
    size_t size = make_frame(bytes, SL_FRAME_DATA, PAYLOAD);
    ck_assert_str_eq(sl_frame_decode(&frame, bytes, size, PAYLOAD - 1, false),
                     "payload longer than its type allows");
    size = make_frame(bytes, SL_FRAME_HEARTBEAT, SL_HEARTBEAT_BYTES + 1);
    ck_assert_str_eq(sl_frame_decode(&frame, bytes, size, 4096, false),
                     "payload longer than its type allows");
    size = make_frame(bytes, SL_FRAME_ABORT, SL_FRAME_TEXT_MAX + 1);
    ck_assert_str_eq(sl_frame_decode(&frame, bytes, size, 4096, false),
                     "payload longer than its type allows");
    size = make_frame(bytes, SL_FRAME_TYPE_END, 0);
    ck_assert_str_eq(sl_frame_decode(&frame, bytes, size, 4096, false), "unknown frame type");
}

START_TEST(what_is_said_without_a_payload_has_frames_of_its_own) {
    static const sl_frame_type empty[] = {SL_FRAME_BARRIER, SL_FRAME_SUM_CREDIT,
                                          SL_FRAME_CHECKPOINT, SL_FRAME_READY};
    uint8_t bytes[SL_FRAME_HEADER_BYTES + 2 * SL_FRAME_TEXT_MAX];
    sl_frame frame;
    for (int i = 0; i < 4; i++) {
        size_t size = make_frame(bytes, empty[i], 0);
        ck_assert_ptr_null(sl_frame_decode(&frame, bytes, size, PAYLOAD, false));
        ck_assert_int_eq(frame.type, empty[i]);
        ck_assert_uint_eq(frame.exchange, 1ull << 40);
        ck_assert_uint_eq(frame.part, 5);
        ck_assert_uint_eq(frame.step, 9);
        size = make_frame(bytes, empty[i], 1);
        ck_assert_ptr_nonnull(sl_frame_decode(&frame, bytes, size, PAYLOAD, false));
    }
    ck_assert_uint_eq(sl_frame_sum_bytes_max(PAYLOAD, false), SL_FRAME_TEXT_MAX);
    ck_assert_uint_eq(sl_frame_sum_bytes_max(1 << 20, true), SL_FRAME_TEXT_MAX);
    ck_assert_uint_eq(sl_frame_sum_bytes_max(1003, false), 1000);
    size_t size = make_frame(bytes, SL_FRAME_SUM, 1000);
    ck_assert_ptr_null(sl_frame_decode(&frame, bytes, size, 1003, false));
    ck_assert_ptr_nonnull(sl_frame_decode(&frame, bytes, size, 1003, true));
    ck_assert_ptr_nonnull(sl_frame_decode(&frame, bytes, size, 999, false));
    bytes[SL_FRAME_HEADER_BYTES + 999] ^= 1;
    ck_assert_str_eq(sl_frame_decode(&frame, bytes, size, 1003, false), "payload checksum differs");
}

START_TEST(a_direct_payload_is_neither_read_nor_taken_for_another) {
    uint8_t bytes[SL_FRAME_DIRECT_AT]; /* its payload is elsewhere */
    sl_frame frame = {.type = SL_FRAME_DIRECT,
                      .view = 3,
                      .part = 5,
                      .exchange = 7,
                      .scalar = 1,
                      .payload_bytes = PAYLOAD};
    sl_frame_encode(&frame, bytes);
    sl_frame back;
    ck_assert_ptr_null(sl_frame_decode(&back, bytes, SL_FRAME_DIRECT_AT + PAYLOAD, PAYLOAD, true));
    ck_assert_int_eq(back.type, SL_FRAME_DIRECT);
    ck_assert_uint_eq(back.payload_bytes, PAYLOAD);
    ck_assert_ptr_nonnull(
        sl_frame_decode(&back, bytes, SL_FRAME_DIRECT_AT + PAYLOAD, PAYLOAD, false));
    ck_assert_str_eq(sl_frame_decode(&back, bytes, SL_FRAME_DIRECT_AT + PAYLOAD, PAYLOAD - 1, true),
                     "payload longer than its type allows");
    for (size_t shorter = 0; shorter < SL_FRAME_DIRECT_AT + PAYLOAD; shorter++)
        ck_assert_ptr_nonnull(sl_frame_decode(&back, bytes, shorter, PAYLOAD, true));
    for (size_t bit = 0; bit < SL_FRAME_HEADER_BYTES * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_msg(sl_frame_decode(&back, bytes, SL_FRAME_DIRECT_AT + PAYLOAD, PAYLOAD, true) !=
                          NULL,
                      "bit %zu", bit);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    uint8_t through_host[SL_FRAME_HEADER_BYTES + PAYLOAD];
    size_t size = make_frame(through_host, SL_FRAME_DATA, PAYLOAD);
    ck_assert_ptr_nonnull(sl_frame_decode(&back, through_host, size, PAYLOAD, true));
    size = make_frame(through_host, SL_FRAME_ABORT, PAYLOAD);
    ck_assert_ptr_null(sl_frame_decode(&back, through_host, size, PAYLOAD, true));
}

START_TEST(a_hello_comes_back_as_it_was) {
    sl_hello hello = {.run_id = 1,
                      .topology_hash = 2,
                      .layout_hash = 3,
                      .data_hash = 4,
                      .dimension = 5,
                      .rounds = 6,
                      .seed = 14,
                      .resumed = 19,
                      .chunk_bytes = 7,
                      .nodes = 8,
                      .section_count = 5,
                      .direct = true,
                      .sections = {9, 10, 11, 12, 13},
                      .standing = {15, 16, 1, 17, 1ull << 40, 1ull << 41, 18}};
    uint8_t bytes[SL_HELLO_BYTES], whole[SL_HELLO_BYTES + 5] = {0};
    sl_hello back;
    memset(&back, 0, sizeof back);
    hello.settings_bytes = 2;
    sl_hello_encode(&hello, whole);
    memcpy(whole + SL_HELLO_BYTES, "abcde", 5);
    ck_assert_ptr_null(sl_hello_decode(&back, whole, sizeof whole));
    ck_assert(back.settings_bytes == 2 && memcmp(back.settings, "ab", 2) == 0);
    ck_assert(back.layout_bytes == 3 && memcmp(back.layout, "cde", 3) == 0);
    ck_assert_ptr_nonnull(sl_hello_decode(&back, whole, SL_HELLO_BYTES + 1));
    hello.settings_bytes = 0;
    sl_hello_encode(&hello, bytes);
    ck_assert_ptr_null(sl_hello_decode(&back, bytes, sizeof bytes));
    ck_assert_uint_eq(back.run_id, 1);
    ck_assert_uint_eq(back.rounds, 6);
    ck_assert_uint_eq(back.seed, 14);
    ck_assert_uint_eq(back.resumed, 19);
    ck_assert(back.direct && !back.goes_on);
    ck_assert_uint_eq(back.nodes, 8);
    ck_assert_uint_eq(back.sections[4], 13);
    sl_hello_encode(&back, whole);
    ck_assert_mem_eq(whole, bytes, sizeof bytes);
    ck_assert_ptr_nonnull(sl_hello_decode(&back, bytes, sizeof bytes - 1));
    bytes[72] = SL_HELLO_SECTIONS_MAX + 1;
    ck_assert_ptr_nonnull(sl_hello_decode(&back, bytes, sizeof bytes));
    hello.standing.incarnation = 0;
    sl_hello_encode(&hello, bytes);
    ck_assert_str_eq(sl_hello_decode(&back, bytes, sizeof bytes), "HELLO without an incarnation");
}

int main(void) {
    return run_tests("wire");
}
