/* admission.c - see admission.h. */
#include "agent/peers/admission.h"

#include <stdio.h>
#include <string.h>

#include "launch/roster.h"

void sl_guard_open(sl_guard *out, const sl_credentials *credentials, bool seals) {
    *out = (sl_guard){.credentials = credentials, .seals = seals};
}

void sl_guard_close(sl_guard *guard) {
    sl_sealed_buffers_close(&guard->envelopes);
}

void sl_guard_renew(sl_guard *guard, const sl_credentials *credentials) {
    guard->credentials = credentials;
}

bool sl_guard_uses_certificates(const sl_guard *guard) {
    return guard->credentials != NULL && guard->credentials->secret == NULL;
}

bool sl_guard_demand(const sl_guard *guard, uint32_t rank, uint8_t pin[SL_FINGERPRINT_BYTES],
                     sl_demand *out) {
    const sl_authority *authority = guard->credentials->authority;
    if (guard->roster == NULL || rank >= sl_roster_count(guard->roster) ||
        sl_roster_revokes(guard->roster, rank))
        return false;
    const bool pins = sl_fingerprint_parse(sl_roster_fingerprint(guard->roster, rank), pin);
    *out = (sl_demand){.pinned = pins ? pin : NULL,
                       .authority = authority != NULL ? authority->store : NULL,
                       .rank = rank};
    return pins || authority != NULL;
}

void sl_guard_describe(const sl_guard *guard, uint32_t rank, char out[SL_AGENT_PROTECTION_MAX]) {
    const bool shows = sl_guard_uses_certificates(guard);
    const char *pin = shows ? sl_roster_fingerprint(guard->roster, rank) : "";
    if (guard->credentials == NULL)
        snprintf(out, SL_AGENT_PROTECTION_MAX, "unprotected");
    else
        snprintf(out, SL_AGENT_PROTECTION_MAX, "TLS 1.3, %s%s, %s",
                 !shows           ? "key"
                 : pin[0] != '\0' ? "certificate "
                                  : "certificate of the CA",
                 pin, guard->seals ? "AES-256-GCM" : "handshake-only");
}

/* What the others ask of this agent's certificate. */
static int check_own(const sl_guard *guard, uint32_t rank, sl_error *error) {
    uint8_t pin[SL_FINGERPRINT_BYTES];
    char own[SL_FINGERPRINT_TEXT_MAX];
    sl_demand demand;
    if (!sl_guard_demand(guard, rank, pin, &demand))
        return sl_fail(error, SL_EINVAL, "the roster names no certificate for agent %u", rank);
    if (demand.pinned != NULL && memcmp(pin, guard->credentials->fingerprint, sizeof pin) != 0) {
        sl_fingerprint_print(guard->credentials->fingerprint, own);
        return sl_fail(error, SL_EINVAL,
                       "the roster names the certificate %s for agent %u, whose own is %s",
                       sl_roster_fingerprint(guard->roster, rank), rank, own);
    }
    return sl_credentials_check(guard->credentials, rank,
                                sl_roster_fingerprint(guard->roster, rank), error);
}

int sl_guard_take_roster(sl_guard *guard, const sl_roster *roster, uint32_t rank, sl_error *error) {
    guard->roster = roster;
    if (!sl_guard_uses_certificates(guard))
        return 0;
    const int result =
        guard->credentials->authority == NULL ? sl_roster_check_fingerprints(roster, error) : 0;
    if (result != 0)
        return result;
    if (sl_roster_revokes(roster, rank))
        return sl_fail(error, SL_EINVAL,
                       "%s:%d: revokes the certificate of agent %u, which is this one",
                       sl_roster_name(roster), sl_roster_line(roster, rank), rank);
    return check_own(guard, rank, error);
}
