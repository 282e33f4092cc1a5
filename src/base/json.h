/* json.h - JSON text to a tree, and trees that are built step by step. */
#ifndef SL_BASE_JSON_H
#define SL_BASE_JSON_H

#include <jansson.h>

#include "starling/error.h"

/* Any value; keys are refused twice. `flags`: further ones of json_loadb. `code` is the error's
 * where the text is no JSON: "WHERE:LINE:COLUMN: ..."; SL_ENOMEM where memory is short. */
int sl_json_parse(json_t **out, const char *text, size_t bytes, size_t flags, const char *where,
                  int code, sl_error *error);

/* Puts value (taken) into the object or array, which is lost, and NULL, where memory is short: what
 * is built in many steps is asked once, at the end, whether it is there. */
void sl_json_set(json_t **object, const char *key, json_t *value);
void sl_json_append(json_t **array, json_t *value);

/* Text, malloc'ed, with each number in the fewest of 15 to 17 digits that bring it back, so that
 * 0.1 reads 0.1. flags as of json_dumps, without a precision. NULL: out of memory. */
char *sl_json_text(const json_t *root, size_t flags);
char *sl_json_number(double number);

#endif
