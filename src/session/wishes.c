/* wishes.c - what the driver does with a wish: displacements, means; see state.h.
 *
 * A round takes the displacement as gradient, g := x_before - x at rate 1. Where rounds went by
 * while the caller waited for an average, x_before is the model that it knew then.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/state.h"
#include "vec/finite.h"

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
    if (s->wish == WISH_AVERAGE)
        keep_base(s);
    stand_still(s, g);
}

/* ---- the average ---- */

/* The sum of w_i z_i, where w_i add up to n: the mean of what push-sum keeps. */
static sl_share share_model(sl_session *s) {
    const size_t d = s->layout.dimension;
    sl_vec_cpu()->combine(s->average, (const float *const[]){sl_session_view(s, s->model)},
                          (const float[]){(float)s->push_sum_weight}, 1, d);
    return (sl_share){.x = s->average, .count = d, .divisor = s->member_count};
}

static sl_share share_distance(sl_session *s) {
    s->distance = sl_vec_cpu()->distance_squared(sl_session_view(s, s->model), s->average,
                                                 s->layout.dimension);
    return (sl_share){.numbers = &s->distance, .number_count = 1, .divisor = 1};
}

static sl_share share_beside(sl_session *s) {
    float *out = s->average + s->layout.dimension;
    s->givers = s->beside != NULL;
    if (s->beside != NULL)
        memcpy(out, s->beside, s->options.beside * sizeof *out);
    else
        memset(out, 0, s->options.beside * sizeof *out);
    return (sl_share){.x = out,
                      .count = s->options.beside,
                      .numbers = &s->givers,
                      .number_count = 1,
                      .divisor = 1};
}

void sl_session_keep_own(sl_session *s) {
    memcpy(s->average, sl_session_view(s, s->model), s->layout.dimension * sizeof *s->average);
    share_beside(s);
    s->distance = NAN;
}

static void divide_beside(sl_session *s) {
    float *out = s->average + s->layout.dimension;
    for (uint64_t i = 0; i < s->options.beside && s->givers > 1; i++)
        out[i] = (float)(out[i] / s->givers);
}

int sl_session_sum(sl_session *const *all, uint32_t count, sl_session_adder *adder, void *context,
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
    if (result != 0 || all[0]->options.beside == 0)
        return result;
    for (uint32_t i = 0; i < count; i++)
        shares[i] = share_beside(all[i]);
    result = adder(context, shares, error);
    for (uint32_t i = 0; i < count && result == 0; i++)
        divide_beside(all[i]);
    return result;
}

/* ---- the task ---- */

void sl_session_take(sl_session *s, uint64_t round, const float *x, double weight) {
    pthread_mutex_lock(&s->mutex);
    s->round = round;
    s->push_sum_weight = weight;
    const bool waits = s->wish == WISH_AVERAGE || s->wish == WISH_LEAVE || s->wish == WISH_GONE;
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
