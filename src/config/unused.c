/* unused.c - warns of keys that have no effect in this experiment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
#include "config/tree.h"

enum { USERS_MAX = 1024 };

static bool is_listed(const char *names, const char *name) {
    size_t length = strlen(name);
    for (; *names != '\0'; names += strspn(names, " ")) {
        size_t word = strcspn(names, " ");
        if (word == length && strncmp(names, name, length) == 0)
            return true;
        names += word;
    }
    return false;
}

/* Adds a warning unless the value of `user` is one of `users`. */
static bool warn(FILE *out, const sl_experiment *e, const char *path, const char *user,
                 const char *users) {
    json_t *value = sl_key_write(sl_key_find(user), e);
    const char *name = json_string_value(value);
    const bool excluded = users[0] == '!';
    const bool unused = is_listed(users + excluded, name) == excluded;
    if (unused && excluded)
        fprintf(out, "warning: %s has no effect with %s %s\n", path, user, name);
    else if (unused)
        fprintf(out, "warning: %s has no effect with %s %s; only %s use%s it\n", path, user, name,
                users, strchr(users, ' ') == NULL ? "s" : "");
    json_decref(value);
    return unused;
}

static void append(char *list, size_t size, const char *name) {
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used > 0 ? " " : "", name);
}

/* Lists the algorithms, or the compressors, that read the key. */
static void list_readers(const sl_key *k, char *list, size_t size) {
    static const char algorithm[] = "algorithm.", compressor[] = "algorithm.compressor.";
    const char *name;
    list[0] = '\0';
    if (strncmp(k->path, compressor, strlen(compressor)) == 0) {
        for (int kind = 0; kind < SL_COMPRESSOR_COUNT; kind++)
            if (sl_compressor_reads((sl_compressor_kind)kind, k->path + strlen(compressor)))
                append(list, size, sl_compressor_name((sl_compressor_kind)kind));
        return;
    }
    for (size_t i = 0; (name = sl_algorithm_name(i)) != NULL; i++)
        if (sl_algorithm_is_reader(name, k->path + strlen(algorithm)))
            append(list, size, name);
}

bool sl_keys_are_all(json_t *root) {
    for (size_t i = 0; i < sl_key_count; i++)
        if (sl_keys[i].type != SL_KEY_PATH && sl_tree_get(root, sl_keys[i].path) == NULL &&
            strcmp(sl_keys[i].path, "rounds") != 0 && strcmp(sl_keys[i].path, "epochs") != 0)
            return false;
    return true;
}

static void warn_of_unused(FILE *out, const sl_experiment *e, json_t *root) {
    for (size_t i = 0; i < sl_key_count; i++) {
        const sl_key *k = &sl_keys[i];
        if (sl_tree_get(root, k->path) == NULL)
            continue;
        const bool is_data = strncmp(k->path, "data.", 5) == 0;
        if (k->user == NULL ||
            (is_data && warn(out, e, k->path, "model.name", "!quadratic synthetic")))
            continue;
        char readers[USERS_MAX];
        if (k->users == NULL)
            list_readers(k, readers, sizeof readers);
        warn(out, e, k->path, k->user, k->users != NULL ? k->users : readers);
    }
}

int sl_keys_warn(sl_experiment *e, json_t *root, const char *before, sl_error *error) {
    size_t bytes;
    FILE *out = open_memstream(&e->warnings, &bytes);
    if (out == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    fputs(before != NULL ? before : "", out);
    if (!sl_keys_are_all(root))
        warn_of_unused(out, e, root);
    return fclose(out) == 0 ? 0 : sl_fail(error, SL_ENOMEM, "out of memory");
}
