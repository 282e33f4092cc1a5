/* phases.c - see phases.h, and sl_plan_compressor. */
#include "algorithm/plan/phases.h"

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
        result = take_phase(plan, &plan->phases[i], dimension, &before, error);
    }
    return result == 0 ? take_phase(plan, &plan->config.compressor, dimension, &before, error)
                       : result;
}

const sl_compressor_config *sl_plan_compressor(const sl_plan *plan, uint64_t epoch_rounds,
                                               uint64_t exchange) {
    const uint64_t length = plan->phase_is_epoch ? epoch_rounds : 1;
    const uint64_t i = exchange > 0 && length > 0 ? (exchange - 1) / length : 0;
    return i < plan->phase_count ? &plan->phases[i] : &plan->config.compressor;
}
