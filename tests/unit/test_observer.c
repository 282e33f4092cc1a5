/* test_observer.c - which rounds are recorded, and the consensus distance. */
#include "harness.h"
#include "starling/observer.h"

START_TEST(about_twenty_rounds_of_a_run_are_recorded) {
    sl_record_config automatic = {0};
    for (uint64_t rounds = 1; rounds < 5000; rounds = rounds * 3 / 2 + 1) {
        uint64_t count = 0;
        for (uint64_t r = 1; r <= rounds; r++)
            count += sl_record_due(&automatic, r, rounds);
        ck_assert_uint_ge(count, rounds < 20 ? rounds : 20);
        ck_assert_uint_le(count, 40);
        ck_assert(sl_record_due(&automatic, rounds, rounds));
    }
}

START_TEST(multiples_and_the_last_round_are_due) {
    sl_record_config every_4 = {.every = 4};
    for (uint64_t r = 1; r <= 10; r++)
        ck_assert_int_eq(sl_record_due(&every_4, r, 10), r == 4 || r == 8 || r == 10);
    sl_record_config never = {.every = 1000};
    ck_assert(sl_record_due(&never, 10, 10) && !sl_record_due(&never, 9, 10));
}

START_TEST(the_consensus_distance_is_the_naive_one) {
    enum { NODES = 7, DIMENSION = 131 };
    static float x[NODES][DIMENSION], mean[DIMENSION];
    const float *models[NODES];
    double naive_mean[DIMENSION] = {0}, squares = 0;
    for (int i = 0; i < NODES; i++) {
        models[i] = x[i];
        for (int k = 0; k < DIMENSION; k++)
            naive_mean[k] += (x[i][k] = (float)sin(1 + i * 131 + k)) / (double)NODES;
    }
    for (int i = 0; i < NODES; i++)
        for (int k = 0; k < DIMENSION; k++)
            squares += pow(x[i][k] - naive_mean[k], 2);
    double distance = sl_consensus_distance(models, NODES, DIMENSION, mean);
    ck_assert_double_lt(fabs(distance - sqrt(squares / NODES)), 1e-12);
    for (int k = 0; k < DIMENSION; k++)
        ck_assert_double_lt(fabs(mean[k] - naive_mean[k]), 1e-7);
}

START_TEST(equal_models_have_distance_0_and_themselves_as_mean) {
    float x[3] = {0.1f, -3e30f, 1e-40f}, mean[3];
    const float *models[] = {x, x, x, x, x};
    ck_assert(sl_consensus_distance(models, 5, 3, mean) == 0);
    ck_assert_mem_eq(mean, x, sizeof x);
}
