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

const sl_algorithm *sl_algorithm_form(const struct sl_algorithm_library *library, size_t index) {
    if (library == NULL)
        return sl_algorithm_at(index);
    return index < library->count ? library->forms[index] : NULL;
}

/* Names of the library, each once. known has room for all forms and a NULL. */
static size_t list_names(const char **known, const struct sl_algorithm_library *library) {
    const sl_algorithm *a;
    size_t count = 0;
    for (size_t i = 0; (a = sl_algorithm_form(library, i)) != NULL; i++)
        if (count == 0 || strcmp(known[count - 1], a->name) != 0)
            known[count++] = a->name;
    known[count] = NULL;
    return count;
}

static int refuse_name(const struct sl_algorithm_library *library, const char *name,
                       sl_error *error) {
    enum { NAMES_MAX = ALGORITHM_COUNT + SL_LIBRARY_FORMS_MAX };
    const char *known[NAMES_MAX + 1];
    char all[32 * NAMES_MAX + 32] = "; it must be one of ", way_out[sizeof all];
    size_t at = strlen(all);
    const size_t count = list_names(known, library);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%.29s", i ? ", " : "", known[i]);
    sl_suggest_text(way_out, sizeof way_out, name, known, count, all);
    return sl_fail(error, SL_EINVAL, "algorithm.name: \"%.60s\" is not %s%s", name,
                   library != NULL ? "in algorithm.library" : "known", way_out);
}

static const sl_algorithm *find(const struct sl_algorithm_library *library, const char *name,
                                sl_variant variant, sl_error *error) {
    const sl_algorithm *first = NULL, *a;
    char forms[128] = "";
    for (size_t i = 0; (a = sl_algorithm_form(library, i)) != NULL; i++) {
        if (strcmp(a->name, name) != 0)
            continue;
        if (variant == SL_VARIANT_DEFAULT || a->variant == variant)
            return a;
        const size_t used = strlen(forms);
        snprintf(forms + used, sizeof forms - used, "%s\"%s\"", first ? " or " : "",
                 variant_name(a->variant));
        first = a;
    }
    if (first == NULL)
        refuse_name(library, name, error);
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

const sl_algorithm *sl_algorithm_find(const char *name, sl_variant variant, sl_error *error) {
    return find(NULL, name, variant, error);
}

const sl_algorithm *sl_algorithm_of(const sl_algorithm_config *config, sl_error *error) {
    const sl_algorithm *first = find(config->library, config->name, config->variant, error), *a;
    for (size_t i = 0; first != NULL && (a = sl_algorithm_form(config->library, i)) != NULL; i++)
        if (strcmp(a->name, first->name) == 0 && a->variant == first->variant &&
            (a->when == NULL || a->when(config)))
            return a;
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
