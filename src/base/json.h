/* json.h - parses JSON text, and builds JSON trees step by step. */
#ifndef SL_BASE_JSON_H
#define SL_BASE_JSON_H

#include <jansson.h>

#include "starling/error.h"

/* Parses any JSON value; refuses duplicate keys. `flags`: more flags of json_loadb. Returns `code`
 * if the text is not JSON, with the error "WHERE:LINE:COLUMN: ..."; SL_ENOMEM if memory is short.
 */
int sl_json_parse(json_t **out, const char *text, size_t bytes, size_t flags, const char *where,
                  int code, sl_error *error);

/* Adds `value` (taken) to the object or array. If memory is short, frees that and sets it to NULL.
 * So a caller that builds in many steps checks once, at the end. */
void sl_json_set(json_t **object, const char *key, json_t *value);
void sl_json_append(json_t **array, json_t *value);

/* Writes JSON text, malloc'ed. Each number gets the fewest digits, 15 to 17, that read back as the
 * same number: 0.1 stays 0.1. flags: as of json_dumps, without a precision. NULL: out of memory. */
char *sl_json_text(const json_t *root, size_t flags);
char *sl_json_number(double number);

#endif
