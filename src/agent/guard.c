/* guard.c - see guard.h. */
#include "agent/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "launch/roster.h"

int sl_guard_open(sl_guard *out, const sl_credentials *credentials, bool seals, sl_error *error) {
    *out = (sl_guard){.credentials = credentials, .seals = seals};
    if (credentials == NULL)
        return 0;
    out->seen = calloc(1, sizeof *out->seen);
    return out->seen != NULL &&
                   sl_credentials_greeting_key(credentials, credentials->fingerprint, &out->key)
               ? 0
               : sl_fail(error, SL_ENOMEM, "out of memory for greetings");
}

void sl_guard_close(sl_guard *guard) {
    OPENSSL_cleanse(&guard->key, sizeof guard->key);
    free(guard->seen);
    sl_envelopes_close(&guard->envelopes);
}

bool sl_guard_uses_certificates(const sl_guard *guard) {
    return guard->credentials != NULL && guard->credentials->secret == NULL;
}

bool sl_guard_pinned(const sl_guard *guard, uint32_t rank, uint8_t out[SL_FINGERPRINT_BYTES]) {
    return guard->roster != NULL &&
           sl_fingerprint_parse(sl_roster_fingerprint(guard->roster, rank), out);
}

void sl_guard_describe(const sl_guard *guard, uint32_t rank, char out[SL_AGENT_PROTECTION_MAX]) {
    const bool pins = sl_guard_uses_certificates(guard);
    if (guard->credentials == NULL)
        snprintf(out, SL_AGENT_PROTECTION_MAX, "unprotected");
    else
        snprintf(out, SL_AGENT_PROTECTION_MAX, "TLS 1.3, %s%s, %s", pins ? "certificate " : "key",
                 pins ? sl_roster_fingerprint(guard->roster, rank) : "",
                 guard->seals ? "AES-256-GCM" : "handshake-only");
}

int sl_guard_take_roster(sl_guard *guard, const sl_roster *roster, uint32_t rank, sl_error *error) {
    uint8_t pinned[SL_FINGERPRINT_BYTES];
    char own[SL_FINGERPRINT_TEXT_MAX];
    guard->roster = roster;
    if (!sl_guard_uses_certificates(guard))
        return 0;
    const int result = sl_roster_check_fingerprints(roster, error);
    if (result != 0)
        return result;
    sl_fingerprint_print(guard->credentials->fingerprint, own);
    sl_guard_pinned(guard, rank, pinned);
    if (memcmp(pinned, guard->credentials->fingerprint, sizeof pinned) != 0)
        return sl_fail(error, SL_EINVAL,
                       "the roster names the certificate %s for agent %u, whose own is %s",
                       sl_roster_fingerprint(roster, rank), rank, own);
    return 0;
}

bool sl_guard_greet(sl_guard *guard, const sl_passage *passage, uint64_t now_us,
                    uint8_t out[SL_GREETING_BYTES]) {
    uint8_t pinned[SL_FINGERPRINT_BYTES];
    sl_greeting_key key;
    if (guard->credentials == NULL)
        return sl_greeting_write(passage, 0, NULL, out);
    if (sl_guard_uses_certificates(guard) && !sl_guard_pinned(guard, passage->to, pinned))
        return false;
    if (now_us <= guard->greeted_us)
        now_us = guard->greeted_us + 1;
    guard->greeted_us = now_us;
    const bool written = sl_credentials_greeting_key(guard->credentials, pinned, &key) &&
                         sl_greeting_write(passage, now_us, &key, out);
    OPENSSL_cleanse(&key, sizeof key);
    return written;
}

bool sl_guard_admits(sl_guard *guard, const uint8_t greeting[SL_GREETING_BYTES], uint64_t run_id,
                     uint64_t now_us, char why[SL_GREETING_WHY_MAX]) {
    if (guard->credentials != NULL)
        return sl_greeting_check(greeting, run_id, now_us, &guard->key, guard->seen, why);
    if (!sl_greeting_has_proof(greeting))
        return true;
    snprintf(why, SL_GREETING_WHY_MAX, "it shows a key, and this agent has none");
    return false;
}
