/* test_links.c - links files: what each pair gets, and what each mistake is told. */
#include "harness.h"
#include "starling/links.h"

static sl_error error;

CLOSER(sl_links);

/* Closed behind the test. */
static sl_links *parse(const char *json) {
    sl_links *links = NULL;
    EXPECT_WELL(sl_links_parse(&links, quoted(json), "test", &error));
    return close_behind(links, close_sl_links);
}

static void expect_link(const sl_links *links, uint32_t i, uint32_t j, double bandwidth_mbit,
                        double latency_ms) {
    sl_link a = sl_links_get(links, i, j), b = sl_links_get(links, j, i);
    ck_assert(a.bandwidth_mbit == bandwidth_mbit && a.latency_ms == latency_ms);
    ck_assert(b.bandwidth_mbit == bandwidth_mbit && b.latency_ms == latency_ms);
}

static void expect_links(const sl_links *links) {
    ck_assert_uint_eq(sl_links_nodes(links), 5);
    expect_link(links, 0, 1, 100, 20);
    expect_link(links, 1, 2, 0.1, 0.05);
    expect_link(links, 3, 4, 0, 0.05);
    expect_link(links, 0, 4, 10000, 0.05);
    expect_link(links, 2, 2, 0, 0);
}

START_TEST(a_pair_has_its_own_link_or_the_default) {
    sl_links *links = parse("{'nodes': 5, 'bandwidth_mbit': 10000, 'latency_ms': 0.05, 'comment': "
                            "'two racks', 'links': [[4, 3, 0], [1, 0, 100, 20], [1, 2, 0.1]]}");
    expect_links(links);
    expect_links(parse(close_behind(sl_links_json(links), free)));
}

START_TEST(without_a_word_links_are_infinitely_fast) {
    sl_links *links = parse("{'nodes': 3}");
    expect_link(links, 0, 2, 0, 0);
    EXPECT_WELL(sl_links_uniform(&links, 3, (sl_link){10, 1}, &error));
    expect_link(links, 1, 2, 10, 1);
    expect_link(links, 1, 1, 0, 0);
    sl_links_close(&links);
    ck_assert_ptr_null(links);
    sl_links_close(&links);
}

START_TEST(mistakes_are_told) {
    static const refusal mistakes[] = {
        {"[]", "test: must be an object"},
        {"{'nodes': 3,}", "test:1:"},
        {"{}", "nodes: missing"},
        {"{'nodes': 0}", "nodes: 0 is not allowed; it must be an integer from 1 to 1000000"},
        {"{'nodes': 2, 'bandwith_mbit': 3}", "did you mean \"bandwidth_mbit\"?"},
        {"{'nodes': 2, 'bandwidth_mbit': -3}",
         "bandwidth_mbit: -3 is not allowed; it must be a number from 0 to 1000000000"},
        {"{'nodes': 2, 'latency_ms': '1'}", "latency_ms: \"1\" is not allowed"},
        {"{'nodes': 2, 'links': {}}", "links: must be a list"},
        {"{'nodes': 2, 'links': [[0, 1]]}", "links[0]: must be [i, j, bandwidth_mbit]"},
        {"{'nodes': 2, 'links': [[0, 1, 5], [0, 2, 5]]}",
         "links[1]: both ends must be nodes from 0 to 1"},
        {"{'nodes': 2, 'links': [[1, 1, 5]]}", "links[0]: is from node 1 to itself"},
        {"{'nodes': 2, 'links': [[0, 1, -5]]}", "links[0]: bandwidth_mbit: -5 is not allowed"},
        {"{'nodes': 2, 'links': [[0, 1, 5, 2e6]]}",
         "links[0]: latency_ms: 2000000.0 is not allowed; it must be a number from 0 to 1000000"},
        {"{'nodes': 2, 'links': [[0, 1, 5], [1, 0, 5]]}",
         "links: the link between 0 and 1 is listed twice"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        sl_links *links = NULL;
        EXPECT_ERROR(sl_links_parse(&links, quoted(mistakes[i].text), "test", &error), SL_EINVAL,
                     mistakes[i].said);
        ck_assert_ptr_null(links);
    }
    sl_links *links = NULL;
    ck_assert_int_eq(sl_links_load(&links, "/nowhere/links.json", &error), SL_EFILE);
}
