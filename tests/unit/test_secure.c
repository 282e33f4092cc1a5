/* test_secure.c - greetings, handshakes and seals: what they should be, and that nothing else
 * passes. */
#include "handshakes.h"
#include "secure/cipher.h"
#include "secure/credentials.h"
#include "secure/greeting.h"
#include "secure/seal.h"

static void parse(const char *hex, uint8_t *out, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        unsigned value;
        ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &value), 1);
        out[i] = (uint8_t)value;
    }
}

#define CHECK_BYTES(bytes, hex)                                                                    \
    do {                                                                                           \
        uint8_t wanted_[sizeof(hex) / 2];                                                          \
        parse(hex, wanted_, sizeof wanted_);                                                       \
        ck_assert_mem_eq(bytes, wanted_, sizeof wanted_);                                          \
    } while (0)

/* ---- what derives, greets and seals, as others compute it ---- */

static void count_up(uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)i;
}

/* By Python's hmac and hashlib. */
START_TEST(derived_secrets_are_hkdf) {
    uint8_t secret[SL_SECRET_BYTES], out[32];
    count_up(secret, sizeof secret);
    ck_assert(sl_secret_derive(secret, "starling next key", NULL, 0, out, sizeof out));
    CHECK_BYTES(out, "14a1508ec2e29e20ad10ac69775c98ac78177761f662969f7cde8d763015b4fd");
    ck_assert(sl_secret_derive(secret, "starling next", " key", 4, out, sizeof out));
    CHECK_BYTES(out, "14a1508ec2e29e20ad10ac69775c98ac78177761f662969f7cde8d763015b4fd");
}

static const sl_passage passage = {
    .run_id = 0xabcdef0123456789u, .from = 3, .to = 1, .incarnation = 0x1122334455667788u};

/* The HMAC of "starling dials", zeros to 16 bytes, greeting, challenge and run id under
 * HKDF-SHA256(secret, "starling greeting"), as Python's hmac makes it. */
START_TEST(a_proof_is_an_hmac_of_what_was_said) {
    uint8_t secret[SL_SECRET_BYTES], greeting[SL_GREETING_BYTES], challenge[SL_CHALLENGE_BYTES];
    uint8_t proof[SL_PROOF_BYTES_MAX];
    count_up(secret, sizeof secret);
    count_up(greeting, sizeof greeting);
    count_up(challenge, sizeof challenge);
    const sl_credentials credentials = {.secret = secret};
    const sl_exchange exchange = {greeting, challenge, passage.run_id};
    ck_assert_uint_eq(sl_proof_make(&exchange, &credentials, true, proof), 32);
    CHECK_BYTES(proof, "71e23b4f09161511024abe6af020dc0f9c9e737d36b1738b99a5f62a319dce40");
    ck_assert_uint_eq(sl_proof_make(&exchange, &credentials, false, proof), 32);
    CHECK_BYTES(proof, "87a9c1bd857d43d811ebe52d02807bf10fddb58e68201dc477da8393d2208fed");
}

/* The GCM specification's test case 14. */
START_TEST(a_seal_is_aes_256_gcm) {
    static const uint8_t zeros[32];
    uint8_t out[16], tag[SL_SEAL_TAG_BYTES];
    sl_seal *seal = sl_seal_open(zeros, true, 0);
    ck_assert_ptr_nonnull(seal);
    ck_assert(sl_seal_begin(seal, NULL, 0));
    ck_assert(sl_seal_add(seal, zeros, out, sizeof out));
    ck_assert(sl_seal_end(seal, tag));
    CHECK_BYTES(out, "cea7403d4d606b6e074ec5d3baf39d18");
    CHECK_BYTES(tag, "d0d1c8a799996bf0265b98b5d48ab919");
    sl_seal_close(&seal);
}

enum { MESSAGE = 5000 };

/* One message in pieces of so many bytes: what comes out, and whether the tag is right. */
static bool pass(const sl_cipher_library *library, bool seals, size_t piece, const uint8_t *from,
                 uint8_t *to, uint8_t *tag) {
    uint8_t key[SL_CIPHER_KEY_BYTES], nonce[SL_CIPHER_NONCE_BYTES] = {7}, header[29];
    count_up(key, sizeof key);
    count_up(header, sizeof header);
    void *cipher = library->open(seals);
    ck_assert_ptr_nonnull(cipher);
    ck_assert(library->set_key(cipher, key));
    ck_assert(library->begin(cipher, nonce, header, sizeof header));
    for (size_t at = 0; at < MESSAGE; at += piece)
        ck_assert(
            library->add(cipher, from + at, to + at, MESSAGE - at < piece ? MESSAGE - at : piece));
    const bool right = library->end(cipher, tag);
    library->close(cipher);
    return right;
}

/* Whatever sealed it, in whatever pieces, and in place. */
START_TEST(each_library_opens_what_each_seals) {
    static const size_t pieces[] = {1, 15, 16, 100, 1023, MESSAGE};
    const sl_cipher_library *libraries[SL_CIPHER_LIBRARIES];
    const size_t count = sl_cipher_libraries(libraries);
    uint8_t plain[MESSAGE], first[MESSAGE], sealed[MESSAGE], tag[SL_CIPHER_TAG_BYTES];
    count_up(plain, sizeof plain);
    ck_assert(pass(libraries[0], true, MESSAGE, plain, first, tag));
    for (size_t i = 0; i < count * 6; i++) {
        uint8_t again[SL_CIPHER_TAG_BYTES];
        ck_assert(pass(libraries[i / 6], true, pieces[i % 6], plain, sealed, again));
        ck_assert_mem_eq(sealed, first, sizeof sealed);
        ck_assert_mem_eq(again, tag, sizeof tag);
        ck_assert(pass(libraries[i / 6], false, pieces[i % 6], sealed, sealed, tag));
        ck_assert_mem_eq(sealed, plain, sizeof plain);
        again[i % sizeof tag] ^= 1;
        ck_assert(!pass(libraries[i / 6], false, pieces[i % 6], first, sealed, again));
    }
}

#if defined __x86_64__ && __has_include(<intel-ipsec-mb.h>)
/* Opened by a name that has another number in each release of a system. */
START_TEST(the_library_that_it_was_built_for_is_opened) {
    const sl_cipher_library *libraries[SL_CIPHER_LIBRARIES];
    char line[4096];
    bool is_open = false;
    sl_cipher_libraries(libraries);
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        is_open = is_open || strstr(line, "/libIPSec_MB.so.") != NULL;
    fclose(maps);
    ck_assert(is_open);
}
#else
START_TEST(the_library_that_it_was_built_for_is_opened) {}
#endif

/* ---- greetings ---- */

START_TEST(a_greeting_comes_back) {
    uint8_t greeting[SL_GREETING_BYTES], again[SL_GREETING_BYTES];
    sl_passage read;
    sl_greeting_kind kind;
    ck_assert(sl_greeting_write(&passage, NULL, greeting));
    ck_assert(sl_greeting_write(&passage, NULL, again));
    ck_assert_mem_ne(greeting, again, sizeof greeting);
    ck_assert(sl_greeting_read(greeting, &read, &kind));
    ck_assert_uint_eq(read.from, 3);
    ck_assert_uint_eq(read.to, 1);
    ck_assert_uint_eq(read.incarnation, passage.incarnation);
    ck_assert_int_eq(kind, SL_GREETING_BARE);
    for (size_t i = 0; i < 8; i++) {
        greeting[i] ^= 1;
        ck_assert(!sl_greeting_read(greeting, &read, &kind));
        greeting[i] ^= 1;
    }
    for (size_t i = 40; i < sizeof greeting; i++) {
        greeting[i] ^= 4;
        ck_assert(!sl_greeting_read(greeting, &read, &kind));
        greeting[i] ^= 4;
    }
}

/* Nothing but what its maker said passes, of its side, and in its run; fuzz_greeting.c alters any
 * bit. */
static void try_proof(const sl_credentials *maker, const sl_credentials *checker) {
    uint8_t greeting[SL_GREETING_BYTES], challenge[SL_CHALLENGE_BYTES];
    uint8_t proof[SL_PROOF_BYTES_MAX];
    const sl_exchange exchange = {greeting, challenge, passage.run_id};
    const sl_exchange other = {greeting, challenge, passage.run_id + 1};
    const sl_demand demand = {.pinned = maker->fingerprint};
    char why[SL_GREETING_WHY_MAX];
    ck_assert(sl_greeting_write(&passage, maker, greeting));
    ck_assert(sl_challenge_draw(challenge));
    for (int dials = 0; dials < 2; dials++) {
        const size_t bytes = sl_proof_make(&exchange, maker, dials, proof);
        ck_assert_uint_gt(bytes, 0);
        ck_assert(sl_proof_check(&exchange, checker, dials, &demand, proof, bytes, why));
        ck_assert(!sl_proof_check(&exchange, checker, !dials, &demand, proof, bytes, why));
        ck_assert(!sl_proof_check(&other, checker, dials, &demand, proof, bytes, why));
        ck_assert(!sl_proof_check(&exchange, checker, dials, &demand, proof, bytes - 1, why));
        proof[bytes - 1] ^= 1;
        ck_assert(!sl_proof_check(&exchange, checker, dials, &demand, proof, bytes, why));
        proof[bytes - 1] ^= 1;
        greeting[30] ^= 1;
        ck_assert(!sl_proof_check(&exchange, checker, dials, &demand, proof, bytes, why));
        greeting[30] ^= 1;
        challenge[31] ^= 128;
        ck_assert(!sl_proof_check(&exchange, checker, dials, &demand, proof, bytes, why));
        challenge[31] ^= 128;
    }
}

START_TEST(a_proof_with_a_key_fits_one_exchange_and_side) {
    sl_credentials *key = keep(make_run_key()), *other = keep(make_run_key());
    try_proof(key, key);
    uint8_t greeting[SL_GREETING_BYTES] = {0}, challenge[SL_CHALLENGE_BYTES] = {0};
    uint8_t proof[SL_PROOF_BYTES_MAX];
    const sl_exchange exchange = {greeting, challenge, 1};
    const size_t bytes = sl_proof_make(&exchange, other, true, proof);
    char why[SL_GREETING_WHY_MAX];
    ck_assert(!sl_proof_check(&exchange, key, true, NULL, proof, bytes, why));
    ck_assert_ptr_nonnull(strstr(why, "another key"));
}

/* Who knows a certificate, as the roster tells it, and not its key, proves nothing. */
START_TEST(a_proof_with_a_certificate_needs_its_key) {
    sl_credentials *node = keep(make_node()), *peer = keep(make_node());
    const sl_demand of_node = {.pinned = node->fingerprint};
    const sl_demand of_peer = {.pinned = peer->fingerprint};
    try_proof(node, peer);
    uint8_t greeting[SL_GREETING_BYTES] = {0}, challenge[SL_CHALLENGE_BYTES] = {0};
    uint8_t proof[SL_PROOF_BYTES_MAX], stolen[SL_PROOF_BYTES_MAX];
    const sl_exchange exchange = {greeting, challenge, 1};
    const size_t bytes = sl_proof_make(&exchange, node, true, proof);
    char why[SL_GREETING_WHY_MAX];
    ck_assert(!sl_proof_check(&exchange, peer, true, &of_peer, proof, bytes, why));
    ck_assert_ptr_nonnull(strstr(why, "not the one that the roster names"));
    ck_assert_uint_gt(sl_proof_make(&exchange, peer, true, stolen), 64); /* serials vary */
    memcpy(stolen + 64, proof + 64, bytes - 64);
    ck_assert(!sl_proof_check(&exchange, peer, true, &of_node, stolen, bytes, why));
    ck_assert_ptr_nonnull(strstr(why, "does not prove its certificate's key"));
}

/* ---- seals: what is altered, repeated or left out, and when a key wears out, is in test_channel.c
 * ---- */

/* A frame of two pieces, by who has the same key, and by who has the next one. */
START_TEST(a_renewed_key_does_not_open_frames_of_the_old_one) {
    static const uint8_t key[SL_SEAL_KEY_BYTES] = {1}, header[64];
    for (int is_renewed = 0; is_renewed < 2; is_renewed++) {
        sl_seal *writer = sl_seal_open(key, true, 0), *reader = sl_seal_open(key, false, 0);
        uint8_t body[300] = {2}, tag[SL_SEAL_TAG_BYTES];
        ck_assert(writer != NULL && reader != NULL);
        ck_assert(sl_seal_begin(writer, header, sizeof header));
        ck_assert(sl_seal_add(writer, body, body, 100));
        ck_assert(sl_seal_add(writer, body + 100, body + 100, sizeof body - 100));
        ck_assert(sl_seal_end(writer, tag));
        ck_assert(!is_renewed || sl_seal_renew(reader, 1));
        ck_assert(sl_seal_begin(reader, header, sizeof header));
        ck_assert(sl_seal_add(reader, body, body, sizeof body));
        ck_assert_int_ne(sl_seal_end(reader, tag), is_renewed);
        sl_seal_close(&writer);
        sl_seal_close(&reader);
    }
}

/* ---- handshakes ---- */

typedef struct both {
    sl_handshake *client, *server;
    char why[2][SL_HANDSHAKE_WHY_MAX];
} both;

static both b; /* of most tests */

static void close_both(void) {
    sl_handshake_close(&b.client);
    sl_handshake_close(&b.server);
}

/* Each shows what it has, and pins what it wants; the server expects this passage. */
static bool meet(const sl_credentials *client, const sl_credentials *server,
                 const sl_passage *theirs, const uint8_t *pinned_by_client,
                 const uint8_t *pinned_by_server) {
    const sl_demand by_client = {.pinned = pinned_by_client},
                    by_server = {.pinned = pinned_by_server};
    close_both();
    ck_assert_int_eq(sl_handshake_open(&b.client, client, &passage, true, &by_client, NULL), 0);
    ck_assert_int_eq(sl_handshake_open(&b.server, server, theirs, false, &by_server, NULL), 0);
    return handshakes_meet(b.client, b.server, b.why);
}

FIXTURES(NULL, close_both);

static void check_keys(uint8_t use, bool equal) {
    uint8_t sends[2][SL_SEAL_KEY_BYTES], takes[2][SL_SEAL_KEY_BYTES];
    ck_assert(sl_handshake_keys(b.client, 1, sends[0], takes[0]));
    ck_assert(sl_handshake_keys(b.server, use, sends[1], takes[1]));
    ck_assert_int_eq(memcmp(sends[0], takes[1], SL_SEAL_KEY_BYTES) == 0, equal);
    ck_assert_int_eq(memcmp(sends[1], takes[0], SL_SEAL_KEY_BYTES) == 0, equal);
    ck_assert_mem_ne(sends[0], takes[0], SL_SEAL_KEY_BYTES);
}

START_TEST(who_has_the_run_key_agrees_on_keys) {
    sl_credentials *key = keep(make_run_key()), *other = keep(make_run_key());
    ck_assert_msg(meet(key, key, &passage, NULL, NULL), "%s; %s", b.why[0], b.why[1]);
    check_keys(1, true);
    check_keys(2, false); /* one seals, the other does not */
    ck_assert(!meet(key, other, &passage, NULL, NULL));
}

START_TEST(pinned_certificates_agree_and_others_are_named) {
    sl_credentials *a = keep(make_node()), *c = keep(make_node()), *stranger = keep(make_node());
    ck_assert_msg(meet(a, c, &passage, c->fingerprint, a->fingerprint), "%s; %s", b.why[0],
                  b.why[1]);
    check_keys(1, true);
    char text[SL_FINGERPRINT_TEXT_MAX];
    sl_fingerprint_print(stranger->fingerprint, text);
    ck_assert(!meet(stranger, c, &passage, c->fingerprint, a->fingerprint));
    ck_assert_msg(strstr(b.why[1], text) != NULL, "%s", b.why[1]);
    ck_assert(!meet(a, stranger, &passage, c->fingerprint, a->fingerprint));
    ck_assert_msg(strstr(b.why[0], text) != NULL, "%s", b.why[0]);
}

static void check_dates(int first_day, int last_day, const char *what) {
    sl_credentials *a = keep(make_node());
    X509_time_adj_ex(X509_getm_notBefore(a->certificate), first_day, 0, NULL);
    X509_time_adj_ex(X509_getm_notAfter(a->certificate), last_day, 0, NULL);
    ck_assert_int_gt(X509_sign(a->certificate, a->key, NULL), 0);
    ck_assert(sl_fingerprint_find(a->certificate, a->fingerprint));
    ck_assert_int_eq(SSL_CTX_use_certificate(a->tls, a->certificate), 1);
    ck_assert(!meet(a, a, &passage, a->fingerprint, a->fingerprint));
    ck_assert(strstr(b.why[0], what) && strstr(b.why[0], ", and this host's clock says 20"));
}

/* Its dates or this clock are wrong, nobody knows which: both are told. */
START_TEST(a_certificate_of_another_time_is_named) {
    check_dates(-2, -1, "has expired: valid from 20");
    check_dates(1, 2, "is not valid yet: valid from 20");
}

/* TLS 1.2, from a client that could speak more. */
START_TEST(an_older_tls_is_refused) {
    sl_credentials *a = keep(make_node()), *c = keep(make_node());
    SSL_CTX_set_min_proto_version(a->tls, TLS1_2_VERSION);
    SSL_CTX_set_max_proto_version(a->tls, TLS1_2_VERSION);
    ck_assert(!meet(a, c, &passage, c->fingerprint, a->fingerprint));
}

START_TEST(certificates_of_another_passage_have_other_keys) {
    sl_credentials *a = keep(make_node()), *c = keep(make_node());
    const sl_passage other = {passage.run_id, 3, 1, passage.incarnation + 1};
    ck_assert(meet(a, c, &other, c->fingerprint, a->fingerprint));
    check_keys(1, false);
}

START_TEST(a_key_and_a_certificate_do_not_meet) {
    sl_credentials *key = keep(make_run_key()), *node = keep(make_node());
    ck_assert(!meet(key, node, &passage, NULL, node->fingerprint));
    ck_assert(!meet(node, key, &passage, node->fingerprint, NULL));
}
