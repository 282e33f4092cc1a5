/* test_roster.c - rosters: what is read, what is refused, and names that are looked up. */
#include <malloc.h>

#include "harness.h"
#include "launch/roster.h"
#include "starling/starling.h"

static sl_error error;

CLOSER(sl_roster);

/* Closed behind the test. */
static sl_roster *parse(const char *text) {
    sl_roster *roster = NULL;
    EXPECT_WELL(sl_roster_parse(&roster, text, "roster", &error));
    return close_behind(roster, close_sl_roster);
}

START_TEST(a_roster_is_read_and_its_mistakes_are_named) {
    static const refusal bad[] = {
        {"", "roster: the roster is empty"},
        {"host\n", "roster:1: 'host' is not HOST:PORT"},
        {"# c\nhost:0\n", "roster:2: port '0' is not a number from 1 to 65535"},
        {"host:70000\n", "roster:1: port '70000'"},
        {"host:12x\n", "roster:1: port '12x'"},
        {"::1:7000\n", "write an IPv6 address as [ADDRESS]:PORT"},
        {"a:1\nb:1\na:1\n", "roster:3: a:1 is the address of ranks 0 and 2"},
        {"[::1]:1\n[0:0::1]:1\n", "is the address of ranks 0 and 1"},
        {"0 a:1\n0 b:2\n", "roster:2: rank '0' is named twice; expected 1"},
        {"0 a:1\n2 b:2\n", "roster:2: rank '2' is out of order; expected 1"},
    };
    sl_roster *roster = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_ne(sl_roster_parse(&roster, bad[i].text, "roster", &error), 0);
        ck_assert_msg(strstr(error.text, bad[i].said) != NULL, "%s", error.text);
        ck_assert_ptr_null(roster);
    }
    roster = parse("# two\n0 10.0.0.1:7000\n\n1 [::1]:7001 # here\n");
    ck_assert_uint_eq(sl_roster_count(roster), 2);
    ck_assert_str_eq(sl_roster_host(roster, 0), "10.0.0.1");
    ck_assert_str_eq(sl_roster_host(roster, 1), "::1");
    ck_assert_uint_eq(sl_roster_port(roster, 1), 7001);
}

START_TEST(names_are_looked_up_and_unknown_ones_named) {
    sl_roster *roster = parse("localhost:1\n127.0.0.1:2\n");
    EXPECT_WELL(sl_roster_resolve(roster, 20, NULL, &error));
    roster = parse("localhost:1\n127.0.0.1:1\n");
    EXPECT_ERROR(sl_roster_resolve(roster, 20, NULL, &error), SL_EFILE,
                 "is the address of ranks 0 and 1");
    const int stop = 1;
    roster = parse("no-such-host.invalid:1\n");
    int result = sl_roster_resolve(roster, 20, &stop, &error);
    ck_assert(result == SL_ESTOPPED || result == SL_EINVAL); /* whichever is first */
    ck_assert_msg(strstr(error.text, "no-such-host.invalid") != NULL, "%s", error.text);
}

enum { MANY = 99999, MANY_BYTES = 80 * MANY };

static size_t bytes_in_use(void) {
    const struct mallinfo2 memory = mallinfo2(); /* zeros with a sanitizer */
    return memory.uordblks + memory.hblkhd;
}

static void write_many(FILE *out, const char *format) {
    for (unsigned i = 0; i < MANY; i++)
        fprintf(out, format, i >> 16 & 255, i >> 8 & 255, i & 255);
}

START_LOOP_TEST(a_hundred_thousand_ranks_take_few_bytes_each, 3) {
    static const char *const formats[] = {"10.%u.%u.%u:7000\n", "[fd00::%x:%x:%x]:7000\n",
                                          "node-%u-%u-%u.cluster:7000\n"};
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    write_many(out, formats[_i]);
    fclose(out);
    const size_t before = bytes_in_use();
    const sl_roster *roster = parse(text);
    ck_assert_uint_le(bytes_in_use() - before, MANY_BYTES + (_i == 2 ? 40 * MANY : 0));
    ck_assert_uint_eq(sl_roster_count(roster), MANY);
    free(text);
}

#define FIFTEEN "000000000000000"
#define PIN(digit) "sha256:" FIFTEEN FIFTEEN FIFTEEN FIFTEEN "000" digit

START_TEST(what_a_roster_changes_is_said) {
    static const char before[] = "a:1 " PIN("1") "\nb:1 " PIN("2") "\nc:1 " PIN("3") "\n";
    static const struct {
        const char *now, *said;
    } changes[] = {
        {"a:1 " PIN("1") "\nb:1 " PIN("2") "\nc:1 " PIN("3") "\n", "the roster is as before"},
        {"a:1 " PIN("1") "\nb:1 " PIN("2") "\nc:1 " PIN("3") "\nd:1 " PIN("4") "\n",
         "rank 3 is new"},
        {"a:1 " PIN("1") "\nb:1 revoked\nc:1 " PIN("5") "\n",
         "rank 1 is revoked; the certificate of rank 2 is another one"},
        {"a:1 " PIN("1") "\nb:2 " PIN("2") "\n",
         "rank 2 is revoked; the address of rank 1 is another one"},
        {"a:1 " PIN("6") "\nb:1 " PIN("7") "\nc:1 " PIN("3") "\n",
         "the certificates of ranks 0, 1 are others"},
    };
    sl_roster *was = parse(before);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char said[256];
        sl_roster *now = parse(changes[i].now);
        EXPECT_WELL(sl_roster_check_change(now, was, &error));
        sl_roster_tell_change(now, was, said, sizeof said);
        ck_assert_str_eq(said, changes[i].said);
    }
    sl_roster *moved = parse("a:1 " PIN("1") "\nc:1 " PIN("3") "\n");
    EXPECT_ERROR(sl_roster_check_change(moved, was, &error), SL_EFILE,
                 "roster:2: rank 1 has the certificate that was rank 2's");
}

START_TEST(revoked_stands_for_a_certificate_only) {
    sl_roster *roster = parse("a:1 revoked\nb:1 " PIN("2") "\n");
    EXPECT_WELL(sl_roster_check_fingerprints(roster, &error));
    ck_assert(sl_roster_revokes(roster, 0) && !sl_roster_revokes(roster, 1));
    EXPECT_ERROR(sl_roster_check_unrevoked(roster, &error), SL_EFILE,
                 "roster:1: rank 0 is revoked");
    ck_assert_int_eq(sl_roster_parse(&roster, "a:1 revokes\n", "roster", &error), SL_EFILE);
}
