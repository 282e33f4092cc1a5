/* seal.h - one direction of a connection under one key: AES-256-GCM.
 *
 * Frames are numbered from 0, and the number is the nonce, so that it is sent nowhere: a frame that
 * is missing, repeated or out of order does not open. No nonce comes twice under a key: the number
 * only rises, and whatever was sealed has to be sent. After 2^32 frames, or an hour, the sender
 * goes on with the next key, which follows from this one by HKDF, and from which this one does not
 * follow; the number goes on. A bit of the header tells the receiver; it is sealed as the rest.
 *
 * A frame is begun with its header, which stays readable, goes on with its payload in pieces, and
 * ends with the tag.
 */
#ifndef SL_SEAL_H
#define SL_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "secure/cipher.h"

enum { SL_SEAL_KEY_BYTES = SL_CIPHER_KEY_BYTES, SL_SEAL_TAG_BYTES = SL_CIPHER_TAG_BYTES };

typedef struct sl_seal sl_seal;

/* writes: this side seals; else it opens. NULL: out of memory, or the library refuses. */
sl_seal *sl_seal_open(const uint8_t key[SL_SEAL_KEY_BYTES], bool writes, double now_s);
/* Wipes its key. */
void sl_seal_close(sl_seal **seal);

/* Has this key served for so long that the next frame should have a new one? Then sl_seal_renew,
 * before sl_seal_begin. */
bool sl_seal_is_worn(const sl_seal *seal, double now_s);
/* The next key. False: OpenSSL or the library refuses, and the seal is of no use any more. */
bool sl_seal_renew(sl_seal *seal, double now_s);
/* How often it was renewed, modulo 2: the bit of the header. */
bool sl_seal_phase(const sl_seal *seal);

/* The next frame. Each is false where the library refuses: no frame then is good. */
bool sl_seal_begin(sl_seal *seal, const uint8_t *header, size_t bytes);
/* from and to may be the same memory, or must not overlap. */
bool sl_seal_add(sl_seal *seal, const uint8_t *from, uint8_t *to, size_t bytes);
/* Writes the tag, or holds it against what came: false, and nothing that was opened may be used. */
bool sl_seal_end(sl_seal *seal, uint8_t tag[SL_SEAL_TAG_BYTES]);

#endif
