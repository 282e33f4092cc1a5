/* handshakes.c - what it costs an agent to prove itself to 16 neighbours.
 *
 *   handshakes KEY|NODE
 *
 * Both sides of each handshake in one thread, without a network between them: an agent does half of
 * this. KEY is a file of `starling keys make -o`; NODE is a pair's name, NODE.key and NODE.crt.
 * Prints the median and the least of 31 times 16 handshakes, in ms.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "secure/greeting.h"
#include "secure/handshake.h"
#include "starling/keys.h"

enum { NEIGHBOURS = 16, REPETITIONS = 31 };

/* True while there is something to hand over. */
static bool hand_over(sl_handshake *from, sl_handshake *to, sl_handshake_state *state) {
    const uint8_t *bytes;
    char why[SL_HANDSHAKE_WHY_MAX];
    const size_t count = sl_handshake_pending(from, &bytes);
    if (count == 0)
        return false;
    *state = sl_handshake_take(to, bytes, count, why);
    sl_handshake_sent(from, count);
    return true;
}

static void open_side(sl_handshake **out, const sl_credentials *credentials, uint32_t rank,
                      bool dials) {
    const sl_passage passage = {.run_id = 1, .from = rank, .to = 0, .incarnation = 1};
    const sl_demand demand = {.pinned = credentials->fingerprint};
    sl_error error;
    if (sl_handshake_open(out, credentials, &passage, dials, &demand, &error) == 0)
        return;
    fprintf(stderr, "handshakes: %s\n", error.text);
    exit(1);
}

static void fail(void) {
    fprintf(stderr, "handshakes: one did not end\n");
    exit(1);
}

/* What comes before the handshake. */
static void prove(const sl_credentials *credentials, uint32_t rank) {
    const sl_passage passage = {.run_id = 1, .from = rank, .to = 0, .incarnation = 1};
    uint8_t greeting[SL_GREETING_BYTES], challenge[SL_CHALLENGE_BYTES], proof[SL_PROOF_BYTES_MAX];
    const sl_exchange exchange = {greeting, challenge, 1};
    const sl_demand demand = {.pinned = credentials->fingerprint};
    char why[SL_GREETING_WHY_MAX];
    if (!sl_greeting_write(&passage, credentials, greeting) || !sl_challenge_draw(challenge))
        fail();
    for (int dials = 1; dials >= 0; dials--) {
        const size_t bytes = sl_proof_make(&exchange, credentials, dials, proof);
        if (!sl_proof_check(&exchange, credentials, dials, &demand, proof, bytes, why))
            fail();
    }
}

static void shake_hands(const sl_credentials *credentials, uint32_t rank) {
    sl_handshake *dials, *answers;
    sl_handshake_state at_dials = SL_HANDSHAKE_GOES_ON, at_answers = SL_HANDSHAKE_GOES_ON;
    uint8_t sends[SL_SEAL_KEY_BYTES], takes[SL_SEAL_KEY_BYTES];
    char why[SL_HANDSHAKE_WHY_MAX];
    open_side(&dials, credentials, rank, true);
    open_side(&answers, credentials, rank, false);
    sl_handshake_take(dials, NULL, 0, why);
    while (hand_over(dials, answers, &at_answers) || hand_over(answers, dials, &at_dials))
        ;
    if (at_dials != SL_HANDSHAKE_DONE || at_answers != SL_HANDSHAKE_DONE ||
        !sl_handshake_keys(dials, true, sends, takes) ||
        !sl_handshake_keys(answers, true, sends, takes))
        fail();
    sl_handshake_close(&dials);
    sl_handshake_close(&answers);
}

int main(int argc, char **argv) {
    double times_ms[REPETITIONS];
    sl_credentials *credentials;
    sl_error error;
    if (argc != 2) {
        fprintf(stderr, "usage: handshakes KEY|NODE\n");
        return 2;
    }
    if (sl_credentials_load_key(&credentials, argv[1], NULL) != 0 &&
        sl_credentials_load_node(&credentials, argv[1], &error) != 0) {
        fprintf(stderr, "handshakes: %s\n", error.text);
        return 1;
    }
    for (int i = 0; i < REPETITIONS; i++) {
        const double start_ms = bench_now_ms();
        for (uint32_t rank = 1; rank <= NEIGHBOURS; rank++) {
            prove(credentials, rank);
            shake_hands(credentials, rank);
        }
        times_ms[i] = bench_now_ms() - start_ms;
    }
    sl_credentials_close(&credentials);
    bench_report("handshakes", NEIGHBOURS, 1, times_ms, REPETITIONS);
    return 0;
}
