/* fuzz_greeting.c - what a stranger may say first: a greeting. An input is tried as it is, and its
 * fields again with a true proof: that passes once, within a minute, and with no bit altered. */
#include <assert.h>
#include <string.h>

#include "secure/greeting.h"

static const uint64_t now_us = 1700000000000000u, window_us = 60000000;
static const sl_greeting_key key = {.bytes = {1}};
enum { MAGIC_BYTES = 8, TIME_AT = 24 };

static bool passes(const uint8_t *greeting, uint64_t run_id, sl_greetings *seen) {
    char why[SL_GREETING_WHY_MAX] = "";
    const bool passed = sl_greeting_check(greeting, run_id, now_us, &key, seen, why);
    assert(passed || why[0] != '\0');
    return passed;
}

static uint64_t distance(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

/* at_us, how far its clock is off; alter: the bit to alter. */
static void try_true(const sl_passage *passage, uint64_t at_us, size_t alter) {
    static sl_greetings seen;
    uint8_t greeting[SL_GREETING_BYTES];
    sl_passage read;
    seen.count = seen.next = 0;
    assert(sl_greeting_write(passage, at_us, &key, greeting));
    assert(sl_greeting_read(greeting, &read));
    assert(read.from == passage->from && read.to == passage->to &&
           read.incarnation == passage->incarnation);
    assert(!passes(greeting, passage->run_id + 1, &seen));
    const bool passed = passes(greeting, passage->run_id, &seen);
    assert(passed == (distance(at_us, now_us) <= window_us));
    assert(!passes(greeting, passage->run_id, &seen));
    greeting[alter / 8] ^= (uint8_t)(1u << alter % 8);
    assert(!passes(greeting, passage->run_id, &seen));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sl_greetings seen;
    uint8_t greeting[SL_GREETING_BYTES] = {0};
    sl_passage passage = {.run_id = 7};
    uint64_t at_us;
    memcpy(greeting, data, size < sizeof greeting ? size : sizeof greeting);
    seen.count = seen.next = 0;
    assert(!passes(greeting, passage.run_id, &seen) && seen.count == 0);
    sl_greeting_read(greeting, &passage);
    memcpy(greeting, "starling", MAGIC_BYTES);
    assert(sl_greeting_read(greeting, &passage));
    memcpy(&at_us, greeting + TIME_AT, sizeof at_us);
    if (greeting[TIME_AT + 7] % 2 == 0) /* near now */
        at_us = now_us - window_us - 1000 + at_us % (2 * window_us + 2000);
    try_true(&passage, at_us, size % (8 * SL_GREETING_BYTES));
    return 0;
}
