/* fields.h - reading the fields of a JSON object, with errors that name field, value and what is
 * allowed. A missing field leaves *out as it is. */
#ifndef SL_FIELDS_H
#define SL_FIELDS_H

#include <stddef.h>

#include <jansson.h>

#include "starling/error.h"

int sl_fields_known(json_t *object, const char *const *known, size_t count, sl_error *error);
/* SL_EINVAL: "KEY: VALUE is not allowed; it must be ALLOWED". value NULL: it is missing. */
int sl_field_refuse(json_t *value, const char *key, const char *allowed, sl_error *error);
int sl_field_integer(json_t *object, const char *key, json_int_t min, json_int_t max,
                     json_int_t *out, sl_error *error);
int sl_field_number(json_t *object, const char *key, double min, double max, double *out,
                    sl_error *error);

#endif
