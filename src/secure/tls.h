/* tls.h - OpenSSL's settings: TLS 1.3 with one suite, no tickets, no early data; see handshake.h.
 */
#ifndef SL_TLS_H
#define SL_TLS_H

#include "secure/credentials.h"

enum { SL_TLS_WHY_MAX = 256 };

/* What callbacks want to know of a connection: its app data. */
typedef struct sl_tls_peer {
    uint8_t psk[SL_SECRET_BYTES]; /* with a run's key */
    const uint8_t *pinned;        /* (SL_FINGERPRINT_BYTES) with certificates */
    char why[SL_TLS_WHY_MAX];     /* its certificate was refused */
} sl_tls_peer;

/* For credentials whose other fields are set. */
int sl_tls_open(SSL_CTX **out, const sl_credentials *credentials, sl_error *error);

#endif
