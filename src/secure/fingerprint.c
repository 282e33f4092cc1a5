/* fingerprint.c - see fingerprint.h. */
#include "secure/fingerprint.h"

#include <string.h>

#include <openssl/evp.h>

#include "secure/key_text.h"

static const char sha256[] = "sha256:";

void sl_fingerprint_print(const uint8_t fingerprint[SL_FINGERPRINT_BYTES],
                          char out[SL_FINGERPRINT_TEXT_MAX]) {
    memcpy(out, sha256, sizeof sha256);
    sl_hex_print(fingerprint, SL_FINGERPRINT_BYTES, out + sizeof sha256 - 1);
}

bool sl_fingerprint_parse(const char *text, uint8_t out[SL_FINGERPRINT_BYTES]) {
    return strncmp(text, sha256, sizeof sha256 - 1) == 0 &&
           strlen(text) == sizeof sha256 - 1 + 2 * SL_FINGERPRINT_BYTES &&
           sl_hex_parse(text + sizeof sha256 - 1, SL_FINGERPRINT_BYTES, out);
}

bool sl_fingerprint_find(X509 *certificate, uint8_t out[SL_FINGERPRINT_BYTES]) {
    unsigned bytes;
    return certificate != NULL && X509_digest(certificate, EVP_sha256(), out, &bytes) == 1;
}
