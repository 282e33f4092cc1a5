/* variants.c - reads what is to be compared; see variants.h.
 *
 * A file with `variants` is one experiment and what each variant changes in it: "set" holds the
 * changes, as objects that are laid over the experiment's or under dotted keys. "skip" says why a
 * variant is not run, "published" what others report of it (published.h).
 */
#include "compare/variants.h"

#include "cli/file_kind.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_TEXT_MAX = 60, KEY_TEXT_MAX = 256, KEY_PARTS_MAX = 16 };

/* ---- one variant more ---- */

static const variant *find(const variants *v, const char *name) {
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->items[i].name, name) == 0)
            return &v->items[i];
    return NULL;
}

static variant *add(variants *v, sl_error *error) {
    if (v->count == v->room) {
        size_t room = v->room ? 2 * v->room : 8;
        variant *items = realloc(v->items, room * sizeof *items);
        if (items == NULL) {
            sl_fail(error, SL_ENOMEM, "out of memory for %zu variants", room);
            return NULL;
        }
        v->items = items;
        v->room = room;
    }
    v->items[v->count] = (variant){0};
    return &v->items[v->count++];
}

/* The file's name without folder and ending; with a number where another file has the same. */
static void name_after_file(const variants *v, const char *path, char name[SL_NAME_MAX]) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path,
               *dot = strrchr(base, '.');
    int length = (int)(dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base));
    if (length > SL_NAME_MAX - 8)
        length = SL_NAME_MAX - 8;
    snprintf(name, SL_NAME_MAX, "%.*s", length, base);
    for (int i = 2; find(v, name) != NULL; i++)
        snprintf(name, SL_NAME_MAX, "%.*s-%d", length, base, i);
}

static int load_plain(variants *v, const char *path, const options *o, sl_error *error) {
    variant item = {.published = {NAN, NAN}};
    int result = refuse_topology_file(path, error);
    if (result == 0)
        result = sl_experiment_load(&item.experiment, path, o->overrides, o->override_count, error);
    if (result != 0)
        return result;
    name_after_file(v, path, item.name);
    snprintf(item.where, sizeof item.where, "%.*s", SL_PATH_MAX, path);
    variant *place = add(v, error);
    if (place == NULL)
        sl_experiment_close(&item.experiment);
    else
        *place = item;
    return place == NULL ? SL_ENOMEM : 0;
}

/* ---- changes ---- */

/* The object of this name, made where there is none; text stands for its name: "algorithm":
 * "d-psgd". */
static json_t *group(json_t *object, const char *name) {
    json_t *there = json_object_get(object, name);
    if (json_is_object(there))
        return there;
    json_t *made = json_is_string(there) ? json_pack("{sO}", "name", there) : json_object();
    json_object_set_new(object, name, made);
    return made;
}

static void lay_over(json_t *object, json_t *changes);

static void change(json_t *object, const char *path, json_t *value) {
    char name[KEY_TEXT_MAX];
    size_t length = strcspn(path, ".");
    if (path[length] == '.' && length < sizeof name) {
        memcpy(name, path, length);
        name[length] = '\0';
        change(group(object, name), path + length + 1, value);
    } else if (json_is_object(value)) {
        lay_over(group(object, path), value);
    } else {
        json_object_set(object, path, value);
    }
}

static void lay_over(json_t *object, json_t *changes) {
    const char *key;
    json_t *value;
    json_object_foreach(changes, key, value) change(object, key, value);
}

/* A topology that says what its graph is replaces the experiment's; of that only the nodes stay,
 * where it gives none. */
static void replace_topology(json_t *experiment, json_t *changes) {
    json_t *made = json_object_get(changes, "topology"),
           *nodes = json_object_get(json_object_get(experiment, "topology"), "nodes");
    bool whole = json_object_get(made, "family") != NULL ||
                 json_object_get(made, "edges") != NULL ||
                 json_object_get(made, "schedule") != NULL;
    if (whole)
        json_object_set_new(experiment, "topology",
                            nodes != NULL ? json_pack("{sO}", "nodes", nodes) : json_object());
}

/* ---- files with variants ---- */

/* Has no key more than `parts` parts, however it is written? Changes are laid over recursively. */
static bool is_shallow(json_t *changes, size_t parts) {
    const char *key;
    json_t *value;
    json_object_foreach(changes, key, value) {
        size_t used = 1;
        for (const char *dot = key; (dot = strchr(dot, '.')) != NULL; dot++)
            used++;
        if (used > parts || !is_shallow(value, parts - used))
            return false;
    }
    return true;
}

/* A folder is named after it. */
static bool is_good_name(const char *name) {
    return name != NULL && name[0] != '\0' && name[0] != '.' && strlen(name) < SL_NAME_MAX &&
           strchr(name, '/') == NULL;
}

static bool is_reason(const char *text) {
    return text != NULL && text[0] != '\0' && strlen(text) < SL_NAME_MAX;
}

static bool is_entry_key(const char *key) {
    static const char *const known[] = {"name", "set", "comment", "skip", "published"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(key, known[i]) == 0)
            return true;
    return false;
}

static int check_entry(const variants *v, const char *path, size_t index, json_t *entry,
                       sl_error *error) {
    const char *name = json_string_value(json_object_get(entry, "name")), *key;
    json_t *value, *set = json_object_get(entry, "set");
    if (!json_is_object(entry) || !is_good_name(name))
        return sl_fail(error, SL_EINVAL,
                       "%s: variants[%zu]: must be an object with a \"name\" of 1 to %d bytes, "
                       "without '/' and not beginning with '.'",
                       path, index, SL_NAME_MAX - 1);
    if (set != NULL && !json_is_object(set))
        return sl_fail(error, SL_EINVAL,
                       "%s: variant \"%s\": \"set\" must be an object, such as {\"algorithm\": "
                       "{\"name\": \"choco-sgd\"}}",
                       path, name);
    if (!is_shallow(set, KEY_PARTS_MAX))
        return sl_fail(error, SL_EINVAL,
                       "%s: variant \"%s\": \"set\" has a key of more than %d parts", path, name,
                       KEY_PARTS_MAX);
    json_object_foreach(entry, key, value) {
        if (!is_entry_key(key))
            return sl_fail(error, SL_EINVAL,
                           "%s: variant \"%s\": unknown key \"%.60s\"; there are \"name\", "
                           "\"set\", \"skip\" and \"published\"",
                           path, name, key);
    }
    if (json_object_get(entry, "skip") != NULL &&
        !is_reason(json_string_value(json_object_get(entry, "skip"))))
        return sl_fail(error, SL_EINVAL,
                       "%s: variant \"%s\": \"skip\" must be a text of 1 to %d bytes that says why "
                       "it is not run",
                       path, name, SL_NAME_MAX - 1);
    if (find(v, name) != NULL)
        return sl_fail(error, SL_EINVAL, "%s: variant \"%s\": there is another one of this name",
                       path, name);
    return 0;
}

static void folder_of(const char *path, char folder[SL_PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        snprintf(folder, SL_PATH_MAX, ".");
    else
        snprintf(folder, SL_PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static json_t *tree_of(const sl_experiment *experiment) {
    char *text = sl_experiment_json(experiment);
    json_t *tree = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return tree;
}

/* What the file reports of this variant, once its experiment is known. */
static int take_published(variant *item, json_t *keys, json_t *entry, sl_error *error) {
    json_t *tree = tree_of(item->experiment);
    const int result = tree == NULL
                           ? sl_fail(error, SL_ENOMEM, "out of memory")
                           : published_find(&item->published, keys,
                                            json_object_get(entry, "published"), tree, error);
    json_decref(tree);
    return result == 0 ? 0 : sl_fail_prefix(error, result, "%s", item->where);
}

static int load_entry(variants *v, const char *path, json_t *base, json_t *keys, json_t *entry,
                      const options *o, sl_error *error) {
    variant item = {.published = {NAN, NAN}};
    char folder[SL_PATH_MAX];
    folder_of(path, folder);
    snprintf(item.name, sizeof item.name, "%s", json_string_value(json_object_get(entry, "name")));
    snprintf(item.where, sizeof item.where, "%.*s: variant \"%s\"", SL_PATH_MAX, path, item.name);
    if (json_object_get(entry, "skip") != NULL)
        snprintf(item.skip, sizeof item.skip, "%s",
                 json_string_value(json_object_get(entry, "skip")));
    json_t *changed = json_deep_copy(base);
    replace_topology(changed, json_object_get(entry, "set"));
    lay_over(changed, json_object_get(entry, "set"));
    char *text = json_dumps(changed, JSON_REAL_PRECISION(17));
    json_decref(changed);
    int result = text == NULL ? sl_fail(error, SL_ENOMEM, "%s: out of memory", item.where)
                              : sl_experiment_parse(&item.experiment, text, item.where, folder,
                                                    o->overrides, o->override_count, error);
    free(text);
    if (result == 0)
        result = take_published(&item, keys, entry, error);
    variant *place = result == 0 ? add(v, error) : NULL;
    if (place != NULL)
        *place = item;
    else
        sl_experiment_close(&item.experiment);
    return place != NULL ? 0 : result != 0 ? result : SL_ENOMEM;
}

static int load_entries(variants *v, const char *path, json_t *base, json_t *keys, json_t *list,
                        const options *o, sl_error *error) {
    if (!json_is_array(list) || json_array_size(list) == 0)
        return sl_fail(error, SL_EINVAL,
                       "%s: variants: must be a list such as [{\"name\": \"choco\", \"set\": "
                       "{\"algorithm\": \"choco-sgd\"}}]",
                       path);
    int result = 0;
    for (size_t i = 0; i < json_array_size(list) && result == 0; i++) {
        json_t *entry = json_array_get(list, i);
        result = check_entry(v, path, i, entry, error);
        if (result == 0)
            result = load_entry(v, path, base, keys, entry, o, error);
    }
    return result;
}

static int load_file(variants *v, const char *path, const options *o, sl_error *error) {
    json_t *root = glance_at_file(path, JSON_REJECT_DUPLICATES),
           *list = json_incref(json_object_get(root, "variants")),
           *keys = json_incref(json_object_get(root, "published"));
    int result;
    if (list == NULL) {
        result = load_plain(v, path, o, error);
    } else {
        json_object_del(root, "variants");
        json_object_del(root, "published");
        v->from_list = true;
        v->has_published = v->has_published || keys != NULL;
        result = load_entries(v, path, root, keys, list, o, error);
    }
    json_decref(keys);
    json_decref(list);
    json_decref(root);
    return result;
}

/* ---- what must be the same ---- */

/* The first key in which a and b differ, below `path`, which holds it then; *x and *y what they
 * have there (borrowed, or NULL). */
static bool find_difference(json_t *a, json_t *b, char path[KEY_TEXT_MAX], json_t **x, json_t **y) {
    *x = a;
    *y = b;
    if (a == NULL || b == NULL || !json_is_object(a) || !json_is_object(b))
        return a != b && (a == NULL || b == NULL || !json_equal(a, b));
    json_t *const sides[] = {a, b};
    size_t length = strlen(path);
    for (int i = 0; i < 2; i++) {
        const char *key;
        json_t *value;
        json_object_foreach(sides[i], key, value) {
            snprintf(path + length, KEY_TEXT_MAX - length, ".%s", key);
            if (find_difference(json_object_get(a, key), json_object_get(b, key), path, x, y))
                return true;
        }
    }
    path[length] = '\0';
    return false;
}

static void value_text(json_t *value, char out[VALUE_TEXT_MAX + 4]) {
    char *text =
        value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    bool cut = text != NULL && strlen(text) > VALUE_TEXT_MAX;
    snprintf(out, VALUE_TEXT_MAX + 4, "%.*s%s", VALUE_TEXT_MAX, text ? text : "not given",
             cut ? "..." : "");
    free(text);
}

static int compare_trees(json_t *first, json_t *other, const variant *v, const variant *with,
                         sl_error *error) {
    static const char *const shared[] = {"data", "model", "rounds", "epochs"};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        char path[KEY_TEXT_MAX], mine[VALUE_TEXT_MAX + 4], theirs[VALUE_TEXT_MAX + 4];
        json_t *x, *y;
        snprintf(path, sizeof path, "%s", shared[i]);
        if (!find_difference(json_object_get(first, shared[i]), json_object_get(other, shared[i]),
                             path, &x, &y))
            continue;
        value_text(x, theirs);
        value_text(y, mine);
        return sl_fail(error, SL_EINVAL,
                       "%s: %s is %s, but %s in %s; what is compared must have the same data, "
                       "model and rounds",
                       v->where, path, mine, theirs, with->where);
    }
    return 0;
}

static int check_same(const variants *v, sl_error *error) {
    json_t *first = tree_of(v->items[0].experiment);
    int result = 0;
    for (size_t i = 1; i < v->count && result == 0; i++) {
        json_t *other = tree_of(v->items[i].experiment);
        result = first && other ? compare_trees(first, other, &v->items[i], &v->items[0], error)
                                : sl_fail(error, SL_ENOMEM, "out of memory");
        json_decref(other);
    }
    json_decref(first);
    return result;
}

static int check_any(const variants *v, sl_error *error) {
    for (size_t i = 0; i < v->count; i++)
        if (v->items[i].skip[0] == '\0')
            return 0;
    return sl_fail(error, SL_EINVAL, "%s: every variant has \"skip\"; nothing would be run",
                   v->items[0].where);
}

int variants_load(variants *out, const options *o, sl_error *error) {
    *out = (variants){0};
    int result = 0;
    for (size_t i = 0; i < o->file_count && result == 0; i++)
        result = load_file(out, o->files[i], o, error);
    if (result == 0)
        result = check_any(out, error);
    return result != 0 ? result : check_same(out, error);
}

void variants_close(variants *v) {
    for (size_t i = 0; i < v->count; i++)
        sl_experiment_close(&v->items[i].experiment);
    free(v->items);
    *v = (variants){0};
}
