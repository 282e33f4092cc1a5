/* greeting.c - see greeting.h. */
#include "secure/greeting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

static const uint8_t magic[8] = {'s', 't', 'a', 'r', 'l', 'i', 'n', 'g'};
static const double window_s = 60;
enum { TIME_AT = 24, PROOF_AT = 32, PROOF_BYTES = SL_GREETING_BYTES - PROOF_AT };

bool sl_greeting_key_derive(sl_greeting_key *out, const uint8_t secret[SL_SECRET_BYTES]) {
    return sl_secret_derive(secret, "starling greeting", NULL, 0, out->bytes, sizeof out->bytes);
}

static bool prove(const uint8_t *greeting, uint64_t run_id, const sl_greeting_key *key,
                  uint8_t proof[PROOF_BYTES]) {
    uint8_t text[PROOF_AT + sizeof run_id], whole[EVP_MAX_MD_SIZE];
    unsigned whole_bytes;
    memcpy(text, greeting, PROOF_AT);
    put64(text + PROOF_AT, run_id);
    if (HMAC(EVP_sha256(), key->bytes, sizeof key->bytes, text, sizeof text, whole, &whole_bytes) ==
        NULL)
        return false;
    memcpy(proof, whole, PROOF_BYTES);
    return true;
}

bool sl_greeting_write(const sl_passage *p, uint64_t now_us, const sl_greeting_key *key,
                       uint8_t out[SL_GREETING_BYTES]) {
    memcpy(out, magic, sizeof magic);
    uint8_t *at = put64(put32(put32(out + sizeof magic, p->from), p->to), p->incarnation);
    put64(at, key != NULL ? now_us : 0);
    memset(out + PROOF_AT, 0, PROOF_BYTES);
    return key == NULL || prove(out, p->run_id, key, out + PROOF_AT);
}

bool sl_greeting_read(const uint8_t greeting[SL_GREETING_BYTES], sl_passage *out) {
    if (memcmp(greeting, magic, sizeof magic) != 0)
        return false;
    out->from = get32(greeting + 8);
    out->to = get32(greeting + 12);
    out->incarnation = get64(greeting + 16);
    return true;
}

bool sl_greeting_has_proof(const uint8_t greeting[SL_GREETING_BYTES]) {
    static const uint8_t none[PROOF_BYTES];
    return memcmp(greeting + PROOF_AT, none, sizeof none) != 0;
}

/* True: it was there. */
static bool note(sl_greetings *g, const uint8_t proof[PROOF_BYTES]) {
    for (uint32_t i = 0; i < g->count; i++)
        if (memcmp(g->seen[i], proof, PROOF_BYTES) == 0)
            return true;
    memcpy(g->seen[g->next], proof, PROOF_BYTES);
    g->next = (g->next + 1) % SL_GREETINGS_SEEN;
    if (g->count < SL_GREETINGS_SEEN)
        g->count++;
    return false;
}

bool sl_greeting_check(const uint8_t greeting[SL_GREETING_BYTES], uint64_t run_id, uint64_t now_us,
                       const sl_greeting_key *key, sl_greetings *greetings,
                       char why[SL_GREETING_WHY_MAX]) {
    uint8_t proof[PROOF_BYTES];
    const double ahead_s = (double)(int64_t)(get64(greeting + TIME_AT) - now_us) * 1e-6;
    if (!sl_greeting_has_proof(greeting))
        snprintf(why, SL_GREETING_WHY_MAX, "it shows no key, and this agent asks for one");
    else if (!prove(greeting, run_id, key, proof) ||
             CRYPTO_memcmp(proof, greeting + PROOF_AT, sizeof proof) != 0)
        snprintf(why, SL_GREETING_WHY_MAX,
                 "it has another key, or another run id (another roster)");
    else if (fabs(ahead_s) > window_s)
        snprintf(why, SL_GREETING_WHY_MAX, "its clock is %.0f s %s this one; 60 s are allowed",
                 fabs(ahead_s), ahead_s < 0 ? "behind" : "ahead of");
    else if (note(greetings, proof))
        snprintf(why, SL_GREETING_WHY_MAX, "its greeting came before: somebody repeats it");
    else
        return true;
    return false;
}
