/* certificate.c - see certificate.h. */
#include "secure/certificate.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

int sl_pem_no_password(char *out, int room, int writes, void *context) {
    (void)out, (void)room, (void)writes, (void)context;
    return -1;
}

/* ---- its dates ---- */

void sl_time_print(const ASN1_TIME *time, char out[SL_TIME_TEXT_MAX]) {
    struct tm utc = {0};
    if (ASN1_TIME_to_tm(time, &utc) != 1 ||
        strftime(out, SL_TIME_TEXT_MAX, "%Y-%m-%d %H:%M:%S", &utc) == 0)
        snprintf(out, SL_TIME_TEXT_MAX, "?");
}

int64_t sl_time_seconds(const ASN1_TIME *time) {
    struct tm utc = {0};
    return time != NULL && ASN1_TIME_to_tm(time, &utc) == 1 ? (int64_t)timegm(&utc) : 0;
}

/* Is it valid at this time? If not, why: its clock or this one may be wrong. */
static bool is_current(const X509 *certificate, const char *name, time_t now,
                       char why[SL_CERTIFICATE_WHY_MAX]) {
    const ASN1_TIME *from = X509_get0_notBefore(certificate), *to = X509_get0_notAfter(certificate);
    const bool begun = X509_cmp_time(from, &now) < 0, ended = X509_cmp_time(to, &now) <= 0;
    char first[SL_TIME_TEXT_MAX], last[SL_TIME_TEXT_MAX], here[SL_TIME_TEXT_MAX];
    struct tm utc;
    if (begun && !ended)
        return true;
    sl_time_print(from, first);
    sl_time_print(to, last);
    strftime(here, sizeof here, "%Y-%m-%d %H:%M:%S", gmtime_r(&now, &utc));
    snprintf(why, SL_CERTIFICATE_WHY_MAX,
             "%s %s: valid from %s to %s, and this host's clock says %s (UTC)", name,
             ended ? "has expired" : "is not valid yet", first, last, here);
    return false;
}

/* ---- its CA ---- */

/* The subject's one CN says so. */
static bool names_rank(const X509 *certificate, uint32_t rank) {
    const X509_NAME *subject = X509_get_subject_name(certificate);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    char wanted[40];
    uint8_t *text = NULL;
    const int length = snprintf(wanted, sizeof wanted, "starling rank %u", rank);
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
        return false;
    const int bytes =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    const bool right = bytes == length && memcmp(text, wanted, (size_t)length) == 0;
    OPENSSL_free(text);
    return right;
}

static void tell(X509_STORE_CTX *context, const char *name, char why[SL_CERTIFICATE_WHY_MAX]) {
    const int wrong = X509_STORE_CTX_get_error(context);
    const bool own = X509_STORE_CTX_get_error_depth(context) == 0;
    const X509 *certificate = X509_STORE_CTX_get_current_cert(context);
    if (wrong == X509_V_ERR_CERT_HAS_EXPIRED || wrong == X509_V_ERR_CERT_NOT_YET_VALID)
        is_current(certificate, own ? name : "its CA's certificate", time(NULL), why);
    else if (wrong == X509_V_ERR_CERT_REVOKED)
        snprintf(why, SL_CERTIFICATE_WHY_MAX, "%s is revoked (security.revoked)", name);
    else if (wrong == X509_V_ERR_UNABLE_TO_GET_CRL)
        snprintf(why, SL_CERTIFICATE_WHY_MAX, "%s is of a CA without a list in security.revoked",
                 name);
    else
        snprintf(why, SL_CERTIFICATE_WHY_MAX, "%s is not of a CA of security.ca: %s", name,
                 X509_verify_cert_error_string(wrong));
}

static bool is_vouched_for(X509 *certificate, const sl_demand *d, const char *name,
                           char why[SL_CERTIFICATE_WHY_MAX]) {
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    snprintf(why, SL_CERTIFICATE_WHY_MAX, "OpenSSL does not take its certificate");
    const bool asks =
        context != NULL && X509_STORE_CTX_init(context, d->authority, certificate, NULL) == 1;
    const bool right = asks && X509_verify_cert(context) == 1;
    if (asks && !right)
        tell(context, name, why);
    X509_STORE_CTX_free(context);
    ERR_clear_error();
    if (!right || names_rank(certificate, d->rank))
        return right;
    snprintf(why, SL_CERTIFICATE_WHY_MAX,
             "%s is for another rank: its CN is not \"starling rank %u\"", name, d->rank);
    return false;
}

/* ---- all of it ---- */

bool sl_certificate_meets(X509 *certificate, const sl_demand *d, char why[SL_CERTIFICATE_WHY_MAX]) {
    uint8_t fingerprint[SL_FINGERPRINT_BYTES];
    char text[SL_FINGERPRINT_TEXT_MAX], name[SL_FINGERPRINT_TEXT_MAX + 16];
    snprintf(why, SL_CERTIFICATE_WHY_MAX, "OpenSSL does not take its certificate");
    if (!sl_fingerprint_find(certificate, fingerprint))
        return false;
    sl_fingerprint_print(fingerprint, text);
    snprintf(name, sizeof name, "its certificate %s", text);
    snprintf(why, SL_CERTIFICATE_WHY_MAX, "%s is not the one that the roster names", name);
    if (d->pinned != NULL && CRYPTO_memcmp(fingerprint, d->pinned, sizeof fingerprint) != 0)
        return false;
    if (d->authority != NULL)
        return is_vouched_for(certificate, d, name, why);
    return d->pinned != NULL && is_current(certificate, name, time(NULL), why);
}
