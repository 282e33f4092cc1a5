/* algorithms.h - the list of algorithms, one declaration for each form; and the steps that several
 * papers share. */
#ifndef SL_ALGORITHMS_H
#define SL_ALGORITHMS_H

#include <math.h>

#include "algorithm_list.h" /* SL_ALGORITHM_LIST, from the list in meson.build */
#include "starling/steps.h"

#define SL_ALGORITHM_DECLARE(name) extern const sl_algorithm name;
SL_ALGORITHM_LIST(SL_ALGORITHM_DECLARE)
#undef SL_ALGORITHM_DECLARE

/* Form number `index` of a shared object, or of Starling's own (NULL); NULL: past the end. */
const sl_algorithm *sl_algorithm_form(const struct sl_algorithm_library *library, size_t index);

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

static inline void sl_default_count(uint64_t *parameter, uint64_t usual) {
    if (*parameter == SL_COUNT_AUTO)
        *parameter = usual;
}

static inline void sl_default_period(sl_algorithm_config *c, uint64_t usual) {
    if (c->period == 0)
        c->period = usual;
}

/* The contraction of typical vectors. */
double sl_usual_delta(const sl_quality *quality);
/* The largest consensus step that is stable with such a compressor where mixing moves this share of
 * a model, by half. */
double sl_stable_consensus_step(const sl_quality *quality, double mixed);

/* Adam's step of an algorithm that has its own moments, the `count`-th; INFINITY: no bias is
 * removed. */
sl_adam sl_adam_of(const sl_state *s, double count);

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
/* Of d-psgd's other forms. */
int sl_check_not_stale(const sl_algorithm_config *config, const sl_topology *topology,
                       sl_error *error);
bool sl_averages_buffers(const sl_state *s);
void sl_reset_buffers(sl_state *s, size_t from, size_t count);

/* A sum becomes the mean where it is, before everybody gets it. */
void sl_divide_by_nodes(const sl_state *s, float *v, size_t count);

#endif
