/* unused.c - warns of keys that have no effect in this experiment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
#include "config/tree.h"

/* "a b c" as "a, b and c". */
static void list(FILE *out, const char *names) {
    const char *last = strrchr(names, ' ');
    for (const char *c = names; *c != '\0'; c++)
        if (*c == ' ')
            fputs(c == last ? " and " : ", ", out);
        else
            fputc(*c, out);
}

/* Warns of a value of `user` that does not suit. */
static void warn(FILE *out, const sl_experiment *e, const sl_key *k, const char *user,
                 const char *users) {
    json_t *value = sl_key_write(sl_key_find(user), e);
    fprintf(out, "warning: %s has no effect with %s %s", k->path, user, json_string_value(value));
    if (users[0] != '!') {
        fputs("; only ", out);
        list(out, users);
        fprintf(out, " use%s it", strchr(users, ' ') == NULL ? "s" : "");
    }
    fputc('\n', out);
    json_decref(value);
}

/* Neither the experiment's algorithm in any form, nor its compressor, reads it. */
static bool is_foreign(const sl_key *k, const sl_experiment *e) {
    const char *name = strrchr(k->path, '.') + 1;
    return k->owner == SL_KEY_OF_COMPRESSOR
               ? !sl_compressor_reads(e->algorithm.compressor.kind, name)
               : !sl_algorithm_is_reader(&e->algorithm, k->path + strlen("algorithm."));
}

static void warn_if_unused(FILE *out, const sl_experiment *e, const sl_key *k) {
    char readers[SL_READERS_MAX];
    if (!sl_key_has_data(k, e))
        warn(out, e, k, "model.name", "!");
    else if (!sl_key_is_used(k, e))
        warn(out, e, k, k->user, k->users);
    else if (sl_key_has_readers(k) && is_foreign(k, e)) {
        sl_key_list_readers(k, " ", readers, sizeof readers);
        warn(out, e, k,
             k->owner == SL_KEY_OF_COMPRESSOR ? "algorithm.compressor.name" : "algorithm.name",
             readers);
    }
}

bool sl_keys_are_all(json_t *root) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++) {
        const sl_key *k = keys.items[i];
        if (k->type != SL_KEY_PATH && sl_tree_get(root, k->path) == NULL &&
            strcmp(k->path, "rounds") != 0 && strcmp(k->path, "epochs") != 0)
            return false;
    }
    return true;
}

static void warn_of_unused(FILE *out, const sl_experiment *e, json_t *root) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++)
        if (sl_tree_get(root, keys.items[i]->path) != NULL)
            warn_if_unused(out, e, keys.items[i]);
}

int sl_keys_warn(sl_experiment *e, json_t *root, const char *before, sl_error *error) {
    size_t bytes;
    FILE *out = open_memstream(&e->warnings, &bytes);
    if (out == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    fputs(before != NULL ? before : "", out);
    if (root != NULL)
        warn_of_unused(out, e, root);
    return fclose(out) == 0 ? 0 : sl_fail(error, SL_ENOMEM, "out of memory");
}
