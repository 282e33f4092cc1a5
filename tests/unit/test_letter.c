/* test_letter.c - messages of members as bytes: what is cut or altered is refused or harmless. What
 * is said comes: loss_world.c and fuzz_letter.c have that. */
#include "harness.h"
#include "membership/letter.h"

enum { RANKS = 8 };

static const sl_member members[] = {{0, 1}, {2, 7}, {3, 1}, {7, UINT64_MAX}};
static const sl_pair broken[] = {{0, 2}, {2, 3}};
static const uint32_t unreachable[] = {1, 4, 5}, reached[] = {0, 3};
static const sl_decision decided = {.ballot = {3, 2},
                                    .view = {.number = 4,
                                             .round = 100,
                                             .exchange = 50,
                                             .members = members,
                                             .count = 4,
                                             .broken = broken,
                                             .broken_count = 2},
                                    .cut = true};
static const sl_decision alone = {
    .ballot = {1, 0}, .view = {.number = 2, .round = 9, .members = members, .count = 1}};
static const sl_membership_message whole = {.type = SL_MEMBERSHIP_ANSWER,
                                            .from = 2,
                                            .incarnation = 7,
                                            .number = 4,
                                            .standing = SL_LEAVES,
                                            .cut = 0x123456789abcdef0,
                                            .ballot = {3, 1},
                                            .round = 120,
                                            .sponsor = 6,
                                            .unreachable = unreachable,
                                            .unreachable_count = 3,
                                            .reached = reached,
                                            .reached_count = 2,
                                            .decision = &decided,
                                            .accepted = &alone};

static sl_letter l;
static uint8_t *data; /* (bytes) exactly, so that a sanitizer sees what is read behind them */
static size_t bytes;

static void encode(const sl_membership_message *message) {
    free(data);
    bytes = sl_letter_bytes(message);
    data = malloc(bytes);
    sl_letter_encode(message, data);
}

static void setup(void) {
    ck_assert_int_eq(sl_letter_open(&l, RANKS, NULL), 0);
    encode(&whole);
}

static void teardown(void) {
    free(data);
    data = NULL;
    sl_letter_close(&l);
}

FIXTURES(setup, teardown);

START_TEST(whatever_is_cut_off_is_refused) {
    for (size_t left = 0; left < bytes; left++) {
        uint8_t *cut = malloc(left + 1);
        memcpy(cut, data, left);
        ck_assert_ptr_nonnull(sl_letter_decode(&l, cut, left));
        free(cut);
    }
}

/* A list of four in a run of three. */
START_TEST(more_than_there_are_ranks_is_refused) {
    sl_letter_close(&l);
    ck_assert_int_eq(sl_letter_open(&l, 3, NULL), 0);
    ck_assert_ptr_nonnull(sl_letter_decode(&l, data, bytes));
    data[56] = 0xff; /* the number of unreachable ranks */
    ck_assert_ptr_nonnull(sl_letter_decode(&l, data, bytes));
    data[56] = 0;
    data[60] = 0xff; /* of those that are reached */
    ck_assert_ptr_nonnull(sl_letter_decode(&l, data, bytes));
}

START_TEST(what_no_member_says_is_refused) {
    data[0] = SL_MEMBERSHIP_RELEASE + 1;
    ck_assert_ptr_nonnull(sl_letter_decode(&l, data, bytes));
    data[0] = SL_MEMBERSHIP_ANSWER;
    data[4] |= 4;
    ck_assert_ptr_nonnull(sl_letter_decode(&l, data, bytes));
    data[4] &= 3;
    data[52] = SL_ASIDE + 1;
    ck_assert_ptr_nonnull(sl_letter_decode(&l, data, bytes));
    data[52] = SL_ASIDE;
    ck_assert_ptr_null(sl_letter_decode(&l, data, bytes));
    data[72 + sizeof unreachable + sizeof reached + 44] = 2; /* a decision cuts, or not */
    ck_assert_ptr_nonnull(sl_letter_decode(&l, data, bytes));
}
