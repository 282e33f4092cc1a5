/* test_refusals.c - refusals are counted, and told of ten times a second at most. */
#include <stdio.h>
#include <string.h>

#include "agent/refusals.h"
#include "harness.h"

static uint64_t counts[SL_REFUSED_KINDS];
static unsigned lines;
static char last[256];

static void notice(void *context, const char *text) {
    (void)context;
    lines++;
    snprintf(last, sizeof last, "%s", text);
}

static sl_refusals begin(void) {
    memset(counts, 0, sizeof counts);
    lines = 0;
    return (sl_refusals){.notice = notice, .counts = counts};
}

START_TEST(a_flood_is_ten_lines_a_second) {
    sl_refusals r = begin();
    for (int i = 0; i < 1000; i++)
        sl_refusals_note(&r, 5 + i * 1e-4, SL_REFUSED_HELLO, 1, "one");
    ck_assert_uint_eq(lines, 9);
    sl_refusals_tick(&r, 6.5);
    ck_assert_uint_eq(lines, 10);
    ck_assert_str_eq(last, "warning: 991 more connections were refused");
    ck_assert_uint_eq(counts[SL_REFUSED_HELLO], 1000);
    sl_refusals_tick(&r, 8);
    ck_assert_uint_eq(lines, 10);
}
END_TEST

START_TEST(the_next_second_begins_with_its_first) {
    sl_refusals r = begin();
    for (int i = 0; i < 20; i++)
        sl_refusals_note(&r, 5, SL_REFUSED_GREETING, 1, "one");
    sl_refusals_note(&r, 7, SL_REFUSED_SILENT, 30, "thirty");
    ck_assert_uint_eq(lines, 11); /* with what the second before left out */
    ck_assert_str_eq(last, "thirty");
    ck_assert_uint_eq(counts[SL_REFUSED_GREETING], 20);
    ck_assert_uint_eq(counts[SL_REFUSED_SILENT], 30);
}
END_TEST

START_TEST(who_wants_no_lines_gets_counts) {
    sl_refusals r = begin();
    r.notice = NULL;
    sl_refusals_note(&r, 5, SL_REFUSED_SILENT, 2, "two");
    sl_refusals_tick(&r, 7);
    ck_assert_uint_eq(counts[SL_REFUSED_SILENT], 2);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("refusals");
    ADD_TESTS(suite, "refusals", a_flood_is_ten_lines_a_second,
              the_next_second_begins_with_its_first, who_wants_no_lines_gets_counts);
    return run_suite(suite);
}
