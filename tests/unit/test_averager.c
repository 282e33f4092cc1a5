/* test_averager.c - async/averager.h as transcripts: who asks, waits, averages, and what is undone
 * after a cut; and the order of sim/heap.h. Under random schedules: tests/world/pair_world.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/averager.h"
#include "harness.h"
#include "sim/heap.h"
#include "starling/rng.h"

enum { NODES = 3, PARTS = 2 };

static sl_averager nodes[NODES];
static char told[1024];
static sl_error error;

static void setup(void) {
    told[0] = '\0';
    for (uint32_t i = 0; i < NODES; i++)
        ck_assert_int_eq(sl_averager_open(&nodes[i], 1, i, PARTS, NODES, &error), 0);
}

static void teardown(void) {
    for (uint32_t i = 0; i < NODES; i++)
        sl_averager_close(&nodes[i]);
}

FIXTURES(setup, teardown);

static void tell(const char *what, uint32_t i, uint32_t part) {
    const size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, "%s%u %s %u", used > 0 ? ", " : "", i, what, part);
}

/* The next message of i arrives; the letter says what it is. False: there is none. */
static bool pass(uint32_t i) {
    static const char *const names[] = {"asks", "answers", "is busy"};
    sl_averager_message m;
    sl_averager_use use;
    if (!sl_averager_next(&nodes[i], &m))
        return false;
    tell(names[m.step], i, m.part);
    if (sl_averager_left(&nodes[i], &m))
        tell("averages", i, m.part);
    const uint32_t to = m.peer;
    m.peer = i;
    ck_assert_int_eq(sl_averager_take(&nodes[to], &m, &use, &error), 0);
    if (use == SL_AVERAGER_AVERAGE)
        tell("averages", to, m.part);
    sl_averager_turn(&nodes[to]);
    return true;
}

static void pass_all(void) {
    while (pass(0) || pass(1) || pass(2))
        ;
}

static void expect(const char *text) {
    ck_assert_str_eq(told, text);
    told[0] = '\0';
}

START_TEST(the_server_averages_when_its_answer_has_left_and_is_free_when_it_has_come) {
    sl_averager_ask_for(&nodes[0], 1, 1);
    pass_all();
    expect("0 asks 0, 1 answers 0, 1 averages 0, 0 averages 0, "
           "0 asks 1, 1 answers 1, 1 averages 1, 0 averages 1");
    ck_assert(sl_averager_is_free(&nodes[0]) && !sl_averager_is_free(&nodes[1]));
    sl_averager_acknowledge(&nodes[1], 0);
    ck_assert(sl_averager_is_free(&nodes[1]));
}

START_TEST(of_two_asks_that_cross_one_waits_and_one_is_refused) {
    sl_averager_ask_for(&nodes[0], 1, 1);
    sl_averager_ask_for(&nodes[1], 0, 1);
    pass(0);
    pass(1);
    pass_all();
    const bool first = strstr(told, "0 is busy") != NULL; /* whose ask is lower */
    ck_assert(first != (strstr(told, "1 is busy") != NULL));
    ck_assert_ptr_nonnull(strstr(told, first ? "0 averages 1" : "1 averages 1"));
    ck_assert(sl_averager_is_free(&nodes[first ? 0 : 1]));
}

START_TEST(who_asks_a_server_waits_until_it_is_free) {
    sl_averager_ask_for(&nodes[0], 1, 1);
    sl_averager_ask_for(&nodes[2], 1, 1);
    pass(0);
    pass(2);
    expect("0 asks 0, 2 asks 0");
    pass_all();
    ck_assert_ptr_null(strstr(told, "busy"));
    ck_assert_ptr_null(strstr(told, "2 averages"));
    sl_averager_acknowledge(&nodes[1], 0);
    sl_averager_turn(&nodes[1]);
    told[0] = '\0';
    pass_all();
    ck_assert_ptr_nonnull(strstr(told, "2 averages 1"));
}

START_TEST(at_rest_all_who_wait_are_refused_and_nothing_begins) {
    sl_averager_ask_for(&nodes[0], 1, 1);
    sl_averager_ask_for(&nodes[2], 1, 1);
    pass(0);
    pass(2);
    sl_averager_rest(&nodes[1]);
    pass_all();
    ck_assert_ptr_nonnull(strstr(told, "1 is busy 0"));
    sl_averager_acknowledge(&nodes[1], 0);
    ck_assert(sl_averager_is_still(&nodes[1]) && !sl_averager_may_ask(&nodes[1]));
}

/* The server has averaged a part more than the asker. */
START_TEST(what_only_the_server_has_averaged_is_undone) {
    sl_averager_message m;
    uint32_t end;
    sl_averager_ask_for(&nodes[0], 1, 7);
    pass(0);
    ck_assert(sl_averager_next(&nodes[1], &m) && sl_averager_left(&nodes[1], &m));
    sl_averager_cut(&nodes[0], 1); /* the answer does not come */
    sl_averager_cut(&nodes[1], 0);
    ck_assert(nodes[0].account.parts == 0 && !nodes[0].account.served);
    ck_assert(nodes[1].account.parts == 1 && nodes[1].account.served);
    ck_assert(!sl_averager_is_free(&nodes[1])); /* its model stays until all agree */
    ck_assert(!sl_averager_go_on(&nodes[0], UINT32_MAX, &end));
    ck_assert(sl_averager_go_on(&nodes[1], nodes[0].account.parts, &end) && end == 1);
    ck_assert(sl_averager_may_ask(&nodes[0]) && sl_averager_may_ask(&nodes[1]));
}

START_TEST(what_nobody_sends_now_is_refused) {
    static const sl_averager_message wrong[] = {
        {1, 1, SL_AVERAGER_ANSWER, 0}, {1, 1, SL_AVERAGER_BUSY, 0}, {1, 1, SL_AVERAGER_ASK, 1}};
    sl_averager_use use;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(sl_averager_take(&nodes[0], &wrong[i], &use, &error), SL_EPROTO);
    const sl_averager_message ask = {1, 1, SL_AVERAGER_ASK, 0};
    ck_assert_int_eq(sl_averager_take(&nodes[0], &ask, &use, &error), 0);
    ck_assert_int_eq(sl_averager_take(&nodes[0], &ask, &use, &error), SL_EPROTO);
}

/* ---- the heap ---- */

START_TEST(events_come_by_time_phase_rank_and_order) {
    enum { COUNT = 5000 };
    sl_heap heap = {0};
    sl_heap_entry entry, before = {0};
    sl_rng draw = sl_rng_open(1, 0, 0, SL_PURPOSE_FAULT);
    size_t added = 0, taken = 0;
    for (; added < COUNT || taken < added;) {
        if (added < COUNT && (taken == added || sl_rng_below(&draw, 3) > 0)) {
            /* nothing happens before now */
            const uint64_t at = before.at + sl_rng_below(&draw, 4);
            const sl_phase phase = at > before.at ? sl_rng_below(&draw, 4) : SL_PHASE_RECORD;
            ck_assert(sl_heap_add(&heap, at, phase, at > before.at ? sl_rng_below(&draw, 9) : 9,
                                  (uint32_t)added++));
            continue;
        }
        ck_assert(sl_heap_take(&heap, &entry));
        ck_assert(entry.at > before.at || (entry.at == before.at && entry.order > before.order));
        before = entry;
        taken++;
    }
    ck_assert(!sl_heap_take(&heap, &entry));
    sl_heap_close(&heap);
}

int main(void) {
    return run_tests("averager");
}
