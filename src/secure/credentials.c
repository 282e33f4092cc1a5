/* credentials.c - reads run keys and nodes' pairs; see starling/keys.h. */
#include "secure/credentials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "secure/certificate.h"
#include "secure/key_file.h"
#include "secure/key_text.h"
#include "secure/tls.h"
#include "starling/text.h"

enum { PAIR_BYTES_MAX = 8192, CERTIFICATE_FILE_MAX = 1 << 20 };

/* ---- a run's key ---- */

const uint8_t *sl_credentials_secret(const sl_credentials *c, unsigned which) {
    return which == 0 ? c->secret : which == 1 ? c->before : NULL;
}

uint64_t sl_credentials_name(const sl_credentials *c, unsigned which) {
    const uint8_t *secret = sl_credentials_secret(c, which);
    uint64_t name;
    return secret != NULL && sl_secret_derive(secret, "starling key name", NULL, 0,
                                              (uint8_t *)&name, sizeof name)
               ? name
               : 0;
}

bool sl_credentials_greeting_key(const sl_credentials *c, unsigned which,
                                 uint8_t out[SL_SECRET_BYTES]) {
    const uint8_t *secret = sl_credentials_secret(c, which);
    if (which == SL_RUN_KEYS_MAX && c->retired != NULL)
        memcpy(out, c->retired, SL_SECRET_BYTES);
    else
        return secret != NULL &&
               sl_secret_derive(secret, "starling greeting", NULL, 0, out, SL_SECRET_BYTES);
    return true;
}

/* secret NULL: there is nothing to copy. */
static int copy_secret(uint8_t **out, const uint8_t *secret, sl_error *error) {
    if (secret == NULL)
        return 0;
    *out = sl_secret_open();
    if (*out == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the run's key before");
    memcpy(*out, secret, SL_SECRET_BYTES);
    return 0;
}

int sl_credentials_follow(sl_credentials *c, const sl_credentials *old, sl_error *error) {
    if (c->secret == NULL || old->secret == NULL)
        return 0;
    const bool same = CRYPTO_memcmp(c->secret, old->secret, SL_SECRET_BYTES) == 0;
    int result = copy_secret(&c->before, same ? old->before : old->secret, error);
    uint8_t retired[SL_SECRET_BYTES]; /* of two that held, the older one holds no longer */
    if (result == 0 && !same && sl_credentials_greeting_key(old, 1, retired))
        result = copy_secret(&c->retired, retired, error);
    else if (result == 0)
        result = copy_secret(&c->retired, old->retired, error);
    OPENSSL_cleanse(retired, sizeof retired);
    return result;
}

void sl_credentials_forget(sl_credentials *c) {
    if (c->before == NULL)
        return;
    if (c->retired == NULL)
        c->retired = sl_secret_open();
    if (c->retired != NULL && !sl_credentials_greeting_key(c, 1, c->retired))
        sl_secret_close(&c->retired);
    sl_secret_close(&c->before);
}

static int take_run_key(sl_credentials **out, const char *text, size_t bytes, const char *path,
                        sl_error *error) {
    sl_credentials *c = calloc(1, sizeof *c);
    if (c != NULL)
        c->secret = sl_secret_open();
    int result = 0;
    if (c == NULL || c->secret == NULL)
        result = sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    else if (!sl_run_key_parse(text, bytes, c->secret))
        result = sl_fail(error, SL_EFILE,
                         "%s: is not a run's key of %d bytes, as `starling keys make` writes one; "
                         "it has %zu",
                         path, SL_RUN_KEY_FILE_BYTES, bytes);
    else
        result = sl_tls_open(&c->tls, c, error);
    if (result != 0)
        sl_credentials_close(&c);
    else
        *out = c;
    return result;
}

int sl_credentials_load_key(sl_credentials **out, const char *path, sl_error *error) {
    char text[SL_RUN_KEY_FILE_BYTES + 1];
    size_t bytes;
    int result = sl_key_file_read(text, sizeof text, &bytes, path, error);
    if (result == 0)
        result = take_run_key(out, text, bytes, path, error);
    OPENSSL_cleanse(text, sizeof text);
    return result;
}

int sl_credentials_take_key(sl_credentials **out, const char *text, size_t bytes, sl_error *error) {
    return take_run_key(out, text, bytes, "the run's key", error);
}

/* ---- a node's pair ---- */

static int read_private(sl_credentials *c, const char *path, sl_error *error) {
    char text[PAIR_BYTES_MAX];
    size_t bytes;
    int result = sl_key_file_read(text, sizeof text, &bytes, path, error);
    if (result != 0)
        return result;
    BIO *bio = BIO_new_mem_buf(text, (int)bytes);
    c->key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, sl_pem_no_password, NULL) : NULL;
    BIO_free(bio);
    OPENSSL_cleanse(text, sizeof text);
    if (c->key == NULL || EVP_PKEY_get_base_id(c->key) != EVP_PKEY_ED25519)
        return sl_fail(error, SL_EFILE,
                       "%s: is not an Ed25519 key in PEM, without a password, as `starling keys "
                       "make --node` writes one",
                       path);
    return 0;
}

static int read_certificate(X509 **out, const char *path, sl_error *error) {
    char *text;
    int result = sl_text_read(&text, path, CERTIFICATE_FILE_MAX, error);
    if (result != 0)
        return result;
    BIO *bio = BIO_new_mem_buf(text, -1);
    X509 *certificate = bio != NULL ? PEM_read_bio_X509(bio, NULL, sl_pem_no_password, NULL) : NULL;
    BIO_free(bio);
    free(text);
    if (certificate == NULL)
        return sl_fail(error, SL_EFILE, "%s: is not a certificate in PEM", path);
    *out = certificate;
    return 0;
}

static int read_pair(sl_credentials *c, const char *name, sl_error *error) {
    char path[SL_KEY_PATH_MAX + 8];
    snprintf(path, sizeof path, "%.*s.key", SL_KEY_PATH_MAX, name);
    int result = read_private(c, path, error);
    if (result != 0)
        return result;
    snprintf(path, sizeof path, "%.*s.crt", SL_KEY_PATH_MAX, name);
    result = read_certificate(&c->certificate, path, error);
    if (result != 0)
        return result;
    if (X509_check_private_key(c->certificate, c->key) != 1 ||
        !sl_fingerprint_find(c->certificate, c->fingerprint))
        return sl_fail(error, SL_EFILE, "%s: is not the certificate of %.*s.key", path,
                       SL_KEY_PATH_MAX, name);
    const int bytes = i2d_X509(c->certificate, NULL);
    if (bytes > SL_CERTIFICATE_BYTES_MAX)
        return sl_fail(error, SL_EFILE, "%s: is %d bytes long in DER; at most %d are allowed", path,
                       bytes, SL_CERTIFICATE_BYTES_MAX);
    return sl_tls_open(&c->tls, c, error);
}

int sl_credentials_load_node(sl_credentials **out, const char *name, sl_error *error) {
    sl_credentials *c = calloc(1, sizeof *c);
    if (c == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", name);
    int result = read_pair(c, name, error);
    if (result != 0)
        sl_credentials_close(&c);
    else
        *out = c;
    return result;
}

int sl_credentials_trust(sl_credentials *c, const char *ca, const char *revoked, sl_error *error) {
    return sl_authority_open(&c->authority, ca, revoked, error);
}

int sl_authority_look(const char *ca, const char *revoked, sl_authority_ends *ends,
                      sl_error *error) {
    sl_authority *authority;
    const int result = sl_authority_open(&authority, ca, revoked, error);
    if (result != 0)
        return result;
    *ends = authority->ends;
    sl_authority_close(&authority);
    return 0;
}

int sl_credentials_check(const sl_credentials *c, uint32_t rank, const char *pinned,
                         sl_error *error) {
    uint8_t pin[SL_FINGERPRINT_BYTES];
    char why[SL_CERTIFICATE_WHY_MAX];
    const bool pins = sl_fingerprint_parse(pinned, pin);
    const sl_demand demand = {.pinned = pins                   ? pin
                                        : c->authority == NULL ? c->fingerprint
                                                               : NULL,
                              .authority = c->authority != NULL ? c->authority->store : NULL,
                              .rank = rank};
    return c->certificate == NULL || sl_certificate_meets(c->certificate, &demand, why)
               ? 0
               : sl_fail(error, SL_EINVAL, "security.key: others would refuse agent %u: %s", rank,
                         why);
}

void sl_credentials_dates(const sl_credentials *c, int64_t *from_s, int64_t *until_s) {
    *from_s = c->certificate != NULL ? sl_time_seconds(X509_get0_notBefore(c->certificate)) : 0;
    *until_s = c->certificate != NULL ? sl_time_seconds(X509_get0_notAfter(c->certificate)) : 0;
}

int sl_certificate_fingerprint(const char *path, char fingerprint[SL_FINGERPRINT_TEXT_MAX],
                               sl_error *error) {
    X509 *certificate = NULL;
    uint8_t bytes[SL_FINGERPRINT_BYTES];
    int result = read_certificate(&certificate, path, error);
    if (result != 0)
        return result;
    if (sl_fingerprint_find(certificate, bytes))
        sl_fingerprint_print(bytes, fingerprint);
    else
        result = sl_fail(error, SL_EFILE, "%s: OpenSSL does not take it", path);
    X509_free(certificate);
    return result;
}

void sl_credentials_close(sl_credentials **credentials) {
    sl_credentials *c = *credentials;
    if (c == NULL)
        return;
    *credentials = NULL;
    SSL_CTX_free(c->tls);
    sl_authority_close(&c->authority);
    X509_free(c->certificate);
    EVP_PKEY_free(c->key);
    sl_secret_close(&c->secret);
    sl_secret_close(&c->before);
    sl_secret_close(&c->retired);
    free(c);
}
