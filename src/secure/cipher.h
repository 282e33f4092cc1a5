/* cipher.h - AES-256-GCM of one message after the other, by the library that is quickest here.
 *
 * That is OpenSSL. For processors with VAES and AVX-512 it has code from 3.1 on, which is four
 * times as fast; before, such a processor does it with intel-ipsec-mb, if that is here. The bytes
 * are the same, so that two agents need not use the same one. The library is opened with the first
 * sealed connection, not linked: nobody else needs its 12.8 MB.
 */
#ifndef SL_CIPHER_H
#define SL_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SL_CIPHER_KEY_BYTES = 32, SL_CIPHER_NONCE_BYTES = 12, SL_CIPHER_TAG_BYTES = 16 };

/* One library's. Where a function returns bool, false is: the library refuses. */
typedef struct sl_cipher_library {
    const char *name;
    bool (*works)(void); /* on this processor */
    /* seals: it encrypts; else it decrypts. NULL: out of memory. */
    void *(*open)(bool seals);
    /* Wipes it. NULL is none. */
    void (*close)(void *cipher);
    bool (*set_key)(void *cipher, const uint8_t key[SL_CIPHER_KEY_BYTES]);
    /* The next message: its header goes into the tag only. */
    bool (*begin)(void *cipher, const uint8_t nonce[SL_CIPHER_NONCE_BYTES], const uint8_t *header,
                  size_t bytes);
    /* from and to may be the same memory, or must not overlap. */
    bool (*add)(void *cipher, const uint8_t *from, uint8_t *to, size_t bytes);
    /* Writes the tag, or holds it against what came: false, and nothing that was decrypted may be
     * used. */
    bool (*end)(void *cipher, uint8_t tag[SL_CIPHER_TAG_BYTES]);
} sl_cipher_library;

extern const sl_cipher_library sl_cipher_openssl;
extern const sl_cipher_library sl_cipher_ipsec_mb; /* where the build has it */

enum { SL_CIPHER_LIBRARIES = 2 };
/* Those that work here; returns how many. */
size_t sl_cipher_libraries(const sl_cipher_library *out[SL_CIPHER_LIBRARIES]);
const sl_cipher_library *sl_cipher_quickest(void);

#endif
