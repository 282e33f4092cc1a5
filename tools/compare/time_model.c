/* time_model.c - see time_model.h. */
#include "compare/time_model.h"

#include <math.h>
#include <string.h>

/* Beyond, telling all messages of a ring takes seconds. */
enum { NODES_MAX = 512 };

/* Beside or after a gradient of tau. */
static int round_seconds_of(double *out, const exchange_case *c, const sl_algorithm_config *config,
                            const sl_shapes *shapes, uint64_t round, double tau,
                            const sl_sending *early, sl_error *error) {
    sl_timeline *t = NULL;
    const bool apart = early != NULL && early->buckets.count > 0;
    int result = sl_timeline_open(&t, sl_topology_nodes(c->topology), error);
    if (result == 0)
        result = sl_timeline_exchange(t, config, c->topology, shapes, c->chunk_bytes, round,
                                      early == NULL ? NULL
                                      : apart       ? &early->buckets
                                                    : &early->leaves,
                                      apart, error);
    const sl_platform platform = {.bandwidth_mbit = c->link.bandwidth_mbit,
                                  .latency_ms = c->link.latency_ms,
                                  .compute_ms = 1e3 * tau,
                                  .links = c->links};
    if (result == 0)
        result = sl_timeline_seconds(out, t, &platform, 0, error);
    sl_timeline_close(&t);
    return result;
}

static int exchange_seconds(double *out, const exchange_case *c, const sl_algorithm_config *config,
                            const sl_shapes *shapes, uint64_t round, sl_error *error) {
    return round_seconds_of(out, c, config, shapes, round, 0, NULL, error);
}

/* ---- the models ---- */

static const struct {
    const char *name, *formula;
} models[] = {
    [MODEL_NONE] = {"-", "-"},
    [MODEL_S_SGD] = {"S-SGD", "tau + phi"},
    [MODEL_LOCAL_UPDATE] = {"local update", "max(tau, phi)"},
    [MODEL_BIT_SGD] = {"BIT-SGD", "tau + delta + psi"},
    [MODEL_CD_SGD] = {"CD-SGD", "((k - 1) max(tau, delta + psi) + max(tau, phi)) / k"},
};

const char *time_model_name(time_model_kind kind) {
    return models[kind].name;
}

const char *time_model_formula(time_model_kind kind) {
    return models[kind].formula;
}

static bool is_cd_sgd(const sl_algorithm_config *c) {
    return strcmp(c->name, "cd-sgd") == 0;
}

/* Over servers or by an all-reduce, and in each round. */
static bool averages_everything(const sl_algorithm *a, const sl_algorithm_config *c) {
    for (size_t i = 0; i < a->stage_count; i++)
        if (a->stages[i].speaks != NULL)
            return false;
    return !sl_algorithm_sums_sparse(a) &&
           (a->route == SL_ROUTE_ALL_REDUCE || a->route == SL_ROUTE_SERVER ||
            a->route == SL_ROUTE_ALL) &&
           (a->averages_gradient || a->publishes_old_model) && !(a->is_periodic && c->period > 1);
}

time_model_kind time_model_of(const exchange_case *c) {
    const sl_algorithm *a = sl_algorithm_of(c->config, NULL);
    if (a == NULL || !averages_everything(a, c->config) ||
        sl_topology_nodes(c->topology) > NODES_MAX)
        return MODEL_NONE;
    if (is_cd_sgd(c->config))
        return c->config->correction_period > 1 ? MODEL_CD_SGD : MODEL_LOCAL_UPDATE;
    if (a->publishes_old_model)
        return MODEL_LOCAL_UPDATE;
    return sl_algorithm_compressor(c->config) == SL_COMPRESSOR_IDENTITY ? MODEL_S_SGD
                                                                        : MODEL_BIT_SGD;
}

/* A round whose exchange is plain, after a warm-up. CD-SGD's gradients are sent in the round
 * after. */
static uint64_t plain_round(const exchange_case *c) {
    size_t elements;
    if (is_cd_sgd(c->config))
        return c->config->warmup_rounds + 2;
    return sl_algorithm_shortens(&elements, c->config, &c->shapes) ? c->config->warmup_rounds + 1
                                                                   : 1;
}

int time_model_open(time_model *out, const exchange_case *c, sl_error *error) {
    *out = (time_model){time_model_of(c), c->config->correction_period, NAN, NAN};
    const bool is_plain = out->kind != MODEL_NONE && out->kind != MODEL_BIT_SGD,
               is_compressed = out->kind == MODEL_BIT_SGD || out->kind == MODEL_CD_SGD;
    const uint64_t round = plain_round(c);
    int result = is_plain ? exchange_seconds(&out->phi, c, c->config, &c->shapes, round, error) : 0;
    if (result == 0 && is_compressed)
        result = exchange_seconds(&out->psi, c, c->config, &c->shapes, round + is_plain, error);
    return result;
}

double time_model_seconds(const time_model *m, double tau, double delta) {
    const double k = (double)m->period;
    switch (m->kind) {
    case MODEL_NONE:
        break;
    case MODEL_S_SGD:
        return tau + m->phi;
    case MODEL_LOCAL_UPDATE:
        return fmax(tau, m->phi);
    case MODEL_BIT_SGD:
        return tau + delta + m->psi;
    case MODEL_CD_SGD:
        return ((k - 1) * fmax(tau, delta + m->psi) + fmax(tau, m->phi)) / k;
    }
    return NAN;
}

int time_model_early(double *out, const exchange_case *c, double tau, sl_error *error) {
    return round_seconds_of(out, c, c->config, &c->shapes, plain_round(c), tau, c->early, error);
}

/* ---- forms of all-reduce ---- */

bool all_reduce_is_used(const exchange_case *c) {
    const sl_algorithm *a = sl_algorithm_of(c->config, NULL);
    const uint32_t nodes = sl_topology_nodes(c->topology);
    return a != NULL && sl_algorithm_reduces(a) && !sl_algorithm_sums_sparse(a) && nodes > 1 &&
           nodes <= NODES_MAX;
}

const char *all_reduce_name(size_t form) {
    static const char *const names[] = {
#define FORM_NAME(form, name) name,
        SL_ALL_REDUCES(FORM_NAME)
#undef FORM_NAME
    };
    return names[form];
}

int all_reduce_times(double *seconds, size_t *fastest, const exchange_case *c, sl_error *error) {
    sl_algorithm_config plain = {.name = "all-reduce", .period = 1, .group = c->config->group};
    sl_shapes added = {.dimension = c->shapes.dimension};
    size_t elements;
    if (sl_algorithm_shortens(&elements, c->config, &c->shapes))
        added.dimension = elements;
    int result = 0;
    *fastest = 0;
    for (size_t form = 0; form < SL_ALL_REDUCE_FORMS && result == 0; form++) {
        plain.all_reduce = (sl_all_reduce_form)form;
        result = exchange_seconds(&seconds[form], c, &plain, &added, 1, error);
        if (seconds[form] < seconds[*fastest] * (1 - 1e-9))
            *fastest = form;
    }
    return result;
}
