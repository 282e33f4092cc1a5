/* test_channel.c - what two agents' channels let pass, and what somebody on the way between them,
 * or with another key, can make of that: nothing. fuzz_channel.c is somebody who does anything. */
#include "channel_pair.h"
#include "config/buffers.h"
#include "harness.h"
#include "launch/roster.h"

static const sl_passage passage = {.run_id = 5, .from = 1, .to = 0, .incarnation = 9};
static const char text[] = "forty bytes of a model that is a secret";

static sl_credentials *credentials[2]; /* of who dials, and of who listens */
static sl_roster *roster;
static pair p;

static void use_key(void) {
    credentials[0] = credentials[1] = make_run_key();
}

static sl_roster *make_roster(const sl_credentials *first, const sl_credentials *second) {
    char lines[512], pins[2][SL_FINGERPRINT_TEXT_MAX];
    sl_roster *made;
    sl_fingerprint_print(first->fingerprint, pins[0]);
    sl_fingerprint_print(second->fingerprint, pins[1]);
    snprintf(lines, sizeof lines, "127.0.0.1:1 %s\n127.0.0.1:2 %s\n", pins[0], pins[1]);
    ck_assert_int_eq(sl_roster_parse(&made, lines, "roster", NULL), 0);
    return made;
}

static void use_certificates(void) {
    credentials[0] = make_node();
    credentials[1] = make_node();
    roster = make_roster(credentials[1], credentials[0]); /* who dials is rank 1 */
}

static void forget(void) {
    close_pair(&p);
    if (credentials[1] != credentials[0])
        sl_credentials_close(&credentials[1]);
    sl_credentials_close(&credentials[0]);
    if (roster != NULL)
        sl_roster_close(&roster);
}

/* In place of those that are open. */
static void open_as(const sl_passage *dialer, bool seals) {
    close_pair(&p);
    open_end(&p.ends[0], credentials[0], roster, seals, dialer, true);
    open_end(&p.ends[1], credentials[1], roster, seals, &passage, false);
}

static void open_ready(bool seals) {
    open_as(&passage, seals);
    ck_assert(meet(&p));
}

static void check_broken(int to, message m, const char *what, size_t which) {
    sl_frame frame;
    const sl_passed passed = give(&p, to, &m, &frame);
    ck_assert_msg(passed == SL_PASSED_BROKEN, "%s %zu: %d", what, which, (int)passed);
}

static void check_passes(int to, message m, sl_frame_type type) {
    sl_frame frame;
    ck_assert_int_eq(give(&p, to, &m, &frame), SL_PASSED);
    ck_assert_int_eq(frame.type, type);
    ck_assert_mem_eq(m.data + SL_FRAME_HEADER_BYTES, text, m.bytes - SL_FRAME_HEADER_BYTES);
}

/* ---- before the proof ---- */

static void pass_nothing_before_the_proof(void) {
    for (int type = SL_FRAME_HELLO; type < SL_FRAME_TYPE_END; type++)
        for (int to = 0; to < 2; to++) {
            sl_frame frame;
            open_as(&passage, true);
            const size_t bytes = type == SL_FRAME_HANDSHAKE ? sizeof text : 0;
            message m = plain_frame((sl_frame_type)type, 1, text, bytes);
            const sl_passed passed = give(&p, to, &m, &frame);
            ck_assert_msg(passed == SL_PASSED_BROKEN || passed == SL_PASSED_MALFORMED,
                          "type %d: %d", type, (int)passed);
        }
}

FIXTURES(use_key, forget);

START_TEST(nothing_passes_before_the_proof) {
    pass_nothing_before_the_proof();
}

START_TEST(a_proof_is_of_one_run_and_rank_and_start) {
    const sl_passage others[] = {{6, 1, 0, 9}, {5, 2, 0, 9}, {5, 1, 2, 9}, {5, 1, 0, 8}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        open_as(&others[i], true);
        ck_assert_msg(!meet(&p), "passage %zu", i);
    }
}

/* ---- a sealed stream ---- */

/* BYE, ABORT and all others, with right checksums, and as if they were sealed. */
START_TEST(a_frame_that_somebody_puts_in_between_does_not_pass) {
    for (int type = SL_FRAME_HELLO; type < SL_FRAME_TYPE_END; type++)
        for (int to = 0; to < 2; to++)
            for (int marked = 0; marked < 2; marked++) {
                open_ready(true);
                message m = plain_frame((sl_frame_type)type, (uint32_t)(1 - to), text,
                                        type == SL_FRAME_ABORT ? sizeof text : 0);
                if (marked)
                    sl_frame_seal(m.data, false);
                check_broken(to, m, "type", (size_t)type);
            }
}

START_TEST(every_bit_and_every_length_is_sealed) {
    open_ready(true);
    const message whole = sealed_frame(&p, 0, SL_FRAME_ABORT, text, sizeof text);
    for (size_t bit = 0; bit < 8 * whole.bytes; bit += 3) {
        open_ready(true);
        message m = sealed_frame(&p, 0, SL_FRAME_ABORT, text, sizeof text);
        m.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        check_broken(1, m, "bit", bit);
    }
    for (size_t bytes = 0; bytes <= whole.bytes + 1; bytes += 4) {
        open_ready(true);
        message m = sealed_frame(&p, 0, SL_FRAME_ABORT, text, sizeof text);
        m.bytes = bytes == m.bytes ? bytes + 1 : bytes;
        check_broken(1, m, "bytes", bytes);
    }
}

START_TEST(frames_repeated_swapped_left_out_or_sent_back_do_not_pass) {
    for (int wrong = 0; wrong < 4; wrong++) {
        open_ready(true);
        const message a = sealed_frame(&p, 0, SL_FRAME_BYE, NULL, 0),
                      b = sealed_frame(&p, 0, SL_FRAME_BYE, NULL, 0);
        if (wrong == 0)
            check_broken(1, b, "the second first", 0);
        if (wrong == 1)
            check_broken(0, a, "sent back", 0);
        if (wrong > 1)
            check_passes(1, a, SL_FRAME_BYE);
        if (wrong == 2)
            check_broken(1, a, "repeated", 0);
        if (wrong == 3)
            check_passes(1, b, SL_FRAME_BYE);
    }
}

START_TEST(frames_of_the_connection_before_do_not_pass) {
    open_ready(true);
    const message before = sealed_frame(&p, 0, SL_FRAME_ABORT, text, sizeof text);
    open_ready(true);
    const message after = sealed_frame(&p, 0, SL_FRAME_ABORT, text, sizeof text);
    ck_assert_mem_ne(before.data + SL_FRAME_HEADER_BYTES, after.data + SL_FRAME_HEADER_BYTES, 16);
    check_broken(1, before, "of before", 0);
}

/* Each key wears out in its time, and says so; both ends follow. */
START_TEST(no_two_frames_are_sealed_alike) {
    message sealed[12];
    open_ready(true);
    for (int i = 0; i < 12; i++) {
        p.now_s += i % 4 == 2 ? 3599 : i % 4 == 0 && i > 0 ? 2 : 0; /* the next key */
        sealed[i] = sealed_frame(&p, i % 2, SL_FRAME_ABORT, text, sizeof text);
        ck_assert_int_eq((sealed[i].data[7] & 4) != 0, i / 4 % 2);
        sl_sealed_buffers_give_all(&p.ends[i % 2].guard.envelopes, p.ends[i % 2].channel);
        for (int k = 0; k < i; k++)
            ck_assert_mem_ne(sealed[i].data + SL_FRAME_HEADER_BYTES,
                             sealed[k].data + SL_FRAME_HEADER_BYTES, 16);
    }
    for (int i = 0; i < 12; i++)
        check_passes(1 - i % 2, sealed[i], SL_FRAME_ABORT);
    check_broken(1, sealed[0], "of the key before", 0);
}

START_TEST(the_last_frame_of_a_key_cannot_be_left_out) {
    open_ready(true);
    sealed_frame(&p, 0, SL_FRAME_BYE, NULL, 0);
    p.now_s += 3601;
    check_broken(1, sealed_frame(&p, 0, SL_FRAME_BYE, NULL, 0), "under the next key", 0);
}

START_TEST(a_sealed_hello_comes_first_where_only_that_is_sealed) {
    open_ready(false);
    check_broken(1, plain_frame(SL_FRAME_HELLO, 1, NULL, 0), "plain", 0);
    open_ready(false);
    check_passes(1, sealed_frame(&p, 0, SL_FRAME_BYE, NULL, 0), SL_FRAME_BYE);
    const message m = sealed_frame(&p, 0, SL_FRAME_ABORT, text, sizeof text);
    ck_assert_mem_eq(m.data + SL_FRAME_HEADER_BYTES, text, sizeof text);
    check_passes(1, m, SL_FRAME_ABORT);
}

/* ---- where there is no room ---- */

START_TEST(what_found_no_room_is_sealed_once_and_leaves_in_its_turn) {
    open_ready(true);
    p.ends[0].connection.full = true;
    ck_assert_int_eq(send_frame(&p, 0, SL_FRAME_ABORT, text, sizeof text), 0);
    ck_assert(sl_channel_waits(p.ends[0].channel));
    ck_assert_int_eq(send_frame(&p, 0, SL_FRAME_BYE, NULL, 0), 1);
    p.ends[0].connection.full = false;
    ck_assert_int_eq(send_frame(&p, 0, SL_FRAME_BYE, NULL, 0), 0);
    check_passes(1, pop_message(&p.ends[0]), SL_FRAME_ABORT);
    check_passes(1, pop_message(&p.ends[0]), SL_FRAME_BYE);
}

START_TEST(an_envelope_is_used_again_when_it_has_left) {
    open_ready(true);
    for (unsigned i = 0; i < SL_SEALED_BUFFERS; i++)
        ck_assert_int_eq(send_frame(&p, 0, SL_FRAME_DATA, text, sizeof text), 0);
    ck_assert_int_eq(send_frame(&p, 0, SL_FRAME_DATA, text, sizeof text), 1);
    ck_assert_uint_eq(p.ends[0].guard.envelopes.free_count, SL_SEALED_BUFFERS); /* for others */
    ck_assert(sl_channel_sent(p.ends[0].channel, 1 | 1 << 30));
    ck_assert_int_eq(send_frame(&p, 0, SL_FRAME_DATA, text, sizeof text), 0);
    sl_channel_close(&p.ends[0].channel);
    ck_assert_uint_eq(p.ends[0].guard.envelopes.free_count, 2 * SL_SEALED_BUFFERS);
}

/* ---- certificates ---- */

static void check_strangers_roster(sl_roster *other) {
    close_pair(&p);
    open_end(&p.ends[0], credentials[0], roster, true, &passage, true);
    open_end(&p.ends[1], credentials[1], other, true, &passage, false);
    ck_assert(!meet(&p));
    close_pair(&p);
    sl_roster_close(&other);
}

FIXTURES(use_certificates, forget);

START_TEST(nothing_passes_before_the_proof_of_a_certificate) {
    pass_nothing_before_the_proof();
}

START_TEST(a_certificate_is_of_one_rank) {
    sl_credentials *foreign = make_node();
    open_ready(true);
    check_passes(1, sealed_frame(&p, 0, SL_FRAME_DATA, text, sizeof text), SL_FRAME_DATA);
    check_strangers_roster(make_roster(credentials[1], foreign));
    check_strangers_roster(make_roster(credentials[0], credentials[1])); /* as rank 0's */
    sl_credentials_close(&foreign);
}
