/* fuzz_greeting.c - what a stranger may say first: a greeting, and a proof. An input is tried as it
 * is, by who has a run's key and by who has a certificate; and its fields again with a true proof,
 * which passes for its side and its run, and with no bit altered. */
#include <assert.h>
#include <string.h>

#include "secure/credentials.h"
#include "secure/greeting.h"

enum { MAGIC_BYTES = 8, KIND_AT = 40 };

static bool check(const sl_credentials *c, const uint8_t *greeting, uint64_t run_id, bool dialed,
                  const uint8_t *proof, size_t bytes) {
    static const uint8_t challenge[SL_CHALLENGE_BYTES] = {1}, pinned[SL_FINGERPRINT_BYTES];
    const sl_exchange exchange = {greeting, challenge, run_id};
    char why[SL_GREETING_WHY_MAX] = "";
    const bool passed = sl_proof_check(&exchange, c, dialed, pinned, proof, bytes, why);
    assert(passed || why[0] != '\0');
    return passed;
}

static void try_true(const sl_credentials *c, uint8_t *greeting, size_t alter) {
    static const uint8_t challenge[SL_CHALLENGE_BYTES] = {1};
    const sl_exchange exchange = {greeting, challenge, 7};
    uint8_t proof[SL_PROOF_BYTES_MAX];
    const size_t bytes = sl_proof_make(&exchange, c, true, proof);
    assert(check(c, greeting, 7, true, proof, bytes));
    assert(!check(c, greeting, 8, true, proof, bytes));
    assert(!check(c, greeting, 7, false, proof, bytes));
    greeting[alter / 8] ^= (uint8_t)(1u << alter % 8);
    assert(!check(c, greeting, 7, true, proof, bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t secret[SL_SECRET_BYTES] = {1};
    static const sl_credentials with_key = {.secret = secret}, with_certificate;
    uint8_t greeting[SL_GREETING_BYTES] = {0};
    sl_passage passage;
    sl_greeting_kind kind;
    const size_t first = size < sizeof greeting ? size : sizeof greeting;
    memcpy(greeting, data, first);
    if (sl_greeting_read(greeting, &passage, &kind))
        assert(kind <= SL_GREETING_CERTIFICATE && greeting[KIND_AT] == kind);
    assert(!check(&with_key, greeting, 7, true, data + first, size - first));
    assert(!check(&with_certificate, greeting, 7, true, data + first, size - first));
    try_true(&with_key, greeting, size % (8 * SL_GREETING_BYTES));
    return 0;
}
