/* handshake.h - two agents prove to each other who they are: TLS 1.3 over whatever carries its
 * bytes.
 *
 * With a run's key both show that they know it (an external PSK, which is bound to the passage,
 * and X25519, so that a key that is stolen later opens nothing that was recorded). With
 * certificates each shows one, which the roster pins or a CA vouches for. Both then derive two
 * keys, one a direction, which are bound to the passage and to `use`: who differs in these derives
 * others.
 */
#ifndef SL_HANDSHAKE_H
#define SL_HANDSHAKE_H

#include "secure/certificate.h"
#include "secure/credentials.h"
#include "secure/passage.h"
#include "secure/seal.h"

enum { SL_HANDSHAKE_WHY_MAX = 320 };

typedef struct sl_handshake sl_handshake;

typedef enum sl_handshake_state {
    SL_HANDSHAKE_GOES_ON, /* the other side has to answer */
    SL_HANDSHAKE_DONE,    /* once what is to be sent has been sent */
    SL_HANDSHAKE_FAILED   /* likewise: it says why, to the other side */
} sl_handshake_state;

/* dials: this side has connected, and speaks first. demand: of the other side's certificate; its
 * fingerprint outlives the handshake. NULL: with a run's key. */
int sl_handshake_open(sl_handshake **out, const sl_credentials *credentials,
                      const sl_passage *passage, bool dials, const sl_demand *demand,
                      sl_error *error);
/* Of who dials, before it begins: it shows the run's key of this name, if it has it, and not the
 * newest. The other side takes any. */
void sl_handshake_show(sl_handshake *handshake, uint64_t name);
void sl_handshake_close(sl_handshake **handshake);
/* Takes what came: nothing, at the start. `why` of a failure holds printable text only. */
sl_handshake_state sl_handshake_take(sl_handshake *handshake, const uint8_t *bytes, size_t count,
                                     char why[SL_HANDSHAKE_WHY_MAX]);
/* Of one that is done: the name of the run's key that was shown; 0: none was. */
uint64_t sl_handshake_key(const sl_handshake *handshake);
/* Of one that is done: the other side's certificate, to be freed; NULL: it has shown none. */
X509 *sl_handshake_certificate(const sl_handshake *handshake);
/* What is to be sent, and stays so until some of it is said to have been. */
size_t sl_handshake_pending(const sl_handshake *handshake, const uint8_t **bytes);
void sl_handshake_sent(sl_handshake *handshake, size_t count);
/* Of one that is done: the keys of frames from this side, and to it. False: OpenSSL refuses. */
bool sl_handshake_keys(const sl_handshake *handshake, uint8_t use, uint8_t sends[SL_SEAL_KEY_BYTES],
                       uint8_t takes[SL_SEAL_KEY_BYTES]);

#endif
