/* handshake.c - see handshake.h. */
#include "secure/handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>

#include "secure/tls.h"

struct sl_handshake {
    SSL *ssl;
    BIO *in, *out; /* the SSL's */
    bool dials, with_psk;
    sl_passage passage;
    sl_tls_peer peer;
    uint64_t names[SL_RUN_KEYS_MAX]; /* of the run's keys, as they were at the beginning */
};

/* Of all keys that hold. */
static bool derive_psks(sl_handshake *h, const sl_credentials *c) {
    uint8_t context[SL_PASSAGE_BYTES];
    const uint8_t *secret;
    sl_passage_encode(&h->passage, context);
    for (unsigned i = 0; (secret = sl_credentials_secret(c, i)) != NULL; i++) {
        sl_tls_psk *psk = &h->peer.psks[h->peer.psk_count++];
        h->names[i] = sl_credentials_name(c, i);
        if (!sl_secret_derive(secret, "starling psk", context, sizeof context, psk->key,
                              sizeof psk->key) ||
            !sl_secret_derive(secret, "starling psk name", context, sizeof context, psk->name,
                              sizeof psk->name))
            return false;
    }
    return true;
}

static bool attach(sl_handshake *h, const sl_credentials *c) {
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    h->ssl = SSL_new(c->tls);
    if (h->ssl == NULL || in == NULL || out == NULL) {
        BIO_free(in);
        BIO_free(out);
        return false;
    }
    SSL_set_bio(h->ssl, in, out);
    h->in = in;
    h->out = out;
    SSL_set_app_data(h->ssl, &h->peer);
    if (h->dials)
        SSL_set_connect_state(h->ssl);
    else
        SSL_set_accept_state(h->ssl);
    return derive_psks(h, c);
}

int sl_handshake_open(sl_handshake **out, const sl_credentials *credentials,
                      const sl_passage *passage, bool dials, const sl_demand *demand,
                      sl_error *error) {
    sl_handshake *h = calloc(1, sizeof *h);
    if (h != NULL) {
        *h = (sl_handshake){
            .dials = dials, .with_psk = credentials->secret != NULL, .passage = *passage};
        if (demand != NULL)
            h->peer.demand = *demand;
        if (h->peer.demand.authority != NULL)
            X509_STORE_up_ref(h->peer.demand.authority);
    }
    if (h == NULL || !attach(h, credentials)) {
        sl_handshake_close(&h);
        return sl_fail(error, SL_ENOMEM, "out of memory for a handshake");
    }
    *out = h;
    return 0;
}

void sl_handshake_show(sl_handshake *h, uint64_t name) {
    for (unsigned i = 0; i < h->peer.psk_count; i++)
        if (h->names[i] == name)
            h->peer.psk = i;
}

void sl_handshake_close(sl_handshake **handshake) {
    sl_handshake *h = *handshake;
    if (h == NULL)
        return;
    *handshake = NULL;
    SSL_free(h->ssl);
    X509_STORE_free(h->peer.demand.authority);
    OPENSSL_cleanse(h->peer.psks, sizeof h->peer.psks);
    free(h);
}

static sl_handshake_state fail(const sl_handshake *h, const char *what,
                               char why[SL_HANDSHAKE_WHY_MAX]) {
    if (h->peer.why[0] != '\0')
        what = h->peer.why;
    snprintf(why, SL_HANDSHAKE_WHY_MAX, "the handshake failed: %s",
             what != NULL ? what : "OpenSSL does not say why");
    return SL_HANDSHAKE_FAILED;
}

sl_handshake_state sl_handshake_take(sl_handshake *h, const uint8_t *bytes, size_t count,
                                     char why[SL_HANDSHAKE_WHY_MAX]) {
    ERR_clear_error();
    if (count > 0 && BIO_write(h->in, bytes, (int)count) != (int)count)
        return fail(h, "out of memory", why);
    const int result = SSL_do_handshake(h->ssl);
    if (result != 1 && SSL_get_error(h->ssl, result) == SSL_ERROR_WANT_READ)
        return SL_HANDSHAKE_GOES_ON;
    if (result != 1)
        return fail(h, ERR_reason_error_string(ERR_get_error()), why);
    if (BIO_ctrl_pending(h->in) > 0)
        return fail(h, "there was more than a handshake", why);
    if (h->with_psk && SSL_session_reused(h->ssl) != 1)
        return fail(h, "it did not show the run's key", why);
    return SL_HANDSHAKE_DONE;
}

uint64_t sl_handshake_key(const sl_handshake *h) {
    return h->names[h->peer.psk];
}

X509 *sl_handshake_certificate(const sl_handshake *h) {
    return SSL_get1_peer_certificate(h->ssl);
}

size_t sl_handshake_pending(const sl_handshake *h, const uint8_t **bytes) {
    char *data;
    const long count = BIO_get_mem_data(h->out, &data);
    *bytes = (const uint8_t *)data;
    return count > 0 ? (size_t)count : 0;
}

void sl_handshake_sent(sl_handshake *h, size_t count) {
    uint8_t gone[256];
    for (size_t step; count > 0; count -= step) {
        step = count < sizeof gone ? count : sizeof gone;
        if (BIO_read(h->out, gone, (int)step) != (int)step)
            return;
    }
}

bool sl_handshake_keys(const sl_handshake *h, uint8_t use, uint8_t sends[SL_SEAL_KEY_BYTES],
                       uint8_t takes[SL_SEAL_KEY_BYTES]) {
    static const char label[] = "starling frames";
    uint8_t context[SL_PASSAGE_BYTES + 1], both[2 * SL_SEAL_KEY_BYTES];
    sl_passage_encode(&h->passage, context);
    context[SL_PASSAGE_BYTES] = use;
    const bool done = SSL_export_keying_material(h->ssl, both, sizeof both, label, sizeof label - 1,
                                                 context, sizeof context, 1) == 1;
    memcpy(h->dials ? sends : takes, both, SL_SEAL_KEY_BYTES);
    memcpy(h->dials ? takes : sends, both + SL_SEAL_KEY_BYTES, SL_SEAL_KEY_BYTES);
    OPENSSL_cleanse(both, sizeof both);
    return done;
}
