/* wishes.c - what the driver does with a wish: displacements, means, sums; see state.h.
 *
 * A round takes the displacement as gradient, g := x_before - x at rate 1. Where rounds went by
 * while the caller waited for an average, x_before is the model that it knew then.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/state.h"

/* Of `ask`: how many ask for an average, for a state, for a sum; of how many numbers, added up, and
 * squared. */
enum { ASK_AVERAGE, ASK_SAVE, ASK_SUM, ASK_COUNT, ASK_SQUARE, ASKS };

/* ---- the round ---- */

static bool check_finite(sl_session *s, const float *x) {
    return sl_session_check_numbers(s, x, 0, s->layout.dimension);
}

static void stand_still(sl_session *s, float *g) {
    s->memory.vec->fill(g, 0, s->layout.dimension);
}

static void displace(sl_session *s, const float *x, float *g) {
    sl_session_driver *driver = &s->driver;
    const float *before = driver->behind ? driver->base : x, *given = s->shared.asked.given;
    if (s->shared.asked.parts != NULL) {
        sl_session_answer_parts(s, before, g);
        driver->behind = false;
    } else if (!check_finite(s, given)) {
        stand_still(s, g);
    } else if (s->shared.asked.lends && !driver->behind) {
        driver->lent = given;
    } else {
        s->memory.vec->combine(g, (const float *const[]){before, given}, (const float[]){1, -1}, 2,
                               s->layout.dimension);
        driver->behind = false;
    }
}

/* The caller goes on from the model that it knows, while rounds change the node's. */
static void keep_base(sl_session *s) {
    sl_session_driver *driver = &s->driver;
    if (driver->behind)
        return;
    if (driver->base == NULL)
        driver->base = s->memory.vec->allocate(s->layout.dimension);
    driver->behind = driver->base != NULL;
    if (driver->behind) {
        s->memory.vec->copy(driver->base, s->shared.model, sl_session_bytes(s));
        return;
    }
    sl_error error;
    sl_fail_node(&error, SL_ENOMEM, s->rank, s->shared.round, "out of memory for %zu parameters",
                 s->layout.dimension);
    sl_session_fail(s, &error);
}

void sl_session_answer(sl_session *s, const float *x, float *g) {
    s->driver.lent = NULL;
    if (s->driver.wish == WISH_ROUND) {
        displace(s, x, g);
        return;
    }
    if (sl_session_asks(s->driver.wish))
        keep_base(s);
    stand_still(s, g);
}

/* ---- what all peers come for ---- */

bool sl_session_asks(sl_wish wish) {
    return wish == WISH_AVERAGE || wish == WISH_SUM || wish == WISH_SAVE;
}

bool sl_session_saves(const sl_session *s) {
    return s->driver.ask[ASK_SAVE] > 0;
}

/* What the caller gave, on the host. A peer that leaves has the model of its last round. */
static const float *view_given(sl_session *s) {
    const float *given = s->shared.asked.given;
    return sl_session_view(s, given != NULL ? given : s->shared.model);
}

/* The caller's model now, on the host, into `average`: what it gave, moved along with the rounds
 * that have gone by since. */
static void lay_model(sl_session *s) {
    const size_t d = s->layout.dimension;
    const sl_vec_ops *cpu = sl_vec_cpu();
    float *average = s->shared.asked.average;
    cpu->copy(average, view_given(s), d * sizeof *average);
    if (s->shared.asked.given == NULL || !s->driver.behind)
        return;
    cpu->combine(average, (const float *const[]){average, sl_session_view(s, s->driver.base)},
                 (const float[]){1, -1}, 2, d);
    cpu->combine(average, (const float *const[]){average, sl_session_view(s, s->shared.model)},
                 (const float[]){1, 1}, 2, d);
}

/* The sum of w_i z_i + step_i, where w_i add up to n: the mean of what push-sum keeps. At their own
 * times some of them may be on their way, and the sum of the others is added up, too. */
static sl_share share_model(sl_session *s) {
    const size_t d = s->layout.dimension;
    float *average = s->shared.asked.average;
    lay_model(s);
    const float weight = (float)s->shared.push_sum_weight;
    s->driver.weight = s->shared.push_sum_weight;
    if (s->shared.push_sum_weight != 1)
        sl_vec_cpu()->combine(average,
                              (const float *const[]){average, sl_session_view(s, s->shared.model)},
                              (const float[]){1, weight - 1}, 2, d);
    return (sl_share){.x = average,
                      .count = d,
                      .numbers = &s->driver.weight,
                      .number_count = s->experiment->algorithm.overlap_rounds > 0 ? 1 : 0,
                      .divisor = s->shared.members.count};
}

/* From what the caller gave, which rounds that have gone by since do not move. */
static sl_share share_distance(sl_session *s) {
    sl_call_asked *asked = &s->shared.asked;
    const float here = (float)(s->shared.members.count / s->driver.weight);
    if (s->experiment->algorithm.overlap_rounds > 0)
        sl_vec_cpu()->combine(asked->average, (const float *const[]){asked->average}, &here, 1,
                              s->layout.dimension);
    asked->distance =
        sl_vec_cpu()->distance_squared(view_given(s), asked->average, s->layout.dimension);
    return (sl_share){.numbers = &asked->distance, .number_count = 1, .divisor = 1};
}

void sl_session_keep_own(sl_session *s) {
    if (s->driver.wish == WISH_AVERAGE)
        lay_model(s);
    s->shared.asked.distance = NAN;
}

static int average(sl_session *const *all, uint32_t count, sl_session_adder *adder, void *context,
                   sl_share *shares, sl_error *error) {
    for (uint32_t i = 0; i < count; i++)
        shares[i] = share_model(all[i]);
    int result = adder(context, shares, error);
    for (uint32_t i = 0; i < count && result == 0; i++)
        shares[i] = share_distance(all[i]);
    if (result == 0)
        result = adder(context, shares, error);
    for (uint32_t i = 0; i < count && result == 0; i++) {
        sl_session_shared *shared = &all[i]->shared;
        shared->asked.distance = sqrt(shared->asked.distance / shared->members.count);
    }
    return result;
}

/* Who gives nothing adds zeros. */
static int share_numbers(sl_session *s, uint64_t count, sl_share *out, sl_error *error) {
    double *numbers = s->shared.asked.numbers;
    if (numbers == NULL)
        numbers = calloc(count, sizeof *numbers);
    *out = (sl_share){.numbers = numbers, .number_count = count, .divisor = 1};
    return numbers != NULL ? 0
                           : sl_fail_node(error, SL_ENOMEM, s->rank, s->shared.round,
                                          "sum: out of memory for %" PRIu64 " numbers", count);
}

static int add_numbers(sl_session *const *all, uint32_t count, sl_session_adder *adder,
                       void *context, sl_share *shares, sl_error *error) {
    const double *ask = all[0]->driver.ask;
    const uint64_t givers = (uint64_t)ask[ASK_SUM],
                   numbers = (uint64_t)(ask[ASK_COUNT] / ask[ASK_SUM]);
    int result = 0;
    memset(shares, 0, count * sizeof *shares);
    for (uint32_t i = 0; i < count && result == 0; i++) {
        all[i]->shared.asked.givers = givers;
        result = share_numbers(all[i], numbers, &shares[i], error);
    }
    if (result == 0)
        result = adder(context, shares, error);
    for (uint32_t i = 0; i < count; i++)
        if (all[i]->shared.asked.numbers == NULL)
            free(shares[i].numbers);
    return result;
}

/* All peers learn what all ask for, by a sum of a few numbers. */
static sl_share share_ask(sl_session *s) {
    const bool sums = s->driver.wish == WISH_SUM;
    const double count = sums ? (double)s->shared.asked.number_count : 0;
    double *ask = s->driver.ask;
    ask[ASK_AVERAGE] = s->driver.wish == WISH_AVERAGE;
    ask[ASK_SAVE] = s->driver.wish == WISH_SAVE;
    ask[ASK_SUM] = sums;
    ask[ASK_COUNT] = count;
    ask[ASK_SQUARE] = count * count;
    return (sl_share){.numbers = ask, .number_count = ASKS, .divisor = 1};
}

/* Do all ask for the same? The answer is the same on all peers. */
static int check_asked(const sl_session *s, sl_error *error) {
    const double *ask = s->driver.ask;
    if ((ask[ASK_AVERAGE] > 0) + (ask[ASK_SAVE] > 0) + (ask[ASK_SUM] > 0) > 1)
        return sl_fail_node(error, SL_EINVAL, s->rank, s->shared.round,
                            "%.0f of the peers have called average, %.0f sum, and %.0f save, at "
                            "the same place; all peers make the same calls in the same order",
                            ask[ASK_AVERAGE], ask[ASK_SUM], ask[ASK_SAVE]);
    if (ask[ASK_SQUARE] * ask[ASK_SUM] != ask[ASK_COUNT] * ask[ASK_COUNT])
        return sl_fail_node(error, SL_EINVAL, s->rank, s->shared.round,
                            "sum: the peers give different counts of numbers, %.1f on average, "
                            "this one %" PRIu64,
                            ask[ASK_COUNT] / ask[ASK_SUM],
                            s->driver.wish == WISH_SUM ? s->shared.asked.number_count : 0);
    return 0;
}

int sl_session_fulfil(sl_session *const *all, uint32_t count, sl_session_adder *adder,
                      void *context, sl_share *shares, sl_error *error) {
    for (uint32_t i = 0; i < count; i++)
        shares[i] = share_ask(all[i]);
    int result = adder(context, shares, error);
    if (result == 0)
        result = check_asked(all[0], error);
    if (result != 0 || sl_session_saves(all[0]))
        return result;
    return (all[0]->driver.ask[ASK_SUM] > 0 ? add_numbers : average)(all, count, adder, context,
                                                                     shares, error);
}

/* ---- the task ---- */

void sl_session_take(sl_session *s, uint64_t round, const float *x, double weight) {
    pthread_mutex_lock(&s->shared.mutex);
    s->shared.round = round;
    s->shared.push_sum_weight = weight;
    const sl_wish wish = s->driver.wish;
    const bool waits = sl_session_asks(wish) || wish == WISH_LEAVE || wish == WISH_GONE;
    if (waits)
        s->shared.model = x;
    const bool first = s->shared.model == NULL;
    pthread_mutex_unlock(&s->shared.mutex);
    if (first && !check_finite(s, x))
        return;
    if (!waits)
        sl_session_hand(s, x);
}

static sl_evaluation evaluate(void *context, const float *x) {
    (void)context;
    (void)x;
    return (sl_evaluation){NAN, NAN};
}

/* The vectors are where x is. */
static int attach(void *context, const sl_vec_ops *vec, sl_error *error) {
    (void)context;
    (void)vec;
    (void)error;
    return 0;
}

sl_task sl_session_task(const sl_session *s) {
    return (sl_task){.dimension = s->layout.dimension,
                     .rounds = SL_SESSION_ROUNDS,
                     .tensor_ends = s->layout.ends,
                     .tensor_count = s->layout.count,
                     .tensor_rows = s->layout.rows,
                     .layout_hash = sl_layout_hash(&s->layout),
                     .layout = s->layout.text,
                     .evaluate = evaluate,
                     .attach = attach};
}
