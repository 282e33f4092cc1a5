/* greeting.h - what two agents say before either takes the other's connection for one: who wants to
 * reach whom, and proofs of both.
 *
 * A greeting:
 *   offset  0  "starling"     8  from u32   12  to u32   16  incarnation u64
 *          24  16 random bytes              40  kind u8: sl_greeting_kind   41  zeros
 *
 * 48 bytes, because verbs has room for 56. Whoever listens answers with a challenge of 32 random
 * bytes. The dialer's proof is over both, and so is the listener's, which comes last. No clock is
 * asked and nothing remembered: a proof that was heard fits no other challenge, and no other
 * greeting. With a run's key a proof is an HMAC-SHA256, and a second one while the key before it
 * holds, too. With certificates it is the certificate and
 * an Ed25519 signature. Both are also over their maker's side and the run id, which is not sent.
 */
#ifndef SL_SECURE_GREETING_H
#define SL_SECURE_GREETING_H

#include <stdbool.h>
#include <stddef.h>

#include "secure/certificate.h"
#include "secure/passage.h"
#include "starling/keys.h"

enum {
    SL_GREETING_BYTES = 48,
    SL_CHALLENGE_BYTES = 32,
    SL_PROOF_BYTES_MAX = 64 + SL_CERTIFICATE_BYTES_MAX,
    SL_GREETING_WHY_MAX = SL_CERTIFICATE_WHY_MAX
};

/* What its sender proves itself with. */
typedef enum sl_greeting_kind {
    SL_GREETING_BARE,
    SL_GREETING_KEY,
    SL_GREETING_CERTIFICATE
} sl_greeting_kind;

sl_greeting_kind sl_greeting_kind_of(const sl_credentials *credentials);
/* credentials may be NULL. False: OpenSSL has no random bytes. */
bool sl_greeting_write(const sl_passage *passage, const sl_credentials *credentials,
                       uint8_t out[SL_GREETING_BYTES]);
/* Who says that it is who, unproved: all of *out but the run id. False: it is no greeting. */
bool sl_greeting_read(const uint8_t greeting[SL_GREETING_BYTES], sl_passage *out,
                      sl_greeting_kind *kind);
/* False: OpenSSL has no random bytes. */
bool sl_challenge_draw(uint8_t out[SL_CHALLENGE_BYTES]);

/* What both sides' proofs are over. */
typedef struct sl_exchange {
    const uint8_t *greeting;  /* (SL_GREETING_BYTES) */
    const uint8_t *challenge; /* (SL_CHALLENGE_BYTES) */
    uint64_t run_id;
} sl_exchange;

/* Which of the run's keys has made the proof; SL_RUN_KEYS_MAX: one that holds no longer; -1: none.
 */
int sl_proof_key(const sl_exchange *exchange, const sl_credentials *credentials, bool dialed,
                 const uint8_t *proof, size_t bytes);
/* Of the side that dials, or of the other. Returns its bytes; 0: OpenSSL refuses. */
size_t sl_proof_make(const sl_exchange *exchange, const sl_credentials *credentials, bool dials,
                     uint8_t out[SL_PROOF_BYTES_MAX]);
/* demand: of the certificate; NULL: with a run's key. Where one is pinned, nothing of a certificate
 * is parsed before it is found to be that one. Only who has a certificate's key hears what a CA
 * says of it. False, and why, in words that hold nothing that came but a certificate's fingerprint
 * and dates. */
bool sl_proof_check(const sl_exchange *exchange, const sl_credentials *credentials, bool dialed,
                    const sl_demand *demand, const uint8_t *proof, size_t bytes,
                    char why[SL_GREETING_WHY_MAX]);

#endif
