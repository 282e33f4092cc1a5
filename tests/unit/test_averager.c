/* test_averager.c - what async/averager.h refuses, what a cut leaves, and the order of sim/heap.h.
 * Who asks, waits and averages, tests/world/apart_world.c holds under random schedules. */
#include "async/averager.h"
#include "harness.h"
#include "sim/heap.h"
#include "starling/rng.h"

START_TEST(what_nobody_sends_now_is_refused) {
    sl_averager node;
    sl_error error;
    static const sl_averager_message wrong[] = {
        {1, 1, SL_AVERAGER_ANSWER, 0}, {1, 1, SL_AVERAGER_BUSY, 0}, {1, 1, SL_AVERAGER_ASK, 1}};
    sl_averager_use use;
    EXPECT_WELL(sl_averager_open(&node, 1, 0, 2, 3, &error));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(sl_averager_take(&node, &wrong[i], &use, &error), SL_EPROTO);
    const sl_averager_message ask = {1, 1, SL_AVERAGER_ASK, 0};
    EXPECT_WELL(sl_averager_take(&node, &ask, &use, &error));
    ck_assert_int_eq(sl_averager_take(&node, &ask, &use, &error), SL_EPROTO);
    sl_averager_close(&node);
}

/* Parts of it may be undone. Who is lost is told of nothing. */
START_TEST(an_average_that_was_cut_keeps_the_model_until_a_view) {
    sl_averager node;
    sl_averager_use use;
    sl_averager_message next;
    sl_error error;
    static const sl_averager_message asks[] = {{1, 1, SL_AVERAGER_ASK, 0},
                                               {2, 1, SL_AVERAGER_ASK, 0}};
    EXPECT_WELL(sl_averager_open(&node, 1, 0, 2, 3, &error));
    EXPECT_WELL(sl_averager_take(&node, &asks[0], &use, &error));
    sl_averager_turn(&node);
    ck_assert(sl_averager_next(&node, &next) && sl_averager_left(&node, &next));
    sl_averager_cut(&node, 1);
    ck_assert(node.is_cut && node.account.parts == 1 && !sl_averager_is_free(&node));
    EXPECT_WELL(sl_averager_take(&node, &asks[1], &use, &error));
    ck_assert(sl_averager_next(&node, &next) && next.step == SL_AVERAGER_BUSY);
    sl_averager_cut(&node, 2);
    ck_assert(!sl_averager_next(&node, &next) && sl_averager_is_still(&node));
    sl_averager_go_on(&node);
    ck_assert(sl_averager_is_free(&node));
    sl_averager_close(&node);
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
