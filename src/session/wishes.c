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
#include "vec/finite.h"

/* Of `ask`: how many ask for an average, for a sum; of how many numbers, added up, and squared. */
enum { ASK_AVERAGE, ASK_SUM, ASK_COUNT, ASK_SQUARE, ASKS };

/* ---- the round ---- */

static size_t first_not_finite(const float *x, size_t count) {
    size_t i = 0;
    while (i < count && isfinite(x[i]))
        i++;
    return i;
}

static bool is_finite(const sl_session *s, const float *x) {
    const size_t d = s->layout.dimension;
    return s->vec->on_host ? sl_vec_is_finite(x, d) : isfinite(s->vec->norm2_squared(x, d));
}

/* False: the session fails. */
static bool check_finite(sl_session *s, const float *x) {
    const size_t d = s->layout.dimension;
    sl_error error = {.code = 0};
    if (is_finite(s, x))
        return true;
    if (s->vec->fence(&error) != 0) {
        sl_session_fail(s, &error);
        return false;
    }
    char where[SL_SESSION_TEXT_MAX];
    const float *seen = sl_session_view(s, x);
    size_t at = first_not_finite(seen, d);
    sl_layout_name_element(&s->layout, at, where, sizeof where);
    sl_fail_node(&error, SL_EDIVERGED, s->rank, s->round, "x is %g at %s",
                 at < d ? (double)seen[at] : NAN, where);
    sl_session_fail(s, &error);
    return false;
}

static void stand_still(sl_session *s, float *g) {
    s->vec->fill(g, 0, s->layout.dimension);
}

static void displace(sl_session *s, const float *x, float *g) {
    const float *before = s->behind ? s->base : x;
    if (!check_finite(s, s->given)) {
        stand_still(s, g);
    } else if (s->lends && !s->behind) {
        s->lent = s->given;
    } else {
        s->vec->combine(g, (const float *const[]){before, s->given}, (const float[]){1, -1}, 2,
                        s->layout.dimension);
        s->behind = false;
    }
}

/* The caller goes on from the model that it knows, while rounds change the node's. */
static void keep_base(sl_session *s) {
    if (s->behind)
        return;
    if (s->base == NULL)
        s->base = s->vec->allocate(s->layout.dimension);
    s->behind = s->base != NULL;
    if (s->behind) {
        s->vec->copy(s->base, s->model, sl_session_bytes(s));
        return;
    }
    sl_error error;
    sl_fail_node(&error, SL_ENOMEM, s->rank, s->round, "out of memory for %zu parameters",
                 s->layout.dimension);
    sl_session_fail(s, &error);
}

void sl_session_answer(sl_session *s, const float *x, float *g) {
    s->lent = NULL;
    if (s->wish == WISH_ROUND) {
        displace(s, x, g);
        return;
    }
    if (sl_session_asks(s->wish))
        keep_base(s);
    stand_still(s, g);
}

/* ---- what all peers come for ---- */

bool sl_session_asks(sl_wish wish) {
    return wish == WISH_AVERAGE || wish == WISH_SUM;
}

/* The caller's model now, on the host, into `average`: what it gave, moved along with the rounds
 * that have gone by since. Who leaves has the model of its last round. */
static void lay_model(sl_session *s) {
    const size_t d = s->layout.dimension;
    const sl_vec_ops *cpu = sl_vec_cpu();
    cpu->copy(s->average, sl_session_view(s, s->given != NULL ? s->given : s->model),
              d * sizeof *s->average);
    if (s->given == NULL || !s->behind)
        return;
    cpu->combine(s->average, (const float *const[]){s->average, sl_session_view(s, s->base)},
                 (const float[]){1, -1}, 2, d);
    cpu->combine(s->average, (const float *const[]){s->average, sl_session_view(s, s->model)},
                 (const float[]){1, 1}, 2, d);
}

/* The sum of w_i z_i + step_i, where w_i add up to n: the mean of what push-sum keeps. */
static sl_share share_model(sl_session *s) {
    lay_model(s);
    const float weight = (float)s->push_sum_weight;
    if (s->push_sum_weight != 1)
        sl_vec_cpu()->combine(s->average,
                              (const float *const[]){s->average, sl_session_view(s, s->model)},
                              (const float[]){1, weight - 1}, 2, s->layout.dimension);
    return (sl_share){.x = s->average, .count = s->layout.dimension, .divisor = s->member_count};
}

/* From what the caller gave, which rounds that have gone by since do not move. */
static sl_share share_distance(sl_session *s) {
    const float *own = sl_session_view(s, s->given != NULL ? s->given : s->model);
    s->distance = sl_vec_cpu()->distance_squared(own, s->average, s->layout.dimension);
    return (sl_share){.numbers = &s->distance, .number_count = 1, .divisor = 1};
}

void sl_session_keep_own(sl_session *s) {
    if (s->wish == WISH_AVERAGE)
        lay_model(s);
    s->distance = NAN;
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
    for (uint32_t i = 0; i < count && result == 0; i++)
        all[i]->distance = sqrt(all[i]->distance / all[i]->member_count);
    return result;
}

/* Who gives nothing adds zeros. */
static int share_numbers(sl_session *s, uint64_t count, sl_share *out, sl_error *error) {
    double *numbers = s->numbers != NULL ? s->numbers : calloc(count, sizeof *numbers);
    *out = (sl_share){.numbers = numbers, .number_count = count, .divisor = 1};
    return numbers != NULL ? 0
                           : sl_fail_node(error, SL_ENOMEM, s->rank, s->round,
                                          "sum: out of memory for %" PRIu64 " numbers", count);
}

static int add_numbers(sl_session *const *all, uint32_t count, sl_session_adder *adder,
                       void *context, sl_share *shares, sl_error *error) {
    const uint64_t givers = (uint64_t)all[0]->ask[ASK_SUM],
                   numbers = (uint64_t)(all[0]->ask[ASK_COUNT] / all[0]->ask[ASK_SUM]);
    int result = 0;
    memset(shares, 0, count * sizeof *shares);
    for (uint32_t i = 0; i < count && result == 0; i++) {
        all[i]->givers = givers;
        result = share_numbers(all[i], numbers, &shares[i], error);
    }
    if (result == 0)
        result = adder(context, shares, error);
    for (uint32_t i = 0; i < count; i++)
        if (all[i]->numbers == NULL)
            free(shares[i].numbers);
    return result;
}

/* All peers learn what all ask for, by a sum of four numbers. */
static sl_share share_ask(sl_session *s) {
    const bool sums = s->wish == WISH_SUM;
    const double count = sums ? (double)s->number_count : 0;
    s->ask[ASK_AVERAGE] = s->wish == WISH_AVERAGE;
    s->ask[ASK_SUM] = sums;
    s->ask[ASK_COUNT] = count;
    s->ask[ASK_SQUARE] = count * count;
    return (sl_share){.numbers = s->ask, .number_count = ASKS, .divisor = 1};
}

/* Do all ask for the same? The answer is the same on all peers. */
static int check_asked(const sl_session *s, sl_error *error) {
    const double *ask = s->ask;
    if (ask[ASK_AVERAGE] > 0 && ask[ASK_SUM] > 0)
        return sl_fail_node(error, SL_EINVAL, s->rank, s->round,
                            "%.0f of the peers have called average, and %.0f sum, at the same "
                            "place; all peers make the same calls in the same order",
                            ask[ASK_AVERAGE], ask[ASK_SUM]);
    if (ask[ASK_SQUARE] * ask[ASK_SUM] != ask[ASK_COUNT] * ask[ASK_COUNT])
        return sl_fail_node(error, SL_EINVAL, s->rank, s->round,
                            "sum: the peers give different counts of numbers, %.1f on average, "
                            "this one %" PRIu64,
                            ask[ASK_COUNT] / ask[ASK_SUM],
                            s->wish == WISH_SUM ? s->number_count : 0);
    return 0;
}

int sl_session_fulfil(sl_session *const *all, uint32_t count, sl_session_adder *adder,
                      void *context, sl_share *shares, sl_error *error) {
    for (uint32_t i = 0; i < count; i++)
        shares[i] = share_ask(all[i]);
    int result = adder(context, shares, error);
    if (result == 0)
        result = check_asked(all[0], error);
    if (result != 0)
        return result;
    return (all[0]->ask[ASK_SUM] > 0 ? add_numbers : average)(all, count, adder, context, shares,
                                                              error);
}

/* ---- the task ---- */

void sl_session_take(sl_session *s, uint64_t round, const float *x, double weight) {
    pthread_mutex_lock(&s->mutex);
    s->round = round;
    s->push_sum_weight = weight;
    const bool waits = sl_session_asks(s->wish) || s->wish == WISH_LEAVE || s->wish == WISH_GONE;
    if (waits)
        s->model = x;
    const bool first = s->model == NULL;
    pthread_mutex_unlock(&s->mutex);
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
