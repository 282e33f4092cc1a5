/* test_stream.c - stream/stream.h: numbers, acknowledgements, what is sent again, what is void, and
 * credit; two ends of a stream against each other, and breaks at random. */
#include "agent/peers/neighbour.h"
#include "harness.h"
#include "starling/rng.h"

enum { WINDOW = 4, PARTS = 64, PART_BYTES = 16 };

static sl_copies copies;
static sl_error error;

static sl_stream open_one(void) {
    sl_stream made;
    ck_assert(sl_stream_open(&made, &copies, WINDOW));
    made.credit = WINDOW;
    return made;
}

static sl_stream s; /* of most tests */

static void setup(void) {
    EXPECT_WELL(sl_copies_open(&copies, 2 * WINDOW, PART_BYTES, NULL, &error));
    s = open_one();
}

static void teardown(void) {
    sl_stream_close(&s);
    sl_copies_close(&copies);
}

FIXTURES(setup, teardown);

static void add(sl_stream *to, sl_frame_type type, uint64_t exchange, const void *payload,
                uint32_t bytes, bool own) {
    const sl_frame frame = {.type = type, .exchange = exchange, .payload_bytes = bytes};
    ck_assert(sl_stream_add(to, &frame, payload, own));
}

/* Hands over all that is next. */
static void hand_over(void) {
    while (sl_stream_next(&s) != NULL)
        sl_stream_pass(&s, false);
}

/* ---- */

START_TEST(what_cannot_be_is_refused) {
    add(&s, SL_FRAME_DATA, 1, NULL, 0, false);
    add(&s, SL_FRAME_READY, 1, NULL, 0, false);
    hand_over();
    ck_assert_ptr_nonnull(sl_stream_hear(&s, &(sl_frame){.received = 3}));
    ck_assert_ptr_nonnull(sl_stream_hear(&s, &(sl_frame){.received = 1, .credit = 1u << 30}));
    ck_assert_ptr_null(sl_stream_hear(&s, &(sl_frame){.received = 1, .credit = 2}));
    const sl_stream_standing wrong[] = {
        {{0, 0}, 1}, {{3, 1}, 1}, {{2, 2}, 1}, {{2, 0}, 1}, {{2, 1}, UINT64_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert(!sl_stream_can_resume(&s, &wrong[i]));
    ck_assert(sl_stream_can_resume(&s, &(sl_stream_standing){{2, 1}, 1}));
    for (int i = 0; i < WINDOW; i++)
        ck_assert_ptr_null(sl_stream_receive(&s, &(sl_frame){.type = SL_FRAME_DATA}));
    ck_assert_ptr_null(sl_stream_receive(&s, &(sl_frame){.type = SL_FRAME_BARRIER}));
    ck_assert_ptr_nonnull(sl_stream_receive(&s, &(sl_frame){.type = SL_FRAME_DATA}));
}

START_TEST(a_void_payload_leaves_its_number) {
    static const float numbers[4] = {1, 2, 3, 4};
    add(&s, SL_FRAME_DATA, 1, numbers, sizeof numbers, false);
    add(&s, SL_FRAME_SUM, 1, numbers, sizeof numbers, false);
    add(&s, SL_FRAME_MEMBERSHIP, 0, "word", 4, true);
    const sl_frame noted = {.exchange = 1, .payload_bytes = sizeof numbers};
    sl_stream_use_copy(&s, 0, sl_copies_add(&copies, &noted, numbers, false));
    const uint32_t room = copies.free_count;
    sl_stream_void(&s, 1u << SL_FRAME_DATA | 1u << SL_FRAME_DIRECT);
    ck_assert_uint_eq(copies.free_count, room + 1);
    for (int i = 0; i < 3; i++, sl_stream_pass(&s, false)) {
        const sl_sent_frame *next = sl_stream_next(&s);
        ck_assert(next->frame.is_void == (i == 0));
        ck_assert((sl_stream_payload(&s, next) == NULL) == (i == 0));
        ck_assert_uint_eq(next->frame.payload_bytes, i == 0 ? 0 : i == 1 ? sizeof numbers : 4);
    }
    ck_assert_ptr_null(sl_stream_hear(&s, &(sl_frame){.received = 3}));
    ck_assert_uint_eq(s.acknowledged.data, 1);
}

/* The other side waits for it. A connection that is closed before takes it along. */
START_TEST(it_is_not_through_before_bye_has_left) {
    add(&s, SL_FRAME_DATA, 1, NULL, 0, false);
    add(&s, SL_FRAME_BYE, 1, NULL, 0, false);
    sl_stream_pass(&s, false);
    ck_assert_ptr_null(sl_stream_hear(&s, &(sl_frame){.received = 1}));
    ck_assert(!sl_stream_is_through(&s));
    sl_stream_pass(&s, false);
    ck_assert(sl_stream_is_through(&s));
}

/* Sends data frame number `number`, from a copy that the other side reads. */
static void lend(uint64_t number) {
    static const float numbers[4] = {1, 2, 3, 4};
    const sl_frame noted = {.exchange = number, .payload_bytes = sizeof numbers};
    const uint32_t copy = sl_copies_add(&copies, &noted, numbers, false);
    add(&s, SL_FRAME_DATA, number, numbers, sizeof numbers, false);
    sl_copies_make(&copies, copy);
    sl_stream_use_copy(&s, number, copy);
    sl_stream_pass(&s, true);
}

/* However a frame was acknowledged, made void or given up: what is read stays. */
START_TEST(what_is_lent_stays_until_credit_says_that_it_is_read) {
    const uint32_t all = copies.free_count;
    const sl_stream_standing standing = {{2, 2}, WINDOW};
    sl_stream_lend(&s, WINDOW);
    for (uint64_t i = 0; i < WINDOW; i++)
        lend(i);
    ck_assert(!sl_stream_has_credit(&s));
    ck_assert_ptr_null(sl_stream_hear(&s, &(sl_frame){.received = 2, .credit = WINDOW}));
    ck_assert_uint_eq(copies.free_count, all - WINDOW);
    ck_assert_ptr_null(sl_stream_hear(&s, &(sl_frame){.received = 2, .credit = WINDOW + 1}));
    ck_assert_uint_eq(copies.free_count, all - WINDOW + 1);
    ck_assert(sl_stream_has_credit(&s));
    sl_stream_void(&s, 1u << SL_FRAME_DATA);
    sl_stream_abandon(&s);
    ck_assert_uint_eq(copies.free_count, all - WINDOW + 1);
    sl_stream_return(&s, &standing); /* two never came, and it holds one */
    ck_assert_uint_eq(copies.free_count, all - 1);
    lend(2);
    sl_stream_renew(&s);
    ck_assert_uint_eq(copies.free_count, all);
}

/* Else credit would say that one is read that waits behind others which are free. */
START_TEST(a_buffer_counts_as_free_once_all_before_it_are) {
    for (int i = 0; i < WINDOW; i++)
        ck_assert_ptr_null(sl_stream_receive(&s, &(sl_frame){.type = SL_FRAME_DATA}));
    sl_stream_release(&s, 1);
    sl_stream_release(&s, 3);
    ck_assert_uint_eq(sl_stream_credit(&s), WINDOW);
    sl_stream_release(&s, 0);
    ck_assert_uint_eq(sl_stream_credit(&s), WINDOW + 2);
    sl_stream_renew(&s); /* one is held still */
    ck_assert(!sl_stream_holds_nothing(&s));
    ck_assert_uint_eq(sl_stream_credit(&s), WINDOW - 2);
    sl_stream_release(&s, 2);
    ck_assert(sl_stream_holds_nothing(&s));
    ck_assert_uint_eq(sl_stream_credit(&s), WINDOW);
}

START_TEST(a_neighbour_that_has_left_and_is_there_hears_more) {
    sl_side side = {.now = {.view = 1}};
    sl_neighbour n = {.side = &side, .process.incarnation = 7, .absence.gone = true};
    n.stream = open_one();
    ck_assert(!sl_neighbour_send(&n, (sl_frame){.type = SL_FRAME_BYE}, NULL, false));
    n.link.agreed = true;
    ck_assert(sl_neighbour_send(&n, (sl_frame){.type = SL_FRAME_BYE}, NULL, false));
    ck_assert_uint_eq(n.stream.numbered.frames, 1);
    sl_stream_close(&n.stream);
}
