/* credentials.h - what starling/keys.h keeps secret, for its own room and the agent. */
#ifndef SL_CREDENTIALS_H
#define SL_CREDENTIALS_H

#include <openssl/ssl.h>

#include "secure/authority.h"
#include "secure/fingerprint.h"
#include "secure/secret.h"

struct sl_credentials {
    uint8_t *secret;   /* (SL_SECRET_BYTES) a run's key; NULL: a node's pair */
    uint8_t *before;   /* the run's key before that one, which holds, too; NULL: there is none */
    uint8_t *retired;  /* (SL_SECRET_BYTES) the greetings' key of the one that was forgotten last */
    X509 *certificate; /* of a node's pair, with its private key */
    EVP_PKEY *key;
    uint8_t fingerprint[SL_FINGERPRINT_BYTES]; /* of the certificate */
    SSL_CTX *tls;
    sl_authority *authority; /* whose certificates are good; NULL: those that the roster pins */
};

/* The run's keys that hold, the newest first: 0 or 1. */
enum { SL_RUN_KEYS_MAX = 2 };
/* (SL_SECRET_BYTES) borrowed; NULL: there are not so many. */
const uint8_t *sl_credentials_secret(const sl_credentials *credentials, unsigned which);
/* Its name, by which holders of several tell them apart: it says nothing of the key, and another
 * one of each passage. 0: there are not so many, or OpenSSL refuses. */
uint64_t sl_credentials_name(const sl_credentials *credentials, unsigned which);
/* These come after `old`, whose run's key holds beside their own until it is forgotten, and the one
 * before that no longer; if it is the same, what holds beside it stays. Copies. */
int sl_credentials_follow(sl_credentials *credentials, const sl_credentials *old, sl_error *error);
void sl_credentials_forget(sl_credentials *credentials);
/* What greetings are proved under; SL_RUN_KEYS_MAX: of the run's key that was forgotten last, so
 * that its holders can be told. False: there is none, or OpenSSL refuses. */
bool sl_credentials_greeting_key(const sl_credentials *credentials, unsigned which,
                                 uint8_t out[SL_SECRET_BYTES]);

#endif
