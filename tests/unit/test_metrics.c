/* test_metrics.c - what /metrics says of many edges, of numbers that are not known, and of odd
 * names. */
#include "base/clock.h"
#include "harness.h"
#include "monitor/metrics.h"

static uint32_t edges;
static sl_agent_progress progress;

sl_agent_progress __wrap_sl_agent_progress_read(sl_agent *agent) {
    return progress;
}

bool __wrap_sl_agent_edge_read(sl_agent *agent, uint32_t index, sl_agent_edge *out) {
    *out = (sl_agent_edge){.rank = index + 1,
                           .agreed = index != 1,
                           .exchange = 10 - index % 4,
                           .traffic = {1000, 2000, index + 1, 0.5, index == 2 ? 0.25 : 0}};
    return index < edges;
}

static const char *write_all(void) {
    static sl_experiment experiment = {.name = "a \"b\"\\\n"};
    const sl_monitor_subject of = {NULL, &experiment, 7, 3, 8, true};
    static char *text;
    free(text);
    text = sl_metrics_write(&of, 0.75);
    ck_assert_ptr_nonnull(text);
    return text;
}

static void check_row(const char *text, const char *row) {
    const char *at = strstr(text, row);
    ck_assert_msg(at != NULL && at[-1] == '\n' && at[strlen(row)] == '\n', "%s not in:\n%s", row,
                  text);
}

static void know_nothing(void) {
    progress = (sl_agent_progress){.record = {.evaluation = {NAN, NAN}, .times = {.wait = 1.5}},
                                   .distance = NAN,
                                   .contraction = NAN,
                                   .exchange = 9};
}

START_TEST(what_is_not_known_is_left_out) {
    static const char *const unknown[] = {"last_round", "loss", "held_out", "distance",   "members",
                                          "checkpoint", "view", "edge",     "contraction"};
    know_nothing();
    edges = 0;
    const char *text = write_all();
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        ck_assert_msg(strstr(text, unknown[i]) == NULL, "%s in:\n%s", unknown[i], text);
    check_row(text, "starling_rounds_total 0");
    check_row(text, "starling_phase_seconds_total{phase=\"wait\"} 1.5");
    ck_assert_ptr_nonnull(strstr(text, "experiment=\"a \\\"b\\\"\\\\\\n\","));
    ck_assert(strstr(text, " nan") == NULL && strstr(text, " inf") == NULL);
}

START_TEST(each_edge_has_a_row) {
    know_nothing();
    progress.record.round.round = 12;
    progress.members = 8;
    progress.contraction = 0.5;
    edges = SL_METRICS_EDGES_MAX;
    const double began_s = sl_clock_seconds();
    const char *text = write_all();
    printf("%u edges are written in %.2f ms\n", edges, 1e3 * (sl_clock_seconds() - began_s));
    check_row(text, "starling_edge_up{peer=\"1\"} 1");
    check_row(text, "starling_edge_up{peer=\"2\"} 0");
    check_row(text, "starling_edge_round_lag{peer=\"1\"} -1");
    check_row(text, "starling_edge_round_trip_seconds{peer=\"3\"} 0.25");
    check_row(text, "starling_edge_reconnects_total{peer=\"64\"} 63");
    check_row(text, "starling_members 8");
    check_row(text, "starling_contraction_ratio 0.5");
    check_row(text, "starling_contraction_predicted_ratio 0.75");
    ck_assert(strstr(text, "starling_edge_round_lag{peer=\"2\"}") == NULL);
    ck_assert(strstr(text, "starling_edge_round_trip_seconds{peer=\"1\"}") == NULL);
}

START_TEST(many_edges_are_summed) {
    know_nothing();
    edges = SL_METRICS_EDGES_MAX + 1;
    const char *text = write_all();
    check_row(text, "starling_edge_up{peer=\"all\"} 64");
    check_row(text, "starling_edge_round_lag{peer=\"all\"} 2");
    check_row(text, "starling_edge_sent_bytes_total{peer=\"all\"} 65000");
    check_row(text, "starling_edge_wait_seconds_total{peer=\"all\"} 32.5");
    check_row(text, "starling_edge_round_trip_seconds{peer=\"all\"} 0.25");
    check_row(text, "starling_edge_reconnects_total{peer=\"all\"} 2080");
    ck_assert(strstr(text, "peer=\"1\"") == NULL);
}
