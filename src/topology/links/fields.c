/* fields.c - reading the fields of a JSON object; see fields.h. */
#include "topology/links/fields.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "starling/suggest.h"

static int refuse_key(const char *key, const char *const *known, size_t count, sl_error *error) {
    char all[512] = "; it must be one of ", way_out[sizeof all];
    for (size_t i = 0; i < count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i > 0 ? ", " : "", known[i]);
    sl_suggest_text(way_out, sizeof way_out, key, known, count, all);
    return sl_fail(error, SL_EINVAL, "unknown key \"%.64s\"%s", key, way_out);
}

int sl_fields_known(json_t *object, const char *const *known, size_t count, sl_error *error) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        bool found = false;
        for (size_t i = 0; i < count; i++)
            found = found || strcmp(key, known[i]) == 0;
        if (found)
            continue;
        return refuse_key(key, known, count, error);
    }
    return 0;
}

int sl_field_refuse(json_t *value, const char *key, const char *allowed, sl_error *error) {
    if (value == NULL)
        return sl_fail(error, SL_EINVAL, "%s: missing; it must be %s", key, allowed);
    char *text = sl_json_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
    int result = sl_fail(error, SL_EINVAL, "%s: %.80s is not allowed; it must be %s", key,
                         text ? text : "?", allowed);
    free(text);
    return result;
}

int sl_field_integer(json_t *object, const char *key, json_int_t min, json_int_t max,
                     json_int_t *out, sl_error *error) {
    json_t *value = json_object_get(object, key);
    if (value == NULL)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max) {
        char allowed[80];
        snprintf(allowed, sizeof allowed, "an integer from %lld to %lld", (long long)min,
                 (long long)max);
        return sl_field_refuse(value, key, allowed, error);
    }
    *out = json_integer_value(value);
    return 0;
}

int sl_field_number(json_t *object, const char *key, double min, double max, double *out,
                    sl_error *error) {
    json_t *value = json_object_get(object, key);
    if (value == NULL)
        return 0;
    if (!json_is_number(value) ||
        !(json_number_value(value) >= min && json_number_value(value) <= max)) {
        char allowed[80];
        snprintf(allowed, sizeof allowed, "a number from %.12g to %.12g", min, max);
        return sl_field_refuse(value, key, allowed, error);
    }
    *out = json_number_value(value);
    return 0;
}
