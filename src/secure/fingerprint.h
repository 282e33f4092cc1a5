/* fingerprint.h - the SHA-256 of a certificate, which pins it. */
#ifndef SL_FINGERPRINT_H
#define SL_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/x509.h>

#include "starling/keys.h"

enum { SL_FINGERPRINT_BYTES = 32 };

/* "sha256:..." */
void sl_fingerprint_print(const uint8_t fingerprint[SL_FINGERPRINT_BYTES],
                          char out[SL_FINGERPRINT_TEXT_MAX]);
/* False: it is none. */
bool sl_fingerprint_parse(const char *text, uint8_t out[SL_FINGERPRINT_BYTES]);
/* False: OpenSSL refuses. */
bool sl_fingerprint_find(X509 *certificate, uint8_t out[SL_FINGERPRINT_BYTES]);

#endif
