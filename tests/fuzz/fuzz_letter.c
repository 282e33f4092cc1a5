/* fuzz_letter.c - what another member sends: bytes that are no message are refused, or what no
 * member says; what is one says the same when it is sent on, and a member takes whatever it says.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "membership/letter.h"

enum { RANKS = 8 }; /* as in the seed, which fills all lists */

static void take(const sl_membership_message *message) {
    static const sl_member members[RANKS] = {{0, 1}, {1, 1}, {2, 1}, {3, 1},
                                             {4, 1}, {5, 1}, {6, 1}, {7, 1}};
    const sl_view first = {.number = 1, .round = 1, .members = members, .count = RANKS};
    const sl_membership_settings settings = {
        .incarnation = 1, .ranks_max = RANKS, .period = 1, .grace_s = 1, .first = &first};
    sl_membership *m;
    sl_membership_update update;
    if (sl_membership_open(&m, &settings, NULL) != 0)
        abort();
    for (int i = 0; i < 30; i++) {
        const sl_membership_event event = {.type = i == 0   ? SL_MEMBERSHIP_READY
                                                   : i == 1 ? SL_MEMBERSHIP_MESSAGE
                                                            : SL_MEMBERSHIP_TICK,
                                           .now_s = 0.1 * i,
                                           .message = message};
        sl_membership_step(m, &event, &update);
    }
    sl_membership_close(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sl_letter letter;
    if (sl_letter_open(&letter, RANKS, NULL) != 0)
        abort();
    if (sl_letter_decode(&letter, data, size) == NULL) {
        assert(letter.message.type <= SL_MEMBERSHIP_RELEASE && letter.message.standing <= SL_ASIDE);
        assert(sl_letter_bytes(&letter.message) == size && size <= sl_letter_bytes_max(RANKS));
        uint8_t *again = malloc(size);
        sl_letter_encode(&letter.message, again);
        assert(memcmp(again, data, size) == 0);
        free(again);
        take(&letter.message);
    }
    sl_letter_close(&letter);
    return 0;
}
