/* tls.h - OpenSSL's settings: TLS 1.3 with one suite, no tickets, no early data; see handshake.h.
 */
#ifndef SL_TLS_H
#define SL_TLS_H

#include "secure/certificate.h"
#include "secure/credentials.h"

enum { SL_TLS_NAME_BYTES = 16 };

/* One of the run's keys, for one passage. Its name is said in the clear: it tells those who have
 * the key which one is meant, and is another one of each passage. */
typedef struct sl_tls_psk {
    uint8_t name[SL_TLS_NAME_BYTES];
    uint8_t key[SL_SECRET_BYTES];
} sl_tls_psk;

/* What callbacks want to know of a connection: its app data. */
typedef struct sl_tls_peer {
    sl_tls_psk psks[SL_RUN_KEYS_MAX]; /* (psk_count) with a run's key, the newest first */
    unsigned psk_count;
    unsigned psk;                     /* that this side shows, or the other has shown */
    sl_demand demand;                 /* with certificates */
    char why[SL_CERTIFICATE_WHY_MAX]; /* its certificate was refused */
} sl_tls_peer;

/* For credentials whose other fields are set. */
int sl_tls_open(SSL_CTX **out, const sl_credentials *credentials, sl_error *error);

#endif
