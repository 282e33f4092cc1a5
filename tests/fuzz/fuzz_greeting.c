/* fuzz_greeting.c - what a stranger may say first: a greeting, and a proof of either side. An input
 * is tried as it is, by who has a run's key, by who has a certificate, and by who asks a CA, which
 * parses any certificate; as a signature before the certificate that is expected; and its fields
 * again with a true proof, which passes for its side and its run, and with no bit altered. */
#include <assert.h>
#include <string.h>

#include "../unit/ca_pairs.h"
#include "secure/greeting.h"
#include "wire/bytes.h"
#include "wire/checksum.h"

enum { KIND_AT = 40, SIGNATURE_BYTES = 64 };

static const uint8_t challenge[SL_CHALLENGE_BYTES] = {1};

/* Whoever is asked expects the certificate that c is of; with a CA, any that it has signed for rank
 * 3. */
static bool check(const sl_credentials *c, const uint8_t *greeting, uint64_t run_id, bool dialed,
                  const uint8_t *proof, size_t bytes) {
    const sl_exchange exchange = {greeting, challenge, run_id};
    const sl_demand pinned = {.pinned = c->fingerprint};
    const sl_demand signed_by = {.authority = c->authority != NULL ? c->authority->store : NULL,
                                 .rank = 3};
    const sl_demand *demand = c->authority != NULL ? &signed_by : &pinned;
    char why[SL_GREETING_WHY_MAX] = "";
    const bool passed = sl_proof_check(&exchange, c, dialed, demand, proof, bytes, why);
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
    const sl_exchange exchange = {greeting, challenge, 7};
    uint8_t proof[SL_PROOF_BYTES_MAX];
    const size_t bytes = sl_proof_make(&exchange, c, true, proof);
    memset(proof, 0, SIGNATURE_BYTES);
    memcpy(proof, data, size < SIGNATURE_BYTES ? size : SIGNATURE_BYTES);
    assert(!check(c, greeting, 7, true, proof, bytes));
}

static sl_credentials *open_with_ca(void) {
    ca root = make_ca("ED25519", "root", NULL, DAY_S);
    sl_credentials *c = make_member(&root, "starling rank 3", 7);
    X509_CRL *list = make_list(&root, 5, DAY_S);
    trust(c, root.certificate, NULL, list);
    X509_CRL_free(list);
    close_ca(&root);
    return c;
}

/* A stranger writes over a certificate of the CA as it likes, and signs with the key that it has:
 * what it shows is parsed. It passes if it has changed nothing. */
static void try_certificate(const sl_credentials *c, const uint8_t *greeting, const uint8_t *data,
                            size_t size) {
    const sl_exchange exchange = {greeting, challenge, 7};
    uint8_t proof[SL_PROOF_BYTES_MAX], altered[SL_PROOF_BYTES_MAX];
    const size_t bytes = sl_proof_make(&exchange, c, true, proof);
    memcpy(altered, proof, bytes);
    const size_t at = SIGNATURE_BYTES + (size > 2 ? get16(data) % (bytes - SIGNATURE_BYTES) : 0);
    const size_t room = bytes - at, count = size > 2 ? (size - 2 < room ? size - 2 : room) : 0;
    memcpy(altered + at, data + 2, count);
    assert(check(c, greeting, 7, true, altered, bytes) == (memcmp(altered, proof, bytes) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sl_credentials *with_key, *with_certificate, *with_ca;
    uint8_t greeting[SL_GREETING_BYTES] = {0};
    sl_passage passage;
    sl_greeting_kind kind;
    if (with_key == NULL) {
        with_key = make_run_key();
        with_certificate = make_node();
        with_ca = open_with_ca();
    }
    const size_t first = size < sizeof greeting ? size : sizeof greeting;
    memcpy(greeting, data, first);
    if (sl_greeting_read(greeting, &passage, &kind))
        assert(kind <= SL_GREETING_CERTIFICATE && greeting[KIND_AT] == kind);
    const uint64_t drawn = sl_checksum(data, size); /* what is slow is tried now and then */
    const size_t place = (size_t)(drawn >> 32);
    assert(!check(with_certificate, greeting, 7, true, data + first, size - first));
    assert(!check(with_ca, greeting, 7, true, data + first, size - first));
    if (drawn % 16 == 0) {
        assert(!check(with_key, greeting, 7, true, data + first, size - first));
        try_true(with_key, greeting, place % 2 == 0, place);
    }
    if (drawn % 64 == 0)
        try_certificate(with_ca, greeting, data + first, size - first);
    if (drawn % 1024 == 0) {
        try_true(with_ca, greeting, place % 2 == 0, place);
        try_true(with_certificate, greeting, place % 2 == 0, place);
        make_up(with_certificate, greeting, data + first, size - first);
    }
    return 0;
}
