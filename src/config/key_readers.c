/* key_readers.c - who reads a key, and what it means to whom: of algorithms and compressors each
 * says that in its own row.
 */
#include <stdio.h>
#include <string.h>

#include "config/keys.h"

static const char of_algorithm[] = "algorithm.";

bool sl_key_has_readers(const sl_key *k) {
    return k->owner != SL_KEY_OF_EXPERIMENT;
}

/* ---- readers, one after the other ---- */

typedef struct reader {
    const char *name;
    const sl_key *key; /* its own row */
} reader;

/* The row of this path that an algorithm's form has, or NULL. */
static const sl_key *row_of(const sl_algorithm *a, const char *path) {
    const sl_key *k;
    for (size_t i = 0; (k = sl_algorithm_key(a, i)) != NULL; i++)
        if (strcmp(k->path, path) == 0)
            return k;
    return NULL;
}

static const sl_key *row_of_compressor(sl_compressor_kind kind, const char *path) {
    const sl_key *k;
    for (size_t i = 0; (k = sl_compressor_key(kind, i)) != NULL; i++)
        if (strcmp(k->path, path) == 0)
            return k;
    return NULL;
}

/* The next form or compressor that reads the key. */
static bool next_reader(const sl_key *k, size_t *at, reader *out) {
    const sl_algorithm *a;
    if (k->owner == SL_KEY_OF_COMPRESSOR) {
        for (; *at < SL_COMPRESSOR_COUNT; ++*at) {
            const sl_compressor_kind kind = (sl_compressor_kind)*at;
            *out = (reader){sl_compressor_name(kind), row_of_compressor(kind, k->path)};
            if (out->key != NULL)
                return ++*at, true;
        }
        return false;
    }
    for (; (a = sl_algorithm_at(*at)) != NULL; ++*at) {
        *out = (reader){a->name, row_of(a, k->path)};
        if (out->key != NULL)
            return ++*at, true;
    }
    return false;
}

/* Was there a form of its name with this meaning before? */
static bool is_repeated(const sl_key *k, size_t before, const reader *this, bool whatever) {
    reader other;
    for (size_t at = 0; next_reader(k, &at, &other) && at < before;)
        if (strcmp(other.name, this->name) == 0 &&
            (whatever || strcmp(other.key->help, this->key->help) == 0))
            return true;
    return false;
}

static void append(char *out, size_t bytes, const char *between, const char *text) {
    const size_t used = strlen(out);
    snprintf(out + used, bytes - used, "%s%s", used > 0 ? between : "", text);
}

void sl_key_list_readers(const sl_key *k, const char *between, char *out, size_t bytes) {
    reader one;
    out[0] = '\0';
    for (size_t at = 0; next_reader(k, &at, &one);)
        if (!is_repeated(k, at, &one, true))
            append(out, bytes, between, one.name);
}

/* ---- what it means ---- */

/* Is it the first one with this meaning? */
static bool is_new_meaning(const sl_key *k, size_t before, const reader *this) {
    reader other;
    for (size_t at = 0; next_reader(k, &at, &other) && at < before;)
        if (strcmp(other.key->help, this->key->help) == 0)
            return false;
    return true;
}

/* "qgm, decentlam: momentum of its own" */
static void append_meaning(const sl_key *k, const char *help, char *out, size_t bytes) {
    char names[SL_READERS_MAX] = "";
    reader one;
    for (size_t at = 0; next_reader(k, &at, &one);)
        if (strcmp(one.key->help, help) == 0 && !is_repeated(k, at, &one, false))
            append(names, sizeof names, ", ", one.name);
    append(out, bytes, "; ", names);
    append(out, bytes, ": ", help);
}

void sl_key_help(const sl_key *k, char *out, size_t bytes) {
    reader one;
    out[0] = '\0';
    if (!sl_key_has_readers(k) || k->readers != NULL) {
        append(out, bytes, "", k->readers != NULL ? k->readers : "");
        append(out, bytes, ": ", k->help);
        return;
    }
    for (size_t at = 0; next_reader(k, &at, &one);)
        if (is_new_meaning(k, at, &one))
            append_meaning(k, one.key->help, out, bytes);
}

/* ---- has it an effect? ---- */

static bool is_listed(const char *names, const char *name) {
    const size_t length = strlen(name);
    for (; *names != '\0'; names += strspn(names, " ")) {
        const size_t word = strcspn(names, " ");
        if (word == length && strncmp(names, name, length) == 0)
            return true;
        names += word;
    }
    return false;
}

bool sl_key_is_used(const sl_key *k, const sl_experiment *e) {
    if (k->user == NULL)
        return true;
    json_t *value = sl_key_write(sl_key_find(k->user), e);
    const bool excluded = k->users[0] == '!',
               used = is_listed(k->users + excluded, json_string_value(value)) != excluded;
    json_decref(value);
    return used;
}

bool sl_key_has_data(const sl_key *k, const sl_experiment *e) {
    const bool chooses = strncmp(k->path, "data.", strlen("data.")) == 0 && k->user != NULL;
    return !chooses || (e->model.kind != SL_MODEL_QUADRATIC && e->model.kind != SL_MODEL_SYNTHETIC);
}

bool sl_key_is_read(const sl_key *k, const sl_experiment *e) {
    if (!sl_key_has_data(k, e) || !sl_key_is_used(k, e))
        return false;
    if (strncmp(k->path, of_algorithm, strlen(of_algorithm)) != 0)
        return true;
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, NULL);
    return sl_algorithm_reads(a, e->algorithm.compressor.kind, k->path + strlen(of_algorithm));
}
