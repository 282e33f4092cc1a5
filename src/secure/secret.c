/* secret.c - see secret.h. */
#include "secure/secret.h"

#include <string.h>
#include <sys/mman.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

uint8_t *sl_secret_open(void) {
    uint8_t *page =
        mmap(NULL, SL_SECRET_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    (void)mlock(page, SL_SECRET_BYTES); /* where the limit allows it */
    madvise(page, SL_SECRET_BYTES, MADV_DONTDUMP);
    return page;
}

void sl_secret_close(uint8_t **secret) {
    if (*secret == NULL)
        return;
    OPENSSL_cleanse(*secret, SL_SECRET_BYTES);
    munmap(*secret, SL_SECRET_BYTES);
    *secret = NULL;
}

enum { INFO_MAX = 128 };

bool sl_secret_derive(const uint8_t secret[SL_SECRET_BYTES], const char *purpose,
                      const void *context, size_t context_bytes, uint8_t *out, size_t count) {
    const size_t purpose_bytes = strlen(purpose);
    uint8_t info[INFO_MAX];
    char digest[] = "SHA256";
    if (purpose_bytes + context_bytes > sizeof info)
        return false;
    memcpy(info, purpose, purpose_bytes);
    if (context_bytes > 0)
        memcpy(info + purpose_bytes, context, context_bytes);
    EVP_KDF *hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *kdf = hkdf != NULL ? EVP_KDF_CTX_new(hkdf) : NULL;
    EVP_KDF_free(hkdf);
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret, SL_SECRET_BYTES),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, purpose_bytes + context_bytes),
        OSSL_PARAM_construct_end()};
    const bool derived = kdf != NULL && EVP_KDF_derive(kdf, out, count, parameters) > 0;
    EVP_KDF_CTX_free(kdf);
    return derived;
}
