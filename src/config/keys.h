/* keys.h - the table of keys: one row for each key of the experiment file. Rows of what belongs to
 * an algorithm or a compressor stand in its own file. */
#ifndef SL_KEYS_H
#define SL_KEYS_H

#include <jansson.h>

#include "starling/experiment.h"

/* Returns the key of this path, or NULL. */
const sl_key *sl_key_find(const char *path);
#define SL_PATH_TEXT_MAX 256 /* bytes that hold a key's path */
/* Do keys begin with this path and a dot? */
bool sl_keys_have_group(const char *path);
/* Refuses a value in place of a group. `named`: the text of the group's name would be allowed. */
int sl_keys_refuse_group(const char *group, json_t *value, bool named, sl_error *error);
int sl_keys_refuse_unknown(const char *path, sl_error *error);
/* Of its value in an sl_experiment. */
size_t sl_key_offset(const sl_key *key);
/* Is it no choice of a data set, or has the model data? */
bool sl_key_has_data(const sl_key *key, const sl_experiment *experiment);
/* Is the value of `user` one of `users`? */
bool sl_key_is_used(const sl_key *key, const sl_experiment *experiment);
/* Is it read by those that list it, and not by all? */
bool sl_key_has_readers(const sl_key *key);
/* Lists the names of the algorithms, or of the compressors, that read the key. */
#define SL_READERS_MAX 1024
void sl_key_list_readers(const sl_key *key, const char *between, char *out, size_t bytes);
/* Sets experiment->warnings: `before` (may be NULL), then one line for each key of `root` that has
 * no effect. root NULL: a resolved experiment, which has every key, gets no lines. */
int sl_keys_warn(sl_experiment *experiment, json_t *root, const char *before, sl_error *error);
/* Has the root every key? It may lack paths, rounds and epochs. */
bool sl_keys_are_all(json_t *root);
/* Takes from the root what a session has no use for, and puts in its place what an experiment has
 * to have. *warnings: a line for each key (malloc'ed). */
int sl_session_keys_drop(json_t *root, const sl_session_reading *how, char **warnings,
                         sl_error *error);
/* Reads `value` into the experiment. The error names the key, the value and what is allowed. */
int sl_key_read(const sl_key *key, sl_experiment *experiment, json_t *value, sl_error *error);
/* Returns the experiment's value of this key, or NULL when out of memory. */
json_t *sl_key_write(const sl_key *key, const sl_experiment *experiment);
/* Is the value the one that the key has when nobody gives it? 1, 0 or SL_ENOMEM. */
int sl_key_is_default(const sl_key *key, json_t *value);
/* Returns the section of the key in an experiment; SL_SECTION_COUNT if agents may differ in it. */
sl_section sl_key_section(const sl_key *key, const sl_experiment *experiment);
/* Does it have that section in any experiment? */
bool sl_key_may_be_of(const sl_key *key, const char *section);
/* Must agents agree on it? network.* is compared where an order of sending follows from it. */
bool sl_key_is_compared(const sl_key *key, const sl_experiment *experiment);

#endif
