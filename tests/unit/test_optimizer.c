/* test_optimizer.c - the optimizer's settings of a round, against values worked out by hand. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "optim/direction.h"
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

/* Two tensors, of two elements and one; 3-4-5 triangles. */
static void expect_direction(const sl_optimizer_config *o, const float want[3]) {
    static const size_t ends[] = {2, 3};
    sl_direction d = {.optimizer = o,
                      .vec = sl_vec_cpu(),
                      .dimension = 3,
                      .tensor_ends = ends,
                      .tensor_count = 2};
    ck_assert(sl_direction_open(&d));
    float *g = d.vec->allocate(3), *x = d.vec->allocate(3);
    memcpy(g, (const float[]){3, -4, 2}, 3 * sizeof *g);
    memcpy(x, (const float[]){6, 8, 0.5f}, 3 * sizeof *x);
    sl_direction_clip(&d, g);
    sl_direction_take(&d, g, x);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(fabsf(g[i] - want[i]) < 1e-6f, "%d: %.9g, not %.9g", i, g[i], want[i]);
    d.vec->release(g);
    d.vec->release(x);
    sl_direction_close(&d);
}

START_TEST(sgd_takes_the_gradient_as_it_is) {
    const sl_optimizer_config o = {.weight_decay = 0.5};
    expect_direction(&o, (const float[]){3, -4, 2});
}
END_TEST

START_TEST(a_long_gradient_is_scaled) {
    sl_optimizer_config o = {.clip_norm = sqrt(29) / 2};
    expect_direction(&o, (const float[]){1.5f, -2, 1});
    o.clip_norm = 6;
    expect_direction(&o, (const float[]){3, -4, 2});
}
END_TEST

START_TEST(the_first_direction_of_adamw_is_a_sign_and_the_decay) {
    const sl_optimizer_config o = {.kind = SL_OPTIMIZER_ADAMW,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .epsilon = 1e-8,
                                   .weight_decay = 0.25};
    expect_direction(&o, (const float[]){2.5f, 1, 1.125f});
}
END_TEST

START_TEST(lars_trusts_each_tensor_on_its_own) {
    sl_optimizer_config o = {.kind = SL_OPTIMIZER_LARS, .trust = 0.5};
    expect_direction(&o, (const float[]){3, -4, 0.25f});
    o.weight_decay = 2; /* 0.5 * 10 / (5 + 20) = 0.2, and 0.5 * 0.5 / (2 + 1) */
    expect_direction(&o, (const float[]){0.2f * 15, 0.2f * 12, 0.25f});
    o.trust = 0; /* 0.001 */
    expect_direction(&o, (const float[]){0.0004f * 15, 0.0004f * 12, 0.0005f});
}
END_TEST

START_TEST(lamb_trusts_adams_direction) {
    const sl_optimizer_config o = {
        .kind = SL_OPTIMIZER_LAMB, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    const float share = 10 / sqrtf(2);
    expect_direction(&o, (const float[]){share, -share, 0.5f});
}
END_TEST

int main(void) {
    Suite *suite = suite_create("optimizer");
    ADD_TESTS(suite, "schedule", a_constant_schedule_hands_everything_over,
              a_step_schedule_multiplies_after_each_milestone,
              a_cosine_falls_from_the_whole_towards_the_minimum,
              warm_up_grows_linearly_and_multiplies_the_schedule);
    ADD_TESTS(suite, "direction", sgd_takes_the_gradient_as_it_is, a_long_gradient_is_scaled,
              the_first_direction_of_adamw_is_a_sign_and_the_decay,
              lars_trusts_each_tensor_on_its_own, lamb_trusts_adams_direction);
    return run_suite(suite);
}
