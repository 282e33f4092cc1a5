/* credentials.h - what starling/keys.h keeps secret, for its own room and the agent. */
#ifndef SL_CREDENTIALS_H
#define SL_CREDENTIALS_H

#include <openssl/ssl.h>

#include "secure/fingerprint.h"
#include "secure/secret.h"

struct sl_credentials {
    uint8_t *secret;   /* (SL_SECRET_BYTES) a run's key; NULL: a node's pair */
    X509 *certificate; /* of a node's pair, with its private key */
    EVP_PKEY *key;
    uint8_t fingerprint[SL_FINGERPRINT_BYTES]; /* of the certificate */
    SSL_CTX *tls;
};

#endif
