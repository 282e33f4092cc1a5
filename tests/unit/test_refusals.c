/* test_refusals.c - refusals are counted, and told of once each, then how often a minute. */
#include "agent/peers/refusals.h"
#include "harness.h"

static uint64_t counts[SL_REFUSED_KINDS];
static unsigned lines;
static char last[512];

static void notice(void *context, const char *text) {
    lines++;
    snprintf(last, sizeof last, "%s", text);
}

static sl_refusals begin(void) {
    memset(counts, 0, sizeof counts);
    lines = 0;
    return (sl_refusals){.notice = notice, .counts = counts};
}

/* An agent that was forgotten knocks for a day, eight times a second. */
START_TEST(one_that_knocks_is_a_line_a_minute) {
    sl_refusals r = begin();
    for (int i = 0; i < 86400 * 8; i++)
        sl_refusals_note(&r, 5 + i / 8.0, SL_REFUSED_HELLO, 1, "one");
    ck_assert_uint_eq(lines, 24 * 60);
    ck_assert_str_eq(last, "warning: 480 more times within a minute: one");
    ck_assert_uint_eq(counts[SL_REFUSED_HELLO], 86400 * 8);
}

START_TEST(it_is_news_after_a_minute_without) {
    sl_refusals r = begin();
    sl_refusals_note(&r, 5, SL_REFUSED_GREETING, 1, "one");
    sl_refusals_note(&r, 6, SL_REFUSED_GREETING, 1, "one");
    ck_assert_uint_eq(lines, 1);
    sl_refusals_tick(&r, 66);
    ck_assert_str_eq(last, "warning: 1 more times within a minute: one");
    sl_refusals_tick(&r, 127);
    ck_assert_uint_eq(lines, 2);
    sl_refusals_note(&r, 130, SL_REFUSED_GREETING, 1, "one");
    ck_assert_str_eq(last, "warning: one");
    ck_assert_uint_eq(lines, 3);
}

/* Whoever makes up names is not told of more often. */
START_TEST(a_crowd_of_names_is_few_lines) {
    sl_refusals r = begin();
    char text[32];
    for (int i = 0; i < 600000; i++) {
        snprintf(text, sizeof text, "agent %d", i);
        sl_refusals_note(&r, 5 + i * 1e-3, SL_REFUSED_GREETING, 1, text);
    }
    ck_assert_uint_le(lines, 11 * (SL_MATTERS_MAX + 1));
    ck_assert_uint_eq(counts[SL_REFUSED_GREETING], 600000);
    sl_refusals_tick(&r, 1e6);
    ck_assert_msg(strstr(last, "other connections were refused") != NULL, "%s", last);
}

START_TEST(many_at_once_are_one_line) {
    sl_refusals r = begin();
    sl_refusals_note(&r, 7, SL_REFUSED_SILENT, 30, "thirty");
    ck_assert_str_eq(last, "warning: thirty");
    sl_refusals_tick(&r, 70);
    ck_assert_str_eq(last, "warning: 29 more times within a minute: thirty");
    ck_assert_uint_eq(counts[SL_REFUSED_SILENT], 30);
}

START_TEST(who_wants_no_lines_gets_counts) {
    sl_refusals r = begin();
    r.notice = NULL;
    sl_refusals_note(&r, 5, SL_REFUSED_SILENT, 2, "two");
    sl_refusals_tick(&r, 70);
    ck_assert_uint_eq(counts[SL_REFUSED_SILENT], 2);
}
