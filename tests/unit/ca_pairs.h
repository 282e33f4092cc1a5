/* ca_pairs.h - a CA for tests: what it signs, and its lists of what it has revoked. */
#ifndef STARLING_TEST_CA_PAIRS_H
#define STARLING_TEST_CA_PAIRS_H

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "secure/credentials.h"
#include "secure_pairs.h"

typedef struct ca {
    EVP_PKEY *key;
    X509 *certificate;
} ca;

enum { DAY_S = 86400 };

/* Of an Ed25519 key no digest is named. */
static inline const EVP_MD *digest_for(const EVP_PKEY *key) {
    return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
}

static inline void extend(X509 *certificate, int nid, const char *value) {
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    assert(extension != NULL && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

/* Valid from now + first_s to now + last_s. signer NULL: itself. */
static inline X509 *certify(const ca *signer, EVP_PKEY *subject, const char *name, long serial,
                            long first_s, long last_s, bool is_ca) {
    X509 *x = X509_new();
    assert(x != NULL && X509_set_version(x, X509_VERSION_3) == 1);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
    X509_gmtime_adj(X509_getm_notBefore(x), first_s);
    X509_gmtime_adj(X509_getm_notAfter(x), last_s);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const uint8_t *)name,
                               -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(signer != NULL ? signer->certificate : x));
    X509_set_pubkey(x, subject);
    if (is_ca)
        extend(x, NID_basic_constraints, "critical,CA:TRUE");
    EVP_PKEY *key = signer != NULL ? signer->key : subject;
    assert(X509_sign(x, key, digest_for(key)) > 0);
    return x;
}

/* kind: "ED25519", "RSA" or "EC". signer NULL: a root. */
static inline ca make_ca(const char *kind, const char *name, const ca *signer, long last_s) {
    ca made;
    made.key = strcmp(kind, "RSA") == 0  ? EVP_PKEY_Q_keygen(NULL, NULL, kind, (size_t)2048)
               : strcmp(kind, "EC") == 0 ? EVP_PKEY_Q_keygen(NULL, NULL, kind, "P-256")
                                         : EVP_PKEY_Q_keygen(NULL, NULL, kind);
    assert(made.key != NULL);
    made.certificate = certify(signer, made.key, name, 1, -DAY_S, last_s, true);
    return made;
}

static inline void close_ca(ca *c) {
    EVP_PKEY_free(c->key);
    X509_free(c->certificate);
}

/* A list that ends at now + last_s and revokes this serial number; 0: none. */
static inline X509_CRL *make_list(const ca *signer, long serial, long last_s) {
    X509_CRL *list = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, -DAY_S), *end = X509_gmtime_adj(NULL, last_s);
    assert(list != NULL && X509_CRL_set_version(list, X509_CRL_VERSION_2) == 1);
    X509_CRL_set_issuer_name(list, X509_get_subject_name(signer->certificate));
    X509_CRL_set1_lastUpdate(list, now);
    X509_CRL_set1_nextUpdate(list, end);
    if (serial != 0) {
        X509_REVOKED *revoked = X509_REVOKED_new();
        ASN1_INTEGER *number = ASN1_INTEGER_new();
        ASN1_INTEGER_set(number, serial);
        X509_REVOKED_set_serialNumber(revoked, number);
        X509_REVOKED_set_revocationDate(revoked, now);
        assert(X509_CRL_add0_revoked(list, revoked) == 1);
        ASN1_INTEGER_free(number);
    }
    assert(X509_CRL_sign(list, signer->key, digest_for(signer->key)) > 0);
    ASN1_TIME_free(now);
    ASN1_TIME_free(end);
    return list;
}

static inline void add_to_file(const char *path, X509 *certificate, X509_CRL *list) {
    FILE *f = fopen(path, "a");
    assert(f != NULL);
    fputs("A comment, as `openssl ca` writes some.\n", f);
    assert(certificate == NULL || PEM_write_X509(f, certificate) == 1);
    assert(list == NULL || PEM_write_X509_CRL(f, list) == 1);
    fclose(f);
}

/* Shows another certificate of its own key from now on; it is taken. */
static inline void wear(sl_credentials *c, X509 *certificate) {
    X509_free(c->certificate);
    c->certificate = certificate;
    bool worn = sl_fingerprint_find(certificate, c->fingerprint) &&
                SSL_CTX_use_certificate(c->tls, certificate) == 1;
    assert(worn);
}

/* A node with a certificate of this CA, which trusts nothing yet. */
static inline sl_credentials *make_member(const ca *signer, const char *name, long serial) {
    sl_credentials *c = make_node();
    wear(c, certify(signer, c->key, name, serial, -DAY_S, DAY_S, false));
    return c;
}

/* Trusts these; what is NULL is none. */
static inline void trust(sl_credentials *c, X509 *first, X509 *second, X509_CRL *list) {
    char folder[32], ca_path[64], list_path[64] = "";
    make_key_folder(folder);
    snprintf(ca_path, sizeof ca_path, "%s/ca", folder);
    add_to_file(ca_path, first, NULL);
    if (second != NULL)
        add_to_file(ca_path, second, NULL);
    if (list != NULL) {
        snprintf(list_path, sizeof list_path, "%s/list", folder);
        add_to_file(list_path, NULL, list);
    }
    sl_authority_close(&c->authority);
    sl_error error = {.code = 0};
    if (sl_credentials_trust(c, ca_path, list_path, &error) != 0)
        fprintf(stderr, "%s\n", error.text);
    assert(error.code == 0);
    unlink(ca_path);
    unlink(list_path);
    rmdir(folder);
}

#endif
