/* library.c - algorithms in a shared object; see starling/steps.h. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm/algorithms.h"
#include "starling/version.h"

static const char entry[] = "starling_algorithm_library";

/* What one opened: the handle stands before what users see, which is a copy. */
typedef struct opened {
    struct sl_algorithm_library library;
    void *handle;
} opened;

/* A program may have opened Starling itself for its own eyes only, as Python does: from now on a
 * shared object sees what it calls. */
static void show_own_functions(void) {
    Dl_info here;
    if (dladdr((const void *)entry, &here) != 0 && here.dli_fname != NULL)
        dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

static bool is_known(const char *path) {
    const sl_algorithm *a;
    const sl_key *k;
    for (size_t i = 0; (a = sl_algorithm_at(i)) != NULL; i++)
        for (size_t j = 0; (k = sl_algorithm_key(a, j)) != NULL; j++)
            if (strcmp(k->path, path) == 0)
                return true;
    return false;
}

static int check_form(const sl_algorithm *a, const char *path, sl_error *error) {
    if (a == NULL || a->name == NULL || a->name[0] == '\0' ||
        strlen(a->name) >= SL_ALGORITHM_NAME_MAX || a->stages == NULL || a->stage_count == 0)
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.library: %s: a form must have a name of 1 to %d bytes, and stages", path,
            SL_ALGORITHM_NAME_MAX - 1);
    for (const sl_key *k = a->keys; k != NULL && k->path != NULL; k++)
        if (!is_known(k->path))
            return sl_fail(error, SL_EINVAL,
                           "algorithm.library: %s: \"%s\" reads %s, which is no key of Starling's; "
                           "take one that there is (starling help keys)",
                           path, a->name, k->path);
    return 0;
}

static int check(const struct sl_algorithm_library *l, const char *path, sl_error *error) {
    if (l == NULL)
        return sl_fail(error, SL_EFILE,
                       "algorithm.library: %s: has no algorithms for Starling: it exports no %s, "
                       "which SL_ALGORITHM_LIBRARY defines",
                       path, entry);
    if (l->abi != SL_ALGORITHM_ABI || l->sizes != SL_ALGORITHM_SIZES)
        return sl_fail(
            error, SL_EINVAL,
            "algorithm.library: %s: was built for another Starling (interface %u; this is "
            "%s, interface %u); build it again with this one's headers",
            path, l->abi, sl_version(), SL_ALGORITHM_ABI);
    if (l->count == 0 || l->count > SL_LIBRARY_FORMS_MAX)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.library: %s: has %zu forms; 1 to %d are allowed", path, l->count,
                       SL_LIBRARY_FORMS_MAX);
    int result = 0;
    for (size_t i = 0; i < l->count && result == 0; i++)
        result = check_form(l->forms[i], path, error);
    return result;
}

int sl_algorithm_library_open(const struct sl_algorithm_library **out, const char *path,
                              sl_error *error) {
    opened *o = calloc(1, sizeof *o);
    if (o == NULL)
        return sl_fail(error, SL_ENOMEM, "algorithm.library: out of memory");
    show_own_functions();
    o->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int result = o->handle != NULL ? 0
                                   : sl_fail(error, SL_EFILE,
                                             "algorithm.library: cannot be loaded: %s", dlerror());
    const struct sl_algorithm_library *there = result == 0 ? dlsym(o->handle, entry) : NULL;
    if (result == 0)
        result = check(there, path, error);
    if (result != 0) {
        if (o->handle != NULL)
            dlclose(o->handle);
        free(o);
        return result;
    }
    o->library = *there;
    *out = &o->library;
    return 0;
}

void sl_algorithm_library_close(const struct sl_algorithm_library **library) {
    opened *o = (opened *)*library;
    *library = NULL;
    if (o == NULL)
        return;
    dlclose(o->handle);
    free(o);
}
