/* guard.h - what protects all connections of an agent: its credentials, who may greet it, and how
 * much is sealed. */
#ifndef SL_GUARD_H
#define SL_GUARD_H

#include "agent/envelopes.h"
#include "secure/credentials.h"
#include "starling/agent.h"
#include "starling/roster.h"

typedef struct sl_guard {
    const sl_credentials *credentials; /* NULL: nothing is proved, and nothing sealed */
    bool seals;                        /* all frames; else the first of each side, its HELLO */
    const sl_roster *roster;           /* pins certificates; NULL before the agent runs */
    sl_greeting_key key;               /* of greetings to this agent */
    sl_greetings *seen;                /* NULL without credentials */
    uint64_t greeted_us;               /* by this agent, at last */
    sl_envelopes envelopes;
} sl_guard;

/* credentials may be NULL. */
int sl_guard_open(sl_guard *out, const sl_credentials *credentials, bool seals, sl_error *error);
void sl_guard_close(sl_guard *guard);
/* From now on there is a roster. With certificates, it names one for every rank, and this agent's
 * own for its own. */
int sl_guard_take_roster(sl_guard *guard, const sl_roster *roster, uint32_t rank, sl_error *error);
/* The fingerprint of a rank's certificate; false: the roster names none, or there is no roster. */
bool sl_guard_pinned(const sl_guard *guard, uint32_t rank, uint8_t out[SL_FINGERPRINT_BYTES]);
/* With certificates, a greeting proves little: see secure/greeting.h. */
bool sl_guard_uses_certificates(const sl_guard *guard);
/* How connections to this rank are protected: "TLS 1.3, key, AES-256-GCM". */
void sl_guard_describe(const sl_guard *guard, uint32_t rank, char out[SL_AGENT_PROTECTION_MAX]);
/* Writes a greeting; false: it cannot be proved. */
bool sl_guard_greet(sl_guard *guard, const sl_passage *passage, uint64_t now_us,
                    uint8_t out[SL_GREETING_BYTES]);
/* May whoever greets so be accepted? If not, why. */
bool sl_guard_admits(sl_guard *guard, const uint8_t greeting[SL_GREETING_BYTES], uint64_t run_id,
                     uint64_t now_us, char why[SL_GREETING_WHY_MAX]);

#endif
