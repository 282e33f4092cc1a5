/* differing.c - see differing.h. */
#include "compare/differing.h"

#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = 128 };

/* Borrowed. */
static json_t *value_at(const contender *r, const char *key) {
    json_t *at = r->tree;
    char part[KEY_BYTES];
    while (at != NULL && *key != '\0') {
        const size_t length = strcspn(key, ".");
        snprintf(part, sizeof part, "%.*s", (int)length, key);
        at = json_object_get(at, part);
        key += length + (key[length] == '.');
    }
    return at;
}

static bool has(const json_t *list, const char *key) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), key) == 0)
            return true;
    return false;
}

static void add(json_t *list, const char *key) {
    if (!has(list, key))
        json_array_append_new(list, json_string(key));
}

json_t *swept_keys(const comparison *c) {
    json_t *list = json_array(), *value;
    const char *key;
    for (size_t i = 0; i < c->count; i++)
        json_object_foreach(c->items[i].variant->swept, key, value) add(list, key);
    return list;
}

static bool is_same(const json_t *a, const json_t *b) {
    return a == b || (a != NULL && b != NULL && json_equal(a, b));
}

/* Of those that are, or were, run. */
static bool differs(const comparison *c, const sl_key *key, const char *path) {
    const contender *first = NULL;
    json_t *expected = NULL;
    for (size_t i = 0; i < c->count; i++) {
        const contender *r = &c->items[i];
        if (contender_skipped(r))
            continue;
        const bool is_read = key == NULL || sl_key_is_read(key, r->variant->experiment);
        json_t *value = is_read ? value_at(r, path) : NULL;
        if (first != NULL && !is_same(value, expected))
            return true;
        first = r;
        expected = value;
    }
    return false;
}

/* A graph may be listed edge by edge: its lists are no values of a table. */
static void add_topology(json_t *list, const comparison *c) {
    char path[KEY_BYTES];
    for (size_t i = 0; i < c->count; i++) {
        const char *name;
        json_t *value;
        json_object_foreach(json_object_get(c->items[i].tree, "topology"), name, value) {
            snprintf(path, sizeof path, "topology.%s", name);
            if (!json_is_object(value) && !json_is_array(value) && !has(list, path) &&
                differs(c, NULL, path))
                add(list, path);
        }
    }
}

json_t *differing_keys(const comparison *c) {
    json_t *list = swept_keys(c);
    sl_key_list keys;
    sl_experiment_keys(&keys);
    add_topology(list, c);
    for (size_t i = 0; i < keys.count; i++) {
        const char *path = keys.items[i]->path;
        const bool is_name = strcmp(path, "seed") == 0 || strcmp(path, "name") == 0;
        if (!is_name && !has(list, path) && differs(c, keys.items[i], path))
            add(list, path);
    }
    return list;
}

/* What is none of the experiment's keys is of its topology, and has an effect. */
static bool is_read(const contender *r, const char *path) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++)
        if (strcmp(keys.items[i]->path, path) == 0)
            return sl_key_is_read(keys.items[i], r->variant->experiment);
    return true;
}

json_t *contender_values(const contender *r, json_t *keys) {
    json_t *values = json_object(), *key;
    size_t i;
    json_array_foreach(keys, i, key) {
        const char *path = json_string_value(key);
        json_t *value = !contender_skipped(r) && is_read(r, path) ? value_at(r, path) : NULL;
        json_object_set_new(values, path, value != NULL ? json_incref(value) : json_null());
    }
    return values;
}
