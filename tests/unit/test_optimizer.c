/* test_optimizer.c - the optimizer's settings of a round, against values worked out by hand. */
#include "harness.h"
#include "starling/optimizer.h"

static void expect_rate(const sl_optimizer_config *o, uint64_t round, uint64_t rounds,
                        double rate) {
    ck_assert_msg(sl_optimizer_at(o, round, rounds).learning_rate == (float)rate,
                  "round %d: %.9g, not %.9g", (int)round,
                  sl_optimizer_at(o, round, rounds).learning_rate, rate);
}

START_TEST(a_constant_schedule_hands_everything_over) {
    sl_optimizer_config o = {
        .learning_rate = 0.3, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
    sl_sgd sgd = sl_optimizer_at(&o, 5, 10);
    ck_assert(sgd.learning_rate == 0.3f && sgd.momentum == 0.9f && sgd.weight_decay == 0.01f &&
              sgd.nesterov);
    expect_rate(&o, 1, 10, 0.3);
    expect_rate(&o, 10, 10, 0.3);
}
END_TEST

START_TEST(a_step_schedule_multiplies_after_each_milestone) {
    sl_optimizer_config o = {.learning_rate = 0.8};
    o.schedule = (sl_schedule){
        .kind = SL_SCHEDULE_STEP, .milestones = {0.5, 0.75}, .milestone_count = 2, .factor = 0.25};
    expect_rate(&o, 1, 8, 0.8);
    expect_rate(&o, 4, 8, 0.8); /* the first half, as promised */
    expect_rate(&o, 5, 8, 0.2);
    expect_rate(&o, 6, 8, 0.2);
    expect_rate(&o, 7, 8, 0.05);
    expect_rate(&o, 8, 8, 0.05);
}
END_TEST

START_TEST(a_cosine_falls_from_the_whole_towards_the_minimum) {
    sl_optimizer_config o = {.learning_rate = 2,
                             .schedule = {.kind = SL_SCHEDULE_COSINE, .minimum = 0.1}};
    expect_rate(&o, 1, 6, 2);                      /* cos 0 = 1 */
    expect_rate(&o, 3, 6, 2 * (0.1 + 0.9 * 0.75)); /* cos pi/3 = 1/2 */
    expect_rate(&o, 4, 6, 2 * (0.1 + 0.9 * 0.5));  /* cos pi/2 = 0 */
    expect_rate(&o, 5, 6, 2 * (0.1 + 0.9 * 0.25)); /* cos 2pi/3 = -1/2 */
    ck_assert(sl_optimizer_at(&o, 1000000, 1000000).learning_rate - 0.2f < 1e-6f);
}
END_TEST

START_TEST(warm_up_grows_linearly_and_multiplies_the_schedule) {
    sl_optimizer_config o = {.learning_rate = 0.4, .schedule = {.warmup_rounds = 4}};
    expect_rate(&o, 1, 10, 0.1);
    expect_rate(&o, 2, 10, 0.2);
    expect_rate(&o, 4, 10, 0.4);
    expect_rate(&o, 5, 10, 0.4);
    o.schedule = (sl_schedule){.kind = SL_SCHEDULE_STEP,
                               .milestones = {0.25},
                               .milestone_count = 1,
                               .factor = 0.5,
                               .warmup_rounds = 4};
    expect_rate(&o, 2, 8, 0.2);
    expect_rate(&o, 3, 8, 0.4 * 0.5 * 0.75);
    expect_rate(&o, 8, 8, 0.2);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("optimizer");
    ADD_TESTS(suite, "schedule", a_constant_schedule_hands_everything_over,
              a_step_schedule_multiplies_after_each_milestone,
              a_cosine_falls_from_the_whole_towards_the_minimum,
              warm_up_grows_linearly_and_multiplies_the_schedule);
    return run_suite(suite);
}
