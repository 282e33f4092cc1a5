/* test_session_numbers.c - calls of a session take the numbers as they are, wherever they are: what
 * a loop does to x between two calls is kept, x may lie in pieces and move, averages are of x at
 * the call, sums of numbers of the caller's.
 */
#include "sessions.h"

enum { N = 3, D = 12, LONG = 2 * (1 << 18) + 77, NUMBERS = 70000 };

static const char complete[] = "{\"topology\": {\"nodes\": 3, \"family\": \"complete\", "
                               "\"weights\": \"uniform\"}}";
static float x_of[N][LONG], other[N][LONG];

static void setup(void) {
    sl_session_defaults(&options, sizeof options);
    memset(x_of, 0, sizeof x_of);
    memset(other, 0, sizeof other);
}

static int start(sl_session **s, const sl_session_options *o, uint64_t d, float *x, sl_error *e) {
    int result = sl_session_join(s, complete, d, o, e);
    for (uint64_t i = 0; i < d; i++)
        x[i] = (float)o->rank;
    return result != 0 ? result : sl_session_start(*s, x, e);
}

static void expect_all(const float *x, size_t count, float value) {
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(x[i] == value, "[%zu] is %g, not %g", i, x[i], value);
}

/* ---- what is done to x between two calls ---- */

static int change_between(void *context, const sl_session_options *o, sl_error *e) {
    float *x = x_of[o->rank], *moved = other[o->rank];
    sl_session *s;
    int result = start(&s, o, D, x, e);
    THEN(result, o->overlap ? sl_session_begin(s, x, e) : sl_session_offer(s, x, e));
    for (int i = 0; i < D; i++)
        moved[i] = x[i] + 10 * (float)o->rank;
    memset(x, 0x7F, D * sizeof *x);
    if (result == 0)
        result = sl_session_end(s, moved, e);                      /* other memory */
    ck_assert(result != 0 || moved[0] == 1 + 10 * (float)o->rank); /* the mean of 0, 1, 2 is 1 */
    if (result == 0)
        expect_all(moved, D, moved[0]);
    THEN(result, sl_session_mix(s, moved, e));
    if (result == 0)
        expect_all(moved, D, 11); /* the mean of 1, 11, 21 */
    return end_session(s, result, e);
}

FIXTURES(setup, NULL);

START_TEST(what_changes_between_begin_and_end_is_kept) {
    options.overlap = 1;
    run_both(complete, N, change_between, NULL);
}

START_TEST(what_changes_between_offer_and_end_is_kept) {
    run_both(complete, N, change_between, NULL);
}

/* ---- x in pieces ---- */

static const uint64_t sizes[] = {5, LONG - 4005, 4000};
static const sl_session_tensor tensors[] = {
    {"a", sizes, 1}, {"b", sizes + 1, 1}, {"c", sizes + 2, 1}};

static int place(sl_session *s, float *x, sl_error *e) {
    float *const places[] = {x, x + sizes[0], x + sizes[0] + sizes[1]};
    return sl_session_place(s, places, e);
}

/* The memory moves each round. */
static int run_in_pieces(void *context, const sl_session_options *o, sl_error *e) {
    float *x = x_of[o->rank], *next = other[o->rank], *swap;
    sl_session *s;
    int result = sl_session_join(&s, complete, LONG, o, e);
    for (size_t i = 0; i < LONG; i++)
        x[i] = (float)(o->rank * (int64_t)(i % 1000));
    THEN(result, place(s, x, e));
    THEN(result, sl_session_start(s, NULL, e));
    for (int k = 0; k < 3 && result == 0; k++) {
        result = k == 1 ? sl_session_mix(s, NULL, e) : sl_session_begin(s, NULL, e);
        for (size_t i = 0; i < LONG; i++)
            next[i] = x[i] + (float)(k + o->rank);
        swap = x, x = next, next = swap;
        THEN(result, place(s, x, e));
        if (result == 0 && k != 1)
            result = sl_session_end(s, NULL, e);
    }
    static float average[N][LONG];
    double distance;
    THEN(result, sl_session_average(s, NULL, average[o->rank], &distance, e));
    /* Means of i, then 1, 2, 3 added; 2, 3, 4 and 3, 4, 5 come after. */
    for (size_t i = 0; i < LONG && result == 0; i++)
        if (!(fabsf(average[o->rank][i] - ((float)(i % 1000) + 6)) < 1e-3f))
            ck_abort_msg("[%zu]: %g", i, average[o->rank][i]);
    ck_assert(result != 0 || fabs(distance - sqrt(LONG * 2.0 / 3.0)) < 1e-2);
    return end_session(s, result, e);
}

START_TEST(x_may_lie_in_pieces_and_move) {
    options.overlap = 1;
    options.tensors = tensors;
    options.tensor_count = 3;
    run_both(complete, N, run_in_pieces, NULL);
}

/* ---- averages ---- */

static int average_at_once(void *context, const sl_session_options *o, sl_error *e) {
    float *x = x_of[o->rank], average[D];
    double distance;
    sl_session *s;
    int result = start(&s, o, D, x, e);
    for (int i = 0; i < D; i++)
        x[i] += 100; /* trained alone: no round has ended */
    THEN(result, sl_session_average(s, x, average, &distance, e));
    if (result == 0)
        expect_all(average, D, 101);
    if (result == 0)
        expect_all(x, D, 100 + (float)o->rank);
    ck_assert(result != 0 || fabs(distance - sqrt(D * 2.0 / 3.0)) < 1e-6);
    THEN(result, sl_session_mix(s, x, e));
    if (result == 0)
        expect_all(x, D, 101);
    return end_session(s, result, e);
}

START_TEST(an_average_is_of_x_at_the_call) {
    run_both(complete, N, average_at_once, NULL);
}

/* Ranks 0 and 1 wait for rank 2's rounds, which move their models. */
static int average_and_wait(void *context, const sl_session_options *o, sl_error *e) {
    float *x = x_of[o->rank], average[D];
    sl_session *s;
    int result = start(&s, o, D, x, e);
    for (int k = 0; k < 3 && o->rank == 2 && result == 0; k++)
        result = sl_session_mix(s, x, e);
    for (int i = 0; i < D; i++)
        x[i] += 30 * (float)o->rank;
    THEN(result, sl_session_average(s, x, average, NULL, e));
    for (int i = 0; i < D && result == 0; i++)
        ck_assert_msg(fabsf(average[i] - 31) < 1e-4f, "%g", average[i]);
    return end_session(s, result, e);
}

START_TEST(who_waits_for_an_average_gives_its_step_once) {
    run_both(complete, N, average_and_wait, NULL);
}

/* ---- sums ---- */

static double numbers[N][NUMBERS];

static int add_up(void *context, const sl_session_options *o, sl_error *e) {
    float *x = x_of[o->rank];
    double *own = numbers[o->rank];
    uint64_t givers = 0;
    sl_session *s;
    int result = start(&s, o, D, x, e);
    for (int i = 0; i < NUMBERS; i++)
        own[i] = i + 1e300 * (double)(o->rank - 1);
    own[1] = 0.1;
    if (result == 0 && o->rank != 2) /* who has left gives nothing */
        result = sl_session_sum(s, own, NUMBERS, &givers, e);
    ck_assert(result != 0 || o->rank == 2 ||
              (givers == 2 && own[1] == 0.2 && own[NUMBERS - 1] == -1e300));
    return end_session(s, result, e);
}

START_TEST(sums_are_in_double_and_of_any_length) {
    run_both(complete, N, add_up, NULL);
}

int main(void) {
    return run_tests("session numbers");
}
