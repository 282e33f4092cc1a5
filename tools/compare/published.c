/* published.c - see published.h. */
#include "compare/published.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { KEY_MAX = 256 };

static json_t *value_at(json_t *object, const char *key) {
    char name[KEY_MAX];
    const size_t length = strcspn(key, ".");
    if (key[length] == '\0' || length >= sizeof name)
        return json_object_get(object, key);
    memcpy(name, key, length);
    name[length] = '\0';
    return value_at(json_object_get(object, name), key + length + 1);
}

/* 1 and 1.0 are the same number. */
static bool is_same(json_t *a, json_t *b) {
    return json_is_number(a) && json_is_number(b) ? json_number_value(a) == json_number_value(b)
                                                  : json_equal(a, b);
}

static bool suits(json_t *keys, json_t *row, json_t *experiment) {
    size_t i;
    json_t *key;
    json_array_foreach(keys, i, key) {
        if (!is_same(json_array_get(row, i), value_at(experiment, json_string_value(key))))
            return false;
    }
    return true;
}

static int check_keys(json_t *keys, json_t *experiment, sl_error *error) {
    size_t i;
    json_t *key;
    if (keys != NULL && !json_is_array(keys))
        return sl_fail(error, SL_EINVAL,
                       "published: must be a list of keys such as [\"topology.nodes\"]");
    json_array_foreach(keys, i, key) {
        if (!json_is_string(key) || value_at(experiment, json_string_value(key)) == NULL)
            return sl_fail(error, SL_EINVAL,
                           "published[%zu]: must be a key of the experiment, such as "
                           "\"topology.nodes\"",
                           i);
    }
    return 0;
}

static int check_row(json_t *row, size_t index, size_t keys, sl_error *error) {
    const size_t numbers = json_array_size(row) - keys;
    bool good = json_is_array(row) && json_array_size(row) > keys && numbers <= 2;
    for (size_t i = 0; good && i < numbers; i++)
        good = json_is_number(json_array_get(row, keys + i));
    if (good)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "published[%zu]: must be a list: a value for each of the %zu keys of the file's "
                   "\"published\", the accuracy in per cent, and perhaps its deviation",
                   index, keys);
}

int published_find(published *out, json_t *keys, json_t *rows, json_t *experiment,
                   sl_error *error) {
    published found = {NAN, NAN};
    const size_t count = json_array_size(keys);
    size_t i;
    json_t *row;
    int result = check_keys(keys, experiment, error);
    if (result == 0 && rows != NULL && !json_is_array(rows))
        result = sl_fail(error, SL_EINVAL, "published: must be a list of rows");
    json_array_foreach(rows, i, row) {
        if (result == 0)
            result = check_row(row, i, count, error);
        if (result != 0 || !suits(keys, row, experiment))
            continue;
        found.accuracy = json_number_value(json_array_get(row, count));
        if (json_array_size(row) == count + 2)
            found.deviation = json_number_value(json_array_get(row, count + 1));
    }
    if (result == 0)
        *out = found;
    return result;
}
