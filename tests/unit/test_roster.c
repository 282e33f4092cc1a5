/* test_roster.c - rosters: what is read, what is refused, and names that are looked up. */
#include <string.h>

#include "harness.h"
#include "starling/starling.h"

static sl_error error;

START_TEST(a_roster_is_read_and_its_mistakes_are_named) {
    static const struct {
        const char *text, *complaint;
    } bad[] = {
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
        ck_assert_msg(strstr(error.text, bad[i].complaint) != NULL, "%s", error.text);
        ck_assert_ptr_null(roster);
    }
    ck_assert_int_eq(sl_roster_parse(&roster, "# two\n0 10.0.0.1:7000\n\n1 [::1]:7001 # here\n",
                                     "roster", &error),
                     0);
    ck_assert_uint_eq(sl_roster_count(roster), 2);
    ck_assert_str_eq(sl_roster_host(roster, 0), "10.0.0.1");
    ck_assert_str_eq(sl_roster_host(roster, 1), "::1");
    ck_assert_uint_eq(sl_roster_port(roster, 1), 7001);
    sl_roster_close(&roster);
}
END_TEST

START_TEST(names_are_looked_up_and_unknown_ones_named) {
    sl_roster *roster = NULL;
    ck_assert_int_eq(sl_roster_parse(&roster, "localhost:1\n127.0.0.1:2\n", "roster", &error), 0);
    ck_assert_msg(sl_roster_resolve(roster, 20, NULL, &error) == 0, "%s", error.text);
    sl_roster_close(&roster);
    ck_assert_int_eq(sl_roster_parse(&roster, "localhost:1\n127.0.0.1:1\n", "roster", &error), 0);
    ck_assert_int_eq(sl_roster_resolve(roster, 20, NULL, &error), SL_EFILE);
    ck_assert_msg(strstr(error.text, "is the address of ranks 0 and 1") != NULL, "%s", error.text);
    sl_roster_close(&roster);
    const int stop = 1;
    ck_assert_int_eq(sl_roster_parse(&roster, "no-such-host.invalid:1\n", "roster", &error), 0);
    int result = sl_roster_resolve(roster, 20, &stop, &error);
    ck_assert(result == SL_ESTOPPED || result == SL_EINVAL); /* whichever is first */
    ck_assert_msg(strstr(error.text, "no-such-host.invalid") != NULL, "%s", error.text);
    sl_roster_close(&roster);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("roster");
    ADD_TESTS(suite, "rosters", a_roster_is_read_and_its_mistakes_are_named,
              names_are_looked_up_and_unknown_ones_named);
    return run_suite(suite);
}
