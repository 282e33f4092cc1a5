/* guard.c - see guard.h. */
#include "agent/guard.h"

#include <stdio.h>
#include <string.h>

#include "launch/roster.h"

void sl_guard_open(sl_guard *out, const sl_credentials *credentials, bool seals) {
    *out = (sl_guard){.credentials = credentials, .seals = seals};
}

void sl_guard_close(sl_guard *guard) {
    sl_envelopes_close(&guard->envelopes);
}

void sl_guard_renew(sl_guard *guard, const sl_credentials *credentials) {
    guard->credentials = credentials;
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
    uint8_t pinned[SL_FINGERPRINT_BYTES] = {0};
    char own[SL_FINGERPRINT_TEXT_MAX];
    guard->roster = roster;
    if (!sl_guard_uses_certificates(guard))
        return 0;
    const int result = sl_roster_check_fingerprints(roster, error);
    if (result != 0)
        return result;
    if (sl_roster_revokes(roster, rank))
        return sl_fail(error, SL_EINVAL,
                       "%s:%d: revokes the certificate of agent %u, which is this one",
                       sl_roster_name(roster), sl_roster_line(roster, rank), rank);
    sl_fingerprint_print(guard->credentials->fingerprint, own);
    sl_guard_pinned(guard, rank, pinned);
    if (memcmp(pinned, guard->credentials->fingerprint, sizeof pinned) != 0)
        return sl_fail(error, SL_EINVAL,
                       "the roster names the certificate %s for agent %u, whose own is %s",
                       sl_roster_fingerprint(roster, rank), rank, own);
    return 0;
}
