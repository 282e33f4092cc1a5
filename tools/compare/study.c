/* study.c - see study.h. */
#include "compare/study.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 1, BYTES_MAX = 1 << 30, PATH_BYTES = SL_PATH_MAX + 32 };

static void path_of(const char *folder, char out[PATH_BYTES]) {
    snprintf(out, PATH_BYTES, "%.*s/study.json", SL_PATH_MAX, folder);
}

bool study_is_there(const char *folder) {
    char path[PATH_BYTES];
    path_of(folder, path);
    return access(path, F_OK) == 0;
}

/* ---- runs ---- */

size_t study_seeds(const study *s) {
    return s->seeds.count > 0 ? s->seeds.count : 1;
}

uint64_t study_seed(const study *s, const variant *v, size_t index) {
    return s->seeds.count > 0 && v->run[0] == '\0' ? s->seeds.items[index] : v->experiment->seed;
}

/* A run of its own may lie in several folders too, one for each seed. */
static int print_path(const study *s, const variant *v, size_t index, char *out, size_t bytes) {
    const bool is_own = v->run[0] != '\0';
    const char *folder = is_own ? v->run : s->folder, *slash = is_own ? "" : "/",
               *name = is_own ? "" : v->name;
    return s->seeds.count == 0 || is_own
               ? snprintf(out, bytes, "%s%s%s", folder, slash, name)
               : snprintf(out, bytes, "%s%s%s/seed-%llu", folder, slash, name,
                          (unsigned long long)study_seed(s, v, index));
}

int study_run_path(const study *s, const variant *v, size_t index, char out[SL_PATH_MAX],
                   sl_error *error) {
    const int length = print_path(s, v, index, out, SL_PATH_MAX);
    return length < SL_PATH_MAX - (int)sizeof "/consensus.jsonl"
               ? 0
               : sl_fail(error, SL_EINVAL, "--out: the path is too long for the run folders in it");
}

/* ---- writing ---- */

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *variant_json(const variant *v, const task_facts *facts) {
    char *text = sl_experiment_json(v->experiment);
    json_t *experiment = text != NULL ? json_loads(text, 0, NULL) : NULL;
    free(text);
    if (experiment == NULL)
        return NULL;
    return json_pack("{ss ss sO? ss ss s[oo] so so}", "name", v->name, "method", v->method, "swept",
                     v->swept, "skip", v->skip, "run", v->run, "published",
                     number(v->published.accuracy), number(v->published.deviation), "task",
                     task_facts_json(facts), "experiment", experiment);
}

static json_t *study_json(const study *s) {
    json_t *all = json_array(), *seeds_list = json_array(), *links = json_array();
    for (size_t i = 0; i < s->seeds.count; i++)
        json_array_append_new(seeds_list, json_integer((json_int_t)s->seeds.items[i]));
    for (size_t i = 0; i < s->link_count; i++)
        json_array_append_new(
            links, json_pack("[ff]", s->links[i].bandwidth_mbit, s->links[i].latency_ms));
    json_t *root =
        json_pack("{si so sb so so so}", "starling_study", VERSION, "seeds", seeds_list, "agents",
                  s->agents, "target_loss", number(s->has_target ? s->target_loss : NAN), "links",
                  links, "variants", all);
    for (size_t i = 0; i < s->variants.count && root != NULL; i++)
        if (json_array_append_new(all, variant_json(&s->variants.items[i], &s->facts[i])) != 0) {
            json_decref(root);
            root = NULL;
        }
    return root;
}

int study_write(const study *s, sl_error *error) {
    char path[PATH_BYTES], beside[PATH_BYTES + 8];
    json_t *root = study_json(s);
    if (root == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for its variants", s->folder);
    path_of(s->folder, path);
    snprintf(beside, sizeof beside, "%s.new", path);
    const bool good = json_dump_file(root, beside, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0 &&
                      rename(beside, path) == 0;
    const int why = errno;
    json_decref(root);
    if (good)
        return 0;
    unlink(beside);
    return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(why));
}

/* ---- reading ---- */

/* A table needs no data: a path that is not there any more, as on another machine, stands for
 * nothing. */
static void forget_path(json_t *experiment, const char *section, const char *key) {
    json_t *object = json_object_get(experiment, section);
    const char *path = json_string_value(json_object_get(object, key));
    if (path != NULL && path[0] != '\0' && access(path, F_OK) != 0)
        json_object_set_new(object, key, json_string("/"));
}

static void copy_text(char *out, size_t bytes, json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(out, bytes, "%s", text != NULL ? text : "");
}

static double number_at(json_t *list, size_t index) {
    json_t *value = json_array_get(list, index);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int read_variant(study *s, json_t *object, const char *path, sl_error *error) {
    json_t *experiment = json_object_get(object, "experiment"),
           *printed = json_object_get(object, "published");
    variant v = {.published = {number_at(printed, 0), number_at(printed, 1)}};
    copy_text(v.name, sizeof v.name, object, "name");
    copy_text(v.method, sizeof v.method, object, "method");
    copy_text(v.skip, sizeof v.skip, object, "skip");
    copy_text(v.run, sizeof v.run, object, "run");
    snprintf(v.where, sizeof v.where, "%.*s: variant \"%s\"", SL_PATH_MAX, path, v.name);
    forget_path(experiment, "data", "path");
    forget_path(experiment, "model", "path");
    forget_path(experiment, "model", "start");
    char *text =
        json_is_object(experiment) ? json_dumps(experiment, JSON_REAL_PRECISION(17)) : NULL;
    int result = text == NULL
                     ? sl_fail(error, SL_EFILE, "%s: is no study of this version", path)
                     : sl_experiment_parse(&v.experiment, text, v.where, s->folder, NULL, 0, error);
    free(text);
    json_t *swept = json_object_get(object, "swept");
    v.swept = json_is_object(swept) ? json_incref(swept) : NULL;
    if (result == 0)
        result =
            task_facts_parse(&s->facts[s->variants.count], json_object_get(object, "task"), error);
    s->variants.has_published = s->variants.has_published || isfinite(v.published.accuracy);
    if (result == 0)
        return variants_add(&s->variants, &v, error);
    sl_experiment_close(&v.experiment);
    json_decref(v.swept);
    return result;
}

static void read_settings(study *s, json_t *root) {
    json_t *list = json_object_get(root, "seeds"), *links = json_object_get(root, "links"),
           *target = json_object_get(root, "target_loss");
    for (size_t i = 0; i < json_array_size(list) && i < SEEDS_MAX; i++)
        s->seeds.items[s->seeds.count++] = (uint64_t)json_integer_value(json_array_get(list, i));
    for (size_t i = 0; i < json_array_size(links) && i < LINKS_MAX; i++)
        s->links[s->link_count++] = (link_profile){number_at(json_array_get(links, i), 0),
                                                   number_at(json_array_get(links, i), 1)};
    s->agents = json_is_true(json_object_get(root, "agents"));
    s->has_target = json_is_number(target);
    s->target_loss = json_number_value(target);
}

int study_read(study *out, const char *folder, sl_error *error) {
    char path[PATH_BYTES], *text = NULL;
    *out = (study){0};
    path_of(folder, path);
    snprintf(out->folder, sizeof out->folder, "%s", folder);
    int result = sl_text_read(&text, path, BYTES_MAX, error);
    if (result != 0)
        return result;
    json_t *root = json_loads(text, 0, NULL), *all = json_object_get(root, "variants");
    free(text);
    const size_t count = json_array_size(all);
    if (count == 0 || json_integer_value(json_object_get(root, "starling_study")) != VERSION)
        result = sl_fail(error, SL_EFILE, "%s: is no study of this version", path);
    else if ((out->facts = calloc(count, sizeof *out->facts)) == NULL)
        result = sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    if (result == 0)
        read_settings(out, root);
    for (size_t i = 0; i < count && result == 0; i++)
        result = read_variant(out, json_array_get(all, i), path, error);
    json_decref(root);
    return result;
}

void study_close(study *s) {
    for (size_t i = 0; s->facts != NULL && i < s->variants.count; i++)
        task_facts_close(&s->facts[i]);
    free(s->facts);
    variants_close(&s->variants);
    *s = (study){0};
}
