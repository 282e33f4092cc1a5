/* test_run_keys.c - a run's key and the one before it hold side by side, until that is forgotten.
 */
#include "handshakes.h"
#include "secure/credentials.h"
#include "secure/greeting.h"
#include "secure/key_text.h"

static const sl_passage passage = {.run_id = 5, .from = 3, .to = 1, .incarnation = 77};

/* While two run keys hold, whoever has either is taken; who has one that was forgotten is known. */
START_TEST(a_proof_with_two_keys_is_taken_by_holders_of_either) {
    sl_credentials *old = keep(make_run_key()), *now = keep(make_run_key()),
                   *other = keep(make_run_key());
    uint8_t greeting[SL_GREETING_BYTES] = {0}, challenge[SL_CHALLENGE_BYTES] = {0};
    uint8_t both[SL_PROOF_BYTES_MAX], one[SL_PROOF_BYTES_MAX];
    char why[SL_GREETING_WHY_MAX];
    const sl_exchange exchange = {greeting, challenge, 1};
    ck_assert_int_eq(sl_credentials_follow(now, old, NULL), 0);
    ck_assert_uint_eq(sl_proof_make(&exchange, now, true, both), 64);
    ck_assert_int_eq(sl_proof_key(&exchange, old, true, both, 64), 0);
    ck_assert_int_eq(sl_proof_key(&exchange, now, true, both, 64), 0);
    ck_assert_int_eq(sl_proof_key(&exchange, now, false, both, 64), -1);
    ck_assert_int_eq(sl_proof_key(&exchange, other, true, both, 64), -1);
    ck_assert_uint_eq(sl_proof_make(&exchange, old, true, one), 32);
    ck_assert_int_eq(sl_proof_key(&exchange, now, true, one, 32), 1);
    ck_assert(sl_proof_check(&exchange, now, true, NULL, one, 32, why));
    sl_credentials_forget(now);
    ck_assert_int_eq(sl_proof_key(&exchange, now, true, one, 32), SL_RUN_KEYS_MAX);
    ck_assert(!sl_proof_check(&exchange, now, true, NULL, one, 32, why));
    ck_assert_uint_eq(sl_proof_make(&exchange, now, true, both), 32);
}

/* Do they meet, who dials with this key of those that it has? With which? */
static bool meet_with(const sl_credentials *client, unsigned key, const sl_credentials *server,
                      uint64_t *name) {
    char why[2][SL_HANDSHAKE_WHY_MAX];
    sl_handshake *a, *b;
    ck_assert_int_eq(sl_handshake_open(&a, client, &passage, true, NULL, NULL), 0);
    ck_assert_int_eq(sl_handshake_open(&b, server, &passage, false, NULL, NULL), 0);
    sl_handshake_show(a, sl_credentials_name(client, key));
    const bool met = handshakes_meet(a, b, why);
    *name = sl_handshake_key(a);
    ck_assert(!met || *name == sl_handshake_key(b));
    sl_handshake_close(&a);
    sl_handshake_close(&b);
    return met;
}

START_TEST(a_handshake_takes_either_key) {
    sl_credentials *old = keep(make_run_key()), *now = keep(make_run_key());
    uint64_t name;
    ck_assert_int_eq(sl_credentials_follow(now, old, NULL), 0);
    ck_assert(meet_with(old, 0, now, &name));
    ck_assert(name == sl_credentials_name(old, 0));
    ck_assert(meet_with(now, 1, old, &name));
    ck_assert(name == sl_credentials_name(old, 0));
    ck_assert(!meet_with(now, 0, old, &name));
    ck_assert(meet_with(now, 0, now, &name));
    ck_assert(name == sl_credentials_name(now, 0));
    sl_credentials_forget(now);
    ck_assert(!meet_with(old, 0, now, &name));
    ck_assert_uint_eq(sl_credentials_name(now, 1), 0);
}

/* Of three, two hold, and holders of the oldest are known. */
START_TEST(a_key_that_is_changed_twice_is_out) {
    sl_credentials *keys[] = {keep(make_run_key()), keep(make_run_key()), keep(make_run_key())};
    uint8_t greeting[SL_GREETING_BYTES] = {0}, challenge[SL_CHALLENGE_BYTES] = {0};
    uint8_t proof[SL_PROOF_BYTES_MAX];
    const sl_exchange exchange = {greeting, challenge, 1};
    for (int i = 1; i < 3; i++)
        ck_assert_int_eq(sl_credentials_follow(keys[i], keys[i - 1], NULL), 0);
    for (int i = 0; i < 3; i++) {
        sl_credentials_forget(keys[i]);
        ck_assert_uint_eq(sl_proof_make(&exchange, keys[i], true, proof), 32);
        if (i < 2)
            ck_assert_int_eq(sl_proof_key(&exchange, keys[2], true, proof, 32),
                             i == 0 ? SL_RUN_KEYS_MAX : 1);
    }
}

/* Read again and the same: what holds beside it stays, and what was forgotten is known. */
START_TEST(the_same_key_read_again_changes_nothing) {
    sl_credentials *old = keep(make_run_key()), *now = keep(make_run_key()), *again = NULL;
    char text[SL_RUN_KEY_FILE_BYTES + 1];
    ck_assert_int_eq(sl_credentials_follow(now, old, NULL), 0);
    sl_run_key_print(now->secret, text);
    ck_assert_int_eq(sl_credentials_take_key(&again, text, SL_RUN_KEY_FILE_BYTES, NULL), 0);
    ck_assert_int_eq(sl_credentials_follow(again, now, NULL), 0);
    for (unsigned i = 0; i < SL_RUN_KEYS_MAX; i++)
        ck_assert(sl_credentials_name(again, i) == sl_credentials_name(now, i));
    keep(again);
}
