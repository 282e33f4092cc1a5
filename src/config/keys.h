/* keys.h - the table of keys: one row for each key of the experiment file. */
#ifndef SL_KEYS_H
#define SL_KEYS_H

#include <jansson.h>

#include "starling/experiment.h"

/* Returns the key of this path, or NULL. */
const sl_key *sl_key_find(const char *path);
extern const sl_key sl_keys[];
extern const size_t sl_key_count;
/* Returns one line for each key of `root` that has no effect (malloc'ed; "" if there is none), or
 * NULL when out of memory. A root with every key is a resolved experiment and gets no lines. */
char *sl_keys_unused(const sl_experiment *experiment, json_t *root);
/* Reads `value` into the experiment. The error names the key, the value and what is allowed. */
int sl_key_read(const sl_key *key, sl_experiment *experiment, json_t *value, sl_error *error);
/* Returns the experiment's value of this key, or NULL when out of memory. */
json_t *sl_key_write(const sl_key *key, const sl_experiment *experiment);
/* Returns the section of the key; SL_SECTION_COUNT if agents may differ in it. */
sl_section sl_key_section(const sl_key *key);

#endif
