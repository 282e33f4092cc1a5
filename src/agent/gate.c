/* gate.c - who may connect, and how both sides prove who they are; see provider/provider.h. */
#include <stdio.h>
#include <string.h>

#include "agent/state.h"

bool sl_gate_admits(const sl_agent *a, const uint8_t greeting[SL_GREETING_BYTES],
                    sl_passage *passage, char why[SL_GREETING_WHY_MAX]) {
    static const char *const shows[] = {[SL_GREETING_BARE] = "shows no key",
                                        [SL_GREETING_KEY] = "shows a key",
                                        [SL_GREETING_CERTIFICATE] = "shows a certificate"};
    static const char *const wants[] = {[SL_GREETING_BARE] = "has none",
                                        [SL_GREETING_KEY] = "asks for one",
                                        [SL_GREETING_CERTIFICATE] = "asks for a certificate"};
    const sl_greeting_kind own = sl_greeting_kind_of(a->side.guard.credentials);
    sl_greeting_kind kind;
    snprintf(why, SL_GREETING_WHY_MAX, "it has ended");
    if (a->phase == PHASE_OVER && !a->parting)
        return false;
    snprintf(why, SL_GREETING_WHY_MAX, "it is not an agent of this release");
    if (!sl_greeting_read(greeting, passage, &kind))
        return false;
    passage->run_id = a->side.hello.run_id;
    snprintf(why, SL_GREETING_WHY_MAX, "it %s, and this agent %s", shows[kind], wants[own]);
    return kind == own;
}

static bool admits(void *agent, const uint8_t greeting[SL_GREETING_BYTES],
                   char why[SL_GREETING_WHY_MAX]) {
    sl_passage passage;
    return sl_gate_admits(agent, greeting, &passage, why);
}

static sl_exchange exchange_of(const sl_agent *a, const uint8_t *greeting,
                               const uint8_t *challenge) {
    return (sl_exchange){greeting, challenge, a->side.hello.run_id};
}

static size_t prove(void *agent, const uint8_t greeting[SL_GREETING_BYTES],
                    const uint8_t challenge[SL_CHALLENGE_BYTES], bool dials,
                    uint8_t out[SL_PROOF_BYTES_MAX]) {
    const sl_agent *a = agent;
    const sl_exchange exchange = exchange_of(a, greeting, challenge);
    return sl_proof_make(&exchange, a->side.guard.credentials, dials, out);
}

/* Of several run's keys, the one that the other side has is shown in the handshake, too. */
static void show_key(sl_agent *a, uint32_t rank, const sl_exchange *exchange, const uint8_t *proof,
                     size_t bytes) {
    const sl_credentials *c = a->side.guard.credentials;
    const sl_neighbour *n = sl_agent_neighbour(a, rank);
    if (c->secret != NULL && n != NULL)
        sl_channel_show(
            n->link.channel,
            sl_credentials_name(c, (unsigned)sl_proof_key(exchange, c, false, proof, bytes)));
}

static bool is_of_before(const sl_agent *a, uint32_t rank, const sl_exchange *exchange, bool dialed,
                         const uint8_t *proof, size_t bytes) {
    const sl_credentials *c = a->side.guard.credentials;
    const sl_guard before = {.credentials = c, .roster = a->trust.before};
    uint8_t pin[SL_FINGERPRINT_BYTES];
    sl_demand demand;
    char ignored[SL_GREETING_WHY_MAX];
    if (c->secret != NULL)
        return sl_proof_key(exchange, c, dialed, proof, bytes) == SL_RUN_KEYS_MAX;
    return sl_guard_demand(&before, rank, pin, &demand) &&
           sl_proof_check(exchange, c, dialed, &demand, proof, bytes, ignored);
}

/* A proof of what was trusted before is answered with since when it is not. */
static void tell_before(const sl_agent *a, uint32_t rank, const sl_exchange *exchange, bool dialed,
                        const uint8_t *proof, size_t bytes, char why[SL_GREETING_WHY_MAX]) {
    const sl_guard *guard = &a->side.guard;
    uint8_t pin[SL_FINGERPRINT_BYTES];
    sl_demand now;
    if (!is_of_before(a, rank, exchange, dialed, proof, bytes))
        return;
    if (guard->credentials->secret != NULL)
        snprintf(why, SL_GREETING_WHY_MAX,
                 "agent %u has another run's key since %s: give it to agent %u, and reload",
                 a->side.rank, a->trust.key_time, rank);
    else if (sl_guard_demand(guard, rank, pin, &now))
        snprintf(why, SL_GREETING_WHY_MAX,
                 "agent %u's roster has another certificate of agent %u since %s: reload that one",
                 a->side.rank, rank, a->trust.roster_time);
    else
        snprintf(why, SL_GREETING_WHY_MAX,
                 "the certificate of agent %u was revoked in agent %u's roster at %s", rank,
                 a->side.rank, a->trust.roster_time);
}

static bool accepts(void *agent, const uint8_t greeting[SL_GREETING_BYTES],
                    const uint8_t challenge[SL_CHALLENGE_BYTES], bool dialed, const uint8_t *proof,
                    size_t bytes, char why[SL_GREETING_WHY_MAX]) {
    sl_agent *a = agent;
    const sl_exchange exchange = exchange_of(a, greeting, challenge);
    uint8_t pin[SL_FINGERPRINT_BYTES];
    sl_demand demand = {0};
    sl_passage passage;
    sl_greeting_kind kind;
    sl_greeting_read(greeting, &passage, &kind);
    const uint32_t rank = dialed ? passage.from : passage.to;
    snprintf(why, SL_GREETING_WHY_MAX, "the roster names no certificate for its rank");
    const bool right =
        (kind != SL_GREETING_CERTIFICATE || sl_guard_demand(&a->side.guard, rank, pin, &demand)) &&
        sl_proof_check(&exchange, a->side.guard.credentials, dialed, &demand, proof, bytes, why);
    if (right && !dialed)
        show_key(a, rank, &exchange, proof, bytes);
    if (!right)
        tell_before(a, rank, &exchange, dialed, proof, bytes, why);
    return right;
}

void sl_gate_remember(sl_agent *a, uint32_t rank, const char *why) {
    sl_neighbour *n = sl_agent_neighbour(a, rank);
    if (n != NULL && !n->link.agreed && !n->dialing.doubted && !sl_neighbour_is_dialed(n))
        snprintf(n->dialing.refusal, sizeof n->dialing.refusal,
                 "a connection that calls itself agent %u was refused: %.*s", rank,
                 (int)sizeof n->dialing.refusal - 80, why);
}

static void refused(void *agent, const uint8_t *greeting, const struct sockaddr_storage *from,
                    const char *why) {
    sl_agent *a = agent;
    char text[SL_ADDRESS_TEXT_MAX];
    sl_passage passage;
    sl_greeting_kind kind;
    sl_address_print(from, text);
    sl_unverified_note_refused(&a->unverified, text, why);
    if (greeting != NULL && sl_greeting_read(greeting, &passage, &kind) &&
        passage.to == a->side.rank)
        sl_gate_remember(a, passage.from, why);
}

sl_gate sl_gate_of(sl_agent *a) {
    return (sl_gate){.context = a,
                     .proves = a->side.guard.credentials != NULL,
                     .admits = admits,
                     .prove = prove,
                     .accepts = accepts,
                     .refused = refused};
}
