/* environment.h - variables of the environment, as texts and as whole numbers. */
#ifndef SL_ENVIRONMENT_H
#define SL_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "starling/error.h"

typedef char *const *sl_environment; /* "NAME=VALUE" ..., NULL */

/* NULL: not set, or empty. */
const char *sl_environment_text(sl_environment environment, const char *name);
/* A whole number from 0 to max; false with *result = 0: not set; with SL_EINVAL: not such a
 * number. */
bool sl_environment_whole(sl_environment environment, const char *name, uint64_t max,
                          uint64_t *value, int *result, sl_error *error);
/* Digits alone, at most max. */
bool sl_whole(const char *text, uint64_t max, uint64_t *value);

#endif
