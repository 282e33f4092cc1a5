/* tree.h - a JSON tree: dotted paths in it. */
#ifndef SL_TREE_H
#define SL_TREE_H

#include <jansson.h>

/* The value at "a.b.c"; NULL if it is not there. Borrowed. */
json_t *sl_tree_get(json_t *root, const char *path);
/* Puts value (taken) at "a.b.c", making objects on the way; -1 where something else than an object
 * is in the way. */
int sl_tree_set(json_t *root, const char *path, json_t *value);
#endif
