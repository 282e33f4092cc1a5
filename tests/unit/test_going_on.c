/* test_going_on.c - what may be another where a run goes on from a checkpoint. */
#include "experiment_texts.h"
#include "harness.h"

/* NULL: the run goes on. */
static void goes_on_with(const char *override, const char *refusal) {
    sl_experiment *before = parse(SMALLEST), *now = with_override(SMALLEST, override);
    sl_error error = {0};
    const int result = sl_experiment_goes_on(before, now, "RUN/config.json", &error);
    ck_assert_msg(result == (refusal == NULL ? 0 : SL_EINVAL), "%s: %s", override, error.text);
    ck_assert_msg(refusal == NULL || strstr(error.text, refusal) != NULL, "%s", error.text);
    for (int s = 0; s < SL_SECTION_COUNT && refusal == NULL; s++)
        ck_assert_uint_eq(sl_experiment_lasting_hash(before, (sl_section)s),
                          sl_experiment_lasting_hash(now, (sl_section)s));
    sl_experiment_close(&before);
    sl_experiment_close(&now);
}

START_TEST(a_run_goes_on_with_what_neighbours_compare) {
    static const char *const others[] = {
        "rounds=7",
        "optimizer.learning_rate=0.3",
        "optimizer.schedule=cosine",
        "name=other",
        "optimizer.schedule={\"name\":\"step\",\"milestones\":[0.5]}",
        "optimizer.schedule.warmup_rounds=3",
        "record.every=5",
        "network.latency_ms=3",
        "transport.connect_timeout_s=7",
        "device_memory_gb=3"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        goes_on_with(others[i], NULL);
    goes_on_with("optimizer.momentum=0.5", "optimizer.momentum: 0.5 here, 0 in RUN/config.json; a "
                                           "run that goes on keeps what neighbours compare, but "
                                           "for rounds, epochs, optimizer.learning_rate");
    goes_on_with("algorithm=choco-sgd", "algorithm.name: \"choco-sgd\" here, \"d-psgd\" in RUN/");
    goes_on_with("topology.nodes=5", "topology: {\"nodes\":5,");
    goes_on_with("data.batch=3", "data.batch: 3 here, ");
    goes_on_with("optimizer.momentum=1e-12", "optimizer.momentum: 1e-12 here, 0 in RUN/");
    goes_on_with("membership.on_loss=stop", "membership.on_loss: \"stop\" here, \"continue\" in ");
    goes_on_with("topology={\"nodes\":4,\"edges\":[[0,1],[1,2],[2,3]]}", "topology: {\"nodes\":4");
}

START_TEST(settings_come_back_bit_for_bit) {
    const char *const overrides[] = {"optimizer.learning_rate=0.30000000000000004",
                                     "optimizer.schedule={\"name\":\"step\",\"milestones\":[0.1]}"};
    sl_experiment *e = parse_set(SMALLEST, overrides, 2);
    char *text = sl_experiment_settings(e);
    ck_assert_msg(strstr(text, "\"optimizer.learning_rate\":0.30000000000000004") != NULL &&
                      strstr(text, "\"optimizer.schedule.milestones\":[0.10000000000000001]") &&
                      strstr(text, "\"record.every\":0"),
                  "%s", text);
    ck_assert(sl_experiment_is_setting("optimizer.schedule.factor"));
    ck_assert(!sl_experiment_is_setting("optimizer.schedule.none"));
    ck_assert(!sl_experiment_is_setting("optimizer.momentum"));
    free(text);
    sl_experiment_close(&e);
}

/* Its file has every key, and so says nothing of those without effect. */
START_TEST(a_group_may_be_replaced_without_warnings) {
    char *json = json_of(SMALLEST);
    sl_experiment *e = with_override(json, "optimizer.schedule=cosine");
    ck_assert_str_eq(e->warnings, "");
    ck_assert_int_eq(e->optimizer.schedule.kind, SL_SCHEDULE_COSINE);
    sl_experiment_close(&e);
    free(json);
}

int main(void) {
    return run_tests("going on");
}
