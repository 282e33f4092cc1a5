/* tree.c - see tree.h. */
#include "config/tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PART_MAX = 64 };

/* Copies the first part of a path. Returns the rest, or NULL if there is none. */
static const char *split(const char *path, char part[PART_MAX]) {
    size_t length = strcspn(path, ".");
    size_t kept = length < PART_MAX - 1 ? length : PART_MAX - 1;
    memcpy(part, path, kept);
    part[kept] = '\0';
    return path[length] == '.' ? path + length + 1 : NULL;
}

json_t *sl_tree_get(json_t *root, const char *path) {
    while (root != NULL && path != NULL) {
        char part[PART_MAX];
        path = split(path, part);
        root = json_object_get(root, part);
    }
    return root;
}

int sl_tree_set(json_t *root, const char *path, json_t *value) {
    for (;;) {
        char part[PART_MAX];
        path = split(path, part);
        if (path == NULL)
            return json_object_set_new(root, part, value);
        if (json_object_get(root, part) == NULL)
            json_object_set_new(root, part, json_object());
        root = json_object_get(root, part);
        if (!json_is_object(root)) {
            json_decref(value);
            return -1;
        }
    }
}
