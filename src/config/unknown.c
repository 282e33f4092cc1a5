/* unknown.c - refuses keys that there are not, and says which may have been meant. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "config/keys.h"
#include "starling/suggest.h"

enum { DOTTED_MAX = SL_PATH_TEXT_MAX };

bool sl_keys_have_group(const char *path) {
    size_t length = strlen(path);
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++)
        if (strncmp(keys.items[i]->path, path, length) == 0 && keys.items[i]->path[length] == '.')
            return true;
    return false;
}

/* Copies the first `parts` parts of a dotted path. */
static void cut(char out[DOTTED_MAX], const char *path, size_t parts) {
    size_t length = 0;
    for (size_t i = 0; i < parts && path[length] != '\0'; i++)
        length += (path[length] == '.') + strcspn(path + length + (path[length] == '.'), ".");
    snprintf(out, DOTTED_MAX, "%.*s", (int)length, path);
}

/* Writes the group of this name that is part of the key, such as "algorithm.compressor". */
static bool find_group(char out[DOTTED_MAX], const char *key, const char *name) {
    const size_t length = strlen(name);
    for (const char *dot = strchr(key, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
        if (strncmp(dot + 1, name, length) == 0 && dot[1 + length] == '.') {
            snprintf(out, DOTTED_MAX, "%.*s", (int)(dot + 1 + length - key), key);
            return true;
        }
    return false;
}

/* Returns the key of this name in a group, as high as there is one; or NULL. */
static const char *shortest_path(const char *leaf) {
    const char *found = NULL;
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count && strcmp(leaf, "name") != 0; i++) {
        const char *path = keys.items[i]->path, *dot = strrchr(path, '.');
        if (dot != NULL && strcmp(dot + 1, leaf) == 0 &&
            (found == NULL || strlen(path) < strlen(found)))
            found = path;
    }
    return found;
}

/* Returns the key or group of this name in another group, or else the most similar one at the same
 * depth: in its group, if there is that. */
static const char *nearest_key(const char *path, char names[SL_KEYS_MAX][DOTTED_MAX]) {
    const char *known[SL_KEYS_MAX + 2], *dot = strrchr(path, '.'), *last = dot ? dot + 1 : path,
                                        *leaf = sl_usual_name(last);
    char group[DOTTED_MAX];
    size_t parts = 1, count = 0;
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (const char *c = path; *c != '\0'; c++)
        parts += *c == '.';
    const char *same = shortest_path(leaf);
    if (same != NULL)
        return same;
    snprintf(group, sizeof group, "%.*s", (int)(dot != NULL ? dot - path : 0), path);
    const size_t inside = dot != NULL && sl_keys_have_group(group) ? (size_t)(last - path) : 0;
    for (size_t i = 0; i < keys.count; i++) {
        if (find_group(names[i], keys.items[i]->path, leaf))
            return names[i];
        cut(names[i], keys.items[i]->path, parts);
        if (strncmp(names[i], path, inside) == 0)
            known[count++] = names[i] + inside;
    }
    if (inside == 0) {
        known[count++] = "topology";
        known[count++] = "faults";
    }
    const char *near = sl_suggest(path + inside, known, count);
    return near != NULL ? near - inside : NULL;
}

int sl_keys_refuse_group(const char *group, json_t *value, bool named, sl_error *error) {
    char names[DOTTED_MAX] = "", *text = sl_json_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
    size_t length = strlen(group), used = 0;
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count && used < sizeof names; i++)
        if (strncmp(keys.items[i]->path, group, length) == 0 && keys.items[i]->path[length] == '.')
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used > 0 ? ", " : "", keys.items[i]->path + length + 1);
    int result =
        sl_fail(error, SL_EINVAL, "%s: %.100s is not allowed; it must be %san object of %s", group,
                text ? text : "?", named ? "the text of its name, or " : "", names);
    free(text);
    return result;
}

int sl_keys_refuse_unknown(const char *path, sl_error *error) {
    char names[SL_KEYS_MAX][DOTTED_MAX];
    const char *near = nearest_key(path, names);
    return sl_fail(error, SL_EINVAL, "unknown key \"%.100s\"%s%s%s", path,
                   near ? "; did you mean \"" : "; see docs/experiment.md", near ? near : "",
                   near ? "\"?" : "");
}
