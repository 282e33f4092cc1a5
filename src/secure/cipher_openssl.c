/* cipher_openssl.c - OpenSSL's AES-256-GCM; see cipher.h. */
#include <stdlib.h>

#include <openssl/evp.h>

#include "secure/cipher.h"

typedef struct cipher {
    EVP_CIPHER_CTX *context;
    bool seals;
} cipher;

static bool works(void) {
    return true;
}

static void close_cipher(void *of) {
    cipher *c = of;
    if (c == NULL)
        return;
    EVP_CIPHER_CTX_free(c->context);
    free(c);
}

static void *open_cipher(bool seals) {
    cipher *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (cipher){.context = EVP_CIPHER_CTX_new(), .seals = seals};
    if (c->context != NULL)
        return c;
    close_cipher(c);
    return NULL;
}

static bool set_key(void *of, const uint8_t key[SL_CIPHER_KEY_BYTES]) {
    const cipher *c = of;
    return EVP_CipherInit_ex(c->context, EVP_aes_256_gcm(), NULL, key, NULL, c->seals) == 1;
}

static bool begin(void *of, const uint8_t nonce[SL_CIPHER_NONCE_BYTES], const uint8_t *header,
                  size_t bytes) {
    const cipher *c = of;
    int done;
    return EVP_CipherInit_ex(c->context, NULL, NULL, NULL, nonce, -1) == 1 &&
           EVP_CipherUpdate(c->context, NULL, &done, header, (int)bytes) == 1;
}

static bool add(void *of, const uint8_t *from, uint8_t *to, size_t bytes) {
    const cipher *c = of;
    int done;
    return bytes == 0 || EVP_CipherUpdate(c->context, to, &done, from, (int)bytes) == 1;
}

static bool end(void *of, uint8_t tag[SL_CIPHER_TAG_BYTES]) {
    const cipher *c = of;
    uint8_t nothing[SL_CIPHER_TAG_BYTES];
    int done;
    if (!c->seals &&
        EVP_CIPHER_CTX_ctrl(c->context, EVP_CTRL_AEAD_SET_TAG, SL_CIPHER_TAG_BYTES, tag) != 1)
        return false;
    if (EVP_CipherFinal_ex(c->context, nothing, &done) != 1)
        return false;
    return !c->seals ||
           EVP_CIPHER_CTX_ctrl(c->context, EVP_CTRL_AEAD_GET_TAG, SL_CIPHER_TAG_BYTES, tag) == 1;
}

const sl_cipher_library sl_cipher_openssl = {"OpenSSL", works, open_cipher, close_cipher,
                                             set_key,   begin, add,         end};
