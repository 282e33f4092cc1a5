/* algorithm.c - the list of algorithms; see starling/algorithm.h. */
#include "algorithm/algorithms.h"

#include <string.h>

#include "starling/suggest.h"

static const sl_algorithm *const algorithms[] = {
#define LISTED(name) &name,
    SL_ALGORITHM_LIST(LISTED)
#undef LISTED
};
enum { ALGORITHM_COUNT = sizeof algorithms / sizeof *algorithms };

const char *sl_algorithm_name(size_t index) {
    for (size_t i = 0; i < ALGORITHM_COUNT; i++) {
        bool again = i > 0 && strcmp(algorithms[i]->name, algorithms[i - 1]->name) == 0;
        if (!again && index-- == 0)
            return algorithms[i]->name;
    }
    return NULL;
}

static const char *variant_name(sl_variant variant) {
    static const char *const names[] = {"default", "adapt-then-combine", "combine-while-adapt",
                                        "compress-then-mix", "mix-then-compress"};
    return names[variant];
}

static int refuse_name(const char *name, sl_error *error) {
    const char *known[ALGORITHM_COUNT + 1];
    char list[512] = "";
    size_t count = 0;
    while ((known[count] = sl_algorithm_name(count)) != NULL) {
        strcat(strcat(list, count ? ", " : ""), known[count]);
        count++;
    }
    const char *near = sl_suggest(name, known, count);
    return sl_fail(error, SL_EINVAL,
                   "algorithm.name: \"%.60s\" is not known; it must be one of %s%s%s%s", name, list,
                   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
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
