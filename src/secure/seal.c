/* seal.c - see seal.h. */
#include "secure/seal.h"

#include <stdlib.h>

#include <openssl/crypto.h>

#include "secure/cipher.h"
#include "secure/secret.h"
#include "wire/bytes.h"

static const uint64_t frames_max = 1ull << 32; /* under one key */
static const double key_s = 3600;

struct sl_seal {
    uint8_t *key; /* (SL_SEAL_KEY_BYTES) */
    const sl_cipher_library *library;
    void *cipher;
    bool phase;
    uint64_t frames; /* under all keys: none can be left out where a key ends */
    uint64_t began;  /* frames before this key */
    double began_s;
};

sl_seal *sl_seal_open(const uint8_t key[SL_SEAL_KEY_BYTES], bool writes, double now_s) {
    sl_seal *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    const sl_cipher_library *library = sl_cipher_quickest();
    *s = (sl_seal){.key = sl_secret_open(),
                   .library = library,
                   .cipher = library->open(writes),
                   .began_s = now_s};
    if (s->key != NULL)
        memcpy(s->key, key, SL_SEAL_KEY_BYTES);
    if (s->key == NULL || s->cipher == NULL || !library->set_key(s->cipher, s->key))
        sl_seal_close(&s);
    return s;
}

void sl_seal_close(sl_seal **seal) {
    sl_seal *s = *seal;
    if (s == NULL)
        return;
    *seal = NULL;
    s->library->close(s->cipher);
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
    return derived && s->library->set_key(s->cipher, s->key);
}

bool sl_seal_phase(const sl_seal *s) {
    return s->phase;
}

bool sl_seal_begin(sl_seal *s, const uint8_t *header, size_t bytes) {
    uint8_t nonce[SL_CIPHER_NONCE_BYTES] = {0};
    put64(nonce, s->frames++);
    return s->library->begin(s->cipher, nonce, header, bytes);
}

bool sl_seal_add(sl_seal *s, const uint8_t *from, uint8_t *to, size_t bytes) {
    return s->library->add(s->cipher, from, to, bytes);
}

bool sl_seal_end(sl_seal *s, uint8_t tag[SL_SEAL_TAG_BYTES]) {
    return s->library->end(s->cipher, tag);
}
