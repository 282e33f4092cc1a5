/* keys.c - makes run keys and nodes' pairs; see starling/keys.h. */
#include "starling/keys.h"

#include <stdio.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include "secure/credentials.h"
#include "secure/key_file.h"
#include "secure/key_text.h"

/* A clock may be behind; and nobody renews what is struck from the roster when it is lost. */
static const long valid_before_s = 86400, valid_s = 3650L * 86400;
enum { SECRET_MODE = 0600, PUBLIC_MODE = 0644 };

int sl_run_key_text(char out[SL_RUN_KEY_FILE_BYTES + 1], sl_error *error) {
    uint8_t secret[SL_SECRET_BYTES];
    if (RAND_priv_bytes(secret, sizeof secret) != 1)
        return sl_fail(error, SL_EFILE, "OpenSSL finds no random bytes on this system");
    sl_run_key_print(secret, out);
    OPENSSL_cleanse(secret, sizeof secret);
    return 0;
}

int sl_run_key_make(const char *path, sl_error *error) {
    char text[SL_RUN_KEY_FILE_BYTES + 1];
    int result = sl_run_key_text(text, error);
    if (result == 0)
        result = sl_key_file_write(path, SECRET_MODE, text, SL_RUN_KEY_FILE_BYTES, error);
    OPENSSL_cleanse(text, sizeof text);
    return result;
}

/* ---- a node's pair ---- */

static bool fill_certificate(X509 *certificate, EVP_PKEY *key) {
    uint64_t serial;
    if (RAND_bytes((uint8_t *)&serial, sizeof serial) != 1)
        return false;
    X509_NAME *name = X509_get_subject_name(certificate);
    return X509_set_version(certificate, X509_VERSION_3) == 1 &&
           ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -valid_before_s) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), valid_s) != NULL &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)"starling node",
                                      -1, -1, 0) == 1 &&
           X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
           X509_sign(certificate, key, NULL) > 0;
}

static int write_pem(BIO *bio, const char *name, const char *end, unsigned mode, sl_error *error) {
    char path[SL_KEY_PATH_MAX + 8], *text;
    const long bytes = BIO_get_mem_data(bio, &text);
    snprintf(path, sizeof path, "%.*s%s", SL_KEY_PATH_MAX, name, end);
    return sl_key_file_write(path, mode, text, (size_t)bytes, error);
}

/* Both files, or none. */
static int write_pair(BIO *key, BIO *certificate, const char *name, sl_error *error) {
    char path[SL_KEY_PATH_MAX + 8];
    int result = write_pem(key, name, ".key", SECRET_MODE, error);
    if (result != 0)
        return result;
    result = write_pem(certificate, name, ".crt", PUBLIC_MODE, error);
    snprintf(path, sizeof path, "%.*s.key", SL_KEY_PATH_MAX, name);
    if (result != 0)
        unlink(path);
    return result;
}

int sl_node_keys_make(const char *name, char fingerprint[SL_FINGERPRINT_TEXT_MAX],
                      sl_error *error) {
    uint8_t bytes[SL_FINGERPRINT_BYTES];
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    X509 *certificate = X509_new();
    BIO *key_text = BIO_new(BIO_s_secmem()), *certificate_text = BIO_new(BIO_s_mem());
    int result;
    if (key == NULL || certificate == NULL || key_text == NULL || certificate_text == NULL ||
        !fill_certificate(certificate, key) || !sl_fingerprint_find(certificate, bytes) ||
        PEM_write_bio_PrivateKey(key_text, key, NULL, NULL, 0, NULL, NULL) != 1 ||
        PEM_write_bio_X509(certificate_text, certificate) != 1)
        result = sl_fail(error, SL_ENOMEM, "%s: OpenSSL makes no Ed25519 certificate here", name);
    else
        result = write_pair(key_text, certificate_text, name, error);
    if (result == 0)
        sl_fingerprint_print(bytes, fingerprint);
    BIO_free(key_text);
    BIO_free(certificate_text);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return result;
}
