/* algorithms.h - the list of algorithms, one declaration for each form; and the steps that several
 * papers share. */
#ifndef SL_ALGORITHMS_H
#define SL_ALGORITHMS_H

#include <math.h>

#include "algorithm_list.h" /* SL_ALGORITHM_LIST, from the list in meson.build */
#include "starling/algorithm.h"

#define SL_ALGORITHM_DECLARE(name) extern const sl_algorithm name;
SL_ALGORITHM_LIST(SL_ALGORITHM_DECLARE)
#undef SL_ALGORITHM_DECLARE

/* Does the form read algorithm.KEY? */
static inline bool sl_reads(const sl_algorithm *a, const char *key) {
    return sl_algorithm_reads(a, SL_COMPRESSOR_IDENTITY, key);
}

/* A later view begins with this exchange: what all must have alike, a loss may have changed for
 * some only. */
static inline bool sl_begins_view(const sl_state *s) {
    return s->first_exchange > 1 && s->exchange == s->first_exchange;
}

/* The algorithm's own exchanges since it began, or began anew. */
static inline uint64_t sl_turn_of_view(const sl_state *s) {
    return s->exchange < s->first_exchange
               ? 0
               : s->exchange - s->first_exchange + (s->first_exchange == 1);
}

/* v -= gamma mom(g), weight decay at `decay`. A learning rate of 0 is pure averaging: the gradient
 * is not even read. */
static inline void sl_descend(sl_state *s, float *v, const float *decay, size_t from,
                              size_t count) {
    if (s->sgd.learning_rate != 0)
        s->vec->sgd_step(v, decay, s->g + from, s->m ? s->m + from : NULL, &s->sgd, count);
}

/* to <- from */
static inline void sl_copy(const sl_state *s, float *to, const float *from, size_t count) {
    s->vec->combine(to, &from, (const float[]){1}, 1, count);
}

static inline void sl_swap(float **a, float **b) {
    float *kept = *a;
    *a = *b;
    *b = kept;
}

/* out <- a - b */
static inline void sl_subtract(const sl_state *s, float *out, const float *a, const float *b,
                               size_t count) {
    s->vec->combine(out, (const float *const[]){a, b}, (const float[]){1, -1}, 2, count);
}

/* g += weight_decay * at: the gradient of the regularized objective, for algorithms that treat g
 * itself. */
static inline void sl_regularize(sl_state *s, const float *at, size_t from, size_t count) {
    if (s->sgd.weight_decay != 0)
        s->vec->combine(s->g + from, (const float *const[]){s->g + from, at + from},
                        (const float[]){1, s->sgd.weight_decay}, 2, count);
}

/* A parameter that is not given. */
static inline void sl_default(double *parameter, double usual) {
    if (isnan(*parameter))
        *parameter = usual;
}

static inline void sl_default_count(uint64_t *parameter, uint64_t usual) {
    if (*parameter == SL_COUNT_AUTO)
        *parameter = usual;
}

static inline void sl_default_period(sl_algorithm_config *c, uint64_t usual) {
    if (c->period == 0)
        c->period = usual;
}

/* sl_algorithm.lazy_below of those that send a model with its step in it, and of those that send
 * the old one. */
double sl_lazy_adapting(const sl_algorithm_config *config, double momentum);
double sl_lazy_while_adapting(const sl_algorithm_config *config, double momentum);

/* Adam's step of an algorithm that has its own moments, the `count`-th; INFINITY: no bias is
 * removed. */
sl_adam sl_adam_of(const sl_state *s, double count);

/* x -= gamma mom(g), in place. */
void sl_local_step(sl_state *s, size_t from, size_t count);

/* Vectors that are averaged as they are: x, g, m. The vector is published; it gets what came added;
 * a sum becomes the mean; the vector becomes what came. */
#define SL_AVERAGED_VECTORS(X) X(model, x) X(gradient, g) X(momentum, m)
#define SL_AVERAGED_DECLARE(name, member)                                                          \
    const float *sl_publish_##name(const sl_state *s);                                             \
    void sl_add_##name(sl_state *s, const sl_mix *mix, size_t from, size_t count);                 \
    void sl_average_##name(sl_state *s, size_t from, size_t count);                                \
    void sl_copy_##name(sl_state *s, const sl_mix *mix, size_t from, size_t count);
SL_AVERAGED_VECTORS(SL_AVERAGED_DECLARE)
#undef SL_AVERAGED_DECLARE

/* The two stages that average one of them, in exchanges that are `when`, after `first`. */
#define SL_AVERAGE_STAGES(name, when, first, anew)                                                 \
    {.plain = true,                                                                                \
     .restates = anew,                                                                             \
     .reduces = true,                                                                              \
     .wanted = when,                                                                               \
     .prepare = first,                                                                             \
     .vector = sl_publish_##name,                                                                  \
     .combine = sl_add_##name},                                                                    \
    {                                                                                              \
        .plain = true, .restates = anew, .reduces = true, .gather = true, .wanted = when,          \
        .prepare = sl_average_##name, .vector = sl_publish_##name, .combine = sl_copy_##name       \
    }

/* Of local SGD: models, and momentum if algorithm.buffers says so, and then what it says else. */
enum { SL_LOCAL_STAGES = 4, SL_LOCAL_MODEL_STAGES = 2 };
extern const sl_stage sl_local_stages[SL_LOCAL_STAGES];
void sl_local_defaults(sl_algorithm_config *config);
/* A period that changes counts from round 1. */
int sl_check_no_switch(const sl_algorithm_config *config, const sl_topology *topology,
                       sl_error *error);
bool sl_averages_buffers(const sl_state *s);
void sl_reset_buffers(sl_state *s, size_t from, size_t count);

/* A sum becomes the mean where it is, before everybody gets it. */
void sl_divide_by_nodes(const sl_state *s, float *v, size_t count);

#endif
