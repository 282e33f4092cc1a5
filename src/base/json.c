/* json.c - see json.h. */
#include "base/json.h"

int sl_json_parse(json_t **out, const char *text, size_t bytes, size_t flags, const char *where,
                  int code, sl_error *error) {
    json_error_t problem;
    *out = json_loadb(text, bytes, flags | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    if (*out != NULL)
        return 0;
    if (problem.text[0] == '\0' || json_error_code(&problem) == json_error_out_of_memory)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
    return sl_fail(error, code, "%s:%d:%d: %s", where, problem.line, problem.column, problem.text);
}

static void lose(json_t **tree) {
    json_decref(*tree);
    *tree = NULL;
}

void sl_json_set(json_t **object, const char *key, json_t *value) {
    if (json_object_set_new(*object, key, value) != 0)
        lose(object);
}

void sl_json_append(json_t **array, json_t *value) {
    if (json_array_append_new(*array, value) != 0)
        lose(array);
}
