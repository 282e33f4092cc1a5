/* greeting.h - the first bytes of a connection, before it is accepted: who wants to reach whom, and
 * a proof that he may.
 *
 *   offset  0  "starling"     8  from u32   12  to u32   16  incarnation u64
 *          24  time u64, microseconds since 1970; zero without a key
 *          32  HMAC-SHA256 over bytes 0..31 and the run id, its first 16 bytes; zeros without a key
 *
 * 48 bytes, because verbs has room for 56. The time is the nonce too: a sender says none twice. Who
 * has the run's key can make the proof. With certificates the key of the proof is the receiver's
 * fingerprint, which is no secret: it keeps away whoever does not know the roster, and the
 * handshake decides.
 */
#ifndef SL_SECURE_GREETING_H
#define SL_SECURE_GREETING_H

#include <stdbool.h>
#include <stddef.h>

#include "secure/passage.h"
#include "secure/secret.h"

enum { SL_GREETING_BYTES = 48, SL_GREETING_WHY_MAX = 128 };

/* What greetings are proved under, of all agents that have the key. */
typedef struct sl_greeting_key {
    uint8_t bytes[SL_SECRET_BYTES];
} sl_greeting_key;
/* From a run's key, or from a fingerprint. False: OpenSSL refuses. */
bool sl_greeting_key_derive(sl_greeting_key *out, const uint8_t secret[SL_SECRET_BYTES]);

/* Greetings that came of late; the oldest is forgotten first. Who replays one that was forgotten
 * gets as far as the handshake, and no further. */
enum { SL_GREETINGS_SEEN = 1024 };
typedef struct sl_greetings {
    uint8_t seen[SL_GREETINGS_SEEN][16];
    uint32_t count, next;
} sl_greetings;

/* key NULL: without a proof. False: OpenSSL refuses. */
bool sl_greeting_write(const sl_passage *passage, uint64_t now_us, const sl_greeting_key *key,
                       uint8_t out[SL_GREETING_BYTES]);
/* Who says that he is who, unproved: all of *out but the run id. False: it is no greeting. */
bool sl_greeting_read(const uint8_t greeting[SL_GREETING_BYTES], sl_passage *out);
/* Is its proof right, new and of this minute? Takes the same time for each wrong proof. False, and
 * why, in words that hold nothing that came. */
bool sl_greeting_check(const uint8_t greeting[SL_GREETING_BYTES], uint64_t run_id, uint64_t now_us,
                       const sl_greeting_key *key, sl_greetings *greetings,
                       char why[SL_GREETING_WHY_MAX]);
/* Does it hold a proof, right or wrong? */
bool sl_greeting_has_proof(const uint8_t greeting[SL_GREETING_BYTES]);

#endif
