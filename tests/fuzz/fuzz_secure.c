/* fuzz_secure.c - what a stranger who was let greet may send before he has proved anything: a
 * handshake's bytes. The first byte says to whom: with a run's key or certificates, to who connects
 * or is connected to. The rest comes in pieces of the length that their first byte says. */
#include <assert.h>

#include "../unit/secure_pairs.h"
#include "secure/handshake.h"

static const sl_passage passage = {.run_id = 1, .from = 3, .to = 1, .incarnation = 2};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sl_credentials *credentials[2];
    char why[SL_HANDSHAKE_WHY_MAX] = "";
    if (credentials[0] == NULL) {
        credentials[0] = make_run_key();
        credentials[1] = make_node();
    }
    if (size < 1)
        return 0;
    const sl_credentials *c = credentials[data[0] & 1];
    const uint8_t *bytes, *end = data + size;
    sl_handshake *h = NULL;
    const sl_demand demand = {.pinned = c->fingerprint};
    sl_handshake_open(&h, c, &passage, (data[0] & 2) != 0, &demand, NULL);
    assert(h != NULL);
    sl_handshake_state state = SL_HANDSHAKE_GOES_ON;
    for (data++; data < end && state == SL_HANDSHAKE_GOES_ON;) {
        const size_t rest = (size_t)(end - data) - 1, wanted = data[0] * 4u;
        const size_t piece = wanted < rest ? wanted : rest;
        state = sl_handshake_take(h, data + 1, piece, why);
        sl_handshake_sent(h, sl_handshake_pending(h, &bytes));
        data += 1 + piece;
    }
    assert(state != SL_HANDSHAKE_DONE && (state != SL_HANDSHAKE_FAILED || why[0] != '\0'));
    sl_handshake_close(&h);
    return 0;
}
