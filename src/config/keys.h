/* keys.h - every key of the experiment file: one row each. */
#ifndef SL_KEYS_H
#define SL_KEYS_H

#include <jansson.h>

#include "starling/experiment.h"

/* The key of this path; NULL: there is none. */
const sl_key *sl_key_find(const char *path);
extern const sl_key sl_keys[];
extern const size_t sl_key_count;
/* One line for each key that root gives though nothing uses it; malloc'ed, "" where there is none,
 * NULL: out of memory. A root that gives every key is a resolved experiment, and gets no lines. */
char *sl_keys_unused(const sl_experiment *experiment, json_t *root);
/* Reads `value` into the experiment; the error names the key, the value and what is allowed. */
int sl_key_read(const sl_key *key, sl_experiment *experiment, json_t *value, sl_error *error);
/* What the experiment holds under this key. */
json_t *sl_key_write(const sl_key *key, const sl_experiment *experiment);
/* The section that the key belongs to; SL_SECTION_COUNT for those that agents need not share. */
sl_section sl_key_section(const sl_key *key);

#endif
