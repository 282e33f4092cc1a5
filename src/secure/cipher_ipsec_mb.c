/* cipher_ipsec_mb.c - intel-ipsec-mb's AES-256-GCM; see cipher.h.
 *
 * The library is large, and loaded only by who needs it. Of its symbols three are looked up; all
 * others are functions that its manager points to. Its structs are the header's, and so only the
 * library of the header's major version fits: that is the number in its name.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include "base/round_up.h"
#include "secure/cipher.h"

enum { ALIGNMENT = 64, MAJOR_DIGITS = 5 };

typedef struct cipher {
    struct gcm_key_data key;
    struct gcm_context_data message;
    bool seals;
} cipher;

/* What it has found of the processor: read by all ciphers, changed by none. */
static IMB_MGR *manager;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ISO C has no conversion from what dlsym returns. */
static bool look_up(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void find_processor(void) {
    const uint64_t needed = IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ;
    IMB_MGR *(*allocate)(uint64_t);
    void (*release)(IMB_MGR *);
    void (*initialize)(IMB_MGR *, IMB_ARCH *);
    char name[sizeof "libIPSec_MB.so." + MAJOR_DIGITS];
    snprintf(name, sizeof name, "libIPSec_MB.so.%u", IMB_VERSION_NUM >> 16);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || !look_up(library, "alloc_mb_mgr", &allocate) ||
        !look_up(library, "free_mb_mgr", &release) ||
        !look_up(library, "init_mb_mgr_auto", &initialize))
        return;
    IMB_ARCH found = IMB_ARCH_NONE;
    IMB_MGR *m = allocate(0);
    if (m != NULL)
        initialize(m, &found);
    if (found == IMB_ARCH_AVX512 && (m->features & needed) == needed)
        manager = m;
    else if (m != NULL)
        release(m);
}

static bool works(void) {
    pthread_once(&once, find_processor);
    return manager != NULL;
}

static void *open_cipher(bool seals) {
    cipher *c = aligned_alloc(ALIGNMENT, sl_round_up(sizeof *c, ALIGNMENT));
    if (c != NULL)
        *c = (cipher){.seals = seals};
    return c;
}

static void close_cipher(void *of) {
    if (of == NULL)
        return;
    OPENSSL_cleanse(of, sizeof(cipher));
    free(of);
}

static bool set_key(void *of, const uint8_t key[SL_CIPHER_KEY_BYTES]) {
    cipher *c = of;
    IMB_AES256_GCM_PRE(manager, key, &c->key);
    return true;
}

static bool begin(void *of, const uint8_t nonce[SL_CIPHER_NONCE_BYTES], const uint8_t *header,
                  size_t bytes) {
    cipher *c = of;
    IMB_AES256_GCM_INIT(manager, &c->key, &c->message, nonce, header, bytes);
    return true;
}

static bool add(void *of, const uint8_t *from, uint8_t *to, size_t bytes) {
    cipher *c = of;
    if (bytes > 0 && c->seals)
        IMB_AES256_GCM_ENC_UPDATE(manager, &c->key, &c->message, to, from, bytes);
    else if (bytes > 0)
        IMB_AES256_GCM_DEC_UPDATE(manager, &c->key, &c->message, to, from, bytes);
    return true;
}

static bool end(void *of, uint8_t tag[SL_CIPHER_TAG_BYTES]) {
    cipher *c = of;
    uint8_t own[SL_CIPHER_TAG_BYTES];
    if (c->seals) {
        IMB_AES256_GCM_ENC_FINALIZE(manager, &c->key, &c->message, tag, SL_CIPHER_TAG_BYTES);
        return true;
    }
    IMB_AES256_GCM_DEC_FINALIZE(manager, &c->key, &c->message, own, sizeof own);
    return CRYPTO_memcmp(own, tag, sizeof own) == 0;
}

const sl_cipher_library sl_cipher_ipsec_mb = {"intel-ipsec-mb", works, open_cipher, close_cipher,
                                              set_key,          begin, add,         end};
