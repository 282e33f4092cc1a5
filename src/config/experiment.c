/* experiment.c - reading an experiment: JSON, overrides, defaults, checks; see
 * starling/experiment.h. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json.h"
#include "config/faults.h"
#include "config/keys.h"
#include "config/overlap.h"
#include "config/plan.h"
#include "config/security.h"
#include "config/tree.h"
#include "starling/algorithm.h"
#include "starling/device.h"
#include "starling/text.h"
#include "topology/foreign/recognise.h"

enum { FILE_BYTES_MAX = 64 << 20, DEPTH_MAX = 8, DOTTED_MAX = SL_PATH_TEXT_MAX };

/* ---- keys ---- */

/* "algorithm": "d-psgd" is short for {"name": "d-psgd"}, in groups that have a name. */
static int expand_name(json_t *parent, const char *name, const char *path, json_t *value,
                       sl_error *error) {
    char leaf[DOTTED_MAX + 8];
    snprintf(leaf, sizeof leaf, "%s.name", path);
    const bool named = sl_key_find(leaf) != NULL;
    if (!named || !json_is_string(value))
        return sl_keys_refuse_group(path, value, named, error);
    if (json_object_set_new(parent, name, json_pack("{sO}", "name", value)) != 0)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    return 0;
}

/* Refuses unknown keys. "comment" is allowed everywhere. */
static int check_keys(json_t *object, const char *prefix, int depth, sl_error *error) {
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, name, value) {
        char path[DOTTED_MAX];
        snprintf(path, sizeof path, "%s%s%.100s", prefix, prefix[0] ? "." : "", name);
        if (strchr(name, '.') != NULL)
            return sl_fail(error, SL_EINVAL,
                           "key \"%.100s\" holds a dot; in a file groups are objects: "
                           "{\"optimizer\": {\"momentum\": 0.9}}",
                           name);
        if (strcmp(name, "comment") == 0 || strcmp(path, "topology") == 0 ||
            strcmp(path, "faults") == 0 || sl_key_find(path) != NULL)
            continue;
        if (!sl_keys_have_group(path) || depth == DEPTH_MAX)
            return sl_keys_refuse_unknown(path, error);
        int result = json_is_object(value) ? check_keys(value, path, depth + 1, error)
                                           : expand_name(object, name, path, value, error);
        if (result != 0)
            return result;
    }
    return 0;
}

/* ---- overrides ---- */

/* Paths on the command line are relative to the current folder, not to the experiment's. */
static json_t *from_here(json_t *value) {
    char here[PATH_MAX], whole[2 * PATH_MAX];
    const char *path = json_string_value(value);
    if (path == NULL || path[0] == '/' || path[0] == '\0' || getcwd(here, sizeof here) == NULL)
        return value;
    snprintf(whole, sizeof whole, "%s/%s", here, path);
    json_decref(value);
    return json_string(whole);
}

/* Reads JSON, or else text. Keys of text take text only, so that data.path=2024 is a folder. */
static int override_value(json_t **out, const sl_key *k, const char *path, const char *text,
                          sl_error *error) {
    char *typed = sl_text_typed(text);
    if (typed == NULL)
        return sl_fail(error, SL_ENOMEM, "--set %s: out of memory", path);
    json_t *value = json_loads(typed, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    free(typed);
    bool is_text = k != NULL && (k->type == SL_KEY_TEXT || k->type == SL_KEY_PATH);
    if (value == NULL || (is_text && !json_is_string(value))) {
        json_decref(value);
        value = json_string(text);
    }
    *out = value;
    return value != NULL
               ? 0
               : sl_fail(error, SL_EINVAL, "--set %s: the value is not valid UTF-8", path);
}

static int apply_override(json_t *root, const char *text, sl_error *error) {
    const char *equals = strchr(text, '=');
    char path[DOTTED_MAX];
    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof path)
        return sl_fail(error, SL_EINVAL,
                       "--set %.100s: must be key=value, such as optimizer.learning_rate=0.2",
                       text);
    memcpy(path, text, (size_t)(equals - text));
    path[equals - text] = '\0';
    const sl_key *k = sl_key_find(path);
    json_t *value = NULL;
    const int read = override_value(&value, k, path, equals + 1, error);
    if (read != 0)
        return read;
    if (strcmp(path, "topology") == 0 || (k != NULL && k->type == SL_KEY_PATH))
        value = from_here(value);
    else if (k == NULL && !sl_keys_have_group(path) && strncmp(path, "topology.", 9) != 0 &&
             strcmp(path, "faults") != 0) {
        json_decref(value);
        int result = sl_keys_refuse_unknown(path, error);
        return error ? sl_fail_prefix(error, result, "--set") : result;
    }
    if (sl_tree_set(root, path, value) != 0)
        return sl_fail(error, SL_EINVAL,
                       "--set %s: a part of this key is a value in the experiment, not an object; "
                       "set that whole",
                       path);
    return 0;
}

/* ---- values ---- */

static int read_keys(sl_experiment *e, json_t *root, sl_error *error) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++) {
        const sl_key *k = keys.items[i];
        json_t *given = sl_tree_get(root, k->path);
        json_t *value = given ? json_incref(given) : json_loads(k->fallback, JSON_DECODE_ANY, NULL);
        int result = sl_key_read(k, e, value, error);
        json_decref(value);
        if (result != 0)
            return result;
    }
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, NULL);
    if (a != NULL && a->defaults != NULL)
        a->defaults(&e->algorithm);
    return 0;
}

/* as_named: it need not be there, and links in it stay; its folder is made absolute, for whoever
 * reads the run's configuration elsewhere. */
static int make_absolute(char path[SL_PATH_MAX], const char *folder, const char *name,
                         bool as_named, sl_error *error) {
    char whole[2 * SL_PATH_MAX], real[PATH_MAX], base[PATH_MAX];
    if (path[0] == '\0')
        return 0;
    if (realpath(folder, base) == NULL)
        snprintf(base, sizeof base, "%s", folder);
    const int length = snprintf(whole, sizeof whole, "%s%s%s", path[0] == '/' ? "" : base,
                                path[0] == '/' ? "" : "/", path);
    if (length >= PATH_MAX)
        return sl_fail(error, SL_EINVAL, "%s: the path is longer than %d bytes", name,
                       SL_PATH_MAX - 1);
    if (as_named)
        memcpy(real, whole, (size_t)length + 1);
    else if (realpath(whole, real) == NULL)
        return sl_fail(error, SL_EFILE, "%s: %s: %s", name, whole, strerror(errno));
    json_t *text = json_string(real);
    json_decref(text);
    if (text == NULL)
        return sl_fail(
            error, SL_EINVAL,
            "%s: %s: the path is not valid UTF-8, and so cannot stand in the run's configuration",
            name, real);
    if (strlen(real) >= SL_PATH_MAX)
        return sl_fail(error, SL_EINVAL, "%s: the path is longer than %d bytes", name,
                       SL_PATH_MAX - 1);
    memcpy(path, real, strlen(real) + 1);
    return 0;
}

static int resolve_paths(sl_experiment *e, const char *folder, sl_error *error) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++)
        if (keys.items[i]->type == SL_KEY_PATH) {
            int result = make_absolute((char *)e + sl_key_offset(keys.items[i]), folder,
                                       keys.items[i]->path, keys.items[i]->as_named, error);
            if (result != 0)
                return result;
        }
    return 0;
}

static bool is_family(const char *name) {
    for (int i = SL_FAMILY_EDGES + 1; i < SL_FAMILIES; i++)
        if (strcmp(sl_family_describe((sl_family)i)->name, name) == 0)
            return true;
    return false;
}

/* Families are written as objects. */
static int refuse_path(const char *path, const char *folder, sl_error *error) {
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    return sl_fail(error, SL_EINVAL,
                   "topology: %s%s%s: %s; it is the path of a topology file, or an object such as "
                   "{\"nodes\": 8, \"family\": \"%s\"}",
                   path[0] == '/' ? "" : folder, path[0] == '/' ? "" : "/", path, strerror(errno),
                   is_family(name) ? name : "ring");
}

/* An experiment holds a topology but is none. */
static int refuse_experiment(const char *path, sl_error *error) {
    char *text;
    if (sl_text_read(&text, path, FILE_BYTES_MAX, NULL) != 0)
        return 0; /* the topology's reader says why */
    json_t *root = json_loads(text, 0, NULL);
    bool experiment = json_object_get(root, "topology") != NULL;
    json_decref(root);
    free(text);
    if (!experiment)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "topology: %s is an experiment, not a topology; give the topology that it names",
                   path);
}

static int read_topology(sl_experiment *e, json_t *value, const char *folder,
                         const sl_topology_opening *how, sl_error *error) {
    if (value == NULL)
        return sl_fail(error, SL_EINVAL,
                       "topology: missing; it is the path of a topology file, or an object such as "
                       "{\"nodes\": 8, \"family\": \"ring\"}");
    if (json_is_string(value)) {
        char path[SL_PATH_MAX];
        if (json_string_length(value) >= sizeof path)
            return sl_fail(error, SL_EINVAL, "topology: the path is longer than %d bytes",
                           SL_PATH_MAX - 1);
        if (json_string_length(value) == 0)
            return sl_fail(error, SL_EINVAL,
                           "topology: \"\" is not allowed; it must be the path of a topology file, "
                           "or an object such as {\"nodes\": 8, \"family\": \"ring\"}");
        memcpy(path, json_string_value(value), json_string_length(value) + 1);
        int result = make_absolute(path, folder, "topology", false, error);
        if (result == SL_EFILE)
            return refuse_path(path, folder, error);
        if (result == 0)
            result = refuse_experiment(path, error);
        if (result != 0)
            return result;
        return sl_topology_load_as(&e->topology, path, how, error);
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "topology: out of memory");
    int result = sl_topology_parse_as(&e->topology, text, "topology", how, error);
    free(text);
    return result;
}

/* ---- what must fit together ---- */

static int check_data(const sl_experiment *e, sl_error *error) {
    if (e->model.kind == SL_MODEL_QUADRATIC)
        return e->model.path[0]
                   ? 0
                   : sl_fail(error, SL_EINVAL,
                             "model.path: missing; a quadratic is a JSON file with A, b and x0");
    if (e->model.kind == SL_MODEL_SYNTHETIC)
        return e->rounds > 0 || e->data.train_samples > 0
                   ? 0
                   : sl_fail(error, SL_EINVAL,
                             "epochs: a synthetic model has no data; give rounds, or in "
                             "data.train_samples how many samples an epoch has");
    if (e->data.kind != SL_DATA_DIGITS && e->data.path[0] == '\0')
        return sl_fail(error, SL_EINVAL,
                       "data.path: missing; say where the data set is, as in --set data.path=DIR "
                       "(data.name \"digits\" needs none)");
    if (e->model.kind == SL_MODEL_MLP && e->model.hidden_count == 0)
        return sl_fail(error, SL_EINVAL,
                       "model.hidden: is empty; an mlp has at least one hidden layer (model "
                       "\"softmax\" has none)");
    return 0;
}

static bool same_pair(const double *a, const double *b) {
    return (a[0] == b[0] && a[1] == b[1]) || (a[0] == b[1] && a[1] == b[0]);
}

static int check_link(const sl_number_rows *links, size_t at, size_t nodes, sl_error *error) {
    const double *row = links->values + at * links->columns;
    const bool are_ranks = row[0] == floor(row[0]) && row[1] == floor(row[1]);
    if (links->columns < 3 || links->columns > 4)
        return sl_fail(error, SL_EINVAL,
                       "network.links[%zu]: has %zu numbers; it must be [i, j, bandwidth_mbit] or "
                       "[i, j, bandwidth_mbit, latency_ms]",
                       at, links->columns);
    if (!are_ranks || row[0] >= (double)nodes || row[1] >= (double)nodes || row[0] == row[1])
        return sl_fail(
            error, SL_EINVAL,
            "network.links[%zu]: %g and %g are not two ranks of the topology's %zu nodes", at,
            row[0], row[1], nodes);
    for (size_t i = 0; i < at; i++)
        if (same_pair(links->values + i * links->columns, row))
            return sl_fail(
                error, SL_EINVAL,
                "network.links[%zu]: the pair %g, %g has a link in row %zu; give it once", at,
                row[0], row[1], i);
    return 0;
}

static int check_network(const sl_experiment *e, sl_error *error) {
    size_t nodes = sl_topology_nodes(e->topology), given = e->network.speed_count;
    int result = 0;
    if (given != 0 && given != nodes)
        return sl_fail(
            error, SL_EINVAL,
            "network.speeds: has %zu speeds, the topology %zu nodes; give one for each, or none",
            given, nodes);
    for (size_t i = 0; result == 0 && i < e->network.links.rows; i++)
        result = check_link(&e->network.links, i, nodes, error);
    const sl_number_rows *turns = &e->network.compute_ms;
    if (result == 0 && turns->rows > 0 && turns->columns != nodes)
        return sl_fail(error, SL_EINVAL,
                       "network.compute_ms[0]: has %zu times, the topology %zu nodes; give one for "
                       "each",
                       turns->columns, nodes);
    return result;
}

/* Nodes that go at their own times have no round that a file could name. */
static int check_asynchronous(const sl_experiment *e, sl_error *error) {
    if (e->checkpoint.every == 0 || e->membership.on_loss == SL_ON_LOSS_CONTINUE ||
        !sl_experiment_is_asynchronous(e))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "checkpoint.every, where membership.on_loss is \"stop\": algorithm '%s' lets "
                   "nodes go at their own times here, and cannot do that yet; take \"continue\"",
                   e->algorithm.name);
}

static int check_gpu_direct(const sl_experiment *e, sl_error *error) {
    const sl_compressor_kind kind = sl_algorithm_compressor(&e->algorithm);
    if (e->transport.gpu_direct != SL_GPU_DIRECT_ON)
        return 0;
    if (strcmp(e->device, "cpu") == 0)
        return sl_fail(error, SL_EINVAL,
                       "transport.gpu_direct: \"on\" needs vectors on a GPU, and device is "
                       "\"cpu\": set device, or leave it \"off\"");
    if (kind != SL_COMPRESSOR_IDENTITY)
        return sl_fail(error, SL_EINVAL,
                       "transport.gpu_direct: \"on\" is for compressor identity only: payloads of "
                       "\"%s\" are checked on the host; leave it \"off\"",
                       sl_compressor_name(kind));
    if (sl_experiment_is_asynchronous(e))
        return sl_fail(
            error, SL_EINVAL,
            "transport.gpu_direct: \"on\", but algorithm '%s' lets nodes go at their own "
            "times here, whose payloads go through the host; leave it \"off\"",
            e->algorithm.name);
    return 0;
}

static int check_device(const sl_experiment *e, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, error);
    if (a == NULL)
        return SL_EINVAL;
    if (!a->host_only || !sl_device_describe(e->device, &(sl_device_info){0}))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "device: \"%s\", but this form of algorithm '%s' has no kernels for a GPU; take "
                   "\"cpu\"",
                   e->device, a->name);
}

static int check_fit(const sl_experiment *e, sl_error *error) {
    if (e->rounds > 0 && e->epochs > 0)
        return sl_fail(error, SL_EINVAL,
                       "rounds is %llu and epochs is %g; give one of them, and leave the other out "
                       "or 0",
                       (unsigned long long)e->rounds, (double)e->epochs);
    if (e->rounds == 0 && e->epochs <= 0)
        return sl_fail(error, SL_EINVAL,
                       "rounds, epochs: both are 0; one of them must say how long to train");
    if (e->model.kind == SL_MODEL_QUADRATIC && e->rounds == 0)
        return sl_fail(error, SL_EINVAL,
                       "epochs: a quadratic has no samples to pass over; give rounds");
    if (e->optimizer.momentum > 0 &&
        (e->optimizer.kind == SL_OPTIMIZER_ADAMW || e->optimizer.kind == SL_OPTIMIZER_LAMB))
        return sl_fail(error, SL_EINVAL,
                       "optimizer.momentum: %g, but \"%s\" has moments of its own, "
                       "optimizer.beta1; set it to 0",
                       e->optimizer.momentum, sl_optimizer_name(e->optimizer.kind));
    if (e->optimizer.nesterov && e->optimizer.momentum <= 0)
        return sl_fail(error, SL_EINVAL,
                       "optimizer.nesterov: true needs optimizer.momentum above 0");
    const sl_schedule *s = &e->optimizer.schedule;
    if (s->kind == SL_SCHEDULE_STEP && s->milestone_count == 0)
        return sl_fail(error, SL_EINVAL,
                       "optimizer.schedule.milestones: is empty; a step schedule needs fractions "
                       "of the run, such as [0.5, 0.75]");
    if (e->transport.chunk_bytes % 4096 != 0)
        return sl_fail(error, SL_EINVAL, "transport.chunk_bytes: %u is not a multiple of 4096",
                       e->transport.chunk_bytes);
    int result = sl_device_check_name(e->device, error);
    if (result == 0)
        result = check_device(e, error);
    if (result == 0)
        result = check_data(e, error);
    if (result == 0)
        result = check_network(e, error);
    if (result == 0)
        result = check_asynchronous(e, error);
    if (result == 0)
        result = sl_algorithm_check(&e->algorithm, e->topology, &e->optimizer, error);
    if (result == 0)
        result = sl_overlap_check(e, error);
    if (result == 0)
        result = sl_faults_check(e, error);
    if (result == 0)
        result = sl_plan_check_checkpoint(e, &e->algorithm, error);
    if (result == 0)
        result = sl_security_check(&e->security, e->transport.provider, error);
    return result != 0 ? result : check_gpu_direct(e, error);
}

/* ---- opening ---- */

/* How an experiment is read, but for its text. */
typedef struct reading {
    const char *where, *folder;
    const char *const *overrides;
    size_t override_count;
    const sl_session_reading *session; /* NULL: it trains the model that it names */
    const sl_watch *watch;             /* NULL: nobody */
} reading;

/* A session that overlaps takes the form that sends old models, where there is one. */
static sl_algorithm_config form_of(const sl_experiment *e, const reading *r) {
    sl_algorithm_config form = e->algorithm;
    form.variant = SL_VARIANT_COMBINE_WHILE_ADAPT;
    const bool changes = r->session != NULL && r->session->overlap &&
                         !sl_experiment_is_asynchronous(e) && sl_algorithm_of(&form, NULL) != NULL;
    return changes ? form : e->algorithm;
}

static const double usual_momentum = 0.9; /* of a session's optimizer, which is the caller's */

/* Lazy weights are a matter of the whole experiment: decided once, whatever becomes of its members,
 * and named in its resolved form. */
static int open_topology(sl_experiment *e, json_t *value, const reading *r, sl_error *error) {
    const sl_algorithm_config form = form_of(e, r);
    const double momentum =
        r->session != NULL ? usual_momentum : sl_optimizer_momentum(&e->optimizer);
    sl_lazy_choice weights = {.below = sl_algorithm_lazy_below(&form, momentum)};
    const sl_topology_opening how = {.lazy = &weights, .watch = r->watch};
    const int result = read_topology(e, value, r->folder, &how, error);
    e->chose_lazy = weights.taken;
    return result;
}

/* Of files that `starling compare` takes apart. */
static const char *const several[] = {"variants", "sweep"};

static int read_root(sl_experiment *e, json_t *root, const reading *r, sl_error *error) {
    if (!json_is_object(root))
        return sl_fail(error, SL_EINVAL, "must be a JSON object");
    for (size_t i = 0; i < sizeof several / sizeof *several; i++)
        if (json_object_get(root, several[i]) != NULL)
            return sl_fail(error, SL_EINVAL,
                           "holds several experiments (%s); starling compare runs them",
                           several[i]);
    int result = check_keys(root, "", 0, error);
    const bool is_resolved = sl_keys_are_all(root); /* an override may replace a group */
    for (size_t i = 0; i < r->override_count && result == 0; i++) {
        result = apply_override(root, r->overrides[i], error);
        if (result == 0)
            result = check_keys(root, "", 0, error);
    }
    char *dropped = NULL;
    if (result == 0 && r->session != NULL)
        result = sl_session_keys_drop(root, r->session, &dropped, error);
    if (result == 0)
        result = read_keys(e, root, error);
    if (result == 0)
        result = resolve_paths(e, r->folder, error);
    e->algorithm.budget.link = (sl_link){e->network.bandwidth_mbit, e->network.latency_ms};
    e->algorithm.budget.links = &e->network.links;
    if (result == 0 && e->library[0] != '\0')
        result = sl_algorithm_library_open(&e->algorithm.library, e->library, error);
    if (result == 0 && r->session != NULL && r->session->key != NULL)
        result = sl_security_take_key(&e->security, r->session->key, error);
    if (result == 0)
        result = open_topology(e, json_object_get(root, "topology"), r, error);
    if (result == 0)
        sl_buckets_resolve(e);
    if (result == 0)
        result = sl_faults_read(e, json_object_get(root, "faults"), error);
    if (result == 0 && r->session != NULL && e->faults.count > 0)
        result =
            sl_fail(error, SL_EINVAL,
                    "faults: `starling sim` plays them with its own models; a session has none");
    if (result == 0 && r->session != NULL)
        result = sl_experiment_check_session(e, error);
    if (result == 0)
        result = check_fit(e, error);
    const sl_algorithm_config form = form_of(e, r);
    if (result == 0 && form.variant != e->algorithm.variant)
        result = sl_algorithm_check(&form, e->topology, &e->optimizer, error);
    if (result == 0)
        result = sl_keys_warn(e, is_resolved ? NULL : root, dropped, error);
    free(dropped);
    return result;
}

static int parse(sl_experiment **out, const char *json, const reading *r, sl_error *error) {
    json_t *root;
    int result = sl_json_parse(&root, json, strlen(json), 0, r->where, SL_EINVAL, error);
    if (result != 0)
        return result;
    sl_experiment *e = calloc(1, sizeof *e);
    result = e == NULL ? sl_fail(error, SL_ENOMEM, "out of memory") : read_root(e, root, r, error);
    json_decref(root);
    if (result != 0) {
        sl_fail_prefix(error, result, "%s", r->where);
        sl_experiment_close(&e);
        return result;
    }
    *out = e;
    return 0;
}

static int load(sl_experiment **out, const char *path, reading *r, sl_error *error) {
    char *text, folder[PATH_MAX];
    int result = sl_graph_text_read(&text, path, FILE_BYTES_MAX, error);
    if (result != 0)
        return result;
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        snprintf(folder, sizeof folder, ".");
    else
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    r->where = path;
    r->folder = folder;
    result = parse(out, text, r, error);
    free(text);
    return result;
}

int sl_experiment_parse(sl_experiment **out, const char *json, const char *where,
                        const char *folder, const char *const *overrides, size_t override_count,
                        sl_error *error) {
    const reading r = {
        .where = where, .folder = folder, .overrides = overrides, .override_count = override_count};
    return parse(out, json, &r, error);
}

int sl_experiment_load_watched(sl_experiment **out, const char *path, const char *const *overrides,
                               size_t override_count, const sl_watch *watch, sl_error *error) {
    reading r = {.overrides = overrides, .override_count = override_count, .watch = watch};
    return load(out, path, &r, error);
}

int sl_experiment_load(sl_experiment **out, const char *path, const char *const *overrides,
                       size_t override_count, sl_error *error) {
    return sl_experiment_load_watched(out, path, overrides, override_count, NULL, error);
}

int sl_experiment_load_session(sl_experiment **out, const char *source,
                               const sl_session_reading *how, sl_error *error) {
    reading r = {.where = "experiment",
                 .folder = ".",
                 .overrides = how->overrides,
                 .override_count = how->override_count,
                 .session = how};
    const char *first = source + strspn(source, " \t\r\n");
    return *first == '{' ? parse(out, source, &r, error) : load(out, source, &r, error);
}

size_t sl_experiment_device_bytes(const sl_experiment *experiment) {
    return (size_t)(1e9 * experiment->device_memory_gb);
}

void sl_experiment_close(sl_experiment **experiment) {
    if (*experiment == NULL)
        return;
    sl_topology_close(&(*experiment)->topology);
    sl_faults_close(&(*experiment)->faults);
    sl_algorithm_library_close(&(*experiment)->algorithm.library);
    free((*experiment)->warnings);
    free(*experiment);
    *experiment = NULL;
}
