/* algorithm.c - the list of algorithms; see starling/algorithm.h. */
#include "algorithm/algorithms.h"

#include <stdio.h>
#include <string.h>

#include "starling/suggest.h"

static const sl_algorithm *const algorithms[] = {
#define LISTED(name) &name,
    SL_ALGORITHM_LIST(LISTED)
#undef LISTED
};
enum { ALGORITHM_COUNT = sizeof algorithms / sizeof *algorithms };

/* Of the rows of its name. */
static bool is_first(size_t row) {
    size_t i = 0;
    while (strcmp(algorithms[i]->name, algorithms[row]->name) != 0)
        i++;
    return i == row;
}

const char *sl_algorithm_name(size_t index) {
    for (size_t i = 0; i < ALGORITHM_COUNT; i++) {
        if (is_first(i) && index-- == 0)
            return algorithms[i]->name;
    }
    return NULL;
}

static const char *variant_name(sl_variant variant) {
    static const char *const names[] = {
#define VARIANT_NAME(variant, name) name,
        SL_VARIANTS(VARIANT_NAME)
#undef VARIANT_NAME
    };
    return names[variant];
}

const sl_algorithm *sl_algorithm_at(size_t index) {
    return index < ALGORITHM_COUNT ? algorithms[index] : NULL;
}

static int refuse_name(const char *name, sl_error *error) {
    const char *known[ALGORITHM_COUNT + 1];
    char all[32 * ALGORITHM_COUNT + 32] = "; it must be one of ", way_out[sizeof all];
    size_t count = 0, at = strlen(all);
    while ((known[count] = sl_algorithm_name(count)) != NULL) {
        at +=
            (size_t)snprintf(all + at, sizeof all - at, "%s%.29s", count ? ", " : "", known[count]);
        count++;
    }
    sl_suggest_text(way_out, sizeof way_out, name, known, count, all);
    return sl_fail(error, SL_EINVAL, "algorithm.name: \"%.60s\" is not known%s", name, way_out);
}

const sl_algorithm *sl_algorithm_find(const char *name, sl_variant variant, sl_error *error) {
    const sl_algorithm *first = NULL;
    char forms[128] = "";
    for (size_t i = 0; i < ALGORITHM_COUNT; i++) {
        if (strcmp(algorithms[i]->name, name) != 0)
            continue;
        if (variant == SL_VARIANT_DEFAULT || algorithms[i]->variant == variant)
            return algorithms[i];
        strcat(strcat(strcat(forms, first ? " or \"" : "\""), variant_name(algorithms[i]->variant)),
               "\"");
        first = algorithms[i];
    }
    if (first == NULL)
        refuse_name(name, error);
    else if (first->variant == SL_VARIANT_DEFAULT)
        sl_fail(
            error, SL_EINVAL,
            "algorithm.variant: \"%s\" is not a form of %s, which has only one; leave the key out",
            variant_name(variant), name);
    else
        sl_fail(error, SL_EINVAL, "algorithm.variant: \"%s\" is not a form of %s; it must be %s",
                variant_name(variant), name, forms);
    return NULL;
}

const sl_algorithm *sl_algorithm_of(const sl_algorithm_config *config, sl_error *error) {
    const sl_algorithm *first = sl_algorithm_find(config->name, config->variant, error);
    for (size_t i = 0; first != NULL && i < ALGORITHM_COUNT; i++) {
        const sl_algorithm *a = algorithms[i];
        if (strcmp(a->name, first->name) == 0 && a->variant == first->variant &&
            (a->when == NULL || a->when(config)))
            return a;
    }
    return first;
}

double sl_algorithm_lazy_below(const sl_algorithm_config *config, double momentum) {
    const sl_algorithm *a = sl_algorithm_of(config, NULL);
    return a != NULL && a->lazy_below != NULL ? a->lazy_below(config, momentum) : -INFINITY;
}

bool sl_algorithm_reduces(const sl_algorithm *a) {
    return a->route == SL_ROUTE_ALL_REDUCE || a->route == SL_ROUTE_BOTH;
}

bool sl_algorithm_voids(const sl_algorithm *a) {
    return a->route != SL_ROUTE_TOPOLOGY;
}

/* Averages that stand beside gossip are restated by their own stages. */
bool sl_algorithm_begins_anew(const sl_algorithm *a) {
    return sl_algorithm_voids(a) && a->route != SL_ROUTE_BOTH;
}

bool sl_algorithm_sums_sparse(const sl_algorithm *a) {
    bool any = false;
    for (size_t i = 0; i < a->stage_count; i++)
        any = any || a->stages[i].sparse;
    return any;
}

uint64_t sl_algorithm_interval(const sl_algorithm *a, const sl_algorithm_config *config) {
    const uint64_t rounds = a->is_periodic ? config->period : config->local_steps;
    return rounds > 1 ? rounds : 1;
}

bool sl_algorithm_exchanges(const sl_algorithm *a, const sl_algorithm_config *config,
                            uint64_t round) {
    return a->exchanges != NULL ? a->exchanges(config, round)
                                : round % sl_algorithm_interval(a, config) == 0;
}

size_t sl_algorithm_vectors(const sl_algorithm *a, const sl_algorithm_config *config) {
    return a->vectors != NULL ? a->vectors(config) : a->extra_vectors;
}

size_t sl_algorithm_numbers(const sl_algorithm *a, const sl_algorithm_config *config) {
    return a->own_numbers != NULL ? a->own_numbers(config) : 0;
}

sl_compressor_kind sl_algorithm_compressor(const sl_algorithm_config *config) {
    const sl_algorithm *a = sl_algorithm_of(config, NULL);
    return a != NULL && a->own_compressor != SL_COMPRESSOR_IDENTITY ? a->own_compressor
                                                                    : config->compressor.kind;
}

/* Of two exchanges late in a run, as some take turns. */
bool sl_algorithm_shortens(size_t *elements, const sl_algorithm_config *config,
                           const sl_shapes *shapes) {
    const sl_algorithm *a = sl_algorithm_of(config, NULL);
    bool found = false;
    *elements = 0;
    for (uint64_t late = UINT64_MAX - 1; late > 0; late = late == UINT64_MAX ? 0 : late + 1) {
        const sl_state state = {.config = config, .round = late, .exchange = late, .period = 1};
        for (size_t i = 0; a != NULL && i < a->stage_count; i++) {
            const sl_stage *stage = &a->stages[i];
            if (stage->length == NULL || stage->gather ||
                (stage->wanted != NULL && !stage->wanted(&state)))
                continue;
            *elements += stage->length(config, shapes);
            found = true;
        }
    }
    *elements /= 2;
    return found;
}
