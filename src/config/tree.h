/* tree.h - reads and writes a JSON tree by dotted paths. */
#ifndef SL_TREE_H
#define SL_TREE_H

#include <jansson.h>

/* Returns the value at "a.b.c", borrowed, or NULL. */
json_t *sl_tree_get(json_t *root, const char *path);
/* Puts value (taken) at "a.b.c" and makes the objects on the way. Returns -1 if a value on the way
 * is not an object. */
int sl_tree_set(json_t *root, const char *path, json_t *value);
#endif
