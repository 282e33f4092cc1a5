/* sweep.h - a product of keys and lists: {"optimizer.learning_rate": [0.1, 0.3], "seed": [1, 2]}.
 *
 * Each variant of a file is taken with each choice of the values. A variant's own "sweep" adds keys
 * to the file's, or has other values for them. "seed" of the file is not part of the product: it
 * lists the seeds of every run.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include <jansson.h>

#include "starling/error.h"

/* entries: an array of objects with a "name" each, and perhaps "set" and "sweep". *out: a new array
 * of such objects, each with "method", the name that it had, and "swept", an object of its choice
 * of values; where that has keys, "name" tells them too. The error begins with `where`. */
int sweep_expand(json_t **out, json_t *entries, json_t *sweep, const char *where, sl_error *error);
/* A swept value as people write it: 100000, top-k. malloc'ed; NULL: out of memory. */
char *swept_text(json_t *value);

#endif
