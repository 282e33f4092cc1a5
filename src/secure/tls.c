/* tls.c - see tls.h. */
#include "secure/tls.h"

#include <openssl/err.h>

#include "secure/certificate.h"

static const char suite[] = "TLS_AES_256_GCM_SHA384";
static const uint8_t suite_number[] = {0x13, 0x02};
static const uint8_t purpose[] = "starling";

/* ---- a run's key ---- */

static SSL_SESSION *make_session(SSL *ssl, const sl_tls_psk *psk) {
    SSL_SESSION *session = SSL_SESSION_new();
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, suite_number);
    if (session != NULL && cipher != NULL &&
        SSL_SESSION_set1_master_key(session, psk->key, sizeof psk->key) == 1 &&
        SSL_SESSION_set_cipher(session, cipher) == 1 &&
        SSL_SESSION_set1_id_context(session, purpose, sizeof purpose - 1) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static int use_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_bytes,
                   SSL_SESSION **out) {
    const sl_tls_peer *peer = SSL_get_app_data(ssl);
    const sl_tls_psk *psk = &peer->psks[peer->psk];
    (void)md; /* there is one suite */
    *out = make_session(ssl, psk);
    *id = psk->name;
    *id_bytes = sizeof psk->name;
    return *out != NULL;
}

static int find_psk(SSL *ssl, const unsigned char *id, size_t id_bytes, SSL_SESSION **out) {
    sl_tls_peer *peer = SSL_get_app_data(ssl);
    *out = NULL;
    for (unsigned i = 0; i < peer->psk_count; i++)
        if (id_bytes == SL_TLS_NAME_BYTES && memcmp(id, peer->psks[i].name, id_bytes) == 0) {
            peer->psk = i;
            *out = make_session(ssl, &peer->psks[i]);
            return *out != NULL;
        }
    return 1;
}

/* ---- certificates ---- */

/* By what is asked of this peer's; OpenSSL's own way of verifying asks less. */
static int verify(X509_STORE_CTX *store, void *context) {
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    sl_tls_peer *peer = SSL_get_app_data(ssl);
    (void)context;
    if (sl_certificate_meets(X509_STORE_CTX_get0_cert(store), &peer->demand, peer->why)) {
        peer->why[0] = '\0';
        return 1;
    }
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_UNTRUSTED);
    return 0;
}

/* ---- settings ---- */

static bool set_versions(SSL_CTX *tls) {
    return SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(tls, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(tls, suite) == 1 &&
           SSL_CTX_set1_groups_list(tls, "X25519") == 1;
}

static bool set_certificate(SSL_CTX *tls, const sl_credentials *c) {
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(tls, verify, NULL);
    SSL_CTX_set_max_cert_list(tls, 2 * SL_CERTIFICATE_BYTES_MAX); /* one, and what frames it */
    return SSL_CTX_set1_sigalgs_list(tls, "ed25519") == 1 &&
           SSL_CTX_use_certificate(tls, c->certificate) == 1 &&
           SSL_CTX_use_PrivateKey(tls, c->key) == 1;
}

static bool set(SSL_CTX *tls, const sl_credentials *c) {
    if (tls == NULL || !set_versions(tls) || SSL_CTX_set_num_tickets(tls, 0) != 1)
        return false;
    SSL_CTX_set_options(tls, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_early_data(tls, 0);
    if (SSL_CTX_set_session_id_context(tls, purpose, sizeof purpose - 1) != 1)
        return false;
    if (c->secret == NULL)
        return set_certificate(tls, c);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL); /* of whom there is no certificate to trust */
    SSL_CTX_set_psk_use_session_callback(tls, use_psk);
    SSL_CTX_set_psk_find_session_callback(tls, find_psk);
    return true;
}

/* An OpenSSL that was built without TLS 1.3, or is configured so, takes all settings. */
static bool offers_suite(SSL_CTX *tls) {
    SSL *ssl = SSL_new(tls);
    STACK_OF(SSL_CIPHER) *suites = ssl != NULL ? SSL_get1_supported_ciphers(ssl) : NULL;
    const bool any = sk_SSL_CIPHER_num(suites) > 0;
    sk_SSL_CIPHER_free(suites);
    SSL_free(ssl);
    return any;
}

int sl_tls_open(SSL_CTX **out, const sl_credentials *credentials, sl_error *error) {
    ERR_clear_error();
    SSL_CTX *tls = SSL_CTX_new(TLS_method());
    if (set(tls, credentials) && offers_suite(tls)) {
        *out = tls;
        return 0;
    }
    const char *reason = ERR_reason_error_string(ERR_get_error());
    SSL_CTX_free(tls);
    return sl_fail(error, SL_EINVAL,
                   "OpenSSL %s here does not offer TLS 1.3 with %s, which connections with keys "
                   "need: %s; without keys, on loopback or a trusted network, it is not needed "
                   "(security.mode \"none\")",
                   OpenSSL_version(OPENSSL_VERSION_STRING), suite,
                   reason != NULL ? reason
                                  : "it was built without, or its openssl.cnf (OPENSSL_CONF) "
                                    "forbids it");
}
