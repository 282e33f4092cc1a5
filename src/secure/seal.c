/* seal.c - see seal.h. */
#include "secure/seal.h"

#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "secure/secret.h"
#include "wire/bytes.h"

static const uint64_t frames_max = 1ull << 32; /* under one key */
static const double key_s = 3600;
enum { NONCE_BYTES = 12 };

struct sl_seal {
    uint8_t *key; /* (SL_SEAL_KEY_BYTES) */
    EVP_CIPHER_CTX *cipher;
    bool writes, phase;
    uint64_t frames; /* under all keys: none can be left out where a key ends */
    uint64_t began;  /* frames before this key */
    double began_s;
};

static bool set_key(sl_seal *s) {
    return EVP_CipherInit_ex(s->cipher, EVP_aes_256_gcm(), NULL, s->key, NULL, s->writes) == 1;
}

sl_seal *sl_seal_open(const uint8_t key[SL_SEAL_KEY_BYTES], bool writes, double now_s) {
    sl_seal *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    *s = (sl_seal){.key = sl_secret_open(),
                   .cipher = EVP_CIPHER_CTX_new(),
                   .writes = writes,
                   .began_s = now_s};
    if (s->key != NULL)
        memcpy(s->key, key, SL_SEAL_KEY_BYTES);
    if (s->key == NULL || s->cipher == NULL || !set_key(s))
        sl_seal_close(&s);
    return s;
}

void sl_seal_close(sl_seal **seal) {
    sl_seal *s = *seal;
    if (s == NULL)
        return;
    *seal = NULL;
    EVP_CIPHER_CTX_free(s->cipher);
    sl_secret_close(&s->key);
    free(s);
}

bool sl_seal_is_worn(const sl_seal *s, double now_s) {
    return s->frames - s->began >= frames_max || now_s - s->began_s > key_s;
}

bool sl_seal_renew(sl_seal *s, double now_s) {
    uint8_t next[SL_SEAL_KEY_BYTES];
    const bool derived = sl_secret_derive(s->key, "starling next key", NULL, 0, next, sizeof next);
    memcpy(s->key, next, sizeof next);
    OPENSSL_cleanse(next, sizeof next);
    s->phase = !s->phase;
    s->began = s->frames;
    s->began_s = now_s;
    return derived && set_key(s);
}

bool sl_seal_phase(const sl_seal *s) {
    return s->phase;
}

bool sl_seal_begin(sl_seal *s, const uint8_t *header, size_t bytes) {
    uint8_t nonce[NONCE_BYTES] = {0};
    int done;
    put64(nonce, s->frames++);
    return EVP_CipherInit_ex(s->cipher, NULL, NULL, NULL, nonce, -1) == 1 &&
           EVP_CipherUpdate(s->cipher, NULL, &done, header, (int)bytes) == 1;
}

bool sl_seal_add(sl_seal *s, const uint8_t *from, uint8_t *to, size_t bytes) {
    int done;
    return bytes == 0 || EVP_CipherUpdate(s->cipher, to, &done, from, (int)bytes) == 1;
}

bool sl_seal_end(sl_seal *s, uint8_t tag[SL_SEAL_TAG_BYTES]) {
    uint8_t nothing[SL_SEAL_TAG_BYTES];
    int done;
    if (!s->writes &&
        EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_AEAD_SET_TAG, SL_SEAL_TAG_BYTES, tag) != 1)
        return false;
    if (EVP_CipherFinal_ex(s->cipher, nothing, &done) != 1)
        return false;
    return !s->writes ||
           EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_AEAD_GET_TAG, SL_SEAL_TAG_BYTES, tag) == 1;
}
