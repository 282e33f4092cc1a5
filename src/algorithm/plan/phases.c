/* phases.c - see phases.h, and sl_plan_compressor. */
#include "algorithm/plan/phases.h"

#include <math.h>
#include <string.h>

#include "algorithm/algorithms.h"
#include "compress/sparsification/entries.h"

static const char *key_of(const sl_plan *plan) {
    return plan->phase_is_epoch ? "warmup" : "warmup_k";
}

static size_t entries_of(const sl_compressor_config *c, size_t dimension) {
    return c->kind == SL_COMPRESSOR_IDENTITY ? dimension : sl_entries_kept(c, dimension);
}

static sl_compressor_config phase(const sl_algorithm_config *config, uint32_t i) {
    sl_compressor_config c = config->compressor;
    c.kind = SL_COMPRESSOR_TOP_K;
    c.k = config->warmup_count > 0 ? 0 : config->warmup_k[i];
    if (config->warmup_count > 0)
        c.fraction = config->warmup[i];
    return c;
}

/* Into what it is used as. before: entries of the phase before. */
static int take_phase(const sl_plan *plan, sl_compressor_config *c, size_t dimension,
                      size_t *before, sl_error *error) {
    const size_t entries = entries_of(c, dimension);
    if (entries > dimension)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.warmup_k: %zu entries, but the model has %zu parameters; allowed "
                       "are 1..%zu",
                       entries, dimension, dimension);
    if (entries == dimension && *before < dimension)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.%s: rounds that send all %zu entries come after rounds that send "
                       "%zu; they can come first only, and algorithm.compressor is what comes last",
                       key_of(plan), dimension, *before);
    if (entries == dimension)
        c->kind = SL_COMPRESSOR_IDENTITY;
    *before = entries;
    return 0;
}

int sl_phases_plan(sl_plan *plan, size_t dimension, sl_error *error) {
    const sl_algorithm_config *c = &plan->config;
    if (c->warmup_count > 0 && c->warmup_k_count > 0)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.warmup, algorithm.warmup_k: both are given; leave one of them "
                       "out");
    size_t before = dimension;
    int result = 0;
    plan->phase_is_epoch = c->warmup_count > 0;
    plan->phase_count = (uint32_t)(c->warmup_count + c->warmup_k_count);
    for (uint32_t i = 0; i < plan->phase_count && result == 0; i++) {
        plan->phases[i] = phase(c, i);
        plan->phase_ends[i] = i + 1;
        result = take_phase(plan, &plan->phases[i], dimension, &before, error);
    }
    return result == 0 ? take_phase(plan, &plan->config.compressor, dimension, &before, error)
                       : result;
}

const sl_compressor_config *sl_plan_compressor(const sl_plan *plan, uint64_t epoch_rounds,
                                               uint64_t exchange) {
    const uint64_t length = plan->phase_is_epoch ? epoch_rounds : 1;
    const uint64_t at = exchange > 0 && length > 0 ? (exchange - 1) / length + 1 : 1;
    uint32_t i = 0;
    while (i < plan->phase_count && plan->phase_ends[i] < at)
        i++;
    return i < plan->phase_count ? &plan->phases[i] : &plan->config.compressor;
}

/* ---- schedules ---- */

/* What a schedule sets of it; NULL: nothing. */
static const sl_key *scheduled_key(sl_compressor_kind kind) {
    static const char *const names[] = {".fraction", ".levels", ".bits"};
    const sl_key *k;
    for (size_t i = 0; (k = sl_compressor_key(kind, i)) != NULL; i++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            if (strcmp(strrchr(k->path, '.'), names[n]) == 0)
                return k;
    return NULL;
}

static const double *row_of(const sl_algorithm_config *config, size_t row) {
    return config->compressor_schedule.values + row * config->compressor_schedule.columns;
}

static int check_user(const sl_algorithm *a, const sl_algorithm_config *c, sl_error *error) {
    const char *other =
        sl_reads(a, "warmup") && c->warmup_count + c->warmup_k_count > 0 ? "algorithm.warmup"
        : sl_algorithm_has_budget(c)                                     ? "algorithm.budget"
        : c->compressor.fraction_min > 0 && sl_compressor_reads(c->compressor.kind, "fraction_min")
            ? "algorithm.compressor.fraction_min"
            : NULL;
    if (other != NULL)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.schedule: is given, and %s sizes messages, too; leave "
                       "one of them out",
                       other);
    if (a->async != NULL)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.schedule: goes by exchanges that all have, and the "
                       "nodes of this form of '%s' are at their own; leave it out",
                       a->name);
    return scheduled_key(c->compressor.kind) != NULL
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "algorithm.compressor.schedule: compressor %s has no fraction, levels or "
                         "bits that it could set; take top-k, random-k, qsgd or eden, or leave the "
                         "schedule out",
                         sl_compressor_name(c->compressor.kind));
}

static int check_row(const sl_algorithm_config *c, size_t row, double before, sl_error *error) {
    const sl_key *k = scheduled_key(c->compressor.kind);
    const double from = row_of(c, row)[0], value = row_of(c, row)[1];
    const bool whole = k->type != SL_KEY_REAL;
    if (from <= before || from != floor(from))
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.schedule[%zu]: exchange %g; exchanges are whole "
                       "numbers that rise, from 2 on",
                       row, from);
    if (value < k->min || value > k->max || (whole && value != floor(value)))
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.schedule[%zu]: %g is not allowed for %s; it must be "
                       "%s from %.10g to %.10g",
                       row, value, k->path, whole ? "an integer" : "a number", k->min, k->max);
    return 0;
}

int sl_schedule_check(const sl_algorithm *a, const sl_algorithm_config *c, sl_error *error) {
    const sl_number_rows *s = &c->compressor_schedule;
    if (s->rows == 0)
        return 0;
    int result = check_user(a, c, error);
    if (result == 0 && (s->columns != 2 || s->rows > SL_PHASES_MAX))
        result = sl_fail(error, SL_EINVAL,
                         "algorithm.compressor.schedule: %zu rows of %zu numbers; allowed are up "
                         "to %d rows [exchange, value]",
                         s->rows, s->columns, SL_PHASES_MAX);
    for (size_t i = 0; i < s->rows && result == 0; i++)
        result = check_row(c, i, i > 0 ? row_of(c, i - 1)[0] : 1, error);
    return result;
}

sl_compressor_config sl_schedule_compressor(const sl_algorithm_config *config, size_t row) {
    sl_compressor_config c = config->compressor;
    const sl_key *k = scheduled_key(c.kind);
    if (row == 0 || k == NULL) /* one that has nothing to set stays as it is */
        return c;
    const double value = row_of(config, row - 1)[1];
    void *field = (char *)&c + k->offset;
    if (k->type == SL_KEY_REAL) {
        c.k = 0;
        *(double *)field = value;
    } else {
        *(uint32_t *)field = (uint32_t)value;
    }
    return c;
}
