/* admission.h - what protects all connections of an agent: its credentials, who may greet it, and
 * how much is sealed. */
#ifndef SL_ADMISSION_H
#define SL_ADMISSION_H

#include "agent/peers/sealed_buffers.h"
#include "secure/certificate.h"
#include "secure/credentials.h"
#include "starling/agent.h"
#include "starling/roster.h"

typedef struct sl_guard {
    const sl_credentials *credentials; /* NULL: nothing is proved, and nothing sealed */
    bool seals;                        /* all frames; else the first of each side, its HELLO */
    const sl_roster *roster;           /* pins certificates; NULL before the agent runs */
    sl_sealed_buffers envelopes;
} sl_guard;

/* credentials may be NULL. */
void sl_guard_open(sl_guard *out, const sl_credentials *credentials, bool seals);
void sl_guard_close(sl_guard *guard);
/* From now on there is a roster. With certificates, it names one for every rank, or a CA vouches
 * for them; and others may take this agent's own for its own. */
int sl_guard_take_roster(sl_guard *guard, const sl_roster *roster, uint32_t rank, sl_error *error);
/* From now on these are shown, and asked for. */
void sl_guard_renew(sl_guard *guard, const sl_credentials *credentials);
/* What is asked of a rank's certificate; pin: for its fingerprint, if the roster has one. False:
 * nobody may be that rank, or there is no roster. */
bool sl_guard_demand(const sl_guard *guard, uint32_t rank, uint8_t pin[SL_FINGERPRINT_BYTES],
                     sl_demand *out);
bool sl_guard_uses_certificates(const sl_guard *guard);
/* How connections to this rank are protected: "TLS 1.3, key, AES-256-GCM". */
void sl_guard_describe(const sl_guard *guard, uint32_t rank, char out[SL_AGENT_PROTECTION_MAX]);
#endif
