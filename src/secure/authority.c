/* authority.c - see authority.h. */
#include "secure/authority.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "secure/certificate.h"
#include "starling/text.h"

enum { CA_BYTES_MAX = 1 << 20, LISTS_BYTES_MAX = 16 << 20, AUTH_LEVEL = 2 };

typedef struct reading {
    sl_authority *authority;
    STACK_OF(X509) * signers; /* the CA's certificates, which the store has, too */
    BIO *text;
    const char *path;
    int count; /* of what was read from `text` */
} reading;

static void take_end(int64_t *first, int64_t end) {
    if (end != 0 && (*first == 0 || end < *first))
        *first = end;
}

/* All of the file was read, and there was something. */
static int check_end(const reading *r, const char *key, const char *what, sl_error *error) {
    const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    if (r->count > 0 && is_end)
        return 0;
    return sl_fail(error, SL_EFILE,
                   "%s: %s: %s %d is not in PEM, or is damaged; allowed is a PEM "
                   "file with one or more",
                   key, r->path, what, r->count + 1);
}

/* ---- the CA's certificates ---- */

static int add_signer(reading *r, X509 *signer, sl_error *error) {
    r->count++;
    if (X509_check_ca(signer) != 1)
        return sl_fail(error, SL_EFILE,
                       "security.ca: %s: its certificate %d is not a CA's: it must say CA:TRUE "
                       "(basicConstraints), as `openssl req -x509` makes one",
                       r->path, r->count);
    if (X509_STORE_add_cert(r->authority->store, signer) != 1 || X509_up_ref(signer) != 1)
        return sl_fail(error, SL_ENOMEM, "security.ca: %s: out of memory", r->path);
    if (sk_X509_push(r->signers, signer) > 0) {
        take_end(&r->authority->ends.ca_s, sl_time_seconds(X509_get0_notAfter(signer)));
        return 0;
    }
    X509_free(signer);
    return sl_fail(error, SL_ENOMEM, "security.ca: %s: out of memory", r->path);
}

static int read_signers(reading *r, sl_error *error) {
    X509 *signer;
    int result = 0;
    while (result == 0 &&
           (signer = PEM_read_bio_X509(r->text, NULL, sl_pem_no_password, NULL)) != NULL) {
        result = add_signer(r, signer, error);
        X509_free(signer);
    }
    return result != 0 ? result : check_end(r, "security.ca", "certificate", error);
}

/* ---- lists of revoked ones ---- */

static bool is_signed(const reading *r, X509_CRL *list) {
    bool found = false;
    for (int i = 0; i < sk_X509_num(r->signers) && !found; i++) {
        X509 *signer = sk_X509_value(r->signers, i);
        found = X509_NAME_cmp(X509_get_subject_name(signer), X509_CRL_get_issuer(list)) == 0 &&
                X509_CRL_verify(list, X509_get0_pubkey(signer)) == 1;
    }
    ERR_clear_error();
    return found;
}

static int add_list(reading *r, X509_CRL *list, sl_error *error) {
    const ASN1_TIME *end = X509_CRL_get0_nextUpdate(list);
    char ended[SL_TIME_TEXT_MAX];
    r->count++;
    if (!is_signed(r, list))
        return sl_fail(error, SL_EFILE,
                       "security.revoked: %s: its list %d is not of a CA of security.ca, or is "
                       "altered; allowed are those that one of these has signed",
                       r->path, r->count);
    if (end != NULL && X509_cmp_current_time(end) <= 0) {
        sl_time_print(end, ended);
        return sl_fail(error, SL_EFILE,
                       "security.revoked: %s: its list %d has ended, %s UTC: later ones may revoke "
                       "more; make a new one (`openssl ca -gencrl`)",
                       r->path, r->count, ended);
    }
    if (X509_STORE_add_crl(r->authority->store, list) != 1)
        return sl_fail(error, SL_ENOMEM, "security.revoked: %s: out of memory", r->path);
    take_end(&r->authority->ends.revoked_s, sl_time_seconds(end));
    return 0;
}

static int read_lists(reading *r, sl_error *error) {
    X509_CRL *list;
    int result = 0;
    while (result == 0 &&
           (list = PEM_read_bio_X509_CRL(r->text, NULL, sl_pem_no_password, NULL)) != NULL) {
        result = add_list(r, list, error);
        X509_CRL_free(list);
    }
    if (result == 0)
        result = check_end(r, "security.revoked", "list (CRL)", error);
    if (result == 0 && X509_STORE_set_flags(r->authority->store, X509_V_FLAG_CRL_CHECK) != 1)
        result = sl_fail(error, SL_ENOMEM, "security.revoked: %s: out of memory", r->path);
    return result;
}

/* ---- files ---- */

static int read_file(reading *r, const char *key, const char *path, size_t bytes_max,
                     uint8_t digest[SL_FINGERPRINT_BYTES], int (*take)(reading *r, sl_error *error),
                     sl_error *error) {
    char *text;
    int result = sl_text_read(&text, path, bytes_max, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "%s", key);
    r->path = path;
    r->count = 0;
    r->text = BIO_new_mem_buf(text, -1);
    if (r->text == NULL || EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL) != 1)
        result = sl_fail(error, SL_ENOMEM, "%s: %s: out of memory", key, path);
    else
        result = take(r, error);
    BIO_free(r->text);
    free(text);
    return result;
}

/* Lists are looked at whenever they end; add_list has refused those that had. */
static int overlook_time_of_lists(int is_good, X509_STORE_CTX *context) {
    const int wrong = X509_STORE_CTX_get_error(context);
    if (wrong != X509_V_ERR_CRL_HAS_EXPIRED && wrong != X509_V_ERR_CRL_NOT_YET_VALID)
        return is_good;
    X509_STORE_CTX_set_error(context, X509_V_OK);
    return 1;
}

static bool open_store(sl_authority *a) {
    a->store = X509_STORE_new();
    if (a->store == NULL || X509_STORE_set_flags(a->store, X509_V_FLAG_PARTIAL_CHAIN) != 1)
        return false;
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_get0_param(a->store), AUTH_LEVEL);
    X509_STORE_set_verify_cb(a->store, overlook_time_of_lists);
    return true;
}

int sl_authority_open(sl_authority **out, const char *ca, const char *revoked, sl_error *error) {
    sl_authority *a = calloc(1, sizeof *a);
    reading r = {.authority = a, .signers = sk_X509_new_null()};
    ERR_clear_error();
    int result = a == NULL || r.signers == NULL || !open_store(a)
                     ? sl_fail(error, SL_ENOMEM, "security.ca: %s: out of memory", ca)
                     : read_file(&r, "security.ca", ca, CA_BYTES_MAX, a->ca, read_signers, error);
    if (result == 0 && revoked[0] != '\0')
        result = read_file(&r, "security.revoked", revoked, LISTS_BYTES_MAX, a->lists, read_lists,
                           error);
    sk_X509_pop_free(r.signers, X509_free);
    if (result != 0)
        sl_authority_close(&a);
    else
        *out = a;
    return result;
}

void sl_authority_close(sl_authority **authority) {
    sl_authority *a = *authority;
    if (a == NULL)
        return;
    *authority = NULL;
    X509_STORE_free(a->store);
    free(a);
}
