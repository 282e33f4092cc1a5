/* handshakes.h - credentials of a test, and both sides of a handshake. */
#ifndef STARLING_TEST_HANDSHAKES_H
#define STARLING_TEST_HANDSHAKES_H

#include "harness.h"
#include "secure/handshake.h"
#include "secure_pairs.h"

CLOSER(sl_credentials);

/* Until the test ends. */
static inline sl_credentials *keep(sl_credentials *credentials) {
    return close_behind(credentials, close_sl_credentials);
}

/* Lets the client and the server speak until neither has more to say; true: both are done. */
static inline bool handshakes_meet(sl_handshake *client, sl_handshake *server,
                                   char why[2][SL_HANDSHAKE_WHY_MAX]) {
    sl_handshake *side[2] = {client, server};
    sl_handshake_state state[2] = {SL_HANDSHAKE_GOES_ON, SL_HANDSHAKE_GOES_ON};
    why[0][0] = why[1][0] = '\0';
    state[0] = sl_handshake_take(client, NULL, 0, why[0]);
    for (int turn = 0, quiet = 0; quiet < 2; turn = 1 - turn) {
        const uint8_t *bytes;
        uint8_t copy[8192];
        const size_t count = sl_handshake_pending(side[turn], &bytes);
        ck_assert_uint_le(count, sizeof copy);
        quiet = count == 0 ? quiet + 1 : 0;
        if (count == 0)
            continue;
        memcpy(copy, bytes, count);
        sl_handshake_sent(side[turn], count);
        if (state[1 - turn] == SL_HANDSHAKE_GOES_ON)
            state[1 - turn] = sl_handshake_take(side[1 - turn], copy, count, why[1 - turn]);
        else
            state[1 - turn] = SL_HANDSHAKE_FAILED; /* it was not to speak any more */
    }
    return state[0] == SL_HANDSHAKE_DONE && state[1] == SL_HANDSHAKE_DONE;
}

#endif
