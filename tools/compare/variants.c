/* variants.c - reads what is to be compared; see variants.h.
 *
 * A file with `variants` is one experiment and what each variant changes in it: "set" holds the
 * changes, as objects that are laid over the experiment's or under dotted keys. "sweep" multiplies
 * variants (sweep.h). "run" is the folder of a run that is there already, "skip" says why a variant
 * is not run, "published" what others report of it (published.h).
 */
#include "compare/variants.h"

#include "cli/file_kind.h"
#include "cli/patience.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "compare/sweep.h"

enum { KEY_TEXT_MAX = 256, KEY_PARTS_MAX = 16 };

/* ---- one variant more ---- */

static const variant *find(const variants *v, const char *name) {
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->items[i].name, name) == 0)
            return &v->items[i];
    return NULL;
}

static void close_one(variant *item) {
    sl_experiment_close(&item->experiment);
    json_decref(item->swept);
    item->swept = NULL;
}

static int make_room(variants *v, sl_error *error) {
    if (v->count < v->room)
        return 0;
    size_t room = v->room ? 2 * v->room : 8;
    variant *items = realloc(v->items, room * sizeof *items);
    if (items == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu variants", room);
    v->items = items;
    v->room = room;
    return 0;
}

int variants_add(variants *v, variant *item, sl_error *error) {
    const int result = make_room(v, error);
    if (result == 0)
        v->items[v->count++] = *item;
    else
        close_one(item);
    return result;
}

bool variant_runs(const variant *v) {
    return v->skip[0] == '\0' && v->run[0] == '\0';
}

/* The file's name without folder and ending; with a number where another file has the same. */
static void name_after_file(const variants *v, const char *path, char name[SL_NAME_MAX]) {
    const char *end = path + strlen(path);
    while (end > path + 1 && end[-1] == '/')
        end--;
    const char *base = end;
    while (base > path && base[-1] != '/')
        base--;
    const char *dot = memrchr(base, '.', (size_t)(end - base));
    int length = (int)(dot != NULL && dot != base ? dot - base : end - base);
    if (length > SL_NAME_MAX - 8)
        length = SL_NAME_MAX - 8;
    snprintf(name, SL_NAME_MAX, "%.*s", length, base);
    for (int i = 2; find(v, name) != NULL; i++)
        snprintf(name, SL_NAME_MAX, "%.*s-%d", length, base, i);
}

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* The experiment of the run in item->run. */
static int load_run(variant *item, sl_error *error) {
    char config[SL_PATH_MAX + 16];
    if (!is_folder(item->run))
        return sl_fail(error, SL_EFILE, "%s: is no folder of a run", item->run);
    snprintf(config, sizeof config, "%s/config.json", item->run);
    return sl_experiment_load_watched(&item->experiment, config, NULL, 0, patience_watch(), error);
}

static int load_plain(variants *v, const char *path, const options *o, sl_error *error) {
    variant item = {.published = {NAN, NAN}};
    name_after_file(v, path, item.method);
    snprintf(item.name, sizeof item.name, "%s", item.method);
    snprintf(item.where, sizeof item.where, "%.*s", SL_PATH_MAX, path);
    int result;
    if (is_folder(path)) {
        snprintf(item.run, sizeof item.run, "%s", path);
        result = load_run(&item, error);
    } else {
        result = refuse_topology_file(path, error);
        if (result == 0)
            result = sl_experiment_load_watched(&item.experiment, path, o->overrides,
                                                o->override_count, patience_watch(), error);
    }
    return result == 0 ? variants_add(v, &item, error) : result;
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
    static const char *const graphs[] = {"family", "edges", "schedule"};
    json_t *made = json_object_get(changes, "topology"),
           *nodes = json_object_get(json_object_get(experiment, "topology"), "nodes");
    bool whole = false;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        char dotted[KEY_TEXT_MAX];
        snprintf(dotted, sizeof dotted, "topology.%s", graphs[i]);
        whole = whole || json_object_get(made, graphs[i]) != NULL ||
                json_object_get(changes, dotted) != NULL;
    }
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
    static const char *const known[] = {"name",  "set", "comment",  "skip",
                                        "sweep", "run", "published"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(key, known[i]) == 0)
            return true;
    return false;
}

static int check_entry(const char *path, size_t index, json_t *entry, sl_error *error) {
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
                           "\"set\", \"sweep\", \"run\", \"skip\" and \"published\"",
                           path, name, key);
    }
    if (json_object_get(entry, "skip") != NULL &&
        !is_reason(json_string_value(json_object_get(entry, "skip"))))
        return sl_fail(error, SL_EINVAL,
                       "%s: variant \"%s\": \"skip\" must be a text of 1 to %d bytes that says why "
                       "it is not run",
                       path, name, SL_NAME_MAX - 1);
    json_t *run = json_object_get(entry, "run");
    if (run != NULL && (!json_is_string(run) || json_object_size(set) > 0 ||
                        json_object_get(entry, "sweep") != NULL))
        return sl_fail(error, SL_EINVAL,
                       "%s: variant \"%s\": \"run\" must be the folder of a run, without \"set\" "
                       "or \"sweep\"",
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

/* The experiment of the file, with what this variant changes. */
static int parse_changed(variant *item, const char *folder, json_t *base, json_t *entry,
                         const options *o, sl_error *error) {
    json_t *changed = json_deep_copy(base);
    replace_topology(changed, json_object_get(entry, "set"));
    lay_over(changed, json_object_get(entry, "set"));
    replace_topology(changed, item->swept);
    lay_over(changed, item->swept);
    char *text = json_dumps(changed, JSON_REAL_PRECISION(17));
    json_decref(changed);
    const int result = text == NULL
                           ? sl_fail(error, SL_ENOMEM, "%s: out of memory", item->where)
                           : sl_experiment_parse(&item->experiment, text, item->where, folder,
                                                 o->overrides, o->override_count, error);
    free(text);
    return result;
}

static int load_entry(variants *v, const char *path, json_t *base, json_t *keys, json_t *entry,
                      const options *o, sl_error *error) {
    variant item = {.published = {NAN, NAN}};
    const char *run = json_string_value(json_object_get(entry, "run")),
               *skip = json_string_value(json_object_get(entry, "skip"));
    char folder[SL_PATH_MAX];
    folder_of(path, folder);
    snprintf(item.name, sizeof item.name, "%s", json_string_value(json_object_get(entry, "name")));
    snprintf(item.method, sizeof item.method, "%s",
             json_string_value(json_object_get(entry, "method")));
    snprintf(item.where, sizeof item.where, "%.*s: variant \"%s\"", SL_PATH_MAX, path, item.name);
    snprintf(item.skip, sizeof item.skip, "%s", skip != NULL ? skip : "");
    if (find(v, item.name) != NULL)
        return sl_fail(error, SL_EINVAL, "%s: there is another one of this name", item.where);
    item.swept = json_incref(json_object_get(entry, "swept"));
    int result;
    if (run != NULL) {
        const int length = snprintf(item.run, sizeof item.run, "%s%s%s",
                                    run[0] == '/' ? "" : folder, run[0] == '/' ? "" : "/", run);
        result = length < (int)sizeof item.run
                     ? load_run(&item, error)
                     : sl_fail(error, SL_EINVAL, "the path of \"run\" is too long");
        if (result != 0)
            sl_fail_prefix(error, result, "%s", item.where);
    } else {
        result = parse_changed(&item, folder, base, entry, o, error);
    }
    if (result == 0)
        result = take_published(&item, keys, entry, error);
    if (result == 0)
        return variants_add(v, &item, error);
    close_one(&item);
    return result;
}

static int check_entries(const char *path, json_t *list, sl_error *error) {
    if (!json_is_array(list) || json_array_size(list) == 0)
        return sl_fail(error, SL_EINVAL,
                       "%s: variants: must be a list such as [{\"name\": \"choco\", \"set\": "
                       "{\"algorithm\": \"choco-sgd\"}}]",
                       path);
    int result = 0;
    for (size_t i = 0; i < json_array_size(list) && result == 0; i++)
        result = check_entry(path, i, json_array_get(list, i), error);
    return result;
}

static int load_entries(variants *v, const char *path, json_t *root, const options *o,
                        sl_error *error) {
    json_t *keys = json_incref(json_object_get(root, "published")),
           *sweep = json_incref(json_object_get(root, "sweep")),
           *list = json_incref(json_object_get(root, "variants")), *all = NULL;
    char name[SL_NAME_MAX];
    if (list == NULL) {
        name_after_file(v, path, name);
        list = json_pack("[{ss}]", "name", name);
    }
    json_object_del(root, "variants");
    json_object_del(root, "published");
    json_object_del(root, "sweep");
    v->from_list = true;
    v->has_published = v->has_published || keys != NULL;
    int result = check_entries(path, list, error);
    if (result == 0)
        result = sweep_expand(&all, list, sweep, path, error);
    if (result == 0 && json_object_get(sweep, "seed") != NULL)
        result = seeds_take(&v->seeds, json_object_get(sweep, "seed"), path, error);
    for (size_t i = 0; i < json_array_size(all) && result == 0; i++)
        result = load_entry(v, path, root, keys, json_array_get(all, i), o, error);
    json_decref(keys);
    json_decref(sweep);
    json_decref(list);
    json_decref(all);
    return result;
}

static int load_file(variants *v, const char *path, const options *o, sl_error *error) {
    json_t *root = is_folder(path) ? NULL : glance_at_file(path, JSON_REJECT_DUPLICATES);
    const bool has_several =
        json_object_get(root, "variants") != NULL || json_object_get(root, "sweep") != NULL;
    const int result =
        has_several ? load_entries(v, path, root, o, error) : load_plain(v, path, o, error);
    json_decref(root);
    return result;
}

/* ---- what must differ ---- */

typedef struct resolved {
    char *text; /* of the keys that it reads */
    const variant *variant;
} resolved;

static int by_text(const void *x, const void *y) {
    const resolved *a = x, *b = y;
    const int order = strcmp(a->text, b->text);
    return order != 0 ? order : (a->variant > b->variant) - (a->variant < b->variant);
}

/* The first swept key in which they differ, and their values there. */
static int refuse_twins(const variant *a, const variant *b, sl_error *error) {
    const char *key;
    json_t *value;
    json_object_foreach(a->swept, key, value) {
        json_t *other = json_object_get(b->swept, key);
        if (strcmp(a->method, b->method) != 0 || other == NULL || json_equal(value, other))
            continue;
        char *x = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12)),
             *y = json_dumps(other, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
        sl_fail(error, SL_EINVAL,
                "%s: sweep: \"%s\": %.60s and %.60s are the same experiment: nothing reads the key "
                "there; leave it out of this variant's sweep",
                b->where, key, x != NULL ? x : "", y != NULL ? y : "");
        free(x);
        free(y);
        return SL_EINVAL;
    }
    return sl_fail(
        error, SL_EINVAL,
        "%s: is the same experiment as \"%s\"; leave one of them out, or change what was "
        "to differ",
        b->where, a->name);
}

static int check_twins(const variants *v, sl_error *error) {
    resolved *all = calloc(v->count, sizeof *all);
    size_t count = 0;
    int result = all != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for variants");
    for (size_t i = 0; i < v->count && result == 0; i++) {
        if (!variant_runs(&v->items[i]))
            continue;
        all[count] = (resolved){sl_experiment_resolved(v->items[i].experiment), &v->items[i]};
        if (all[count++].text == NULL)
            result = sl_fail(error, SL_ENOMEM, "out of memory for variants");
    }
    if (result == 0)
        qsort(all, count, sizeof *all, by_text);
    for (size_t i = 1; i < count && result == 0; i++)
        if (strcmp(all[i].text, all[i - 1].text) == 0)
            result = refuse_twins(all[i - 1].variant, all[i].variant, error);
    for (size_t i = 0; i < count; i++)
        free(all[i].text);
    free(all);
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
    return result != 0 ? result : check_twins(out, error);
}

void variants_close(variants *v) {
    for (size_t i = 0; i < v->count; i++)
        close_one(&v->items[i]);
    free(v->items);
    *v = (variants){0};
}
