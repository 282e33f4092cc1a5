/* fuzz_greeting.c - what a stranger may say first: a greeting, and a proof of either side. An input
 * is tried as it is, by who has a run's key and by who has a certificate; as a signature before the
 * certificate that is expected; and its fields again with a true proof, which passes for its side
 * and its run, and with no bit altered. */
#include <assert.h>
#include <string.h>

#include "../unit/secure_pairs.h"
#include "secure/credentials.h"
#include "secure/greeting.h"
#include "wire/checksum.h"

enum { KIND_AT = 40 };

static const uint8_t challenge[SL_CHALLENGE_BYTES] = {1};

/* Whoever is asked expects the certificate that c is of. */
static bool check(const sl_credentials *c, const uint8_t *greeting, uint64_t run_id, bool dialed,
                  const uint8_t *proof, size_t bytes) {
    const sl_exchange exchange = {greeting, challenge, run_id};
    char why[SL_GREETING_WHY_MAX] = "";
    const bool passed = sl_proof_check(&exchange, c, dialed, c->fingerprint, proof, bytes, why);
    assert(passed || why[0] != '\0');
    return passed;
}

/* Either side's: it fits that side and that run, and nothing of it can be altered. */
static void try_true(const sl_credentials *c, uint8_t *greeting, bool dialed, size_t alter) {
    const sl_exchange exchange = {greeting, challenge, 7};
    uint8_t proof[SL_PROOF_BYTES_MAX];
    const size_t bytes = sl_proof_make(&exchange, c, dialed, proof);
    const uint8_t bit = (uint8_t)(1u << alter % 8);
    assert(bytes > 0 && check(c, greeting, 7, dialed, proof, bytes));
    assert(!check(c, greeting, 8, dialed, proof, bytes));
    assert(!check(c, greeting, 7, !dialed, proof, bytes));
    assert(!check(c, greeting, 7, dialed, proof, bytes - 1));
    proof[alter % bytes] ^= bit;
    assert(!check(c, greeting, 7, dialed, proof, bytes));
    proof[alter % bytes] ^= bit;
    greeting[alter % SL_GREETING_BYTES] ^= bit;
    assert(!check(c, greeting, 7, dialed, proof, bytes));
    greeting[alter % SL_GREETING_BYTES] ^= bit;
}

/* A stranger has the certificate, too, and puts a signature before it that it makes up. */
static void make_up(const sl_credentials *c, const uint8_t *greeting, const uint8_t *data,
                    size_t size) {
    enum { SIGNATURE_BYTES = 64 };
    const sl_exchange exchange = {greeting, challenge, 7};
    uint8_t proof[SL_PROOF_BYTES_MAX];
    const size_t bytes = sl_proof_make(&exchange, c, true, proof);
    memset(proof, 0, SIGNATURE_BYTES);
    memcpy(proof, data, size < SIGNATURE_BYTES ? size : SIGNATURE_BYTES);
    assert(!check(c, greeting, 7, true, proof, bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sl_credentials *with_key, *with_certificate;
    uint8_t greeting[SL_GREETING_BYTES] = {0};
    sl_passage passage;
    sl_greeting_kind kind;
    if (with_key == NULL) {
        with_key = make_run_key();
        with_certificate = make_node();
    }
    const size_t first = size < sizeof greeting ? size : sizeof greeting;
    memcpy(greeting, data, first);
    if (sl_greeting_read(greeting, &passage, &kind))
        assert(kind <= SL_GREETING_CERTIFICATE && greeting[KIND_AT] == kind);
    const uint64_t drawn = sl_checksum(data, size); /* what is slow is tried now and then */
    const size_t place = (size_t)(drawn >> 32);
    assert(!check(with_certificate, greeting, 7, true, data + first, size - first));
    if (drawn % 16 == 0) {
        assert(!check(with_key, greeting, 7, true, data + first, size - first));
        try_true(with_key, greeting, place % 2 == 0, place);
    }
    if (drawn % 1024 == 0) {
        try_true(with_certificate, greeting, place % 2 == 0, place);
        make_up(with_certificate, greeting, data + first, size - first);
    }
    return 0;
}
