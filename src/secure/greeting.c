/* greeting.c - see greeting.h. */
#include "secure/greeting.h"

#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "secure/credentials.h"
#include "secure/secret.h"

static const uint8_t magic[8] = {'s', 't', 'a', 'r', 'l', 'i', 'n', 'g'};
enum { RANDOM_AT = 24, RANDOM_BYTES = 16, KIND_AT = 40 };
enum { MAC_BYTES = 32, SIGNATURE_BYTES = 64, SIDE_BYTES = 16 };
enum { SIGNED_BYTES = SIDE_BYTES + SL_GREETING_BYTES + SL_CHALLENGE_BYTES + 8 };

/* ---- the greeting ---- */

sl_greeting_kind sl_greeting_kind_of(const sl_credentials *c) {
    if (c == NULL)
        return SL_GREETING_BARE;
    return c->secret != NULL ? SL_GREETING_KEY : SL_GREETING_CERTIFICATE;
}

bool sl_greeting_write(const sl_passage *p, const sl_credentials *credentials,
                       uint8_t out[SL_GREETING_BYTES]) {
    memset(out, 0, SL_GREETING_BYTES);
    memcpy(out, magic, sizeof magic);
    put64(put32(put32(out + sizeof magic, p->from), p->to), p->incarnation);
    out[KIND_AT] = (uint8_t)sl_greeting_kind_of(credentials);
    return RAND_bytes(out + RANDOM_AT, RANDOM_BYTES) == 1;
}

bool sl_greeting_read(const uint8_t greeting[SL_GREETING_BYTES], sl_passage *out,
                      sl_greeting_kind *kind) {
    static const uint8_t zeros[SL_GREETING_BYTES - KIND_AT - 1];
    if (memcmp(greeting, magic, sizeof magic) != 0 || greeting[KIND_AT] > SL_GREETING_CERTIFICATE ||
        memcmp(greeting + KIND_AT + 1, zeros, sizeof zeros) != 0)
        return false;
    out->from = get32(greeting + 8);
    out->to = get32(greeting + 12);
    out->incarnation = get64(greeting + 16);
    *kind = (sl_greeting_kind)greeting[KIND_AT];
    return true;
}

bool sl_challenge_draw(uint8_t out[SL_CHALLENGE_BYTES]) {
    return RAND_bytes(out, SL_CHALLENGE_BYTES) == 1;
}

/* ---- proofs ---- */

static void collect(const sl_exchange *e, bool dials, uint8_t out[SIGNED_BYTES]) {
    memset(out, 0, SIDE_BYTES);
    memcpy(out, dials ? "starling dials" : "starling answers", dials ? 14 : SIDE_BYTES);
    memcpy(out + SIDE_BYTES, e->greeting, SL_GREETING_BYTES);
    memcpy(out + SIDE_BYTES + SL_GREETING_BYTES, e->challenge, SL_CHALLENGE_BYTES);
    put64(out + SIDE_BYTES + SL_GREETING_BYTES + SL_CHALLENGE_BYTES, e->run_id);
}

static bool authenticate(const uint8_t text[SIGNED_BYTES], const sl_credentials *c, unsigned which,
                         uint8_t mac[MAC_BYTES]) {
    uint8_t key[SL_SECRET_BYTES];
    unsigned bytes = 0;
    const bool done = sl_credentials_greeting_key(c, which, key) &&
                      HMAC(EVP_sha256(), key, sizeof key, text, SIGNED_BYTES, mac, &bytes) != NULL;
    OPENSSL_cleanse(key, sizeof key);
    return done && bytes == MAC_BYTES;
}

/* By all keys that hold, the newest first: the other side takes whichever it has. */
static size_t authenticate_all(const uint8_t text[SIGNED_BYTES], const sl_credentials *c,
                               uint8_t *macs) {
    unsigned which = 0;
    for (; sl_credentials_secret(c, which) != NULL; which++)
        if (!authenticate(text, c, which, macs + which * MAC_BYTES))
            return 0;
    return which * (size_t)MAC_BYTES;
}

static bool is_among(const uint8_t mac[MAC_BYTES], const uint8_t *macs, size_t bytes) {
    bool found = false;
    for (size_t at = 0; at < bytes; at += MAC_BYTES)
        found |= CRYPTO_memcmp(mac, macs + at, MAC_BYTES) == 0;
    return found;
}

static bool sign(const uint8_t text[SIGNED_BYTES], EVP_PKEY *key, uint8_t out[SIGNATURE_BYTES]) {
    size_t bytes = SIGNATURE_BYTES;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const bool done = context != NULL && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
                      EVP_DigestSign(context, out, &bytes, text, SIGNED_BYTES) == 1;
    EVP_MD_CTX_free(context);
    return done && bytes == SIGNATURE_BYTES;
}

size_t sl_proof_make(const sl_exchange *exchange, const sl_credentials *c, bool dials,
                     uint8_t out[SL_PROOF_BYTES_MAX]) {
    uint8_t text[SIGNED_BYTES];
    collect(exchange, dials, text);
    if (c->secret != NULL)
        return authenticate_all(text, c, out);
    uint8_t *certificate = out + SIGNATURE_BYTES;
    const int bytes = i2d_X509(c->certificate, NULL);
    if (bytes <= 0 || bytes > SL_CERTIFICATE_BYTES_MAX || !sign(text, c->key, out) ||
        i2d_X509(c->certificate, &certificate) != bytes)
        return 0;
    return SIGNATURE_BYTES + (size_t)bytes;
}

static bool is_pinned(const uint8_t *pinned, const uint8_t *certificate, size_t bytes,
                      char why[SL_GREETING_WHY_MAX]) {
    uint8_t digest[EVP_MAX_MD_SIZE];
    char shown[SL_FINGERPRINT_TEXT_MAX];
    unsigned size = 0;
    if (EVP_Digest(certificate, bytes, digest, &size, EVP_sha256(), NULL) != 1 ||
        size != SL_FINGERPRINT_BYTES) {
        snprintf(why, SL_GREETING_WHY_MAX, "OpenSSL does not take its certificate");
        return false;
    }
    sl_fingerprint_print(digest, shown);
    snprintf(why, SL_GREETING_WHY_MAX, "its certificate %s is not the one that the roster names",
             shown);
    return CRYPTO_memcmp(digest, pinned, size) == 0;
}

static bool is_signed(const uint8_t text[SIGNED_BYTES], const X509 *certificate,
                      const uint8_t signature[SIGNATURE_BYTES]) {
    EVP_PKEY *key = X509_get0_pubkey(certificate);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const bool right =
        key != NULL && context != NULL && EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 &&
        EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
        EVP_DigestVerify(context, signature, SIGNATURE_BYTES, text, SIGNED_BYTES) == 1;
    EVP_MD_CTX_free(context);
    return right;
}

/* Who makes a proof shows that the certificate is its own before it hears what is wrong with it. */
static bool is_proved(const uint8_t text[SIGNED_BYTES], X509 *certificate, const sl_demand *demand,
                      const uint8_t *signature, char why[SL_GREETING_WHY_MAX]) {
    snprintf(why, SL_GREETING_WHY_MAX,
             "it does not prove its certificate's key, or has another run id (another roster)");
    return certificate != NULL && is_signed(text, certificate, signature) &&
           sl_certificate_meets(certificate, demand, why);
}

/* NULL: these bytes are not one certificate, and nothing else. */
static X509 *parse(const uint8_t *certificate, size_t bytes) {
    const uint8_t *at = certificate;
    X509 *x509 = d2i_X509(NULL, &at, (long)bytes);
    if (x509 != NULL && at == certificate + bytes)
        return x509;
    X509_free(x509);
    return NULL;
}

int sl_proof_key(const sl_exchange *exchange, const sl_credentials *c, bool dialed,
                 const uint8_t *proof, size_t bytes) {
    uint8_t text[SIGNED_BYTES], mac[MAC_BYTES];
    int found = -1;
    if (bytes == 0 || bytes % MAC_BYTES != 0 || bytes > SL_RUN_KEYS_MAX * MAC_BYTES)
        return -1;
    collect(exchange, dialed, text);
    for (unsigned which = SL_RUN_KEYS_MAX + 1; which-- > 0;)
        if (authenticate(text, c, which, mac) && is_among(mac, proof, bytes))
            found = (int)which;
    return found;
}

bool sl_proof_check(const sl_exchange *exchange, const sl_credentials *c, bool dialed,
                    const sl_demand *demand, const uint8_t *proof, size_t bytes,
                    char why[SL_GREETING_WHY_MAX]) {
    const uint8_t *certificate = proof + SIGNATURE_BYTES;
    uint8_t text[SIGNED_BYTES];
    if (c->secret != NULL) {
        const int key = sl_proof_key(exchange, c, dialed, proof, bytes);
        snprintf(why, SL_GREETING_WHY_MAX,
                 "it has another key, or another run id (another roster)");
        return key >= 0 && key < SL_RUN_KEYS_MAX;
    }
    collect(exchange, dialed, text);
    snprintf(why, SL_GREETING_WHY_MAX, "it shows no certificate");
    if (bytes <= SIGNATURE_BYTES || bytes > SL_PROOF_BYTES_MAX ||
        (demand->pinned != NULL &&
         !is_pinned(demand->pinned, certificate, bytes - SIGNATURE_BYTES, why)))
        return false;
    X509 *x509 = parse(certificate, bytes - SIGNATURE_BYTES);
    const bool right = is_proved(text, x509, demand, proof, why);
    X509_free(x509);
    ERR_clear_error();
    return right;
}
