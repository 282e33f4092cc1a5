/* certificate.h - is another agent's certificate a good one? The greeting asks, the handshake does,
 * and so does an agent that has read again whom it trusts. */
#ifndef SL_CERTIFICATE_H
#define SL_CERTIFICATE_H

#include "secure/fingerprint.h"

enum { SL_CERTIFICATE_BYTES_MAX = 4096, SL_CERTIFICATE_WHY_MAX = 256, SL_TIME_TEXT_MAX = 24 };

/* What is asked of it. One of the first two, at least; where there are both, both are. */
typedef struct sl_demand {
    const uint8_t *pinned; /* (SL_FINGERPRINT_BYTES) it is this one; NULL: the roster names none */
    X509_STORE *authority; /* a CA has signed it for `rank`, and not revoked it; NULL: there is no
                              CA */
    uint32_t rank;
} sl_demand;

/* And is it of this time? If not, why, in words that hold nothing of it but its fingerprint and its
 * dates. */
bool sl_certificate_meets(X509 *certificate, const sl_demand *demand,
                          char why[SL_CERTIFICATE_WHY_MAX]);
/* "2026-01-31 23:59:59", UTC; "?": it is none. */
void sl_time_print(const ASN1_TIME *time, char out[SL_TIME_TEXT_MAX]);
/* Since 1970; 0: it is none, or NULL. */
int64_t sl_time_seconds(const ASN1_TIME *time);
/* For OpenSSL's readers of PEM: nobody is asked for a password. */
int sl_pem_no_password(char *out, int room, int writes, void *context);

#endif
