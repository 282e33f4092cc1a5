/* authority.h - a CA whose certificates are good, and its lists of revoked ones, from PEM files.
 *
 * OpenSSL's X509_STORE holds both, and verifies. Each certificate in the CA's file may sign: a root
 * need not be there. A list that has ended is refused when it is read. One that ends later holds
 * on: who is revoked stays so, and nobody else is shut out because a list is late.
 */
#ifndef SL_AUTHORITY_H
#define SL_AUTHORITY_H

#include <openssl/x509.h>

#include "secure/fingerprint.h"

typedef struct sl_authority {
    X509_STORE *store;
    sl_authority_ends ends;
    uint8_t ca[SL_FINGERPRINT_BYTES], lists[SL_FINGERPRINT_BYTES]; /* of the files' text; zeros:
                                                                      there are no lists */
} sl_authority;

/* revoked may be "". SL_EFILE. */
int sl_authority_open(sl_authority **out, const char *ca, const char *revoked, sl_error *error);
void sl_authority_close(sl_authority **authority);

#endif
