/* sweep.c - see sweep.h. */
#include "compare/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/variants.h"

enum { VARIANTS_MAX = 10000, KEYS_MAX = 12 };

/* Keys and their lists, of one variant. */
typedef struct axes {
    const char *keys[KEYS_MAX];
    json_t *lists[KEYS_MAX];
    size_t count;
} axes;

/* Is it said twice? */
static bool has_twins(json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t k = 0; k < i; k++)
            if (json_equal(json_array_get(list, i), json_array_get(list, k)))
                return true;
    return false;
}

static int add_axis(axes *a, const char *key, json_t *list, const char *where, sl_error *error) {
    if (!json_is_array(list) || json_array_size(list) == 0 || has_twins(list))
        return sl_fail(error, SL_EINVAL,
                       "%s: sweep: \"%.80s\": must be a list of different values such as [0.1, "
                       "0.3]",
                       where, key);
    size_t i = 0;
    while (i < a->count && strcmp(a->keys[i], key) != 0)
        i++;
    if (i == KEYS_MAX)
        return sl_fail(error, SL_EINVAL, "%s: sweep: has more than %d keys", where, KEYS_MAX);
    a->keys[i] = key;
    a->lists[i] = list;
    a->count += i == a->count;
    return 0;
}

static int add_axes(axes *a, json_t *sweep, bool is_own, const char *where, sl_error *error) {
    const char *key;
    json_t *list;
    if (sweep != NULL && (!json_is_object(sweep) || json_object_size(sweep) == 0))
        return sl_fail(error, SL_EINVAL,
                       "%s: sweep: must be an object such as {\"optimizer.learning_rate\": [0.1, "
                       "0.3]}",
                       where);
    json_object_foreach(sweep, key, list) {
        const bool is_seed = strcmp(key, "seed") == 0;
        int result = 0;
        if (is_seed && is_own)
            result = sl_fail(error, SL_EINVAL,
                             "%s: sweep: \"seed\": all variants run with the same seeds; list them "
                             "in the \"sweep\" of the file",
                             where);
        else if (!is_seed)
            result = add_axis(a, key, list, where, error);
        if (result != 0)
            return result;
    }
    return 0;
}

/* The last part of a key, where no other one ends so; else all of it. */
static const char *short_key(const axes *a, size_t index) {
    const char *dot = strrchr(a->keys[index], '.'), *name = dot != NULL ? dot + 1 : NULL;
    for (size_t i = 0; name != NULL && i < a->count; i++) {
        const char *other = strrchr(a->keys[i], '.');
        if (i != index && strcmp(other != NULL ? other + 1 : a->keys[i], name) == 0)
            name = NULL;
    }
    return name != NULL ? name : a->keys[index];
}

char *swept_text(json_t *value) {
    char number[32];
    if (json_is_string(value))
        return strdup(json_string_value(value));
    snprintf(number, sizeof number, "%.12g", json_number_value(value));
    return json_is_real(value)
               ? strdup(number)
               : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12));
}

/* "choco,learning_rate=0.1,alpha=10": a folder is named after it. */
static char *name_choice(const axes *a, const char *method, const size_t *chosen) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    fputs(method, out);
    for (size_t i = 0; i < a->count; i++) {
        json_t *value = json_array_get(a->lists[i], chosen[i]);
        char *shown = swept_text(value);
        for (char *c = shown; c != NULL && *c != '\0'; c++)
            *c = *c == '/' ? '-' : *c;
        fprintf(out, ",%s=%s", short_key(a, i), shown != NULL ? shown : "");
        free(shown);
    }
    return fclose(out) == 0 ? text : (free(text), NULL);
}

static int add_choice(json_t *out, json_t *entry, const axes *a, const size_t *chosen,
                      const char *where, sl_error *error) {
    json_t *made = json_copy(entry), *swept = json_object();
    const char *method = json_string_value(json_object_get(entry, "name"));
    char *name = name_choice(a, method, chosen);
    int result = 0;
    if (name == NULL || made == NULL || swept == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for variants");
    else if (strlen(name) >= VARIANT_NAME_MAX)
        result = sl_fail(error, SL_EINVAL,
                         "%s: sweep: the variant \"%.200s\" has a name of more than %d bytes; give "
                         "\"%.60s\" a shorter one, or make swept objects variants of their own",
                         where, name, VARIANT_NAME_MAX - 1, method);
    for (size_t i = 0; i < a->count && result == 0; i++)
        json_object_set(swept, a->keys[i], json_array_get(a->lists[i], chosen[i]));
    if (result == 0) {
        json_object_del(made, "sweep");
        json_object_set(made, "method", json_object_get(entry, "name"));
        json_object_set_new(made, "name", json_string(name));
        json_object_set(made, "swept", swept);
        json_array_append(out, made);
    }
    json_decref(made);
    json_decref(swept);
    free(name);
    return result;
}

/* All choices; the last key changes fastest. */
static int add_product(json_t *out, json_t *entry, const axes *a, const char *where,
                       sl_error *error) {
    size_t chosen[KEYS_MAX] = {0};
    for (;;) {
        if (json_array_size(out) == VARIANTS_MAX)
            return sl_fail(error, SL_EINVAL, "%s: sweep: makes more than %d variants", where,
                           VARIANTS_MAX);
        const int result = add_choice(out, entry, a, chosen, where, error);
        if (result != 0)
            return result;
        size_t i = a->count;
        while (i > 0 && ++chosen[i - 1] == json_array_size(a->lists[i - 1]))
            chosen[--i] = 0;
        if (i == 0)
            return 0;
    }
}

/* What is not run is not swept. */
static int expand_one(json_t *out, json_t *entry, json_t *sweep, const char *where,
                      sl_error *error) {
    axes a = {.count = 0};
    const bool runs =
        json_object_get(entry, "skip") == NULL && json_object_get(entry, "run") == NULL;
    int result = runs ? add_axes(&a, sweep, false, where, error) : 0;
    if (result == 0 && runs)
        result = add_axes(&a, json_object_get(entry, "sweep"), true, where, error);
    return result == 0 ? add_product(out, entry, &a, where, error) : result;
}

int sweep_expand(json_t **out, json_t *entries, json_t *sweep, const char *where, sl_error *error) {
    int result = 0;
    *out = json_array();
    if (*out == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for variants");
    for (size_t i = 0; i < json_array_size(entries) && result == 0; i++)
        result = expand_one(*out, json_array_get(entries, i), sweep, where, error);
    return result;
}
