/* keys.h - every key of the experiment file: one row each. */
#ifndef SL_KEYS_H
#define SL_KEYS_H

#include <jansson.h>

#include "starling/experiment.h"

extern const sl_key sl_keys[];
extern const size_t sl_key_count;
/* Reads `value` into the experiment; the error names the key, the value and what is allowed. */
int sl_key_read(const sl_key *key, sl_experiment *experiment, json_t *value, sl_error *error);
/* What the experiment holds under this key. */
json_t *sl_key_write(const sl_key *key, const sl_experiment *experiment);
/* The section that the key belongs to; SL_SECTION_COUNT for those that agents need not share. */
sl_section sl_key_section(const sl_key *key);

#endif
